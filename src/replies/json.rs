//! Messages as JSON: one flat object. Bytes that are not UTF-8 are written in base64, with a name
//! that ends in `64`.

/// An object that is being written.
pub struct Object(String);

impl Object {
    /// An object without members.
    pub fn new() -> Self {
        Object(String::from("{"))
    }

    fn name(&mut self, name: &str, suffix: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        for part in ["\"", name, suffix, "\":"] {
            self.0.push_str(part);
        }
    }

    /// A value that is JSON already: a number, `true`, `null`.
    pub fn plain(&mut self, name: &str, value: &str) {
        self.name(name, "");
        self.0.push_str(value);
    }

    /// A whole number.
    pub fn number(&mut self, name: &str, value: i64) {
        self.plain(name, &value.to_string());
    }

    /// Bytes, as text or in base64.
    pub fn bytes(&mut self, name: &str, value: &[u8]) {
        match std::str::from_utf8(value) {
            Ok(text) => {
                self.name(name, "");
                self.text(text);
            }
            Err(_) => {
                self.name(name, "64");
                self.text(&base64(value));
            }
        }
    }

    fn text(&mut self, text: &str) {
        self.0.push('"');
        for c in text.chars() {
            match c {
                '"' | '\\' => self.0.extend(['\\', c]),
                '\0'..='\x1f' => self.0.push_str(&format!("\\u{:04x}", c as u32)),
                _ => self.0.push(c),
            }
        }
        self.0.push('"');
    }

    /// The whole object.
    pub fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

/// Base64 with padding (RFC 4648).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits =
            group.iter().fold(0, |bits, byte| bits << 8 | usize::from(*byte)) << (8 * (3 - group.len()));
        for at in 0..4 {
            match at <= group.len() {
                true => text.push(char::from(DIGITS[bits >> (18 - 6 * at) & 63])),
                false => text.push('='),
            }
        }
    }
    text
}
