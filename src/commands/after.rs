//! The options AFTER, ONFAILURE and STRICT: the jobs, or the children, that a job is to wait for.

use board::{After, OnFailure};

use crate::commands::args::{flag, Args, Keyword};
use crate::replies::errors::{syntax, CommandError};

/// `[AFTER <n id…|CHILDREN> [ONFAILURE …]] [STRICT]`; AFTER may be repeated, each with its own
/// ONFAILURE.
#[derive(Default)]
pub struct Waits<'a> {
    groups: Vec<(Awaited<'a>, Option<OnFailure>)>,
    strict: bool,
}

/// What one AFTER names.
enum Awaited<'a> {
    Jobs(Vec<&'a [u8]>),
    Children,
}

/// The policy of this name.
pub fn on_failure(args: &mut Args<'_>) -> Result<OnFailure, CommandError> {
    match Keyword::of(args.value("ONFAILURE")?).text() {
        "HOLD" => Ok(OnFailure::Hold),
        "CANCEL" => Ok(OnFailure::Cancel),
        "FAIL" => Ok(OnFailure::Fail),
        "RUN" => Ok(OnFailure::Run),
        _ => syntax("ONFAILURE must be hold, cancel, fail or run"),
    }
}

impl<'a> Waits<'a> {
    /// Takes an option if it is one of these; otherwise returns false.
    pub fn take(&mut self, option: &str, args: &mut Args<'a>) -> Result<bool, CommandError> {
        match option {
            "AFTER" if args.take("CHILDREN") => {
                if self.groups.iter().any(|(awaited, _)| matches!(awaited, Awaited::Children)) {
                    return syntax("AFTER CHILDREN is given twice");
                }
                self.groups.push((Awaited::Children, None));
            }
            "AFTER" => self.groups.push((Awaited::Jobs(args.names("AFTER", 0)?), None)),
            "ONFAILURE" => {
                let named = on_failure(args)?;
                match self.groups.last_mut() {
                    None => return syntax("ONFAILURE must follow AFTER"),
                    Some((_, Some(_))) => return syntax("ONFAILURE is given twice"),
                    Some((_, place)) => *place = Some(named),
                }
            }
            "STRICT" => flag(&mut self.strict, "STRICT")?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// What these options name; `None` without AFTER.
    pub fn finish(self) -> Result<Option<After<'a>>, CommandError> {
        if self.groups.is_empty() {
            return match self.strict {
                true => syntax("STRICT needs AFTER"),
                false => Ok(None),
            };
        }
        let mut after = After { strict: self.strict, ..After::default() };
        for (awaited, on_failure) in self.groups {
            let on_failure = on_failure.unwrap_or_default();
            match awaited {
                Awaited::Children => after.children = Some(on_failure),
                Awaited::Jobs(ids) => after.jobs.extend(ids.into_iter().map(|id| (id, on_failure))),
            }
        }
        Ok(Some(after))
    }
}
