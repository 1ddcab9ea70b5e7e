//! A claim as data, and what was measured of it.

use std::fmt;

use serde::Serialize;

use crate::claims::factor::ClaimFactor;
use crate::claims::measured::{MeasuredResult, Unit};
use crate::claims::runner::ClaimRunner;
use crate::claims::setting::{PageSet, Setting};

/// Where a claim was published.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Paper {
    /// M. Belshe and R. Peon, the slides of 2009; M. Belshe's blog, 2010 to 2012.
    Belshe,
    /// "SPDY: An experimental protocol for a faster web", Google 2009.
    Whitepaper,
    /// P. M. Lulic, 2013.
    Lulic,
    /// The measurements of the University of New Mexico.
    Unm,
    /// Mineki, Uemura and Hasegawa, "SPDY Accelerator for Improving Web Access Speed", 2013.
    Mineki,
    /// X. S. Wang et al., "How Speedy is SPDY?", NSDI 2014.
    Nsdi14,
    /// B. Thomas, R. Jurdak and I. Atkinson, "SPDYing up the Web", Communications of the ACM 55 (12), 2012.
    Cacm12,
}

impl Paper {
    /// All of them, in the order of the table.
    pub const ALL: [Self; 7] = [
        Self::Belshe,
        Self::Whitepaper,
        Self::Lulic,
        Self::Unm,
        Self::Mineki,
        Self::Nsdi14,
        Self::Cacm12,
    ];

    /// The name on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Belshe => "belshe",
            Self::Whitepaper => "whitepaper",
            Self::Lulic => "lulic",
            Self::Unm => "unm",
            Self::Mineki => "mineki",
            Self::Nsdi14 => "nsdi14",
            Self::Cacm12 => "cacm12",
        }
    }
}

/// Over or under.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum BoundSide {
    /// More than the bound.
    Above,
    /// Less than the bound.
    Below,
}

/// Where a row of figures goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Trend {
    /// Up.
    Rising,
    /// Down.
    Falling,
}

impl Trend {
    /// `change`, counted positive if it goes this way.
    pub(crate) fn along(self, change: f64) -> f64 {
        match self {
            Self::Rising => change,
            Self::Falling => -change,
        }
    }
}

/// What was claimed, and what would count as the same.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimedResult {
    /// A number.
    Number {
        /// As claimed.
        value: f64,
        /// How far off is still the same.
        within: f64,
        /// Where there is no effect; `None` if the number has no direction.
        neutral: Option<f64>,
    },
    /// A number within a range that the claim states.
    Between {
        /// Least.
        low: f64,
        /// Most.
        high: f64,
        /// Where there is no effect.
        neutral: f64,
    },
    /// No number, but a side.
    Beyond {
        /// Which.
        side: BoundSide,
        /// Of what.
        bound: f64,
    },
    /// A number for each level of something that grows.
    Series {
        /// As claimed, a level each.
        values: &'static [f64],
        /// How far off each may be.
        within: f64,
        /// Where they go.
        trend: Trend,
    },
    /// No numbers, but that each level goes on where the one before went.
    Monotone {
        /// Where to.
        trend: Trend,
        /// A step back of at most this is none.
        slack: f64,
    },
    /// That this level has the least.
    Least {
        /// Its name.
        level: &'static str,
    },
}

impl ClaimedResult {
    /// In words, figures in `unit`.
    #[must_use]
    pub fn describe(&self, unit: Unit) -> String {
        match self {
            Self::Number { value, within, .. } => {
                format!("{} ± {}", unit.format(*value), unit.format(*within))
            }
            Self::Between { low, high, .. } => {
                format!("{} to {}", unit.format(*low), unit.format(*high))
            }
            Self::Beyond { side, bound } => match side {
                BoundSide::Above => format!("more than {}", unit.format(*bound)),
                BoundSide::Below => format!("less than {}", unit.format(*bound)),
            },
            Self::Series { values, within, .. } => {
                let values: Vec<_> = values.iter().map(|value| unit.format(*value)).collect();
                format!("{}; each ± {}", values.join(", "), unit.format(*within))
            }
            Self::Monotone { trend, .. } => match trend {
                Trend::Rising => "rises at every step".to_owned(),
                Trend::Falling => "falls at every step".to_owned(),
            },
            Self::Least { level } => format!("least at {level}"),
        }
    }
}

/// What measures a claim.
pub(crate) type MeasureFn =
    fn(&ClaimRunner<'_>, &PageSet, &Setting) -> Result<MeasuredResult, String>;

/// How a claim is put to the test.
pub(crate) enum Test {
    /// It is not, and this is why.
    CannotRun(&'static str),
    /// By loads of `pages` under `setting`.
    Run {
        pages: PageSet,
        setting: fn() -> Setting,
        measure: MeasureFn,
        factors: &'static [ClaimFactor],
    },
}

/// A claim of a paper, and how it is tested.
pub struct Claim {
    /// The paper.
    pub paper: Paper,
    /// Its name among those of its paper.
    pub name: &'static str,
    /// The sentence.
    pub what: &'static str,
    /// Under which conditions, those that are ours marked as such.
    pub conditions: &'static str,
    /// Of all its figures.
    pub unit: Unit,
    /// What was claimed.
    pub expected: ClaimedResult,
    pub(crate) test: Test,
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Claim({}/{})", self.paper.name(), self.name)
    }
}

impl Claim {
    /// Whether it is run at all without a corpus.
    #[must_use]
    pub fn needs_no_corpus(&self) -> bool {
        !matches!(
            self.test,
            Test::Run {
                pages: PageSet::Corpus,
                ..
            }
        )
    }
}
