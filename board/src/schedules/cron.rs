//! Cron expressions and time zones: pure, with the zone data compiled in.
//!
//! Only decisions use this. Effects carry the resulting times, so that a copy with other zone data
//! reaches the same state.

use std::cell::RefCell;
use std::sync::OnceLock;

use croner::parser::{CronParser, Year};
use croner::Weekday;
use jiff::civil::Date;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, Zoned};

/// The longest expression, bytes.
pub const CRON_LONGEST: usize = 255;
/// The longest name of a time zone, bytes.
pub const ZONE_LONGEST: usize = 64;

/// An expression without a time within this number of years has none: 29 February falls on each day
/// of the week within 40 years, also around a year like 2100.
const YEARS: i16 = 41;

const WEEKDAYS: [Weekday; 7] = [
    Weekday::Sunday,
    Weekday::Monday,
    Weekday::Tuesday,
    Weekday::Wednesday,
    Weekday::Thursday,
    Weekday::Friday,
    Weekday::Saturday,
];

/// The fields of an expression, and what each may hold. One of five begins with the minute.
const FIELDS: [(&str, &str); 6] = [
    ("second", "0 to 59"),
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of the month", "1 to 31"),
    ("month", "1 to 12 or JAN to DEC"),
    ("day of the week", "0 to 7 or SUN to SAT"),
];

/// Why an expression or a zone is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CronFault {
    /// The expression cannot be read; the text says why.
    Expression(String),
    /// There is no zone of this name.
    Zone,
    /// The expression is readable but no time ever matches it.
    NoTime,
}

/// A cron expression in a time zone.
pub(crate) struct Cron {
    cron: croner::Cron,
    /// Whether some time of a day matches.
    has_time: bool,
    zone: TimeZone,
}

fn zone_named(name: &str) -> Option<TimeZone> {
    static ZONES: OnceLock<TimeZoneDatabase> = OnceLock::new();
    match name {
        "" => Some(TimeZone::UTC),
        name => ZONES.get_or_init(TimeZoneDatabase::bundled).get(name).ok(),
    }
}

fn reason(error: &croner::errors::CronError) -> String {
    let text = error.to_string();
    let text = text.split_once(": ").map_or(&*text, |(_, reason)| reason);
    crate::error::clean(text.trim_end_matches('.').as_bytes())
}

/// Why an expression cannot be read: names the first field that cannot be read by itself, its value
/// and its range.
fn fault_of(parser: &CronParser, text: &str, error: &croner::errors::CronError) -> String {
    let fields: Vec<&str> = text.split_ascii_whitespace().collect();
    let described = FIELDS.iter().skip(FIELDS.len().saturating_sub(fields.len()));
    for (at, (value, (name, range))) in fields.iter().zip(described).enumerate() {
        let alone: Vec<&str> = (0..fields.len()).map(|n| if n == at { *value } else { "*" }).collect();
        if let Err(error) = parser.parse(&alone.join(" ")) {
            let value = crate::error::clean(value.as_bytes());
            return match &*reason(&error) {
                "Number out of bounds" => format!("the {name} '{value}' is out of its range, {range}"),
                reason => format!("the {name} '{value}' (range: {range}): {reason}"),
            };
        }
    }
    reason(error)
}

/// Whether any time of a day matches: a list may be empty, as in `, * * * * *`.
fn has_time(cron: &croner::Cron) -> bool {
    let pattern = &cron.pattern;
    let hours = (0..24).any(|n| pattern.hour_match(n).unwrap_or(false));
    let minutes = (0..60).any(|n| pattern.minute_match(n).unwrap_or(false));
    hours && minutes && (0..60).any(|n| pattern.second_match(n).unwrap_or(false))
}

