//! `Retry-After`: how long a server asks us to wait (RFC 9110, 10.2.3), read strictly.
//!
//! ```
//! use comeback::retry_after;
//! use std::time::Duration;
//!
//! assert_eq!(retry_after(&["120"], None, None), Some(Duration::from_secs(120)));
//! assert_eq!(retry_after(&["1e3"], None, None), None);
//! let asked = "Sun, 06 Nov 1994 08:49:47 GMT";
//! let said = Some("Sun, 06 Nov 1994 08:49:37 GMT"); // the response's own Date: our clock may be wrong
//! assert_eq!(retry_after(&[asked], said, None), Some(Duration::from_secs(10)));
//! ```

use std::time::Duration;

use crate::instant::{MILLISECOND, SECOND, duration, nanos};

const DAY_MS: i64 = 86_400_000;

/// The longest hint among the header's lines, or `None` if none is valid. A line is never split.
///
/// Digits, or a decimal fraction (rounded up to the next millisecond), or an HTTP date in one of its three forms, measured against
/// the response's `date` or, without a readable one, against `wall_ms`: the wall clock as Unix milliseconds. The same instant decides
/// the century of a two-digit year. A time in the past is zero; a value that does not fit is `i64::MAX` nanoseconds.
pub fn retry_after(lines: &[&str], date: Option<&str>, wall_ms: Option<i64>) -> Option<Duration> {
    hint(lines, date, wall_ms).map(duration)
}

pub(crate) fn hint(lines: &[&str], date: Option<&str>, wall_ms: Option<i64>) -> Option<i64> {
    let said = date.and_then(|date| http_date(trim(date), wall_ms));
    let server_now = said.or(wall_ms);
    lines
        .iter()
        .filter_map(|line| {
            let line = trim(line);
            seconds(line).or_else(|| {
                let ahead = http_date(line, server_now)?.saturating_sub(server_now?);
                Some(ahead.max(0).saturating_mul(MILLISECOND))
            })
        })
        .max()
}

/// A length in nanoseconds, rounded up to the next millisecond as a line's decimal fraction is.
pub(crate) fn whole_milliseconds(length: Duration) -> i64 {
    let exact = nanos(length);
    match exact % MILLISECOND {
        0 => exact,
        rest => exact.saturating_add(MILLISECOND - rest),
    }
}

/// Optional white space of a header value (RFC 9110, 5.6.3).
pub(crate) fn trim(value: &str) -> &str {
    value.trim_matches([' ', '\t'])
}

/// `120` or `0.129`, in nanoseconds.
fn seconds(text: &str) -> Option<i64> {
    let (whole, fraction) = match text.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (text, None),
    };
    let number = |digits: &str| {
        let valid = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        valid.then(|| {
            digits.bytes().fold(0_i64, |number, digit| {
                number
                    .saturating_mul(10)
                    .saturating_add(i64::from(digit - b'0'))
            })
        })
    };
    let nanos = number(whole)?.saturating_mul(SECOND);
    let Some(fraction) = fraction else {
        return Some(nanos);
    };
    number(fraction)?;
    let (thousandths, rest) = fraction.split_at(fraction.len().min(3));
    let scale = [1_000, 100, 10, 1][thousandths.len()];
    let up = i64::from(rest.bytes().any(|digit| digit != b'0'));
    Some(nanos.saturating_add((number(thousandths)? * scale + up) * MILLISECOND))
}

/// One of the three forms of an HTTP date (RFC 9110, 5.6.7) as Unix milliseconds. The weekday must be a weekday, but need not fit the date.
fn http_date(text: &str, now_ms: Option<i64>) -> Option<i64> {
    imf_fixdate(text)
        .or_else(|| rfc850_date(text, now_ms))
        .or_else(|| asctime_date(text))
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`
fn imf_fixdate(text: &str) -> Option<i64> {
    let rest = weekday(text, &SHORT_DAYS)?.strip_prefix(", ")?;
    let fields: [&str; 5] = split(rest)?;
    let [day, month, year, time, zone] = fields;
    (zone == "GMT").then_some(())?;
    unix_ms(digits(year, 4)?, month, digits(day, 2)?, time)
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`
fn rfc850_date(text: &str, now_ms: Option<i64>) -> Option<i64> {
    let rest = weekday(text, &LONG_DAYS)?.strip_prefix(", ")?;
    let fields: [&str; 3] = split(rest)?;
    let [date, time, zone] = fields;
    (zone == "GMT").then_some(())?;
    let mut parts = date.split('-');
    let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
    parts.next().is_none().then_some(())?;
    // The latest year with these digits that is at most 50 years in the future.
    let latest = year_of(now_ms.unwrap_or(0).div_euclid(DAY_MS)) + 50;
    let full = latest - (latest - digits(year, 2)?).rem_euclid(100);
    unix_ms(full, month, digits(day, 2)?, time)
}

/// `Sun Nov  6 08:49:37 1994`
fn asctime_date(text: &str) -> Option<i64> {
    let rest = weekday(text, &SHORT_DAYS)?.strip_prefix(' ')?;
    let (month, rest) = rest.split_at_checked(3)?;
    let (day, rest) = rest.strip_prefix(' ')?.split_at_checked(2)?;
    let [time, year]: [&str; 2] = split(rest.strip_prefix(' ')?)?;
    let day = match day.strip_prefix(' ') {
        Some(digit) => digits(digit, 1)?,
        None => digits(day, 2)?,
    };
    unix_ms(digits(year, 4)?, month, day, time)
}

const SHORT_DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const LONG_DAYS: [&str; 7] = [
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
    "Sunday",
];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// The text after the weekday's name.
fn weekday<'a>(text: &'a str, names: &[&str; 7]) -> Option<&'a str> {
    names.iter().find_map(|name| text.strip_prefix(name))
}

/// Exactly `N` fields with one space between them.
fn split<const N: usize>(text: &str) -> Option<[&str; N]> {
    let mut fields = [""; N];
    let mut given = text.split(' ');
    for field in &mut fields {
        *field = given.next()?;
    }
    given.next().is_none().then_some(fields)
}

fn digits(text: &str, count: usize) -> Option<i64> {
    let valid = text.len() == count && text.bytes().all(|digit| digit.is_ascii_digit());
    if valid { text.parse().ok() } else { None }
}

fn unix_ms(year: i64, month: &str, day: i64, time: &str) -> Option<i64> {
    let month = MONTHS.iter().position(|name| *name == month)? as i64 + 1;
    let mut parts = time.split(':');
    let (hour, minute, second) = (parts.next()?, parts.next()?, parts.next()?);
    parts.next().is_none().then_some(())?;
    let (hour, minute, second) = (digits(hour, 2)?, digits(minute, 2)?, digits(second, 2)?);
    // Second 60 is a leap second.
    let valid = (1..=9999).contains(&year)
        && (1..=days_in(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    valid.then(|| {
        let seconds = (hour * 60 + minute) * 60 + second;
        days_from_civil(year, month, day) * DAY_MS + seconds * 1_000
    })
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 (Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms").
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The year of a day since 1970-01-01 (the same source).
fn year_of(days: i64) -> i64 {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // The algorithm's year begins in March.
    year_of_era + era * 400 + i64::from(day_of_year >= 306)
}
