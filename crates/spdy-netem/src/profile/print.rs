//! Prints a network in its canonical form.

use std::fmt;

use super::network_profile::Profile;
use super::value::{Era, print_time};
use crate::loss::{LossModel, Probability};
use crate::path::Topology;
use crate::queue::QueueConfig;
use crate::rate::Bitrate;
use crate::wire::LinkRate;

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
        let mut parts = match path.topology {
            Topology::TwoPipes => {
                vec![
                    format!("down={}", rate(&path.down)),
                    format!("up={}", rate(&path.up)),
                ]
            }
            Topology::Shared { passes } => vec![
                format!("rate={}", rate(&path.down)),
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
        if path.queue != QueueConfig::DEFAULT {
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

fn rate(rate: &LinkRate) -> String {
    match rate {
        LinkRate::Bps(bps) => {
            Bitrate::from_bps(*bps).map_or_else(|| "0bit".to_owned(), |rate| rate.to_string())
        }
        LinkRate::Trace(trace) => format!("trace:{}", trace.name()),
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
