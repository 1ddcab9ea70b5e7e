//! Random loss after the bottleneck: of single packets, or in bursts.

use std::fmt;

use crate::rng::RandomStream;

/// A probability in whole parts of 10^9, so that a comparison with a random number is exact.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Probability(u32);

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0);
    /// Always.
    pub const ONE: Self = Self(1_000_000_000);

    /// `ppb` parts of 10^9; `None` above 10^9.
    #[must_use]
    pub const fn from_ppb(ppb: u32) -> Option<Self> {
        if ppb <= Self::ONE.0 {
            Some(Self(ppb))
        } else {
            None
        }
    }

    /// Parts of 10^9.
    #[must_use]
    pub const fn as_ppb(self) -> u32 {
        self.0
    }

    /// Draws once: true with this probability.
    fn sample(self, chance: &mut RandomStream) -> bool {
        chance.below(u64::from(Self::ONE.0)) < u64::from(self.0)
    }
}

/// Prints in percent without rounding: `0`, `1%`, `0.25%`.
impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 10_000_000, self.0 % 10_000_000);
        match (whole, rest) {
            (0, 0) => f.write_str("0"),
            (whole, 0) => write!(f, "{whole}%"),
            (whole, rest) => {
                let digits = format!("{rest:07}");
                write!(f, "{whole}.{}%", digits.trim_end_matches('0'))
            }
        }
    }
}

/// The model of random loss.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum LossModel {
    /// None.
    #[default]
    None,
    /// Independent losses.
    Bernoulli(Probability),
    /// Bursts of losses: the link alternates between a state without loss and one that loses everything (Gilbert's case).
    Bursts {
        /// Share of all packets, in the long run.
        average: Probability,
        /// Packets lost in a row, on average.
        mean_burst_packets: u32,
    },
    /// Gilbert-Elliott: a link with a good and a bad state.
    GilbertElliott(GilbertElliott),
}

/// The two states of a link, and the transitions between them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct GilbertElliott {
    /// Probability of the transition from good to bad, drawn before each packet in the good state.
    pub worsens: Probability,
    /// Probability of the transition from bad to good, drawn before each packet in the bad state.
    pub recovers: Probability,
    /// Loss of a packet in the good state.
    pub loss_good: Probability,
    /// Loss of a packet in the bad state.
    pub loss_bad: Probability,
}

impl GilbertElliott {
    /// Gilbert's case for an average loss in bursts of a mean length.
    fn bursts(average: Probability, mean_burst_packets: u32) -> Option<Self> {
        let one = u64::from(Probability::ONE.0);
        let loss = u64::from(average.0);
        let recovers = one.checked_div(u64::from(mean_burst_packets))?;
        // Share of bad packets = worsens / (worsens + recovers); solved for worsens.
        let worsens = (loss * recovers).checked_div(one - loss)?;
        Some(Self {
            worsens: Probability::from_ppb(u32::try_from(worsens).ok()?)?,
            recovers: Probability(recovers as u32), // at most 10^9
            loss_good: Probability::ZERO,
            loss_bad: Probability::ONE,
        })
    }
}

impl LossModel {
    /// Independent losses; [`None`](Self::None) if `probability` is zero.
    #[must_use]
    pub fn bernoulli(probability: Probability) -> Self {
        match probability {
            Probability::ZERO => Self::None,
            probability => Self::Bernoulli(probability),
        }
    }

    /// Losses in bursts of `mean_burst_packets` on average, `average` of all packets in the long run.
    ///
    /// `None` if it is impossible: `average` is 100 %, a burst has no packets, or bursts are so short that the probability of leaving
    /// the good state would exceed 1.
    #[must_use]
    pub fn bursts(average: Probability, mean_burst_packets: u32) -> Option<Self> {
        GilbertElliott::bursts(average, mean_burst_packets)?;
        Some(match average {
            Probability::ZERO => Self::None,
            average => Self::Bursts {
                average,
                mean_burst_packets,
            },
        })
    }

