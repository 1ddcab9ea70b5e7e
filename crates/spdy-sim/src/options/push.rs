//! The resources that servers push.

use std::str::FromStr;

/// The resources of a document's own host that servers push with it.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Push {
    /// None.
    #[default]
    No,
    /// The resources that the load event waits for by the page's graph, in the order of a browser, within the default budget of the
    /// released server: 32 streams, 512 KiB.
    ByGraph,
    /// All resources of that host; the client accepts any number of bytes.
    All,
}

impl Push {
    /// All values, in the order of their amount.
    pub const ALL: [Self; 3] = [Self::No, Self::ByGraph, Self::All];

    /// The name on the command line and in experiments.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::No => "no",
            Self::ByGraph => "yes",
            Self::All => "all",
        }
    }

    /// Its index in [all](Self::ALL), which stores contain.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::No => 0,
            Self::ByGraph => 1,
            Self::All => 2,
        }
    }
}

/// A name that is no [`Push`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("unknown push mode {0:?}: expected one of {names}", names = Push::ALL.map(Push::name).join(", "))]
pub struct UnknownPush(pub String);

impl FromStr for Push {
    type Err = UnknownPush;

    fn from_str(name: &str) -> Result<Self, UnknownPush> {
        let found = Self::ALL.into_iter().find(|push| push.name() == name);
        found.ok_or_else(|| UnknownPush(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_push_strategy_has_a_name_that_parses_and_a_number() {
        for (push, number) in Push::ALL.into_iter().zip(0..) {
            assert_eq!(push.name().parse(), Ok(push));
            assert_eq!(push.number(), number);
        }
        let unknown = "some".parse::<Push>().unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "unknown push mode \"some\": expected one of no, yes, all"
        );
    }
}