impl Cron {
    /// Reads an expression of five or six fields, and the name of a zone; an empty one means UTC.
    pub fn read(expression: &[u8], zone: &[u8]) -> Result<Cron, CronFault> {
        let fault = |text: &str| CronFault::Expression(text.into());
        if expression.len() > CRON_LONGEST {
            return Err(fault("it is longer than 255 bytes"));
        }
        // Checked first: the parser fails on characters of more than one byte.
        let text = std::str::from_utf8(expression).ok().filter(|t| t.is_ascii());
        let text = text.ok_or_else(|| fault("it has characters that mean nothing"))?;
        if !text.starts_with('@') && !(5..=6).contains(&text.split_ascii_whitespace().count()) {
            return Err(fault("it must have five or six fields"));
        }
        let parser = CronParser::builder().year(Year::Disallowed).build();
        let cron = parser.parse(text).map_err(|e| CronFault::Expression(fault_of(&parser, text, &e)))?;
        let zone = std::str::from_utf8(zone).ok().filter(|z| z.len() <= ZONE_LONGEST);
        let zone = zone.and_then(zone_named).ok_or(CronFault::Zone)?;
        Ok(Cron { has_time: has_time(&cron), cron, zone })
    }

    /// Whether any day from this year on matches, within [`YEARS`].
    fn has_day(&self, year: i16) -> bool {
        let days =
            (year..year.saturating_add(YEARS)).flat_map(|year| (1..=12).map(move |month| (year, month)));
        let months = days.filter(|(_, month)| self.cron.pattern.month_match(*month as u32).unwrap_or(false));
        let mut days = months.flat_map(|(year, month)| (1..=31).map(move |day| (year, month, day)));
        days.any(|(year, month, day)| {
            let Ok(date) = Date::new(year, month, day) else { return false };
            let weekday = WEEKDAYS.get(date.weekday().to_sunday_zero_offset() as usize);
            let matches = |weekday: &Weekday| {
                self.cron.pattern.day_match(year.into(), month as u32, day as u32, *weekday).unwrap_or(false)
            };
            weekday.is_some_and(matches)
        })
    }

    fn at_second(&self, second: i64) -> Option<Zoned> {
        Some(Timestamp::from_second(second).ok()?.to_zoned(self.zone.clone()))
    }

    /// Whether any time matches from this year on, within [`YEARS`]. Without this check the search
    /// would look at each day, or each second, of thousands of years.
    fn comes(&self, year: i16) -> bool {
        self.has_time && self.has_day(year)
    }

    /// The first matching time at or after `ms`, Unix ms.
    pub fn first_from(&self, ms: i64) -> Option<i64> {
        let from = self.at_second(ms.div_euclid(1000) + i64::from(ms.rem_euclid(1000) > 0))?;
        if !self.comes(from.year()) {
            return None;
        }
        let found = self.cron.find_next_occurrence(&from, true).ok()?;
        Some(found.timestamp().as_millisecond())
    }

    /// The last matching time at or before `ms`, Unix ms.
    pub fn last_until(&self, ms: i64) -> Option<i64> {
        let from = self.at_second(ms.div_euclid(1000))?;
        if !self.comes(from.year().saturating_sub(YEARS - 1)) {
            return None;
        }
        let found = self.cron.find_previous_occurrence(&from, true).ok()?;
        Some(found.timestamp().as_millisecond())
    }
}

/// Refuses an expression in a zone that cannot be read, or that has no time from `now` on.
pub fn check_cron(expression: &[u8], zone: &[u8], now: i64) -> Result<(), CronFault> {
    let cron = Cron::read(expression, zone)?;
    cron.first_from(now).map(|_| ()).ok_or(CronFault::NoTime)
}

/// The first times of an expression at or after `from`, Unix ms: at most `count`.
pub fn cron_times(expression: &[u8], zone: &[u8], from: i64, count: usize) -> Result<Vec<i64>, CronFault> {
    let cron = Cron::read(expression, zone)?;
    let next = |at: &i64| cron.first_from(at.saturating_add(1));
    let times: Vec<i64> = std::iter::successors(cron.first_from(from), next).take(count).collect();
    if times.is_empty() && count > 0 {
        Err(CronFault::NoTime)
    } else {
        Ok(times)
    }
}

