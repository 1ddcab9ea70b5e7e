//! Counters by name: frames by their type, resets by their status.
//!
//! One array each, indexed by the number on the wire, so that counting is one addition.

use spdy_frame::kind::Kind;
use spdy_frame::status::RstStatus;

/// Names of frame types by number. Index 0 is DATA, which has no type number.
const FRAME_NAMES: [&str; 12] = [
    "DATA",
    "SYN_STREAM",
    "SYN_REPLY",
    "RST_STREAM",
    "SETTINGS",
    "NOOP",
    "PING",
    "GOAWAY",
    "HEADERS",
    "WINDOW_UPDATE",
    "CREDENTIAL",
    "other",
];

/// Names of RST_STREAM statuses by number. Index 0 is for all unknown statuses.
const RESET_NAMES: [&str; 12] = [
    "other",
    "PROTOCOL_ERROR",
    "INVALID_STREAM",
    "REFUSED_STREAM",
    "UNSUPPORTED_VERSION",
    "CANCEL",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "STREAM_IN_USE",
    "STREAM_ALREADY_CLOSED",
    "INVALID_CREDENTIALS",
    "FRAME_TOO_LARGE",
];

/// Frames by type.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FrameCounts([u64; FRAME_NAMES.len()]);

/// RST_STREAM frames by status.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ResetCounts([u64; RESET_NAMES.len()]);

impl FrameCounts {
    const OTHER: usize = FRAME_NAMES.len() - 1;

    const fn place(kind: Kind) -> usize {
        match kind.number() {
            None => 0,
            Some(number) if (number as usize) < Self::OTHER => number as usize,
            Some(_) => Self::OTHER,
        }
    }

    /// Counts one frame of `kind`.
    pub const fn count(&mut self, kind: Kind) {
        self.0[Self::place(kind)] += 1;
    }

    /// The number of frames of `kind`. All unknown types are counted as one.
    #[must_use]
    pub const fn of(&self, kind: Kind) -> u64 {
        self.0[Self::place(kind)]
    }

    /// The number of frames of all types.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Each type by its name in the specification, with its count; types without a name are `other`.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        FRAME_NAMES.into_iter().zip(self.0)
    }

    /// Adds the counts of another session.
    pub fn add(&mut self, other: &Self) {
        add(&mut self.0, &other.0);
    }
}

impl ResetCounts {
    const fn place(status: RstStatus) -> usize {
        let number = status.0 as usize;
        if number < RESET_NAMES.len() {
            number
        } else {
            0
        }
    }

    /// Counts one RST_STREAM with `status`.
    pub const fn count(&mut self, status: RstStatus) {
        self.0[Self::place(status)] += 1;
    }

    /// The number of RST_STREAM frames with `status`. All unknown statuses are counted as one.
    #[must_use]
    pub const fn of(&self, status: RstStatus) -> u64 {
        self.0[Self::place(status)]
    }

    /// The number of RST_STREAM frames with any status.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Each status by its name in the specification, with its count; statuses without a name are `other`.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        RESET_NAMES.into_iter().zip(self.0)
    }

    /// Adds the counts of another session.
    pub fn add(&mut self, other: &Self) {
        add(&mut self.0, &other.0);
    }
}

fn add(sums: &mut [u64], more: &[u64]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum += more;
    }
}

#[cfg(test)]
mod tests {
    use spdy_frame::version::Version;

    use super::*;

    #[test]
    fn every_frame_is_counted_under_its_own_name() {
        for version in [Version::V2, Version::V3, Version::V31] {
            for number in (1..=12).chain([0xf000]) {
                let kind = Kind::from_number(version, number);
                let mut frames = FrameCounts::default();
                frames.count(kind);
                let named: Vec<_> = frames.iter().filter(|(_, count)| *count > 0).collect();
                let name = match kind {
                    Kind::Unknown(_) => named[0].0.to_owned(),
                    standard => standard.to_string(),
                };
                assert_eq!(named, [(named[0].0, 1)]);
                assert_eq!(named[0].0, name);
                assert_eq!((frames.of(kind), frames.total()), (1, 1));
            }
        }
        let mut frames = FrameCounts::default();
        frames.count(Kind::Data);
        assert_eq!(frames.iter().next(), Some(("DATA", 1)));
    }

    #[test]
    fn every_reset_is_counted_under_its_own_name() {
        for number in 0..20 {
            let status = RstStatus(number);
            let mut resets = ResetCounts::default();
            resets.count(status);
            let named: Vec<_> = resets.iter().filter(|(_, count)| *count > 0).collect();
            let is_standard = (1..=11).contains(&number);
            let name = if is_standard {
                status.to_string()
            } else {
                "other".to_owned()
            };
            assert_eq!(named.len(), 1);
            assert_eq!(named[0].0, name);
            let mut sum = resets;
            sum.add(&resets);
            assert_eq!((sum.of(status), sum.total()), (2, 2));
        }
    }
}
