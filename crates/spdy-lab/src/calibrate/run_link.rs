//! A link in real time that runs one subject after the other, and decides which runs count.
//!
//! Each run has a link that is idle and counts from zero, and nothing of it is on its way when the next begins: so both
//! clocks meet the same chance in the same packets.

use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;
use spdy_netem::path::PathConfig;
use spdy_sim::load::Page;
use spdy_sim::seed;
use spdy_tun::cpu::CpuTime;
use spdy_tun::host::SERVER;
use spdy_tun::limits::{Fault, ValidityLimits};
use spdy_tun::network::{RealNetwork, RealNetworkConfig};
use spdy_tun::stats::LinkStats;

use crate::calibrate::error::CalibrateError;
use crate::calibrate::workload::{Attempt, Workload};
use crate::live::load::{self as live, LiveLoad, LoadSpec};

/// What model and kernel have in common.
pub const CONGESTION: &str = "cubic";
/// For how long nothing must be sent before a run is over.
pub(super) const QUIET_FOR: Duration = Duration::from_millis(20);
/// Longest wait for that.
pub(super) const QUIET_TIMEOUT: Duration = Duration::from_secs(30);
/// What a run may take beyond ten times what it takes in virtual time.
const EXTRA_RUN_TIME: Duration = Duration::from_secs(30);

/// When a run counts that takes so long in virtual time: lateness is bounded by what it may change. Half a percent of the
/// time is allowed to one packet, a quarter to one in a hundred, a tenth on average; but no less than what a machine with a
/// core to spare keeps easily, and no more than what leaves TCP's timers alone.
#[must_use]
pub fn limits(expected: Duration) -> ValidityLimits {
    let expected_ms = expected.as_secs_f64() * 1e3;
    ValidityLimits {
        late_max_ms: (expected_ms * 0.005).clamp(2.0, 20.0),
        late_p99_ms: (expected_ms * 0.002_5).clamp(1.0, 10.0),
        late_mean_ms: (expected_ms * 0.001).clamp(0.25, 2.0),
        ..ValidityLimits::default()
    }
}

/// For how long both ends together may wait for a core, milliseconds: a hundredth of what the run takes in virtual time, and
/// no less than two such waits as a machine with a core to spare has now and then.
#[must_use]
pub fn cpu_wait_limit_ms(expected: Duration) -> f64 {
    (expected.as_secs_f64() * 1e3 * 0.01).max(4.0)
}

/// A run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// What it took, or why it does not count.
    pub took: Result<Duration, String>,
    /// For how long both ends computed; `None` if the system does not report it.
    pub computed: Option<Duration>,
}

/// What something ran under: the link, and for how long its ends computed and waited, if the system reports it.
type LinkAndCpu = (LinkStats, Option<CpuTime>);

/// A link that runs subjects one after the other.
#[derive(Debug)]
pub struct RunLink {
    network: RealNetwork,
}

impl RunLink {
    /// Makes one.
    ///
    /// # Errors
    ///
    /// No namespaces, no devices, no cubic.
    pub fn start() -> Result<Self, CalibrateError> {
        Self::with_window(None)
    }

    /// Makes one whose ends begin with so many segments, if not with the kernel's.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start).
    pub fn with_window(initial_window: Option<u32>) -> Result<Self, CalibrateError> {
        let open = PathConfig::new(1 << 30, 1 << 30, Duration::ZERO);
        let config = RealNetworkConfig {
            congestion: CONGESTION.to_owned(),
            initial_window,
            ..RealNetworkConfig::new(open)
        };
        let network = RealNetwork::start(&config)?;
        check_congestion(&network)?;
        Ok(Self { network })
    }

