//! The age of a response, and its freshness lifetime (RFC 9111 §4.2).
//!
//! ```text
//!            requested   received                        now
//!  ────────────┼────────────┼─────────────────────────────┼──▶
//!              └── delay ───┘
//!  initial age = max(received - Date, Age + delay)
//!                           └──────── resident ───────────┘
//!  age         = initial age + resident
//!  fresh while age < lifetime, by the first that is present of
//!                s-maxage, max-age, Expires - Date, a heuristic from Last-Modified
//! ```
//!
//! `Date` and `Age` have whole seconds, the rest is measured by our clock. If our clock is set back, a response never becomes
//! younger than it was on arrival.

use std::time::{Duration, SystemTime};

use http::header::{AGE, DATE, EXPIRES, LAST_MODIFIED};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::rules::cache_control::{MAX_SECONDS, ResponseControl};
use crate::rules::date;
use crate::rules::policy::Policy;

/// When a response was requested, and when its head arrived.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Times {
    /// When the request was sent to the origin.
    pub requested: SystemTime,
    /// When the head of the response had arrived.
    pub received: SystemTime,
}

impl Times {
    /// Requested and received at the same time.
    #[must_use]
    pub fn at(now: SystemTime) -> Self {
        Self {
            requested: now,
            received: now,
        }
    }
}

/// `later - earlier`, or zero if the clock went back in between.
pub(crate) fn since(later: SystemTime, earlier: SystemTime) -> Duration {
    later.duration_since(earlier).unwrap_or_default()
}

/// `time + duration`, saturating for times far beyond any clock; durations here are at most 2^31 s or the life of the process.
pub(crate) fn after(time: SystemTime, duration: Duration) -> SystemTime {
    time.checked_add(duration).unwrap_or(time)
}

/// The value of a field with a single value; `Err` if it has several different ones.
pub(crate) fn single<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a [u8]>, DuplicateField> {
    let mut lines = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    let Some(first) = lines.next() else {
        return Ok(None);
    };
    match lines.all(|other| other == first) {
        true => Ok(Some(first)),
        false => Err(DuplicateField),
    }
}

pub(crate) struct DuplicateField;

/// The date of a field with a single, valid value.
pub(crate) fn date_of(
    headers: &HeaderMap,
    name: &HeaderName,
    now: SystemTime,
) -> Option<SystemTime> {
    let text = single(headers, name).ok()??;
    date::parse(text, now)
}

/// `Age`: the first of a list, or zero if it is not a number (RFC 9111 §5.1).
pub(crate) fn age_field(headers: &HeaderMap) -> Duration {
    let first = headers.get(AGE).map(HeaderValue::as_bytes);
    let first = first.and_then(|line| line.split(|byte| *byte == b',').next());
    let digits = first.unwrap_or_default().trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Duration::ZERO;
    }
    let seconds = digits.iter().fold(0u64, |sum, digit| {
        sum.saturating_mul(10)
            .saturating_add(u64::from(digit - b'0'))
    });
    Duration::from_secs(seconds.min(MAX_SECONDS))
}

/// The age of the response on arrival (RFC 9111 §4.2.3).
pub(crate) fn initial_age(headers: &HeaderMap, times: Times) -> Duration {
    let date = date_of(headers, &DATE, times.received).unwrap_or(times.received);
    // `Date` has no fraction of a second; without truncating ours, a second of `max-age` would be lost on arrival.
    let apparent = Duration::from_secs(since(times.received, date).as_secs());
    let corrected = age_field(headers) + since(times.received, times.requested);
    apparent.max(corrected)
}

/// The freshness lifetime of a response, and its source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Lifetime {
    /// Counted from the generation of the response.
    pub duration: Duration,
    /// The source of the value.
    pub source: LifetimeSource,
}

/// The source of a lifetime.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LifetimeSource {
    /// `s-maxage`, in any field.
    SMaxage,
    /// `max-age`, in any field.
    MaxAge,
    /// `Expires`.
    Expires,
    /// Heuristic (RFC 9111 §4.2.2).
    Heuristic,
    /// No source.
    None,
}

impl LifetimeSource {
    /// True if the origin set it explicitly.
    #[must_use]
    pub fn is_explicit(self) -> bool {
        matches!(self, Self::SMaxage | Self::MaxAge | Self::Expires)
    }
}

/// Statuses that may be stored without explicit freshness (RFC 9110 §15.1, except 206, which is not stored).
pub(crate) fn is_heuristically_cacheable(status: StatusCode) -> bool {
    matches!(
        status.as_u16(),
        200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501
    )
}

/// The freshness lifetime of a response (RFC 9111 §4.2.1).
pub(crate) fn lifetime(
    policy: &Policy,
    status: StatusCode,
    headers: &HeaderMap,
    control: &ResponseControl,
    times: Times,
) -> Lifetime {
    let of = |duration, source| Lifetime { duration, source };
    if let Some(duration) = control.s_maxage.lifetime() {
        return of(duration, LifetimeSource::SMaxage);
    }
    if let Some(duration) = control.max_age.lifetime() {
        return of(duration, LifetimeSource::MaxAge);
    }
    let date = date_of(headers, &DATE, times.received).unwrap_or(times.received);
    if !control.targeted && headers.contains_key(EXPIRES) {
        // A missing or repeated date counts as a date in the past (§5.3).
        let until = date_of(headers, &EXPIRES, times.received);
        let duration = until.map_or(Duration::ZERO, |until| since(until, date));
        return of(
            duration.min(Duration::from_secs(MAX_SECONDS)),
            LifetimeSource::Expires,
        );
    }
    let heuristic_lifetime = policy
        .heuristic
        .filter(|_| is_heuristically_cacheable(status) || control.public)
        .zip(date_of(headers, &LAST_MODIFIED, times.received))
        .map(|(heuristic, modified)| {
            let part = since(date, modified)
                .as_secs()
                .saturating_mul(heuristic.percent.into())
                / 100;
            Duration::from_secs(part).min(heuristic.at_most)
        });
    match heuristic_lifetime {
        Some(duration) => of(duration, LifetimeSource::Heuristic),
        None => of(Duration::ZERO, LifetimeSource::None),
    }
}
