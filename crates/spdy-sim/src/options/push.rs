//! What servers push.

use std::str::FromStr;

/// What servers push along with a document, of their own host.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum Push {
    /// Nothing.
    #[default]
    No,
    /// The resources that load waits for by the page's graph, in the order of a browser, as far as the budget of the server that ships
    /// goes: 32 streams, 512 KiB.
    ByGraph,
    /// All that the page will fetch there, and the client takes it, however much.
    All,
}

impl Push {
    /// Every one that has a name, from the least to the most.
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

    /// Its place among [all](Self::ALL), as stores keep it.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            Self::No => 0,
            Self::ByGraph => 1,
            Self::All => 2,
        }
    }
}

/// A name of no [`Push`].
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
    fn every_way_to_push_has_a_name_that_reads_back_and_a_number() {
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
