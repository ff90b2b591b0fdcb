//! The events of a board itself: its settings.

use crate::board::Board;
use crate::dispatch::pauses::Place;
use crate::events::{number, text, word, EventField, EventKind};
use crate::job::NEVER;
use crate::scope::Scope;

impl Board {
    /// The board, a queue, a group or a shared limit has another value of a setting.
    pub(crate) fn emit_setting(&mut self, name: &'static str, scope: Scope<'_>, value: Option<EventField>) {
        let [queue, group, limit] = scope.names();
        self.emit_of_board(EventKind::Settings, || {
            let value = value.or(Some(EventField::Null("value")));
            let scope = [text("queue", queue), text("group", group), text("limit", limit)];
            [word("setting", name)].into_iter().chain(scope).chain([value]).flatten().collect()
        });
    }

    /// The place is paused until then, Unix ms; 0 when its pause has ended.
    pub(crate) fn emit_pause(&mut self, place: &Place, until: i64) {
        let scope = match place {
            Place::Board => Scope::Board,
            Place::Queue(queue, None) => Scope::Queue(queue),
            Place::Queue(queue, Some(group)) => Scope::Group(queue, group),
            Place::Limit(limit) => Scope::Limit(limit),
        };
        self.emit_setting("paused", scope, number("value", if until == NEVER { -1 } else { until }));
    }
}
