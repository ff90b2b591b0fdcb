//! Names as the server has them, any bytes, and as they stand in pages, addresses and forms.

use std::sync::OnceLock;

use percent_encoding::{percent_encode, AsciiSet, NON_ALPHANUMERIC};

const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// For people: UTF-8 as it is; other bytes, control characters and what turns the direction of writing
/// as `\xff` or `\u{202e}`.
pub fn shown(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for one in chunk.valid().chars() {
            if one.is_control() && one.is_ascii() {
                text.push_str(&format!("\\x{:02x}", one as u32));
            } else if one.is_control() || turns(one) {
                text.push_str(&format!("\\u{{{:x}}}", one as u32));
            } else {
                text.push(one);
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text
}

/// The same of a text of several lines: these, and tabs, stay.
pub fn lines(text: &[u8]) -> String {
    let text: Vec<u8> = text.iter().copied().filter(|&byte| byte != b'\r').collect();
    let parts = text
        .split(|&byte| byte == b'\n')
        .map(|line| line.split(|&byte| byte == b'\t').map(shown).collect::<Vec<_>>().join("\t"));
    parts.collect::<Vec<_>>().join("\n")
}

/// Characters that change the direction of what stands around them.
fn turns(one: char) -> bool {
    matches!(one, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `shown`, cut to so many characters.
pub fn short(name: &[u8], most: usize) -> String {
    let text = shown(name);
    match text.char_indices().nth(most) {
        None => text,
        Some(_) => text.chars().take(most - 1).chain(['…']).collect(),
    }
}

/// For the query part of an address.
pub fn coded(name: &[u8]) -> String {
    percent_encode(name, KEPT).to_string()
}

/// Where a proxy puts this console, such as `/jobs`; empty at the root. Set once, when it starts.
static BASE: OnceLock<String> = OnceLock::new();

/// Puts the console under a path: `/` and `/jobs/` mean the same as nothing and `/jobs`.
pub fn put_under(base: &str) {
    let _ = BASE.set(base.trim_end_matches('/').to_owned());
}

/// A path of this console, as browsers ask for it.
pub fn own(path: &str) -> String {
    format!("{}{path}", BASE.get().map_or("", String::as_str))
}

/// The reverse: `None` for what is asked of others.
pub fn asked(path: &str) -> Option<&str> {
    match path.strip_prefix(&own(""))? {
        "" => Some("/"),
        path if path.starts_with('/') => Some(path),
        _ => None,
    }
}

/// An address of this console: a path and its query.
pub fn address(path: &str, query: &[(&str, &[u8])]) -> String {
    let mut text = own(path);
    for (number, (name, value)) in query.iter().enumerate() {
        text.push(if number == 0 { '?' } else { '&' });
        text.push_str(name);
        text.push('=');
        text.push_str(&coded(value));
    }
    text
}

/// Whether a form carries the name unharmed: forms know text only, and rewrite line ends.
pub fn is_plain(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok_and(|text| !text.chars().any(char::is_control))
}

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub fn unhex(text: &[u8]) -> Option<Vec<u8>> {
    if text.len() % 2 == 1 {
        return None;
    }
    text.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_text_is_shown_by_its_numbers() {
        assert_eq!(shown("né\u{202e}x".as_bytes()), "né\\u{202e}x");
        assert_eq!(shown(b"a\xff\n<b>"), "a\\xff\\x0a<b>");
        assert_eq!(short(b"abcdef", 4), "abc…");
        assert_eq!(short(b"abcd", 4), "abcd");
    }

    #[test]
    fn lines_stay_lines() {
        assert_eq!(lines(b"a\r\n\tb\x1b[0m\n\xff"), "a\n\tb\\x1b[0m\n\\xff");
    }

    #[test]
    fn an_address_carries_any_bytes() {
        assert_eq!(address("/job", &[("b", b".."), ("id", b"a b&=\xff")]), "/job?b=..&id=a%20b%26%3D%FF");
    }

    #[test]
    fn hexadecimal_goes_there_and_back() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(unhex(hex(&bytes).as_bytes()), Some(bytes));
        assert_eq!(unhex(b"abc"), None);
        assert_eq!(unhex(b"zz"), None);
        assert!(is_plain("ünï".as_bytes()) && !is_plain(b"a\nb") && !is_plain(b"\xff"));
    }
}