    /// Runs `subject`. `expected` is what that takes in virtual time: a run of ten times as much is given up.
    ///
    /// # Errors
    ///
    /// The link or a host failed; not that a run does not count.
    pub fn run<S: Workload>(
        &mut self,
        subject: &S,
        seed: u64,
        expected: Duration,
    ) -> Result<RunResult, CalibrateError> {
        let run = |network: &mut RealNetwork, patience| {
            let attempt = subject.run_real(network, seed, patience)?;
            let under = (attempt.measured.clone(), attempt.hosts);
            Ok((attempt, under))
        };
        let (Attempt { took, hosts, .. }, faults) =
            self.run_measured(&subject.path(), seed, expected, run)?;
        Ok(RunResult {
            // An error of the load takes precedence over a fault of the link.
            took: took.and_then(|took| match faults.first() {
                None => Ok(took),
                Some(fault) => Err(fault.to_string()),
            }),
            computed: hosts.map(|hosts| hosts.ran),
        })
    }

    /// Loads `page` over `path` with `which`, and returns the faults that keep the load from counting, except for the
    /// page's own. `which.patience` is set here.
    ///
    /// # Errors
    ///
    /// As [`run`](Self::run).
    pub fn load(
        &mut self,
        page: &Arc<Page>,
        path: &PathConfig,
        which: LoadSpec,
        expected: Duration,
    ) -> Result<(LiveLoad, Vec<Fault>), CalibrateError> {
        let seed = which.seed;
        self.run_measured(path, seed, expected, |network, patience| {
            let loaded = live::load(
                network,
                page,
                &LoadSpec {
                    timeout: patience,
                    ..which
                },
            )?;
            let under = (loaded.measured.clone(), loaded.hosts);
            Ok((loaded, under))
        })
    }

    /// Does `work` over an idle link, and returns the faults of the link and of its ends meanwhile.
    fn run_measured<T>(
        &mut self,
        path: &PathConfig,
        seed: u64,
        expected: Duration,
        work: impl FnOnce(&mut RealNetwork, Duration) -> Result<(T, LinkAndCpu), CalibrateError>,
    ) -> Result<(T, Vec<Fault>), CalibrateError> {
        self.network.begin(path, seed::derive(seed, "path"))?;
        let patience = expected * 10 + EXTRA_RUN_TIME;
        let (done, (measured, hosts)) = work(&mut self.network, patience)?;
        if !self.network.wait_until_quiet(QUIET_FOR, QUIET_TIMEOUT)? {
            let seconds = QUIET_TIMEOUT.as_secs();
            return Err(CalibrateError::LinkNotQuiet { seconds });
        }
        let mut faults = limits(expected).faults(&measured);
        let limit_ms = cpu_wait_limit_ms(expected);
        if let Some(hosts) = hosts
            && hosts.waited.as_secs_f64() * 1e3 > limit_ms
        {
            let measured_ms = hosts.waited.as_secs_f64() * 1e3;
            faults.push(Fault::Starved {
                measured_ms,
                limit_ms,
            });
        }
        Ok((done, faults))
    }
}

/// Checks the congestion control of a connection on each side.
fn check_congestion(network: &RealNetwork) -> Result<(), CalibrateError> {
    let listener = network
        .server
        .run(|| std::net::TcpListener::bind((SERVER, 0)))?;
    let server = listener.local_addr()?;
    let client = network
        .client
        .run(move || std::net::TcpStream::connect(server))?;
    let accepted = network.server.run(move || listener.accept())?.0;
    for socket in [client, accepted] {
        let name = SockRef::from(&socket).tcp_congestion()?;
        let name: Vec<u8> = name.into_iter().take_while(|byte| *byte != 0).collect();
        if name != CONGESTION.as_bytes() {
            return Err(CalibrateError::Congestion {
                expected: CONGESTION.to_owned(),
                found: String::from_utf8_lossy(&name).into_owned(),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_grows_with_the_run_between_its_bounds() {
        let of = |seconds: f64| limits(Duration::from_secs_f64(seconds));
        assert_eq!(of(0.021).late_max_ms, 2.0);
        assert_eq!(
            (
                of(1.0).late_max_ms,
                of(1.0).late_p99_ms,
                of(1.0).late_mean_ms
            ),
            (5.0, 2.5, 1.0)
        );
        assert_eq!((of(60.0).late_max_ms, of(60.0).late_mean_ms), (20.0, 2.0));
    }
}
