//! Whether an accelerator is between the client and a page's hosts, and the content of its cache at the start of the load.

use std::fmt;
use std::str::FromStr;

/// The accelerator of a load.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Accelerator {
    /// None: the client connects to every host directly.
    #[default]
    Off,
    /// A newly started one: its cache is empty, and it has no connection to any origin.
    #[cfg(feature = "accelerator")]
    Cold,
    /// One through which another client has just loaded the same page, over a fast link.
    #[cfg(feature = "accelerator")]
    Warm,
    /// As [`Warm`](Self::Warm). A third client has then loaded the page over the same link, and the accelerator remembers its congestion
    /// window.
    #[cfg(feature = "accelerator")]
    Known,
}

impl Accelerator {
    /// Whether another client has loaded the page before.
    #[cfg(feature = "accelerator")]
    #[must_use]
    pub const fn is_warm(self) -> bool {
        matches!(self, Self::Warm | Self::Known)
    }

    /// All values.
    pub const ALL: &[Self] = &[
        Self::Off,
        #[cfg(feature = "accelerator")]
        Self::Cold,
        #[cfg(feature = "accelerator")]
        Self::Warm,
        #[cfg(feature = "accelerator")]
        Self::Known,
    ];

    /// The name on the command line and in experiments.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            #[cfg(feature = "accelerator")]
            Self::Cold => "cold",
            #[cfg(feature = "accelerator")]
            Self::Warm => "warm",
            #[cfg(feature = "accelerator")]
            Self::Known => "known",
        }
    }

    /// Its state for a reader; `None` if there is no accelerator.
    #[must_use]
    pub const fn description(self) -> Option<&'static str> {
        match self {
            Self::Off => None,
            #[cfg(feature = "accelerator")]
            Self::Cold => Some("just started"),
            #[cfg(feature = "accelerator")]
            Self::Warm => Some("another client has loaded the page"),
            #[cfg(feature = "accelerator")]
            Self::Known => Some("a client of the same network has loaded the page"),
        }
    }
}

impl fmt::Display for Accelerator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(feature = "accelerator")]
const EXPECTED: &str = "off, cold, warm or known";
#[cfg(not(feature = "accelerator"))]
const EXPECTED: &str = "off (cold, warm and known are in builds with the feature accelerate)";

/// A name that is no [`Accelerator`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("unknown accelerator state {0:?}: expected {expected}", expected = EXPECTED)]
pub struct UnknownAccelerator(pub String);

impl FromStr for Accelerator {
    type Err = UnknownAccelerator;

    fn from_str(name: &str) -> Result<Self, UnknownAccelerator> {
        let found = Self::ALL.iter().copied().find(|it| it.name() == name);
        found.ok_or_else(|| UnknownAccelerator(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_accelerator_name_parses() {
        for &accelerator in Accelerator::ALL {
            assert_eq!(accelerator.name().parse(), Ok(accelerator));
        }
        let unknown = "hot".parse::<Accelerator>().unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "unknown accelerator state \"hot\": expected off, cold, warm or known"
        );
    }
}
