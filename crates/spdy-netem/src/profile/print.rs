//! Prints a network in its canonical form.

use std::fmt;

use super::network_profile::Profile;
use super::value::{Era, print_time};
use crate::loss::{LossModel, Probability};
use crate::path::Topology;
use crate::queue::QueueLimit;
use crate::rate::Bitrate;

/// The canonical form: the name if no setting changed it, else every setting that is not the default, and always rates and round
/// trip. Parsing it gives the same network.
impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => f.write_str(name),
            None => f.write_str(&self.settings()),
        }
    }
}

impl Profile {
    /// The settings behind a name, in the canonical form.
    #[must_use]
    pub fn settings(&self) -> String {
        let path = &self.path;
        let rate =
            |bps| Bitrate::from_bps(bps).map_or_else(|| "0bit".to_owned(), |rate| rate.to_string());
        let mut parts = match path.topology {
            Topology::TwoPipes => {
                vec![
                    format!("down={}", rate(path.down_bps)),
                    format!("up={}", rate(path.up_bps)),
                ]
            }
            Topology::Shared { passes } => vec![
                format!("rate={}", rate(path.down_bps)),
                "pipe=shared".to_owned(),
                format!("passes={passes}"),
            ],
        };
        parts.push(format!("rtt={}", print_time(path.rtt)));
        if !path.jitter.is_zero() {
            parts.push(format!("jitter={}", print_time(path.jitter)));
        }
        if path.reorder {
            parts.push("reorder=yes".to_owned());
        }
        let (up, down) = (describe(path.loss_up), describe(path.loss_down));
        match (up, down) {
            ((loss, burst), other) if (loss, burst) == other => push_loss(&mut parts, "loss", loss),
            ((up, _), (down, _)) => {
                push_loss(&mut parts, "loss_up", up);
                push_loss(&mut parts, "loss_down", down);
            }
        }
        if let Some(burst) = up.1.or(down.1) {
            parts.push(format!("burst={burst}"));
        }
        if path.queue != QueueLimit::DEFAULT {
            parts.push(format!("queue={}", path.queue));
        }
        if !path.tick.is_zero() {
            parts.push(format!("tick={}", print_time(path.tick)));
        }
        if self.era != Era::Today {
            parts.push(format!("tcp={}", self.era));
        }
        if let Some(segments) = self.initial_window {
            parts.push(format!("iw={segments}"));
        }
        parts.join(",")
    }
}

fn push_loss(parts: &mut Vec<String>, key: &str, loss: Probability) {
    if loss != Probability::ZERO {
        parts.push(format!("{key}={loss}"));
    }
}

/// Average loss, and the mean length of bursts for bursty loss.
///
/// The four parameters of Gilbert and Elliott have no text: a network with them is created in code, and prints the loss of its good
/// state.
fn describe(model: LossModel) -> (Probability, Option<u32>) {
    match model {
        LossModel::None => (Probability::ZERO, None),
        LossModel::Bernoulli(loss) => (loss, None),
        LossModel::Bursts {
            average,
            mean_burst_packets,
        } => (average, Some(mean_burst_packets)),
        LossModel::GilbertElliott(states) => (states.loss_good, None),
    }
}
