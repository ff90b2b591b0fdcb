//! What a client wants to see of records: `FIELDS` and `PACKED`.

use board::FieldList;

use super::fields;
use crate::commands::args::{flag, once, Args};
use crate::replies::errors::CommandError;
use crate::replies::records::Shape;

/// These options of a command.
#[derive(Default)]
pub struct Asked {
    fields: Option<FieldList>,
    packed: bool,
}

impl Asked {
    /// Takes an option if it is one of these; otherwise returns false.
    pub fn take(&mut self, option: &str, args: &mut Args<'_>) -> Result<bool, CommandError> {
        match option {
            "FIELDS" => once(&mut self.fields, "FIELDS", fields(args)?)?,
            "PACKED" => flag(&mut self.packed, "PACKED")?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Which of them was given.
    pub fn given(&self) -> Option<&'static str> {
        match self.fields {
            Some(_) => Some("FIELDS"),
            None => self.packed.then_some("PACKED"),
        }
    }

    /// What replies have: these fields where none are named.
    pub fn shape(self, usual: impl FnOnce() -> FieldList) -> Shape {
        Shape { fields: self.fields.unwrap_or_else(usual), packed: self.packed }
    }
}
