//! The values of settings: numbers with units, parsed and printed without rounding.

use std::fmt;
use std::time::Duration;

use crate::loss::Probability;
use crate::queue::{QueueConfig, QueueLimit};
use crate::tcp::TcpConfig;

/// An era of TCP.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Era {
    /// [`TcpConfig::y2009`].
    Y2009,
    /// [`TcpConfig::y2013`].
    Y2013,
    /// [`TcpConfig::today`].
    #[default]
    Today,
}

impl Era {
    /// Its settings.
    #[must_use]
    pub const fn config(self) -> TcpConfig {
        match self {
            Self::Y2009 => TcpConfig::y2009(),
            Self::Y2013 => TcpConfig::y2013(),
            Self::Today => TcpConfig::today(),
        }
    }
}

impl fmt::Display for Era {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Y2009 => "2009",
            Self::Y2013 => "2013",
            Self::Today => "today",
        })
    }
}

pub(super) const EXPECTED_RATE: &str =
    "a rate above 0 with its unit, such as 2mbit, 384kbit or 1500bit, or trace:FILE";
pub(super) const EXPECTED_TIME: &str =
    "a time with its unit, such as 100ms or 1.5s, at most 1 hour";
pub(super) const EXPECTED_TICK: &str =
    "a time with its unit, such as 10ms, at most 1 second; 0 for none";
pub(super) const EXPECTED_LOSS: &str =
    "a percentage with its sign, such as 1% or 0.5%, or a fraction of at most 0.1, such as 0.01";
pub(super) const EXPECTED_QUEUE: &str =
    "a number of packets or bytes above 0, such as 50p or 64kb, or codel or fq_codel";

/// Maximum time of a setting.
const LONGEST: Duration = Duration::from_secs(3_600);
/// Maximum fraction without a percent sign, in parts of 10^9.
const LARGEST_BARE_FRACTION_PPB: u64 = 100_000_000;

/// A decimal number times `unit`, if the result is an integer and fits.
fn decimal(text: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let dot_alone = text.contains('.') && fraction.is_empty();
    if whole.is_empty() || dot_alone || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let scale = 10u64.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let fraction = match fraction {
        "" => 0,
        digits => {
            let value = digits.parse::<u64>().ok()?.checked_mul(unit)?;
            if value % scale != 0 {
                return None;
            }
            value / scale
        }
    };
    whole
        .parse::<u64>()
        .ok()?
        .checked_mul(unit)?
        .checked_add(fraction)
}

/// A decimal number with one of `units`, which are tested in order.
fn with_unit(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (number, unit) = units
        .iter()
        .find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)))?;
    decimal(number, unit)
}

pub(super) fn rate_bps(text: &str) -> Option<u64> {
    let units = [
        ("kbit", 1_000),
        ("mbit", 1_000_000),
        ("gbit", 1_000_000_000),
        ("bit", 1),
    ];
    with_unit(text, &units).filter(|bps| *bps > 0)
}

pub(super) fn time(text: &str) -> Option<Duration> {
    let zero = text == "0";
    let units = [
        ("ns", 1),
        ("us", 1_000),
        ("ms", 1_000_000),
        ("s", 1_000_000_000),
    ];
    let nanos = if zero { 0 } else { with_unit(text, &units)? };
    Some(Duration::from_nanos(nanos)).filter(|time| *time <= LONGEST)
}

/// The period of a timer.
pub(super) fn tick(text: &str) -> Option<Duration> {
    time(text).filter(|tick| *tick <= Duration::from_secs(1))
}

pub(super) fn probability(text: &str) -> Option<Probability> {
    let ppb = match text.strip_suffix('%') {
        Some(percent) => decimal(percent, 10_000_000)?,
        None => decimal(text, 1_000_000_000).filter(|ppb| *ppb <= LARGEST_BARE_FRACTION_PPB)?,
    };
    Probability::from_ppb(u32::try_from(ppb).ok()?)
}

pub(super) fn queue(text: &str) -> Option<QueueConfig> {
    match text {
        "codel" => Some(QueueConfig::CoDel),
        "fq_codel" => Some(QueueConfig::FqCoDel),
        limit => queue_limit(limit).map(QueueConfig::DropTail),
    }
}

fn queue_limit(text: &str) -> Option<QueueLimit> {
    if let Some(packets) = text.strip_suffix('p') {
        let packets = decimal(packets, 1).filter(|packets| *packets > 0)?;
        return Some(QueueLimit::Packets(u32::try_from(packets).ok()?));
    }
    let units = [("kib", 1_024), ("kb", 1_000), ("mb", 1_000_000), ("b", 1)];
    let bytes = with_unit(text, &units).filter(|bytes| *bytes > 0)?;
    Some(QueueLimit::Bytes(bytes))
}

/// A whole number in a range.
pub(super) fn count(text: &str, range: std::ops::RangeInclusive<u32>) -> Option<u32> {
    let number = u32::try_from(decimal(text, 1)?).ok()?;
    range.contains(&number).then_some(number)
}

/// A time in the largest unit in which it is an integer.
pub(super) fn print_time(time: Duration) -> String {
    match time.as_nanos() {
        nanos if nanos % 1_000_000 == 0 => format!("{}ms", nanos / 1_000_000),
        nanos if nanos % 1_000 == 0 => format!("{}us", nanos / 1_000),
        nanos => format!("{nanos}ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_exact_or_refused() {
        assert_eq!(rate_bps("1.5mbit"), Some(1_500_000));
        assert_eq!(rate_bps("384kbit"), Some(384_000));
        assert_eq!(rate_bps("0.5bit"), None, "half a bit a second");
        assert_eq!(rate_bps("0mbit"), None);
        assert_eq!(rate_bps("2"), None, "two what?");
        assert_eq!(rate_bps("-2mbit"), None);
        assert_eq!(rate_bps("2.mbit"), None);
        assert_eq!(rate_bps("99999999999999999999gbit"), None);
        assert_eq!(time("1.5s"), Some(Duration::from_millis(1_500)));
        assert_eq!(time("0"), Some(Duration::ZERO));
        assert_eq!(time("3601s"), None);
        assert_eq!(
            queue("64kb"),
            Some(QueueConfig::DropTail(QueueLimit::Bytes(64_000)))
        );
        assert_eq!(queue("50p"), Some(QueueConfig::packets(50)));
        assert_eq!(queue("0p"), None);
        assert_eq!(queue("codel"), Some(QueueConfig::CoDel));
        assert_eq!(queue("fq_codel"), Some(QueueConfig::FqCoDel));
    }

    #[test]
    fn an_ambiguous_probability_is_rejected() {
        let ppb = |text| probability(text).map(Probability::as_ppb);
        assert_eq!(ppb("1%"), Some(10_000_000));
        assert_eq!(ppb("0.01"), Some(10_000_000));
        assert_eq!(ppb("0"), Some(0));
        assert_eq!(ppb("100%"), Some(1_000_000_000));
        assert_eq!(ppb("0.1"), Some(100_000_000));
        assert_eq!(ppb("0.11"), None, "0.11 % or 11 %?");
        assert_eq!(ppb("1"), None, "1 % or all?");
        assert_eq!(ppb("101%"), None);
    }
}
