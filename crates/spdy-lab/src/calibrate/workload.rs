//! Workloads of both clocks.

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

/// A workload with a duration in virtual time, and one in real time.
pub trait Workload: Clone + Debug + Display + Send + Serialize + Sync {
    /// The link between its ends.
    fn path(&self) -> PathConfig;

    /// Its duration in virtual time.
    ///
    /// # Errors
    ///
    /// It fails, or cannot end.
    fn run_virtual(&self, seed: u64) -> io::Result<Duration>;

    /// Runs it over `network`, whose link is begun and idle, and cancels it after `patience`.
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

    /// True if its path has randomness.
    fn is_lossy(&self) -> bool {
        let path = self.path();
        let losses = [path.loss_up, path.loss_down];
        !path.jitter.is_zero() || losses.iter().any(|loss| *loss != LossModel::None)
    }
}

/// One run in real time, valid or not.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Duration, or why the run did not end successfully.
    pub took: Result<Duration, String>,
    /// Measurements of the link during the run.
    pub measured: LinkStats,
    /// CPU time of both hosts, and their waits for a core; `None` if the system does not report it.
    pub hosts: Option<CpuTime>,
}
