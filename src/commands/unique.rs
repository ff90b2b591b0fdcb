//! The options UNIQUE, UNTIL, FOR and ONCONFLICT: the unique key that a job takes.

use board::{OnConflict, TakeKey, Until, LONGEST};

use crate::commands::args::{once, Args, Keyword};
use crate::replies::errors::{syntax, CommandError};

/// `[UNIQUE key [UNTIL start|end] [FOR ms] [ONCONFLICT …]]`, in any order.
#[derive(Default)]
pub struct Key<'a> {
    key: Option<&'a [u8]>,
    until: Option<Until>,
    time: Option<i64>,
    on_conflict: Option<OnConflict>,
}

fn until(args: &mut Args<'_>) -> Result<Until, CommandError> {
    match Keyword::of(args.value("UNTIL")?).text() {
        "START" => Ok(Until::Start),
        "END" => Ok(Until::End),
        _ => syntax("UNTIL must be start or end"),
    }
}

impl<'a> Key<'a> {
    /// Takes an option if it is one of these, except ONCONFLICT; otherwise returns false.
    pub fn take(&mut self, option: &str, args: &mut Args<'a>) -> Result<bool, CommandError> {
        match option {
            "UNIQUE" => once(&mut self.key, "UNIQUE", args.name("UNIQUE")?)?,
            "UNTIL" => once(&mut self.until, "UNTIL", until(args)?)?,
            "FOR" => once(&mut self.time, "FOR", args.ms("FOR", 1..=LONGEST)?)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Takes the value of ONCONFLICT.
    pub fn on_conflict(&mut self, args: &mut Args<'_>) -> Result<(), CommandError> {
        let named = match Keyword::of(args.value("ONCONFLICT")?).text() {
            "REJECT" => OnConflict::Reject,
            "RETURN" => OnConflict::Return,
            "REPLACE" => OnConflict::Replace,
            "DEBOUNCE" => OnConflict::Debounce,
            _ => return syntax("ONCONFLICT must be reject, return, replace or debounce"),
        };
        once(&mut self.on_conflict, "ONCONFLICT", named)
    }

    /// What these options name; `None` without UNIQUE.
    pub fn finish(self) -> Result<Option<TakeKey<'a>>, CommandError> {
        let Some(key) = self.key else {
            return match (self.until.is_some(), self.time.is_some(), self.on_conflict.is_some()) {
                (true, ..) => syntax("UNTIL needs UNIQUE"),
                (_, true, _) => syntax("FOR needs UNIQUE"),
                (.., true) => syntax("ONCONFLICT needs UNIQUE"),
                _ => Ok(None),
            };
        };
        let on_conflict = self.on_conflict.unwrap_or_default();
        Ok(Some(TakeKey { key, until: self.until, time: self.time, on_conflict }))
    }
}
