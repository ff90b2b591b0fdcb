//! How values are shown, everywhere the same.

use jiff::Timestamp;
use maud::{html, Markup};

use crate::names::{address, short, shown};

/// The states of a job, in the order of its life.
pub const STATES: [&str; 8] =
    ["scheduled", "blocked", "ready", "claimed", "complete", "failed", "cancelled", "trashed"];

/// Now, in Unix milliseconds, by the clock of this machine.
pub fn now() -> i64 {
    Timestamp::now().as_millisecond()
}

/// A point in time.
pub fn moment(at: i64) -> String {
    match Timestamp::from_millisecond(at) {
        Ok(time) => time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        Err(_) => at.to_string(),
    }
}

/// How far off a point in time is.
fn off(at: i64) -> String {
    match at - now() {
        ms if ms >= 0 => format!("in {}", span(ms)),
        ms => format!("{} ago", span(-ms)),
    }
}

fn machine_readable(at: i64) -> Option<String> {
    Timestamp::from_millisecond(at).ok().map(|time| time.to_string())
}

/// A point in time within a sentence. Scripts show it in the zone of the reader.
pub fn at(at: i64) -> Markup {
    html! { time datetime=[machine_readable(at)] { (moment(at)) } }
}

/// A point in time, and how far off it is.
pub fn when(at: i64) -> Markup {
    html! {
        (self::at(at))
        " " span.faint { "(" (off(at)) ")" }
    }
}

/// How far off a point in time is; its title has the time itself.
pub fn soon(at: i64) -> Markup {
    html! { time datetime=[machine_readable(at)] title=(moment(at)) { (off(at)) } }
}

/// The day of a time, in UTC.
pub fn day_of(at: i64) -> String {
    Timestamp::from_millisecond(at).map(|time| time.strftime("%Y-%m-%d").to_string()).unwrap_or_default()
}

/// The time of day alone.
pub fn time_of_day(at: i64) -> String {
    formed(at, "%H:%M:%S")
}

pub fn time_with_ms(at: i64) -> String {
    formed(at, "%H:%M:%S.%3f")
}

pub fn day_and_time(at: i64) -> String {
    formed(at, "%m-%d %H:%M")
}

fn formed(at: i64, form: &str) -> String {
    match Timestamp::from_millisecond(at) {
        Ok(time) => time.strftime(form).to_string(),
        Err(_) => at.to_string(),
    }
}

/// A duration of so many ms, to two units at most.
pub fn span(ms: i64) -> String {
    const UNITS: [(i64, &str); 4] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s")];
    if ms < 1000 {
        return format!("{ms} ms");
    }
    if ms < 10_000 {
        return format!("{:.1} s", ms as f64 / 1000.0);
    }
    let at = UNITS.iter().position(|(unit, _)| ms >= *unit).unwrap_or(3);
    let (unit, name) = UNITS[at];
    let rest = UNITS.get(at + 1).map(|(smaller, name)| (ms % unit / smaller, name));
    match rest {
        Some((count, smaller)) if count > 0 => format!("{} {name} {count} {smaller}", ms / unit),
        _ => format!("{} {name}", ms / unit),
    }
}

/// A number with thin spaces between thousands.
pub fn number(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::from(if value < 0 { "−" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// How many in a time, given how many a second: so that slow things have a number as well.
pub fn rate(per_second: f64) -> String {
    if per_second >= 9.95 {
        format!("{}/s", number(per_second.round() as i64))
    } else if per_second >= 0.995 {
        format!("{per_second:.1}/s")
    } else if per_second > 0.0 {
        format!("{:.0}/min", (per_second * 60.0).max(1.0))
    } else {
        "0".into()
    }
}

/// Bytes of memory.
pub fn size(bytes: i64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit < UNITS.len() - 1 {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {}", UNITS[unit])
    }
}

/// Until when something is paused: -1 without end, 0 not at all.
pub fn paused(until: i64) -> Markup {
    html! {
        @if until == -1 { span.badge.paused { "paused" } }
        @else if until > 0 { span.badge.paused { "paused" } " until " (when(until)) }
    }
}

/// What people call a state: a job that a worker has claimed runs, and one that is complete is done.
pub fn word(state: &str) -> &str {
    match state {
        "claimed" => "running",
        "complete" => "done",
        other => other,
    }
}

pub fn state(state: &str) -> Markup {
    let known = STATES.iter().find(|known| **known == state).copied().unwrap_or("gone");
    html! { span.badge.(known) { (word(state)) } }
}

/// A name of the user's, kept apart from the text around it.
pub fn name(bytes: &[u8]) -> Markup {
    html! { @if !bytes.is_empty() { bdi.name title=[(shown(bytes).chars().count() > 60).then(|| shown(bytes))] { (short(bytes, 60)) } } }
}

pub fn board_address(path: &str, board: &[u8]) -> String {
    address(path, &[("b", board)])
}

pub fn job_link(board: &[u8], id: &[u8]) -> Markup {
    // Lists cut ids that are longer than those that the server makes.
    let whole = shown(id);
    let title = (whole.chars().count() > 36).then_some(whole);
    html! { a.id href=(address("/job", &[("b", board), ("id", id)])) title=[title] { (name(id)) } }
}

/// A link to a list of jobs.
pub fn jobs_address(board: &[u8], filters: &[(&str, &[u8])]) -> String {
    let query: Vec<_> = [("b", board)].into_iter().chain(filters.iter().copied()).collect();
    address("/jobs", &query)
}

/// A count that leads to the jobs counted; a plain 0.
pub fn count_link(count: i64, board: &[u8], filters: &[(&str, &[u8])]) -> Markup {
    html! {
        @if count == 0 { span.faint.none { "0" } }
        @else { a href=(jobs_address(board, filters)) { (number(count)) } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_two_units() {
        let shown = [0, 999, 1500, 59_000, 61_000, 3_600_000, 90_061_000].map(span);
        assert_eq!(shown, ["0 ms", "999 ms", "1.5 s", "59 s", "1 min 1 s", "1 h", "1 d 1 h"]);
    }

    #[test]
    fn slow_rates_are_by_the_minute() {
        let shown = [0.0, 0.0167, 0.05, 0.5, 0.9833, 1.0, 5.77, 9.96, 23.4].map(rate);
        assert_eq!(shown, ["0", "1/min", "3/min", "30/min", "59/min", "1.0/s", "5.8/s", "10/s", "23/s"]);
    }

    #[test]
    fn thousands_are_apart() {
        assert_eq!(
            [0, 999, 1000, -1234567].map(number),
            ["0", "999", "1\u{202f}000", "−1\u{202f}234\u{202f}567"]
        );
    }

    #[test]
    fn what_users_named_is_escaped() {
        let shown = name(b"<script>alert(1)</script>").into_string();
        assert!(!shown.contains("<script>") && shown.contains("&lt;script&gt;"), "{shown}");
    }
}
