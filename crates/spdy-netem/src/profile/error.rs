//! Errors of a network's text, with the valid values.

/// The error of a network's text.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The text is empty.
    #[error(
        "no network: give a name ({}) or settings such as down=2mbit,up=384kbit,rtt=100ms",
        .names.join(", ")
    )]
    Empty {
        /// All names.
        names: Vec<&'static str>,
    },
    /// The name is not a network.
    #[error("unknown network {found:?}{}: expected one of {}", hint(.nearest), .names.join(", "))]
    UnknownName {
        /// The name.
        found: String,
        /// The most similar name.
        nearest: Option<String>,
        /// All names.
        names: Vec<&'static str>,
    },
    /// The name is not a setting.
    #[error("unknown network setting {found:?}{}: expected one of {}", hint(.nearest), .keys.join(", "))]
    UnknownKey {
        /// The name.
        found: String,
        /// The most similar name.
        nearest: Option<String>,
        /// All settings.
        keys: &'static [&'static str],
    },
    /// The value of a setting is invalid.
    #[error("invalid network setting {key}={found}: expected {expected}")]
    BadValue {
        /// The setting.
        key: &'static str,
        /// The value.
        found: String,
        /// The valid values.
        expected: &'static str,
    },
    /// The trace of a setting is unusable.
    #[error("network setting {key}=trace:{file}: {reason}")]
    Trace {
        /// The setting.
        key: &'static str,
        /// Name of the file.
        file: String,
        /// The first error in it, or why it was not read.
        reason: String,
    },
    /// A part is neither a network name nor a setting.
    #[error("invalid network setting {found:?}: expected key=value")]
    NotASetting {
        /// The part.
        found: String,
    },
    /// A setting occurs twice.
    #[error("network setting {key} is given twice")]
    Twice {
        /// The setting.
        key: &'static str,
    },
    /// A required setting of a network without a name is missing.
    #[error(
        "network setting {key} is missing: a network needs rates and rtt, such as down=2mbit,up=384kbit,rtt=100ms"
    )]
    Missing {
        /// The setting.
        key: &'static str,
    },
    /// Settings that exclude each other.
    #[error("{what}")]
    Conflict {
        /// The settings, and the reason.
        what: String,
    },
}

fn hint(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map_or_else(String::new, |name| format!(" (did you mean {name:?}?)"))
}

/// The name of `all` with the fewest edits from `found`, if they are at most a third of it.
pub(super) fn nearest(found: &str, all: &[&'static str]) -> Option<String> {
    let most = (found.chars().count() / 3).max(1);
    let distance = |name: &&&str| edits(found, name);
    let best = all.iter().min_by_key(distance)?;
    (edits(found, best) <= most).then(|| (*best).to_owned())
}

/// Insertions, deletions and replacements between two words.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut before = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in to.iter().enumerate() {
            let replaced = before + usize::from(a != *b);
            before = row[j + 1];
            row[j + 1] = replaced.min(before + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_near() {
        let all = ["dsl", "cable", "satellite"];
        assert_eq!(
            nearest("dls", &["dsl"]),
            None,
            "two edits in three letters are too many for a suggestion"
        );
        assert_eq!(nearest("dsk", &all).as_deref(), Some("dsl"));
        assert_eq!(nearest("satelite", &all).as_deref(), Some("satellite"));
        assert_eq!(nearest("modem", &all), None);
    }
}