    /// The random process for each packet.
    fn process(self) -> LossProcess {
        match self {
            Self::None => LossProcess::None,
            Self::Bernoulli(loss) => LossProcess::Each(loss),
            Self::Bursts {
                average,
                mean_burst_packets,
            } => {
                let states = GilbertElliott::bursts(average, mean_burst_packets);
                LossProcess::States(
                    states.unwrap_or_else(|| panic!("invalid burst parameters: {self:?}")),
                )
            }
            Self::GilbertElliott(states) => LossProcess::States(states),
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum LossProcess {
    None,
    Each(Probability),
    States(GilbertElliott),
}

/// A loss model with its state and its own random stream.
#[derive(Clone, Debug)]
pub struct Loss {
    process: LossProcess,
    chance: RandomStream,
    is_bad: bool,
}

impl Loss {
    /// A link in its good state.
    ///
    /// # Panics
    ///
    /// If `model` has bursts that [`LossModel::bursts`] would reject.
    #[must_use]
    pub fn new(model: LossModel, chance: RandomStream) -> Self {
        Self {
            process: model.process(),
            chance,
            is_bad: false,
        }
    }

    /// True if the next packet is lost.
    pub fn is_next_lost(&mut self) -> bool {
        match self.process {
            LossProcess::None => false,
            LossProcess::Each(loss) => loss.sample(&mut self.chance),
            LossProcess::States(GilbertElliott {
                worsens,
                recovers,
                loss_good,
                loss_bad,
            }) => {
                let transition = if self.is_bad { recovers } else { worsens };
                self.is_bad ^= transition.sample(&mut self.chance);
                let loss = if self.is_bad { loss_bad } else { loss_good };
                loss.sample(&mut self.chance)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Purpose;

    const SEED: u64 = 11;

    fn percent(percent: u32) -> Probability {
        Probability::from_ppb(percent * 10_000_000).expect("the percentage is at most 100")
    }

    fn sample_losses(model: LossModel, packets: usize) -> Vec<bool> {
        let mut loss = Loss::new(model, RandomStream::new(SEED, Purpose::LossDown));
        (0..packets).map(|_| loss.is_next_lost()).collect()
    }

    #[test]
    fn bernoulli_loses_its_share() {
        let lost = sample_losses(LossModel::bernoulli(percent(2)), 100_000);
        let lost = lost.iter().filter(|lost| **lost).count();
        assert!(
            (1_850..2_150).contains(&lost),
            "seed {SEED}: {lost} of 100,000 packets lost, expected about 2,000"
        );
    }

    #[test]
    fn bursts_keep_the_share_and_have_the_length() {
        let model = LossModel::bursts(percent(2), 4).expect("2 % in bursts of 4 is possible");
        let lost = sample_losses(model, 400_000);
        let count = lost.iter().filter(|lost| **lost).count();
        let bursts = lost.windows(2).filter(|pair| pair[1] && !pair[0]).count();
        assert!(
            (7_200..8_800).contains(&count),
            "seed {SEED}: {count} lost, expected about 8,000"
        );
        let mean_x10 = count * 10 / bursts;
        assert!(
            (36..44).contains(&mean_x10),
            "seed {SEED}: bursts of {mean_x10}/10 packets, expected 4"
        );
    }

    #[test]
    fn nothing_and_everything_are_exact() {
        assert!(!sample_losses(LossModel::None, 1_000).contains(&true));
        assert!(!sample_losses(LossModel::Bernoulli(percent(100)), 1_000).contains(&false));
        assert_eq!(LossModel::bursts(percent(100), 4), None);
        assert_eq!(LossModel::bursts(percent(1), 0), None);
        assert_eq!(
            LossModel::bursts(percent(90), 1),
            None,
            "a loss of 9 in 10 packets needs bursts longer than 1"
        );
    }

    #[test]
    fn percent_prints_without_rounding() {
        assert_eq!(percent(1).to_string(), "1%");
        assert_eq!(Probability(2_500_000).to_string(), "0.25%");
        assert_eq!(Probability(1).to_string(), "0.0000001%");
        assert_eq!(Probability::ZERO.to_string(), "0");
    }
}
