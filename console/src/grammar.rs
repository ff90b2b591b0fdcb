//! What people type to find jobs: `failed since 2h kind:IOError`, an id, a word.

use crate::filters::{FLAGS, NAMED};
use crate::format::STATES;

/// Words for fields, beside their own.
const ALIASES: [(&str, &str); 7] = [
    ("q", "queue"),
    ("type", "name"),
    ("error", "kind"),
    ("is", "state"),
    ("by", "worker"),
    ("for", "user"),
    ("contains", "text"),
];

/// Words for states, beside their own.
const STATE_WORDS: [(&str, &str); 5] = [
    ("running", "claimed"),
    ("done", "complete"),
    ("completed", "complete"),
    ("waiting", "blocked"),
    ("canceled", "cancelled"),
];

#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// A field of an address, and its value.
    Field(&'static str, String),
    /// Something by itself: an id, a name, a tag …
    Word(String),
    /// A field that there is not, or a time that is none.
    Odd(String),
}

/// Reads a search, term by term.
pub fn read(text: &str) -> Vec<Term> {
    let mut pieces = pieces(text).into_iter().peekable();
    let mut terms = Vec::new();
    while let Some((piece, quoted)) = pieces.next() {
        if quoted {
            terms.push(Term::Word(piece));
            continue;
        }
        if piece == "since" {
            if let Some((time, _)) = pieces.next_if(|(piece, _)| duration(piece).is_some()) {
                terms.push(Term::Field("since", time));
                continue;
            }
        }
        terms.push(one(piece));
    }
    terms
}

fn one(piece: String) -> Term {
    if let Some(state) = state(&piece) {
        return Term::Field("state", state.into());
    }
    if let Some((flag, _)) = FLAGS.iter().find(|(flag, _)| *flag == piece) {
        return Term::Field(flag, "1".into());
    }
    let Some((field, value)) = piece.split_once(':').filter(|(_, value)| !value.is_empty()) else {
        return Term::Word(piece);
    };
    if let Some(name) = field.strip_prefix("meta.").filter(|name| !name.is_empty()) {
        return Term::Field("meta", format!("{name}:{value}"));
    }
    if let Some(path) = field.strip_prefix("payload.").filter(|path| !path.is_empty()) {
        return Term::Field("payload", format!("{path}:{value}"));
    }
    let field = ALIASES.iter().find(|(alias, _)| *alias == field).map_or(field, |(_, field)| field);
    if let Some((known, _)) = NAMED.iter().find(|(known, _)| *known == field) {
        return Term::Field(known, value.into());
    }
    match (field, value.strip_suffix('*')) {
        ("id", Some(beginning)) if !beginning.is_empty() => return Term::Field("prefix", beginning.into()),
        _ => {}
    }
    match field {
        "id" => Term::Field("id", value.into()),
        "state" => state(value).map_or(Term::Odd(piece.clone()), |state| Term::Field("state", state.into())),
        "since" if duration(value).is_some() => Term::Field("since", value.into()),
        "since" => Term::Odd(piece),
        // An id may have a colon.
        _ => Term::Word(piece),
    }
}

fn state(word: &str) -> Option<&'static str> {
    let known = STATES.iter().find(|state| **state == word).copied();
    known.or_else(|| STATE_WORDS.iter().find(|(own, _)| *own == word).map(|(_, state)| *state))
}

/// Words, and what stands between quotation marks, also behind a colon.
fn pieces(text: &str) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    let (mut piece, mut within, mut quoted) = (String::new(), false, false);
    for one in text.chars() {
        if one == '"' {
            quoted |= !within && piece.is_empty();
            within = !within;
        } else if one.is_whitespace() && !within {
            if !piece.is_empty() {
                found.push((std::mem::take(&mut piece), quoted));
            }
            quoted = false;
        } else {
            piece.push(one);
        }
    }
    if !piece.is_empty() {
        found.push((piece, quoted));
    }
    found
}

/// A time such as `90s`, `2h` or `7d`, in ms.
pub fn duration(text: &str) -> Option<i64> {
    let digits = text.trim_end_matches(|one: char| one.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "s" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        "w" => 7 * 86_400_000,
        _ => return None,
    };
    digits.parse::<i64>().ok().filter(|count| (1..=1_000_000).contains(count)).map(|count| count * unit)
}

/// The text of a search that asks for this field.
pub fn written(field: &str, value: &str) -> String {
    let quoted = |value: &str| match value.contains(char::is_whitespace) {
        true => format!("\"{value}\""),
        false => value.to_owned(),
    };
    if let Some((name, value)) = value.split_once(':').filter(|_| ["meta", "payload"].contains(&field)) {
        return format!("{field}.{name}:{}", quoted(value));
    }
    let value = quoted(value);
    match field {
        "state" => crate::format::word(&value).to_owned(),
        "since" => format!("since {value}"),
        "prefix" => format!("id:{value}*"),
        field if FLAGS.iter().any(|(flag, _)| *flag == field) => field.into(),
        field => format!("{field}:{value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Vec<(&'static str, String)> {
        let field = |term| match term {
            Term::Field(field, value) => (field, value),
            other => panic!("{other:?}"),
        };
        read(text).into_iter().map(field).collect()
    }

    #[test]
    fn terms_become_fields() {
        assert_eq!(
            fields("failed since 2h kind:IOError"),
            [("state", "failed".into()), ("since", "2h".into()), ("kind", "IOError".into())]
        );
        assert_eq!(
            fields("running q:mails by:\"worker 1\" lapsed"),
            [
                ("state", "claimed".into()),
                ("queue", "mails".into()),
                ("worker", "worker 1".into()),
                ("lapsed", "1".into())
            ]
        );
    }

    #[test]
    fn what_is_no_field_is_a_word() {
        assert_eq!(read("order:42"), [Term::Word("order:42".into())]);
        assert_eq!(read("\"failed\" since"), [Term::Word("failed".into()), Term::Word("since".into())]);
        assert_eq!(
            read("state:gone since:soon"),
            [Term::Odd("state:gone".into()), Term::Odd("since:soon".into())]
        );
        assert_eq!(read("  "), []);
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(
            ["90s", "5m", "2h", "1d"].map(duration),
            [90_000, 300_000, 7_200_000, 86_400_000].map(Some)
        );
        assert_eq!(["2", "h", "-1h", "1y", ""].map(duration), [None; 5]);
    }

    #[test]
    fn a_search_can_be_written_again() {
        let text =
            "failed since 2h kind:IOError message:\"no route\" id:order-* tracked meta.region:\"eu 1\" \
             payload.to.name:\"Ann B\"";
        let again: Vec<String> = fields(text).iter().map(|(field, value)| written(field, value)).collect();
        assert_eq!(again.join(" "), text);
    }
}