/// Calls `work` with an expression that is known to be valid; `None` when it cannot be read here.
/// Caches the last expression: a schedule that catches up asks for the same one again and again.
pub(crate) fn with_cron<R>(
    expression: &[u8],
    zone: &[u8],
    work: impl FnOnce(&Cron) -> Option<R>,
) -> Option<R> {
    type Kept = Option<(Vec<u8>, Vec<u8>, Cron)>;
    thread_local! {
        static LAST: RefCell<Kept> = const { RefCell::new(None) };
    }
    LAST.with(|last| {
        let mut last = last.try_borrow_mut().ok()?;
        let same = last.as_ref().is_some_and(|(e, z, _)| e == expression && z == zone);
        if !same {
            *last = Some((expression.to_vec(), zone.to_vec(), Cron::read(expression, zone).ok()?));
        }
        work(&last.as_ref()?.2)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> i64 {
        text.parse::<Timestamp>().map_or(-1, |t| t.as_millisecond())
    }

    /// The first times from a moment on.
    fn times(expression: &str, zone: &str, from: &str, n: usize) -> Vec<String> {
        let Ok(cron) = Cron::read(expression.as_bytes(), zone.as_bytes()) else { return Vec::new() };
        let mut at = ms(from);
        let mut all = Vec::new();
        while let (Some(next), true) = (cron.first_from(at), all.len() < n) {
            all.push(Timestamp::from_millisecond(next).map(|t| t.to_string()).unwrap_or_default());
            at = next + 1;
        }
        all
    }

    #[test]
    fn five_and_six_fields_names_and_the_last_day() {
        let from = "2026-02-10T12:34:56.001Z";
        assert_eq!(times("*/20 * * * *", "", from, 2), ["2026-02-10T12:40:00Z", "2026-02-10T13:00:00Z"]);
        assert_eq!(times("57 * * * * *", "UTC", from, 1), ["2026-02-10T12:34:57Z"]);
        assert_eq!(times("0 9 * MAR mon-fri", "", from, 1), ["2026-03-02T09:00:00Z"]);
        assert_eq!(times("0 0 L * *", "", from, 2), ["2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z"]);
        assert_eq!(times("0 0 * * FRI#L", "", from, 1), ["2026-02-27T00:00:00Z"]);
        assert_eq!(times("@daily", "", from, 1), ["2026-02-11T00:00:00Z"]);
        assert_eq!(times("0 0 29 2 *", "", from, 1), ["2028-02-29T00:00:00Z"]);
    }

    #[test]
    fn daylight_saving_is_that_of_the_zone() {
        let berlin = |e, from, n| times(e, "Europe/Berlin", from, n);
        // 29 March 2026: 2:00 becomes 3:00. A time that does not exist is the first after it.
        let spring = "2026-03-28T12:00:00Z";
        assert_eq!(berlin("30 2 * * *", spring, 2), ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
        assert_eq!(berlin("0 9 * * *", spring, 1), ["2026-03-29T07:00:00Z"]);
        // 25 October 2026: 3:00 becomes 2:00. A fixed time that comes twice counts once,
        let autumn = "2026-10-24T22:00:00Z";
        assert_eq!(berlin("30 2 * * *", autumn, 2), ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
        // and one of every hour each time.
        let hours = ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"];
        assert_eq!(berlin("30 * * * *", "2026-10-25T00:00:00Z", 3), hours);
    }

    #[test]
    fn several_times_from_a_moment_on() {
        let from = ms("2026-02-10T12:20:00Z");
        let next = cron_times(b"*/20 * * * *", b"", from, 3);
        assert_eq!(next, Ok(vec![from, from + 1_200_000, from + 2_400_000]));
        assert_eq!(cron_times(b"0 0 30 2 *", b"", from, 3), Err(CronFault::NoTime));
        assert_eq!(cron_times(b"* * * * *", b"Mars/Olympus", from, 3), Err(CronFault::Zone));
        assert_eq!(cron_times(b"* * * * *", b"", i64::MAX, 3), Err(CronFault::NoTime));
    }

    #[test]
    fn the_last_time_before_a_moment() {
        let cron = Cron::read(b"*/20 * * * *", b"").ok();
        let last = |at: &str| cron.as_ref().and_then(|c| c.last_until(ms(at)));
        assert_eq!(last("2026-02-10T12:39:59.999Z"), Some(ms("2026-02-10T12:20:00Z")));
        assert_eq!(last("2026-02-10T12:40:00Z"), Some(ms("2026-02-10T12:40:00Z")));
    }

    #[test]
    fn what_cannot_be_read_is_refused_with_a_reason() {
        for bad in ["", "* * * *", "* * * * * * *", "60 * * * *", "* * * FOO *", "a b c d e", "é * * * *"] {
            let fault = check_cron(bad.as_bytes(), b"", 0);
            assert!(matches!(&fault, Err(CronFault::Expression(why)) if !why.is_empty()), "{bad}: {fault:?}");
        }
        let why = |text: &str| match check_cron(text.as_bytes(), b"", 0) {
            Err(CronFault::Expression(why)) => why,
            other => format!("{other:?}"),
        };
        assert_eq!(why("99 3 * * *"), "the minute '99' is out of its range, 0 to 59");
        assert_eq!(why("0 0 24 * * *"), "the hour '24' is out of its range, 0 to 23");
        assert_eq!(why("0 3 0 * *"), "the day of the month '0' is out of its range, 1 to 31");
        assert_eq!(why("0 3 1,2,32 * *"), "the day of the month '1,2,32' is out of its range, 1 to 31");
        assert_eq!(why("0 3 * 13 *"), "the month '13' is out of its range, 1 to 12 or JAN to DEC");
        assert_eq!(why("0 3 * * 9"), "the day of the week '9' is out of its range, 0 to 7 or SUN to SAT");
        assert!(why("0 x * * *").starts_with("the hour 'x' (range: 0 to 23): "), "{}", why("0 x * * *"));
        assert_eq!(check_cron(b"* * * * *", b"Mars/Olympus", 0), Err(CronFault::Zone));
        assert_eq!(check_cron(b"* * * * *", &[b'x'; 65], 0), Err(CronFault::Zone));
        for never in ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 31 2 +MON", "0 0 0 31 9 *"] {
            assert_eq!(check_cron(never.as_bytes(), b"", 0), Err(CronFault::NoTime), "{never}");
        }
        for empty in [", * * * * *", "* , * * * *", "* * , * * *", ", * * * *", "* ,, * * *"] {
            let cron = Cron::read(empty.as_bytes(), b"");
            // The search itself would take minutes.
            assert!(cron.is_err() || cron.is_ok_and(|cron| !cron.has_time), "{empty}");
            assert!(check_cron(empty.as_bytes(), b"", 0).is_err(), "{empty}");
        }
        // The longest pause of all: 29 February 2096 is a Wednesday, the next one 2104 a Friday.
        for day in 0..7 {
            let rare = format!("0 0 29 2 +{day}");
            assert_eq!(check_cron(rare.as_bytes(), b"", ms("2076-03-01T00:00:00Z")), Ok(()), "{rare}");
        }
        assert!(check_cron(&[b'*'; 256], b"", 0).is_err());
    }

    proptest::proptest! {
        #[test]
        fn no_expression_makes_the_parser_panic(
            text in "[-0-9*,/L#W+?@A-Z ]{0,24}",
            fields in proptest::collection::vec("[-0-9*,/L#W+?A-Z]{1,6}", 5..7),
        ) {
            for text in [text, fields.join(" ")] {
                let _ = check_cron(text.as_bytes(), b"America/New_York", 1_700_000_000_000);
            }
        }
    }
}
