//! Fields in payloads of JSON: `order.id` with `4711`. The server looks at payloads as bytes, so that the console
//! asks it for jobs that may have a field, and looks into these.

use serde_json::Value;

/// Fields of one payload that are looked at.
const MOST: usize = 2000;

/// Keys may be so long to be asked for.
const LONGEST: usize = 100;

/// A field as a search names it: its path, a colon, and what it has.
pub fn halves(wanted: &[u8]) -> Option<(&str, &str)> {
    std::str::from_utf8(wanted).ok()?.split_once(':').filter(|(path, _)| !path.is_empty())
}

/// The fields of a payload, each with its path and its text; those in lists have the path of the list.
pub fn fields(payload: &[u8]) -> Vec<(String, String)> {
    let mut found = Vec::new();
    if let Ok(json) = serde_json::from_slice::<Value>(payload) {
        add(&json, "", &mut found);
    }
    found
}

fn add(json: &Value, path: &str, found: &mut Vec<(String, String)>) {
    if found.len() >= MOST {
        return;
    }
    match json {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                add(value, &path, found);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| add(value, path, found)),
        Value::String(text) => found.push((path.to_owned(), text.clone())),
        other => found.push((path.to_owned(), other.to_string())),
    }
}

/// Whether a payload has a field with this value.
pub fn has(payload: &[u8], wanted: &[u8]) -> bool {
    let Some((path, value)) = halves(wanted) else { return false };
    fields(payload).iter().any(|(own, text)| own == path && text == value)
}

/// Texts that each payload with this field contains, for the server: as programs differ in how they write
/// spaces, numbers and letters beyond ASCII, only what all write alike.
pub fn texts(wanted: &[u8]) -> Vec<Vec<u8>> {
    let Some((path, value)) = halves(wanted) else { return Vec::new() };
    let plain = |text: &str| {
        (1..=LONGEST).contains(&text.len())
            && text.bytes().all(|byte| (b' '..=b'~').contains(&byte) && !b"\"\\/".contains(&byte))
    };
    // A key may have dots of its own: then this is its last part, which it contains as well.
    let key = path.rsplit('.').next().unwrap_or(path);
    let mut found = Vec::new();
    if plain(key) {
        found.push([key.as_bytes(), b"\""].concat());
    }
    // Of numbers all write small whole ones alike.
    let is_odd_number =
        value.parse::<f64>().is_ok() && !value.parse::<i32>().is_ok_and(|number| number.to_string() == value);
    if plain(value) && !is_odd_number {
        found.push(value.as_bytes().to_vec());
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAYLOAD: &[u8] =
        br#"{"order": {"id": 4711, "paid": true}, "items": [{"sku": "a b"}, {"sku": "c"}], "a.b": 1.5}"#;

    #[test]
    fn fields_have_paths_whatever_their_depth() {
        let found = fields(PAYLOAD);
        let texts: Vec<String> = found.iter().map(|(path, text)| format!("{path}:{text}")).collect();
        assert_eq!(texts, ["a.b:1.5", "items.sku:a b", "items.sku:c", "order.id:4711", "order.paid:true"]);
        for wanted in &texts {
            assert!(has(PAYLOAD, wanted.as_bytes()), "{wanted}");
        }
        for wanted in ["order.id:471", "id:4711", "order:4711", "order.id", ":4711", "items.sku:a"] {
            assert!(!has(PAYLOAD, wanted.as_bytes()), "{wanted}");
        }
        assert!(fields(b"plain text").is_empty() && !has(b"\xff", b"a:b"));
    }

    #[test]
    fn the_server_is_asked_for_what_such_a_payload_contains() {
        let text = String::from_utf8_lossy(PAYLOAD).into_owned();
        for (path, value) in fields(PAYLOAD) {
            for part in texts(format!("{path}:{value}").as_bytes()) {
                assert!(text.contains(&String::from_utf8(part.clone()).unwrap()), "{part:?}");
            }
        }
        let asked = |wanted: &str| texts(wanted.as_bytes());
        assert_eq!(asked("order.id:4711"), [&b"id\""[..], b"4711"]);
        // 1.5 may be written 15e-1, é as \u00e9, / as \/.
        assert_eq!(asked("a:1.5"), [b"a\""]);
        assert_eq!(asked("a:é"), [b"a\""]);
        assert_eq!(asked("ä:a/b"), [] as [&[u8]; 0]);
    }
}
