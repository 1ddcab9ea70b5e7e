//! A link in real time that runs one subject after the other, and decides which runs are valid.
//!
//! Each run starts with an idle link whose counters are zero, and no packet of it is in transit when the next one starts. So both
//! clocks have the same random losses for the same packets.

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
use crate::experiment::server_program::ServerProgram;
use crate::live::gateway::process::{Gateway, GatewayConfig};
use crate::live::load::{self as live, LiveLoad, LoadSpec};

/// The congestion control of both model and kernel.
pub const CONGESTION: &str = "cubic";
/// Time without packets after which a run is over.
pub(super) const QUIET_FOR: Duration = Duration::from_millis(20);
/// Timeout for that.
pub(super) const QUIET_TIMEOUT: Duration = Duration::from_secs(30);
/// Time that a run may take beyond ten times its virtual time.
const EXTRA_RUN_TIME: Duration = Duration::from_secs(30);
/// Timeout of each earlier page of a visit.
const EARLIER_PAGE_TIME: Duration = Duration::from_secs(600);

/// Loads of a page over an open link from another server that has just started. They are not stored.
const WARM_UP_LOADS: usize = 3;

/// The path of a link without a delay that any load notices.
fn open_path() -> PathConfig {
    PathConfig::new(1 << 30, 1 << 30, Duration::ZERO)
}

/// Limits for a run that takes `expected` in virtual time: lateness is limited by its effect. One packet may be late by 0.5 % of the
/// time, one in a hundred by 0.25 %, and the mean by 0.1 %. Each limit is at least what a machine with a spare core easily keeps, and
/// at most what does not affect TCP's timers.
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

/// Limit for the time that both ends together may wait for a core, milliseconds: 3 % of the run in virtual time, and at least two
/// waits of a usual length on a machine with a spare core. Each of thousands of wake-ups waits some microseconds, even on idle cores.
/// Most of them overlap with packets in flight.
#[must_use]
pub fn cpu_wait_limit_ms(expected: Duration) -> f64 {
    (expected.as_secs_f64() * 1e3 * 0.03).max(4.0)
}

/// A run.
#[derive(Clone, Debug)]
pub struct RunResult {
    /// Duration, or why the run is invalid.
    pub took: Result<Duration, String>,
    /// Time for which both ends computed; `None` if the system does not report it.
    pub computed: Option<Duration>,
}

/// The link of a run, and CPU times and waits of its ends, if the system reports them.
type LinkAndCpu = (LinkStats, Option<CpuTime>);

/// A link that runs subjects one after the other.
#[derive(Debug)]
pub struct RunLink {
    /// The other server that served the load before; it ends before the network.
    gateway: Option<Gateway>,
    network: RealNetwork,
}

impl RunLink {
    /// Creates one.
    ///
    /// # Errors
    ///
    /// Namespaces, devices or cubic are not available.
    pub fn start() -> Result<Self, CalibrateError> {
        Self::with_window(None)
    }

    /// Creates one whose ends have this initial window, or the kernel's.
    ///
    /// # Errors
    ///
    /// Like [`start`](Self::start).
    pub fn with_window(initial_window: Option<u32>) -> Result<Self, CalibrateError> {
        let config = RealNetworkConfig {
            congestion: CONGESTION.to_owned(),
            initial_window,
            ..RealNetworkConfig::new(open_path())
        };
        let network = RealNetwork::start(&config)?;
        check_congestion(&network)?;
        Ok(Self {
            gateway: None,
            network,
        })
    }

    /// Runs `subject`. `expected` is its duration in virtual time: a run of ten times as much is cancelled.
    ///
    /// # Errors
    ///
    /// The link or a host failed. An invalid run is no error.
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
            self.run_measured(&subject.path(), seed, expected, 1, run)?;
        Ok(RunResult {
            // An error of the load takes precedence over a fault of the link.
            took: took.and_then(|took| match faults.first() {
                None => Ok(took),
                Some(fault) => Err(fault.to_string()),
            }),
            computed: hosts.map(|hosts| hosts.ran),
        })
    }

    /// Loads `page` from `server` over `path` with `which`, and returns the faults that make the load invalid, without the page's own
    /// failures. `which.timeout` is set here. Another server than ours runs until a load that it cannot serve.
    ///
    /// # Errors
    ///
    /// Like [`run`](Self::run).
    pub fn load(
        &mut self,
        page: &Arc<Page>,
        server: ServerProgram,
        path: &PathConfig,
        which: LoadSpec,
        expected: Duration,
    ) -> Result<(LiveLoad, Vec<Fault>), CalibrateError> {
        let seed = which.seed;
        let earlier = page.earlier();
        let count = earlier.pages.len() as u32; // at most MAX_PAGES
        let gateway = self.gateway(server, page, &which)?;
        let loaded = self.run_measured(path, seed, expected, count + 1, |network, patience| {
            let loaded = live::load(
                network,
                page,
                &LoadSpec {
                    timeout: patience + (EARLIER_PAGE_TIME + earlier.pause) * count,
                    ..which
                },
                gateway.as_ref(),
            )?;
            let under = (loaded.measured.clone(), loaded.hosts);
            Ok((loaded, under))
        })?;
        self.gateway = gateway;
        Ok(loaded)
    }

    /// The gateway of a load from `server`: the one of the load before if it fits, or a new one; `None` if the server is ours.
    fn gateway(
        &mut self,
        server: ServerProgram,
        page: &Arc<Page>,
        which: &LoadSpec,
    ) -> Result<Option<Gateway>, CalibrateError> {
        let mut before = self.gateway.take();
        let Some(config) = GatewayConfig::of(server, which.protocol, page) else {
            return Ok(None);
        };
        if before.as_mut().is_some_and(|it| it.serves(&config)) {
            return Ok(before);
        }
        drop(before); // its ports are free then
        let gateway = Gateway::start(config, &self.network.server)?;
        // A new process compiles its code and fills its caches with its first responses.
        self.network.begin(&open_path(), which.seed)?;
        let which = LoadSpec {
            timeout: EARLIER_PAGE_TIME,
            ..which.clone()
        };
        for _ in 0..WARM_UP_LOADS {
            live::load(&mut self.network, page, &which, Some(&gateway))?;
        }
        Ok(Some(gateway))
    }

    /// Calls `work` with an idle link, and returns the faults of the link and of its ends meanwhile. `work` loads so many `pages`, the
    /// last of which takes `expected`.
    fn run_measured<T>(
        &mut self,
        path: &PathConfig,
        seed: u64,
        expected: Duration,
        pages: u32,
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
        // The servers' wait is that of all pages of a visit.
        let limit_ms = cpu_wait_limit_ms(expected * pages);
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
