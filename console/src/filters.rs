//! Which jobs are meant: the filters of JOB.LIST as fields of an address.

use redis::Cmd;

use crate::format::{now, STATES};
use crate::grammar::duration;
use crate::names::shown;
use crate::payload;
use crate::query::Query;

/// Fields that hold a name, and the words of their filters.
pub const NAMED: [(&str, &str); 16] = [
    ("queue", "QUEUE"),
    ("name", "NAME"),
    ("tag", "TAG"),
    ("user", "USER"),
    ("group", "GROUP"),
    ("worker", "WORKER"),
    ("kind", "KIND"),
    ("message", "MESSAGE"),
    ("text", "CONTAINS"),
    ("stage", "STAGE"),
    ("prefix", "ID"),
    ("parent", "PARENT"),
    ("after", "AFTER"),
    ("awaits", "AWAITS"),
    // Its value is the name of the field, a colon, and what the field has.
    ("meta", "META"),
    // The path of a field in the payload, a colon, and what it has. The server narrows, the console looks.
    ("payload", "CONTAINS"),
];

/// Fields that are there or not.
pub const FLAGS: [(&str, &str); 2] = [("tracked", "TRACKED"), ("lapsed", "LAPSED")];

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filters {
    filters: Vec<(&'static str, &'static str, Vec<u8>)>,
    /// As it was typed, such as `2h`: ended since then, and of jobs that have not ended, posted.
    since: Option<String>,
}

impl Filters {
    pub fn read(query: &Query) -> Self {
        let mut filters = Vec::new();
        for state in STATES {
            if query.all("state").any(|wanted| wanted == state.as_bytes()) {
                filters.push(("state", "STATE", state.as_bytes().to_vec()));
            }
        }
        for (field, word) in NAMED {
            for value in query.all(field).filter(|value| !value.is_empty()) {
                filters.push((field, word, value.to_vec()));
            }
        }
        for (field, word) in FLAGS {
            if query.is_set(field) {
                filters.push((field, word, Vec::new()));
            }
        }
        let since = query.text("since").filter(|text| duration(text).is_some()).map(str::to_owned);
        Self { filters, since }
    }

    /// What an address says of states and times that is none, and so would be left out.
    pub fn odd(query: &Query) -> Option<String> {
        let is_odd =
            |value: &&[u8]| !value.is_empty() && !STATES.iter().any(|state| state.as_bytes() == *value);
        let state = query.all("state").find(is_odd).map(|value| format!("{} is no state.", shown(value)));
        let since = query.bytes("since").filter(|_| query.text("since").and_then(duration).is_none());
        state.or_else(|| since.map(|value| format!("{} is no time: write 90s, 15m, 2h or 7d.", shown(value))))
    }

    /// Unix ms: older jobs are not meant.
    pub fn since(&self) -> Option<i64> {
        self.since.as_deref().and_then(duration).map(|ms| now() - ms)
    }

    pub fn values<'a>(&'a self, field: &'a str) -> impl Iterator<Item = &'a [u8]> {
        self.filters.iter().filter(move |(own, _, _)| *own == field).map(|(_, _, value)| value.as_slice())
    }

    pub fn is_empty(&self) -> bool {
        self.filters.is_empty() && self.since.is_none()
    }

    /// The scheduled jobs among these; `false` when there are none, as only other states are named.
    pub fn only_scheduled(&mut self) -> bool {
        let named = self.values("state").next().is_some();
        let has = !named || self.has("state", b"scheduled");
        self.filters.retain(|(field, _, _)| *field != "state");
        self.filters.insert(0, ("state", "STATE", b"scheduled".to_vec()));
        has
    }

    /// Their words.
    pub fn words(&self) -> Vec<Vec<u8>> {
        let mut words = Vec::new();
        for (field, word, value) in &self.filters {
            if *field == "payload" {
                words.extend(
                    payload::texts(value).into_iter().flat_map(|text| [word.as_bytes().to_vec(), text]),
                );
                continue;
            }
            words.push(word.as_bytes().to_vec());
            match *field {
                "prefix" => words.push([value, &b"*"[..]].concat()),
                "meta" => words.extend(halves(value)),
                field if is_flag(field) => {}
                _ => words.push(value.clone()),
            }
        }
        if let Some(since) = self.since() {
            let ended = ["complete", "failed", "cancelled", "trashed"].map(str::as_bytes);
            let mut states = self.values("state").peekable();
            let all_ended = states.peek().is_some() && states.all(|state| ended.contains(&state));
            let word = if all_ended { "ENDED" } else { "POSTED" };
            words.extend([word.into(), since.to_string().into_bytes(), b"+".to_vec()]);
        }
        words
    }

