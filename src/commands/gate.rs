//! The options that name signals to wait for: after AWAIT of a post, after SIGNALS of `JOB.AWAIT`.

use std::collections::HashSet;

use board::{ByteString, Gate, OnTimeout, LONGEST, SIGNALS_MOST};

use crate::commands::args::{flag, once, Args, Keyword};
use crate::replies::errors::{syntax, CommandError};

/// `[AWAIT n name… [ANY] [WITHIN ms [ONTIMEOUT …]]]`, in any order.
#[derive(Default)]
pub struct GateOptions<'a> {
    names: Option<Vec<&'a [u8]>>,
    any: bool,
    within: Option<i64>,
    on_timeout: Option<OnTimeout>,
}

fn on_timeout(args: &mut Args<'_>) -> Result<OnTimeout, CommandError> {
    match Keyword::of(args.value("ONTIMEOUT")?).text() {
        "RUN" => Ok(OnTimeout::Run),
        "FAIL" => Ok(OnTimeout::Fail),
        "CANCEL" => Ok(OnTimeout::Cancel),
        _ => syntax("ONTIMEOUT must be run, fail or cancel"),
    }
}

fn names<'a>(args: &mut Args<'a>, option: &str) -> Result<Vec<&'a [u8]>, CommandError> {
    let n = args.int(option, 1..=SIGNALS_MOST as i64)? as usize;
    let names = args.many(n, option, |args| args.name(option))?;
    let mut seen = HashSet::new();
    match names.iter().find(|name| !seen.insert(**name)) {
        Some(twice) => syntax(format!("{option} names '{}' twice", board::clean(twice))),
        None => Ok(names),
    }
}

impl<'a> GateOptions<'a> {
    /// Takes an option if it is one of these; `name` is the one that names the signals. Otherwise
    /// returns false.
    pub fn take(&mut self, option: &str, name: &str, args: &mut Args<'a>) -> Result<bool, CommandError> {
        match option {
            _ if option == name => once(&mut self.names, name, names(args, name)?)?,
            "ANY" => flag(&mut self.any, "ANY")?,
            "WITHIN" => once(&mut self.within, "WITHIN", args.ms("WITHIN", 1..=LONGEST)?)?,
            "ONTIMEOUT" => once(&mut self.on_timeout, "ONTIMEOUT", on_timeout(args)?)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// About how many bytes they write into each job.
    pub fn weight(gate: Option<&Gate>) -> usize {
        gate.map_or(0, |gate| 2 * gate.bytes())
    }

    /// What these options name; `None` without the names.
    pub fn finish(self, name: &str) -> Result<Option<Box<Gate>>, CommandError> {
        let GateOptions { names, any, within, on_timeout } = self;
        let Some(names) = names else {
            return match (any, within.is_some(), on_timeout.is_some()) {
                (true, ..) => syntax(format!("ANY needs {name}")),
                (_, true, _) => syntax(format!("WITHIN needs {name}")),
                (.., true) => syntax(format!("ONTIMEOUT needs {name}")),
                _ => Ok(None),
            };
        };
        if on_timeout.is_some() && within.is_none() {
            return syntax("ONTIMEOUT needs WITHIN");
        }
        let names = names.into_iter().map(ByteString::from).collect();
        Ok(Some(Box::new(Gate { names, any, within, on_timeout: on_timeout.unwrap_or_default() })))
    }
}
