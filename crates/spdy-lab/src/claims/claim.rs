//! A claim as data.

use std::fmt;

use serde::Serialize;

use crate::claims::factor::ClaimFactor;
use crate::claims::measured::{MeasuredResult, Unit};
use crate::claims::runner::ClaimRunner;
use crate::claims::setting::{PageSet, Setting};

/// The paper of a claim.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
    /// All papers, in the order of the table.
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

    /// Authors, title and year.
    #[must_use]
    pub const fn citation(self) -> &'static str {
        match self {
            Self::Belshe => "M. Belshe and R. Peon, slides of 2009; M. Belshe's blog, 2010 to 2012",
            Self::Whitepaper => "\"SPDY: An experimental protocol for a faster web\", Google 2009",
            Self::Lulic => "P. M. Lulic, 2013",
            Self::Unm => "The measurements of the University of New Mexico",
            Self::Mineki => {
                "Mineki, Uemura and Hasegawa, \"SPDY Accelerator for Improving Web Access Speed\", 2013"
            }
            Self::Nsdi14 => "X. S. Wang et al., \"How Speedy is SPDY?\", NSDI 2014",
            Self::Cacm12 => {
                "B. Thomas, R. Jurdak and I. Atkinson, \"SPDYing up the Web\", Communications of the ACM 55 (12), 2012"
            }
        }
    }
}

/// Side of a bound.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum BoundSide {
    /// More than the bound.
    Above,
    /// Less than the bound.
    Below,
}

/// Direction of a series.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Trend {
    /// Up.
    Rising,
    /// Down.
    Falling,
}

impl Trend {
    /// Returns `change`, positive in this direction.
    pub(crate) fn along(self, change: f64) -> f64 {
        match self {
            Self::Rising => change,
            Self::Falling => -change,
        }
    }
}

/// The claimed result, and the tolerance for an equal one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ClaimedResult {
    /// A number.
    Number {
        /// The claimed value.
        value: f64,
        /// The tolerance.
        within: f64,
        /// The value without an effect; `None` if the number has no direction.
        neutral: Option<f64>,
    },
    /// A number within a range that the claim states.
    Between {
        /// Least.
        low: f64,
        /// Most.
        high: f64,
        /// The value without an effect.
        neutral: f64,
    },
    /// A value on one side of a bound.
    Beyond {
        /// The side.
        side: BoundSide,
        /// The bound.
        bound: f64,
    },
    /// A number for each level of a growing factor.
    Series {
        /// The claimed values, one for each level.
        values: &'static [f64],
        /// The tolerance of each.
        within: f64,
        /// Their direction.
        trend: Trend,
    },
    /// Values that rise or fall from each level to the next.
    Monotone {
        /// Their direction.
        trend: Trend,
        /// A step back of at most this is ignored.
        slack: f64,
    },
    /// The smallest value is at this level.
    Least {
        /// Name of the level.
        level: &'static str,
    },
}

impl ClaimedResult {
    /// Describes it in words, with figures in `unit`.
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

/// The measurement of a claim.
pub(crate) type MeasureFn =
    fn(&ClaimRunner<'_>, &PageSet, &Setting) -> Result<MeasuredResult, String>;

/// The test of a claim.
pub(crate) enum Test {
    /// It cannot be tested, for this reason.
    CannotRun(&'static str),
    /// Loads of `pages` with `setting`.
    Run {
        pages: PageSet,
        setting: fn() -> Setting,
        measure: MeasureFn,
        factors: &'static [ClaimFactor],
    },
}

/// A claim of a paper, and its test.
pub struct Claim {
    /// The paper.
    pub paper: Paper,
    /// Its name among those of its paper.
    pub name: &'static str,
    /// The claim in one sentence.
    pub what: &'static str,
    /// Its conditions; those that the paper does not state are marked as ours.
    pub conditions: &'static str,
    /// The unit of all its figures.
    pub unit: Unit,
    /// The claimed result.
    pub expected: ClaimedResult,
    pub(crate) test: Test,
}

impl fmt::Debug for Claim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Claim({}/{})", self.paper.name(), self.name)
    }
}

impl Claim {
    /// True if it runs without a corpus.
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
