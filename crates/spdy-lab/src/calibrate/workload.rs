//! What runs in both clocks.

use std::fmt::{Debug, Display};
use std::io;
use std::time::Duration;

use serde::Serialize;
use spdy_netem::loss::LossModel;
use spdy_netem::path::PathConfig;
use spdy_tun::cpu::CpuTime;
use spdy_tun::network::RealNetwork;
use spdy_tun::stats::LinkStats;

use crate::calibrate::error::CalibrateError;

/// Something that takes a time in virtual time, and one in real time.
pub trait Workload: Clone + Debug + Display + Send + Serialize + Sync {
    /// The link between its ends.
    fn path(&self) -> PathConfig;

    /// What it takes in virtual time.
    ///
    /// # Errors
    ///
    /// It fails, or can never end.
    fn run_virtual(&self, seed: u64) -> io::Result<Duration>;

    /// Does it over `network`, whose link is begun and idle, and gives it up after `patience`.
    ///
    /// # Errors
    ///
    /// The link or a host failed. If the subject itself did not complete, the [`Attempt`] has the reason.
    fn run_real(
        &self,
        network: &mut RealNetwork,
        seed: u64,
        patience: Duration,
    ) -> Result<Attempt, CalibrateError>;

    /// Whether chance has a part in it.
    fn is_lossy(&self) -> bool {
        let path = self.path();
        let losses = [path.loss_up, path.loss_down];
        !path.jitter.is_zero() || losses.iter().any(|loss| *loss != LossModel::None)
    }
}

/// One run in real time, whether or not it counts.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// What it took, or why it came to no end that counts.
    pub took: Result<Duration, String>,
    /// What the link was meanwhile.
    pub measured: LinkStats,
    /// What both hosts computed, and waited for a core; `None` if the system does not report it.
    pub hosts: Option<CpuTime>,
}
