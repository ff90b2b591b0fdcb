//! Reading replies: maps of RESP3 with byte names in any place.

use redis::Value;

use crate::names::shown;

/// A map reply. Fields that are not there read as nothing: later servers and limited ones say less.
#[derive(Clone, Debug, Default)]
pub struct Record(Vec<(String, Value)>);

impl Record {
    /// From a map; `None` for null.
    pub fn read(value: Value) -> Option<Self> {
        match value {
            Value::Map(pairs) => {
                Some(Self(pairs.into_iter().map(|(name, value)| (text(&name), value)).collect()))
            }
            _ => None,
        }
    }

    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value)
    }

    pub fn fields(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// An integer; 0 when it is missing.
    pub fn int(&self, name: &str) -> i64 {
        self.maybe_int(name).unwrap_or(0)
    }

    pub fn maybe_int(&self, name: &str) -> Option<i64> {
        self.get(name).and_then(int)
    }

    pub fn float(&self, name: &str) -> f64 {
        self.get(name).and_then(float).unwrap_or(0.0)
    }

    /// Bytes of a text; none when it is missing.
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        self.get(name).map(bytes).unwrap_or_default()
    }

    /// A text for people; empty when it is missing.
    pub fn text(&self, name: &str) -> String {
        self.get(name).map(text).unwrap_or_default()
    }

    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub fn list(&self, name: &str) -> Vec<Value> {
        self.get(name).cloned().map(list).unwrap_or_default()
    }

    pub fn record(&self, name: &str) -> Record {
        self.get(name).cloned().and_then(Record::read).unwrap_or_default()
    }
}

pub fn int(value: &Value) -> Option<i64> {
    match value {
        Value::Int(number) => Some(*number),
        Value::Double(number) => Some(*number as i64),
        Value::BulkString(digits) => std::str::from_utf8(digits).ok()?.parse().ok(),
        _ => None,
    }
}

pub fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::Double(number) => Some(*number),
        Value::BulkString(digits) => std::str::from_utf8(digits).ok()?.parse().ok(),
        _ => None,
    }
}

pub fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::BulkString(bytes) => bytes.clone(),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => text.clone().into_bytes(),
        Value::Okay => b"OK".to_vec(),
        Value::Int(number) => number.to_string().into_bytes(),
        Value::Double(number) => number.to_string().into_bytes(),
        _ => Vec::new(),
    }
}

/// For people; of a list its elements with commas between.
pub fn text(value: &Value) -> String {
    match value {
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(", "),
        Value::Map(pairs) => {
            let pairs: Vec<String> =
                pairs.iter().map(|(name, value)| format!("{}: {}", text(name), text(value))).collect();
            pairs.join(", ")
        }
        other => shown(&bytes(other)),
    }
}

pub fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(values) | Value::Set(values) => values,
        _ => Vec::new(),
    }
}

/// A list of maps, without nulls.
pub fn records(value: Value) -> Vec<Record> {
    list(value).into_iter().filter_map(Record::read).collect()
}

/// `[cursor, list]`: where the next page begins, `None` at the end, and the maps.
pub fn page(value: Value) -> (Option<Vec<u8>>, Vec<Record>) {
    let mut halves = list(value).into_iter();
    let cursor = halves.next().map(|cursor| bytes(&cursor)).filter(|cursor| cursor != b"0");
    (cursor, records(halves.next().unwrap_or(Value::Nil)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.as_bytes().to_vec())
    }

    #[test]
    fn a_record_reads_what_is_there() {
        let record =
            Record::read(Value::Map(vec![(bulk("n"), Value::Int(3)), (bulk("x"), bulk("<b>"))])).unwrap();
        assert_eq!((record.int("n"), record.int("m")), (3, 0));
        assert_eq!((record.text("x"), record.has("y")), ("<b>".into(), false));
        assert!(Record::read(Value::Nil).is_none());
    }

    #[test]
    fn a_page_ends_at_0() {
        let rows = Value::Array(vec![Value::Map(vec![]), Value::Nil]);
        let (cursor, records) = page(Value::Array(vec![bulk("0"), rows.clone()]));
        assert_eq!((cursor, records.len()), (None, 1));
        assert_eq!(page(Value::Array(vec![bulk("7.x"), rows])).0, Some(b"7.x".to_vec()));
    }
}
