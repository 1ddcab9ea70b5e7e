//! The cache of the client: empty, or filled by an earlier view of the page.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The content of the client's cache before a load.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Cache {
    /// Empty.
    #[default]
    Cold,
    /// Filled by an earlier load of the same page.
    Warm {
        /// Time since that load, at most [`MAX_REVISIT_DELAY`].
        after: Duration,
    },
}

/// Longest time between two views: ten years.
pub const MAX_REVISIT_DELAY: Duration = Duration::from_secs(3_650 * DAY);

const DAY: u64 = 24 * 3600;
/// Units of time, longest first.
const UNITS: [(&str, u64); 4] = [("d", DAY), ("h", 3600), ("min", 60), ("s", 1)];

impl fmt::Display for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cold => f.write_str("cold"),
            Self::Warm { after } if after.is_zero() => f.write_str("warm"),
            Self::Warm { after } => {
                let seconds = after.as_secs();
                let fits = |(_, unit): &&(&str, u64)| seconds % unit == 0;
                let (name, unit) = UNITS
                    .iter()
                    .find(fits)
                    .expect("every duration is a multiple of 1 s");
                write!(f, "warm:{}{name}", seconds / unit)
            }
        }
    }
}

/// A text that is no [`Cache`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "invalid cache state {0:?}: expected cold, warm, or warm with the time since the first view, such as warm:30s, warm:1h or warm:7d, \
     at most 3650d"
)]
pub struct UnknownCache(pub String);

impl FromStr for Cache {
    type Err = UnknownCache;

    fn from_str(text: &str) -> Result<Self, UnknownCache> {
        let warm = |text: &str| {
            let digits = text.trim_end_matches(|char: char| !char.is_ascii_digit());
            let (_, unit) = UNITS
                .iter()
                .find(|(name, _)| *name == &text[digits.len()..])?;
            let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
            let count: u64 = digits.parse().ok().filter(|_| is_number)?;
            let after = Duration::from_secs(count.checked_mul(*unit)?);
            (after <= MAX_REVISIT_DELAY).then_some(Self::Warm { after })
        };
        let cache = match text.split_once(':') {
            None if text == "cold" => Some(Self::Cold),
            None if text == "warm" => Some(Self::Warm {
                after: Duration::ZERO,
            }),
            Some(("warm", after)) => warm(after),
            _ => None,
        };
        cache.ok_or_else(|| UnknownCache(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_value_round_trips_as_text() {
        let warm = |seconds| Cache::Warm {
            after: Duration::from_secs(seconds),
        };
        for (text, cache, shortest) in [
            ("cold", Cache::Cold, "cold"),
            ("warm", warm(0), "warm"),
            ("warm:0s", warm(0), "warm"),
            ("warm:90s", warm(90), "warm:90s"),
            ("warm:120s", warm(120), "warm:2min"),
            ("warm:24h", warm(DAY), "warm:1d"),
            (
                "warm:3650d",
                warm(MAX_REVISIT_DELAY.as_secs()),
                "warm:3650d",
            ),
        ] {
            assert_eq!(text.parse(), Ok(cache), "{text}");
            assert_eq!(cache.to_string(), shortest);
        }
        for wrong in [
            "",
            "hot",
            "cold:1h",
            "warm:",
            "warm:1",
            "warm:h",
            "warm:-1h",
            "warm:+1h",
            "warm:1.5h",
            "warm:1hh",
            "warm:3651d",
            "warm:99999999999999999999d",
            "warm:9999999999999999d",
            "warm:1é",
        ] {
            let message = wrong.parse::<Cache>().expect_err(wrong).to_string();
            assert!(message.contains("warm:1h"), "{message}");
        }
    }
}
