//! Parses HTTP dates strictly, in the three forms that are in use (RFC 9110 §5.6.7).
//!
//! ```text
//!  Sun, 06 Nov 1994 08:49:37 GMT      IMF-fixdate, the one that is written
//!  Sunday, 06-Nov-94 08:49:37 GMT     RFC 850: a year more than 50 years ahead is one of the past
//!  Sun Nov  6 08:49:37 1994           asctime
//! ```
//!
//! Names are compared without case, and the day of the week is not checked. Everything else, including spaces, must be exactly as
//! above. An invalid date is ignored; an invalid `Expires` counts as a date in the past.

use std::time::{Duration, SystemTime};

use http::HeaderValue;

const MONTHS: [&[u8]; 12] = [
    b"jan", b"feb", b"mar", b"apr", b"may", b"jun", b"jul", b"aug", b"sep", b"oct", b"nov", b"dec",
];
const DAYS: [&[u8]; 7] = [
    b"monday",
    b"tuesday",
    b"wednesday",
    b"thursday",
    b"friday",
    b"saturday",
    b"sunday",
];

/// Parses a date; `None` if it is invalid or before 1970. `now` determines the century of a two-digit year.
#[must_use]
pub fn parse(text: &[u8], now: SystemTime) -> Option<SystemTime> {
    let mut rest = DateParser(text);
    let day_name_len = text
        .iter()
        .take_while(|byte| byte.is_ascii_alphabetic())
        .count();
    let name = rest.take(day_name_len)?;
    let long = DAYS.iter().any(|day| day.eq_ignore_ascii_case(name));
    if !long && !DAYS.iter().any(|day| day[..3].eq_ignore_ascii_case(name)) {
        return None;
    }
    let (year, month, day, time);
    if rest.eat(b",") {
        rest.expect(b" ")?;
        day = rest.number(2)?;
        let between: &[u8] = if long { b"-" } else { b" " };
        rest.expect(between)?;
        month = rest.month()?;
        rest.expect(between)?;
        year = match long {
            true => century(rest.number(2)?, now),
            false => rest.number(4)?,
        };
        rest.expect(b" ")?;
        time = rest.time()?;
        rest.expect(b" ")?;
        rest.take(3)
            .filter(|zone| zone.eq_ignore_ascii_case(b"gmt"))?;
    } else {
        rest.expect(b" ")?;
        month = rest.month()?;
        rest.expect(b" ")?;
        day = match rest.eat(b" ") {
            true => rest.number(1)?,
            false => rest.number(2)?,
        };
        rest.expect(b" ")?;
        time = rest.time()?;
        rest.expect(b" ")?;
        year = rest.number(4)?;
    }
    if !rest.0.is_empty() || !(1..=days_of(year, month)).contains(&day) {
        return None;
    }
    let days = days_since_1970(year, month, day)?;
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(days * 86_400 + time))
}

/// Parses the date of a field.
#[must_use]
pub fn of_value(value: &HeaderValue, now: SystemTime) -> Option<SystemTime> {
    parse(value.as_bytes(), now)
}

/// Formats a date as IMF-fixdate.
///
/// # Panics
///
/// If `time` is before 1970 or after the year 9999.
#[must_use]
pub fn to_value(time: SystemTime) -> HeaderValue {
    HeaderValue::try_from(httpdate::fmt_http_date(time)).expect("a date is ASCII")
}

/// The rest of the text.
struct DateParser<'a>(&'a [u8]);

impl<'a> DateParser<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (bytes, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(bytes)
    }

    fn eat(&mut self, bytes: &[u8]) -> bool {
        self.expect(bytes).is_some()
    }

    fn expect(&mut self, bytes: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(bytes)?;
        Some(())
    }

    fn number(&mut self, digits: usize) -> Option<u64> {
        self.take(digits)?.iter().try_fold(0, |sum, byte| {
            byte.is_ascii_digit()
                .then(|| sum * 10 + u64::from(byte - b'0'))
        })
    }

    /// 0 is January.
    fn month(&mut self) -> Option<u64> {
        let name = self.take(3)?;
        let at = MONTHS
            .iter()
            .position(|month| month.eq_ignore_ascii_case(name))?;
        Some(at as u64)
    }

    /// Parses the time of day as seconds; a leap second counts as the second before it.
    fn time(&mut self) -> Option<u64> {
        let hour = self.number(2).filter(|hour| *hour < 24)?;
        self.expect(b":")?;
        let minute = self.number(2).filter(|minute| *minute < 60)?;
        self.expect(b":")?;
        let second = self.number(2).filter(|second| *second <= 60)?;
        Some(hour * 3600 + minute * 60 + second.min(59))
    }
}

/// RFC 9110 §5.6.7: a year that would be more than 50 years in the future is the latest past year with the same digits.
fn century(two_digits: u64, now: SystemTime) -> u64 {
    let seconds = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let this_year = 1970 + seconds / 31_556_952;
    let year = this_year / 100 * 100 + two_digits;
    match year > this_year + 50 {
        true => year - 100,
        false => year,
    }
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn days_of(year: u64, month: u64) -> u64 {
    match month {
        1 if is_leap(year) => 29,
        1 => 28,
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}

fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    let before = year.checked_sub(1970)?;
    // Leap days of the years from 1970 to the one before `year`.
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    let leaps = leap_days(year - 1) - leap_days(1969);
    let months: u64 = (0..month).map(|month| days_of(year, month)).sum();
    Some(before * 365 + leaps + months + day - 1)
}
