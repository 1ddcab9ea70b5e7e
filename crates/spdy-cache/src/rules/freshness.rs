//! How old an answer is, and how old it may become (RFC 9111 §4.2).
//!
//! ```text
//!            requested   received                        now
//!  ────────────┼────────────┼─────────────────────────────┼──▶
//!              └── delay ───┘
//!  initial age = max(received - Date, Age + delay)
//!                           └──────── resident ───────────┘
//!  age         = initial age + resident
//!  fresh while age < lifetime, by the first that is there of
//!                s-maxage, max-age, Expires - Date, a guess from Last-Modified
//! ```
//!
//! Ages are as exact as what they come of: `Date` and `Age` count whole seconds, the rest is our clock's. A clock
//! that was set back makes nothing younger than it was when it came.

use std::time::{Duration, SystemTime};

use http::header::{AGE, DATE, EXPIRES, LAST_MODIFIED};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::rules::cache_control::{MAX_SECONDS, ResponseControl};
use crate::rules::date;
use crate::rules::policy::Policy;

/// When an answer was requested, and when its head came.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Times {
    /// When the request was sent to the origin.
    pub requested: SystemTime,
    /// When the head of the answer had come.
    pub received: SystemTime,
}

impl Times {
    /// Requested and received at one time.
    #[must_use]
    pub fn at(now: SystemTime) -> Self {
        Self {
            requested: now,
            received: now,
        }
    }
}

/// `later - earlier`, and nothing if a clock went back between them.
pub(crate) fn since(later: SystemTime, earlier: SystemTime) -> Duration {
    later.duration_since(earlier).unwrap_or_default()
}

/// Moments far beyond every clock saturate; durations here are at most 2^31 s and a process' life.
pub(crate) fn after(time: SystemTime, duration: Duration) -> SystemTime {
    time.checked_add(duration).unwrap_or(time)
}

/// The one value of a field that has one; `Err` if it has several that differ.
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

/// A date field that stands once and can be read.
pub(crate) fn date_of(
    headers: &HeaderMap,
    name: &HeaderName,
    now: SystemTime,
) -> Option<SystemTime> {
    let text = single(headers, name).ok()??;
    date::parse(text, now)
}

/// `Age`: of a list the first, of what is no number nothing (RFC 9111 §5.1).
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

/// How old the answer was when it came (RFC 9111 §4.2.3).
pub(crate) fn initial_age(headers: &HeaderMap, times: Times) -> Duration {
    let date = date_of(headers, &DATE, times.received).unwrap_or(times.received);
    // `Date` has cut its fraction off; without cutting ours, a second of `max-age` would be gone on arrival.
    let apparent = Duration::from_secs(since(times.received, date).as_secs());
    let corrected = age_field(headers) + since(times.received, times.requested);
    apparent.max(corrected)
}

/// How old an answer may become, and whether the answer states it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Lifetime {
    /// From its making on.
    pub duration: Duration,
    /// Where it came from.
    pub source: LifetimeSource,
}

/// What a lifetime was taken from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LifetimeSource {
    /// `s-maxage`, in whatever field.
    SMaxage,
    /// `max-age`, in whatever field.
    MaxAge,
    /// `Expires`.
    Expires,
    /// A guess (RFC 9111 §4.2.2).
    Heuristic,
    /// Nothing states one.
    None,
}

impl LifetimeSource {
    /// True if the origin stated it.
    #[must_use]
    pub fn is_explicit(self) -> bool {
        matches!(self, Self::SMaxage | Self::MaxAge | Self::Expires)
    }
}

/// Statuses that may be stored without explicit freshness (RFC 9110 §15.1, but 206, which is not stored).
pub(crate) fn is_heuristically_cacheable(status: StatusCode) -> bool {
    matches!(
        status.as_u16(),
        200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501
    )
}

/// How long a response is fresh (RFC 9111 §4.2.1).
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