    /// Adds their words to a command.
    pub fn add_to(&self, command: &mut Cmd) {
        for word in self.words() {
            command.arg(word);
        }
    }

    /// As fields of an address.
    pub fn fields(&self) -> Vec<(&str, &[u8])> {
        let value = |field, value| if is_flag(field) { &b"1"[..] } else { value };
        let named = self.filters.iter().map(|(field, _, bytes)| (*field, value(field, bytes.as_slice())));
        named.chain(self.since.iter().map(|since| ("since", since.as_bytes()))).collect()
    }

    /// Whether payloads have to be looked at, which the server does not do.
    pub fn look_into_payloads(&self) -> bool {
        self.values("payload").next().is_some()
    }

    /// Whether a payload has the fields that are asked for.
    pub fn hold(&self, payload: &[u8]) -> bool {
        self.values("payload").all(|wanted| payload::has(payload, wanted))
    }

    pub fn has(&self, field: &str, value: &[u8]) -> bool {
        self.filters.iter().any(|(own, _, bytes)| *own == field && bytes == value)
    }

    /// Whether the server finds a page of these without looking at many others.
    pub fn are_indexed(&self) -> bool {
        let indexed = ["state", "queue", "name", "tag", "user", "group", "kind", "tracked"];
        self.filters.iter().all(|(field, _, _)| indexed.contains(field))
    }

    /// Whether JOB.COUNT answers at once however many jobs there are: by states and queues, or by one of
    /// name, kind, user, tag and TRACKED alone.
    pub fn count_is_cheap(&self) -> bool {
        if self.since.is_some() {
            return false;
        }
        let only = |fields: &[&str]| self.filters.iter().all(|(field, _, _)| fields.contains(field));
        only(&["state", "queue"])
            || only(&["name"])
            || only(&["kind"])
            || only(&["user"])
            || self.filters.len() == 1 && only(&["tag", "tracked"])
    }
}

/// The name of a field of meta, and its value.
fn halves(value: &[u8]) -> [Vec<u8>; 2] {
    let colon = value.iter().position(|byte| *byte == b':').unwrap_or(value.len());
    [value[..colon].to_vec(), value.get(colon + 1..).unwrap_or_default().to_vec()]
}

fn is_flag(field: &str) -> bool {
    FLAGS.iter().any(|(flag, _)| *flag == field)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Filters {
        Filters::read(&Query::read(text.as_bytes()))
    }

    #[test]
    fn only_the_scheduled_ones_of_what_is_named() {
        for (text, has) in
            [("queue=q", true), ("queue=q&state=ready&state=scheduled", true), ("queue=q&state=ready", false)]
        {
            let mut filters = read(text);
            assert_eq!(filters.only_scheduled(), has, "{text}");
            assert_eq!(filters, read("queue=q&state=scheduled"));
        }
    }

    #[test]
    fn fields_become_words() {
        let mut command = redis::cmd("JOB.LIST");
        let filters = read("state=failed&state=ready&state=odd&queue=%FF&tracked=1&kind=&b=x");
        filters.add_to(&mut command);
        let packed = String::from_utf8_lossy(&command.get_packed_command()).replace("\r\n", " ");
        assert!(
            packed.contains("STATE $5 ready $5 STATE $6 failed $5 QUEUE $1 \u{fffd} $7 TRACKED"),
            "{packed}"
        );
        assert_eq!(filters.fields().last(), Some(&("tracked", &b"1"[..])));
    }

    #[test]
    fn since_is_about_the_end_where_there_is_one() {
        let words = |text| {
            let words = read(text).words();
            words.iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(words("state=failed&since=2h")[2], "ENDED");
        assert_eq!(words("state=failed&state=ready&since=2h")[4], "POSTED");
        assert_eq!(words("since=2h").len(), 3);
        assert_eq!(words("prefix=a&text=b+c"), ["CONTAINS", "b c", "ID", "a*"]);
        assert_eq!(words("meta=region:eu:1&meta=plan"), ["META", "region", "eu:1", "META", "plan", ""]);
    }

    #[test]
    fn only_counts_that_need_no_walk_are_asked_for() {
        for cheap in ["", "state=ready&queue=a&state=failed", "name=a&name=b", "tag=a", "tracked=1", "user=x"]
        {
            assert!(read(cheap).count_is_cheap(), "{cheap}");
        }
        for dear in ["state=ready&name=a", "tag=a&tag=b", "group=a", "worker=w", "name=a&user=b"] {
            assert!(!read(dear).count_is_cheap(), "{dear}");
        }
    }
}
