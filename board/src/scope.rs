//! What a setting counts for.

use serde::de::Deserializer;

use crate::effect::is_name;
use crate::format::{Unreadable, Written};
use crate::settings::Level;

/// Stands for all groups of a queue, those to come included.
pub const ALL_GROUPS: &[u8] = b"*";

/// A board, or a part of it that has settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope<'a> {
    /// The whole board.
    Board,
    /// A queue.
    Queue(&'a [u8]),
    /// A group of a queue, or [`ALL_GROUPS`] of it.
    Group(&'a [u8], &'a [u8]),
    /// A shared limit.
    Limit(&'a [u8]),
}

written! {
    struct ScopeImage<'a> {
        1 queue: Option<&'a [u8]>,
        2 group: Option<&'a [u8]>,
        3 limit: Option<&'a [u8]>,
    }
}

impl<'a> Scope<'a> {
    /// A queue, or without a name the whole board.
    pub fn of_queue(name: Option<&'a [u8]>) -> Self {
        name.map_or(Scope::Board, Scope::Queue)
    }

    /// Which settings it has.
    pub fn level(self) -> Level {
        match self {
            Scope::Board => Level::Board,
            Scope::Queue(_) => Level::Queue,
            Scope::Group(..) => Level::Group,
            Scope::Limit(_) => Level::Limit,
        }
    }

    /// The names of its queue, its group and its limit, where it has them.
    pub(crate) fn names(self) -> [Option<&'a [u8]>; 3] {
        match self {
            Scope::Board => [None; 3],
            Scope::Queue(queue) => [Some(queue), None, None],
            Scope::Group(queue, group) => [Some(queue), Some(group), None],
            Scope::Limit(limit) => [None, None, Some(limit)],
        }
    }

    pub(crate) fn is_valid(self) -> bool {
        self.names().into_iter().flatten().all(is_name)
    }
}

impl<'a> Written<'a> for Scope<'a> {
    fn blank() -> Self {
        Scope::Board
    }

    fn is_blank(&self) -> bool {
        *self == Scope::Board
    }

    fn write(&self, to: &mut Vec<u8>) {
        let [queue, group, limit] = self.names();
        ScopeImage { queue, group, limit }.write(to);
    }

    fn read<D: Deserializer<'a>>(from: D) -> Result<Self, D::Error> {
        let ScopeImage { queue, group, limit } = ScopeImage::read(from)?;
        match (queue, group, limit) {
            (None, None, None) => Ok(Scope::Board),
            (Some(queue), None, None) => Ok(Scope::Queue(queue)),
            (Some(queue), Some(group), None) => Ok(Scope::Group(queue, group)),
            (None, None, Some(limit)) => Ok(Scope::Limit(limit)),
            _ => Err(Unreadable.error()),
        }
    }

    #[cfg(test)]
    fn check_growth() {
        ScopeImage::check_growth();
    }
}
