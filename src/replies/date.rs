//! Days as dates of the (proleptic Gregorian) calendar, UTC, from 1970-01-01 on.

/// Days in 400 years, after which the calendar repeats.
const ERA: i64 = 146_097;
/// Days from 0000-03-01 to 1970-01-01.
const BEGIN: i64 = 719_468;

/// A day, counted from 1970-01-01, as `2026-11-21`.
pub fn date(day: i32) -> String {
    let days = i64::from(day) + BEGIN;
    let (era, of_era) = (days.div_euclid(ERA), days.rem_euclid(ERA));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    // Months count from March: then the leap day is the last of the year.
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    format!("{:04}-{month:02}-{of_month:02}", year + era * 400 + i64::from(month <= 2))
}

/// The day of such a date, counted from 1970-01-01; `None` when there is no such day.
pub fn day(text: &[u8]) -> Option<i32> {
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = text else { return None };
    let number = |digits: &[u8]| {
        digits.iter().try_fold(0i64, |n, d| Some(n * 10 + i64::from(char::from(*d).to_digit(10)?)))
    };
    let (year, month, of_month) =
        (number(&[*y1, *y2, *y3, *y4])?, number(&[*m1, *m2])?, number(&[*d1, *d2])?);
    if !(1..=12).contains(&month) {
        return None;
    }
    let (year_from_march, from_march) = match month {
        1 | 2 => (year - 1, month + 9),
        _ => (year, month - 3),
    };
    let of_era = year_from_march.rem_euclid(400);
    let days = of_era * 365 + of_era / 4 - of_era / 100 + (153 * from_march + 2) / 5 + of_month - 1;
    let found = (year_from_march.div_euclid(400) * ERA + days - BEGIN) as i32;
    // A day beyond the end of its month is one of the next month.
    (found >= 0 && date(found).as_bytes() == text).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_lead_to_each_other() {
        assert_eq!((date(0), date(20_778)), ("1970-01-01".into(), "2026-11-21".into()));
        assert_eq!(day(b"2024-02-29"), Some(19_782));
        for n in (0..200_000).chain(2_900_000..2_930_000) {
            assert_eq!(day(date(n).as_bytes()).or_else(|| (n > 2_932_896).then_some(n)), Some(n));
        }
    }

    #[test]
    fn what_no_calendar_has_is_no_day() {
        let none =
            ["2023-02-29", "2026-00-01", "2026-13-01", "2026-04-31", "2026-01-00", "1969-12-31", "26-1-1"];
        for text in none.into_iter().chain(["", "2026-11-21 ", "2026/11/21", "+026-11-21", "２026-11-21"]) {
            assert_eq!(day(text.as_bytes()), None, "{text}");
        }
    }
}
