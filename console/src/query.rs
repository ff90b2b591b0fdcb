//! Fields of an address or of a form, as bytes: a name of a board or a job need not be text.
//!
//! A field `b.hex` is `b` in hexadecimal, for names that forms do not carry unharmed.

use percent_encoding::percent_decode;

use crate::names::{is_plain, unhex};

#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, Vec<u8>)>);

impl Query {
    /// Reads `application/x-www-form-urlencoded`; fields without a value are left out.
    pub fn read(text: &[u8]) -> Self {
        let mut fields = Vec::new();
        for pair in text.split(|&byte| byte == b'&').filter(|pair| !pair.is_empty()) {
            let mut halves = pair.splitn(2, |&byte| byte == b'=');
            let name = decoded(halves.next().unwrap_or_default());
            let value = decoded(halves.next().unwrap_or_default());
            let name = String::from_utf8_lossy(&name).into_owned();
            let (name, value) = match name.strip_suffix(".hex") {
                Some(plain) => (plain.to_owned(), unhex(&value).unwrap_or_default()),
                None => (name, value),
            };
            fields.push((name, value));
        }
        Self(fields)
    }

    /// The first field of that name that is not empty.
    pub fn bytes(&self, name: &str) -> Option<&[u8]> {
        self.all(name).find(|value| !value.is_empty())
    }

    /// The same, also when it is empty: the name of a board may be.
    pub fn any(&self, name: &str) -> Option<&[u8]> {
        self.all(name).next()
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        self.bytes(name).and_then(|value| std::str::from_utf8(value).ok()).map(str::trim)
    }

    pub fn number(&self, name: &str) -> Option<i64> {
        self.text(name).and_then(|text| text.parse().ok())
    }

    pub fn is_set(&self, name: &str) -> bool {
        self.bytes(name).is_some()
    }

    pub fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a [u8]> + use<'a, 'n> {
        self.0.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.as_slice())
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }
}

impl FromIterator<(String, Vec<u8>)> for Query {
    fn from_iter<T: IntoIterator<Item = (String, Vec<u8>)>>(fields: T) -> Self {
        Self(fields.into_iter().collect())
    }
}

fn decoded(text: &[u8]) -> Vec<u8> {
    let spaced: Vec<u8> = text.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect();
    percent_decode(&spaced).collect()
}

/// Name and value of the hidden field that carries these bytes.
pub fn hidden_field(name: &str, value: &[u8]) -> (String, String) {
    if is_plain(value) {
        (name.to_owned(), String::from_utf8_lossy(value).into_owned())
    } else {
        (format!("{name}.hex"), crate::names::hex(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_bytes() {
        let query = Query::read(b"b=a+b%2Fc&id=%FF&id=x&empty=&n=12");
        assert_eq!(query.bytes("b"), Some(&b"a b/c"[..]));
        assert_eq!(query.all("id").collect::<Vec<_>>(), [&b"\xff"[..], b"x"]);
        assert_eq!((query.bytes("empty"), query.any("empty")), (None, Some(&b""[..])));
        assert_eq!(query.number("n"), Some(12));
        assert_eq!(query.text("id"), None);
    }

    #[test]
    fn hidden_fields_bring_back_what_forms_would_change() {
        for name in [&b"plain"[..], b"a\nb", b"\xff\x00", "ü".as_bytes()] {
            let (field, value) = hidden_field("b", name);
            let body = format!("{field}={}", crate::names::coded(value.as_bytes()));
            assert_eq!(Query::read(body.as_bytes()).any("b"), Some(name));
        }
    }
}
