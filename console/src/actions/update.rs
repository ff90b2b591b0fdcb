//! What `JOB.UPDATE … SET` changes, as the fields of an address. Those that are also filters of a list have names
//! of their own, since an address may have both.

use super::Words;
use crate::failure::Failure;
use crate::query::Query;

/// A field of the form: in an address, as a word of the command, for people, and what stands in it when it is empty.
pub struct Change {
    pub field: &'static str,
    word: &'static str,
    pub label: &'static str,
    pub placeholder: &'static str,
    /// Whether its value is a list of names with commas between.
    many: bool,
}

const fn change(
    field: &'static str,
    word: &'static str,
    label: &'static str,
    placeholder: &'static str,
) -> Change {
    Change { field, word, label, placeholder, many: false }
}

const fn names(field: &'static str, word: &'static str, label: &'static str) -> Change {
    Change { field, word, label, placeholder: "none; a, b", many: true }
}

pub const CHANGES: [Change; 7] = [
    change("priority", "PRIORITY", "priority", "as it is"),
    change("to", "QUEUE", "queue", "as it is"),
    change("set-delay", "DELAY", "run after", "as it is; 10m, 2h"),
    change("set-retries", "RETRIES", "retries", "as it is; -1: no limit"),
    change("set-lease", "LEASE", "lease of the next claim", "as it is; 30s, 5m"),
    names("add-tags", "TAG", "add tags"),
    names("drop-tags", "UNTAG", "remove tags"),
];

/// Adds what the address changes to a command.
pub fn add(words: &mut Words, query: &Query) -> Result<(), Failure> {
    let mut said = Words::default();
    for change in CHANGES {
        let Some(value) = query.bytes(change.field).map(<[u8]>::trim_ascii).filter(|value| !value.is_empty())
        else {
            continue;
        };
        if change.many {
            let names: Vec<&[u8]> = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).collect();
            let names: Vec<&[u8]> = names.into_iter().filter(|name| !name.is_empty()).collect();
            said = said.with(&[change.word.as_bytes(), names.len().to_string().as_bytes()]).with(&names);
        } else {
            said = said.with(&[change.word.as_bytes(), value]);
        }
    }
    if said == Words::default() {
        return Err(Failure::BadRequest(
            "Say what to change: priority, queue, time, retries, lease or tags.".into(),
        ));
    }
    *words = words.with(&[b"SET"]).with(&said.0.iter().map(Vec::as_slice).collect::<Vec<_>>());
    Ok(())
}

/// Why a job in this state cannot be changed so.
pub fn refusal(query: &Query, state: &str) -> Option<&'static str> {
    (state == "claimed" && query.is_set("set-delay")).then_some("a worker has it: it runs already")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(query: &str) -> Result<String, Failure> {
        let mut words = Words::of(&[b"JOB.UPDATE", b"b", b"1", b"j"]);
        add(&mut words, &Query::read(query.as_bytes())).map(|()| words.text())
    }

    #[test]
    fn each_field_is_a_word_of_the_command() {
        assert_eq!(
            said("priority=7&to=slow&set-delay=10m&set-retries=-1&set-lease=5m&tag=x").unwrap(),
            "JOB.UPDATE b 1 j SET PRIORITY 7 QUEUE slow DELAY 10m RETRIES -1 LEASE 5m"
        );
        assert_eq!(
            said("add-tags=red,+dark+blue+,&drop-tags=old").unwrap(),
            "JOB.UPDATE b 1 j SET TAG 2 red \"dark blue\" UNTAG 1 old"
        );
        assert!(said("priority=&tag=x").is_err());
        assert!(refusal(&Query::read(b"set-delay=0"), "claimed").is_some());
        assert!(refusal(&Query::read(b"priority=1"), "claimed").is_none());
    }
}
