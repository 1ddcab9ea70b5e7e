//! Cells of an experiment in real time: one load after the other over one link, each repeated until it is valid.
//!
//! ```text
//!   run of a cell ─► virtual time: its duration ─► limits of lateness, timeout
//!                    real time:    a load ─┬─ within limits ───────────────► valid
//!                                  ▲       └─ late, starved, incomplete ─┐
//!                                  └── again, same seed, after a pause ──┴─► [`MAX_RETRIES`] times; then stored as
//!                                                                            invalid, with its reasons
//! ```

use std::thread;
use std::time::Duration;

use spdy_sim::load;
use spdy_sim::load::Load;
use spdy_tun::cpu::CpuTime;
use spdy_tun::limits::Fault;
use spdy_tun::stats::{DirectionStats, LinkStats};

use crate::calibrate::error::CalibrateError;
use crate::calibrate::run_link::{CONGESTION, RunLink};
use crate::calibrate::runner::{MAX_RETRIES, RETRY_PAUSE};
use crate::experiment::cell::Cell;
use crate::experiment::clock::{RealDirection, RealRun};
use crate::experiment::conditions::Conditions;
use crate::experiment::error::PlanError;
use crate::experiment::factor::Factor;
use crate::experiment::plan::Plan;
use crate::experiment::runner::{CellLoads, Runner};
use crate::live::gateway::error::GatewayError;
use crate::live::gateway::programs;
use crate::live::load::{LiveLoad, LoadSpec};

/// Why a cell cannot be loaded in real time. An invalid run is no error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CellError {
    /// Its levels contradict each other.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The link or a host failed.
    #[error(transparent)]
    RealTime(#[from] CalibrateError),
    /// A server is not installed.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
}

/// A link that loads cells one after the other.
#[derive(Debug)]
pub struct RealTimeRunner {
    lane: RunLink,
    /// Initial window of its ends, if not the kernel's.
    window: Option<u32>,
}

impl RealTimeRunner {
    /// Creates one for the cells of `plan`.
    ///
    /// # Errors
    ///
    /// Namespaces, devices, cubic or a server of the plan are not available.
    pub fn start(plan: &Plan) -> Result<Self, CellError> {
        let servers = plan.factors.get(&Factor::Server).into_iter().flatten();
        for server in servers.filter_map(|name| name.parse().ok()) {
            programs::check(server)?;
        }
        Ok(Self {
            lane: RunLink::start()?,
            window: None,
        })
    }

    /// Loads all runs of `cell`, each until it is valid; `None` if `stops`, which is called before each attempt, returned true.
    ///
    /// # Errors
    ///
    /// The link or a host failed, or levels contradict each other, which a parsed plan excludes.
    pub fn load<'a>(
        &mut self,
        runner: &Runner,
        cell: Cell<'a>,
        stops: impl Fn() -> bool,
    ) -> Result<Option<CellLoads<'a>>, CellError> {
        let conditions = Conditions::of(&cell)?;
        let window = conditions.initial_window();
        if self.window != window {
            // The window is a property of the route, so the hosts are created again.
            self.lane = RunLink::with_window(window)?;
            self.window = window;
        }
        let (mut loads, mut real) = (Vec::new(), Vec::new());
        for run in 1..=runner.plan().runs() {
            let Some((load, under)) = self.run(runner, &cell, &conditions, run, &stops)? else {
                return Ok(None);
            };
            loads.push(load);
            real.push(under);
        }
        Ok(Some(CellLoads {
            cell,
            conditions,
            loads,
            real,
        }))
    }

    fn run(
        &mut self,
        runner: &Runner,
        cell: &Cell<'_>,
        conditions: &Conditions,
        run: u32,
        stops: impl Fn() -> bool,
    ) -> Result<Option<(Load, RealRun)>, CellError> {
        let (network, options) = (&conditions.network, &conditions.options);
        let (page, seed) = (runner.page(cell, conditions), cell.seed(run));
        let config = network.config(options);
        let in_virtual_time = load::load(
            &page,
            cell.protocol(),
            &network.name,
            &config,
            options,
            seed,
        );
        let expected = Duration::from_secs_f64(in_virtual_time.load_ms / 1e3);
        // A load that is incomplete in virtual time is incomplete over any link.
        let can_be_whole = in_virtual_time.failures.is_empty();
        let mut rejected = Vec::new();
        for attempt in 0.. {
            if stops() {
                return Ok(None);
            }
            thread::sleep(RETRY_PAUSE * attempt);
            let which = LoadSpec {
                protocol: cell.protocol(),
                network: network.name.clone(),
                seed,
                options: options.clone(),
                initial_window: conditions.initial_window(),
                timeout: Duration::MAX,
            };
            let (server, path) = (conditions.server, &network.profile.path);
            let (loaded, faults) = self.lane.load(&page, server, path, which, expected)?;
            let reasons = invalid_reasons(&loaded, &faults, can_be_whole);
            if reasons.is_empty() || attempt == MAX_RETRIES {
                let real = real_run(&loaded, reasons, rejected);
                let waterfall = Vec::new();
                let load = Load {
                    waterfall,
                    ..loaded.load
                };
                return Ok(Some((load, real)));
            }
            let took = loaded.load.load_ms;
            rejected.push(format!("{took:.3} ms: {}", reasons.join("; ")));
        }
        unreachable!("the last of {MAX_RETRIES} repetitions is stored")
    }
}

/// Everything that makes a load invalid.
fn invalid_reasons(loaded: &LiveLoad, faults: &[Fault], can_be_whole: bool) -> Vec<String> {
    let mut reasons: Vec<String> = faults.iter().map(Fault::to_string).collect();
    match loaded.load.failures.first() {
        _ if loaded.was_given_up => reasons.push("it did not end".to_owned()),
        Some(failure) if can_be_whole => reasons.push(format!("it is incomplete: {failure}")),
        _ => {}
    }
    reasons
}

fn real_run(loaded: &LiveLoad, invalid: Vec<String>, rejected: Vec<String>) -> RealRun {
    let LinkStats {
        waited_for_cpu_ms,
        up,
        down,
        ..
    } = &loaded.measured;
    let hosts = |of: fn(&CpuTime) -> Duration| {
        let hosts = loaded.hosts.as_ref();
        hosts.map(|hosts| of(hosts).as_secs_f64() * 1e3)
    };
    let worst = |of: fn(&DirectionStats) -> f64| loaded.measured.worst(of);
    RealRun {
        congestion: CONGESTION.to_owned(),
        attempts: rejected.len() as u32 + 1,
        invalid,
        rejected,
        up: way(up),
        down: way(down),
        late_mean_ms: worst(|way| way.late_mean_ms),
        late_p99_ms: worst(|way| way.late_p99_ms),
        late_max_ms: worst(|way| way.late_max_ms),
        link_waited_ms: *waited_for_cpu_ms,
        hosts_waited_ms: hosts(|hosts| hosts.waited),
        computed_ms: hosts(|hosts| hosts.ran),
    }
}

const fn way(of: &DirectionStats) -> RealDirection {
    RealDirection {
        bps: of.busy_bps,
        delay_ms: of.delay_ms,
        queue_drops: of.queue_drops,
        lost: of.lost,
        device_drops: of.refused + of.missed,
    }
}

#[cfg(test)]
mod tests {
    use spdy_page::builtin;

    use super::*;
    use spdy_sim::load::Page;
    use spdy_sim::options::{Options, RaceProtocol};
    use spdy_sim::race::RaceNetwork;

    /// A load in virtual time, as if the link had carried it.
    fn loaded() -> LiveLoad {
        let network = RaceNetwork::parse("cable").expect("it has a name");
        let (page, options) = (Page::new(builtin::portal()), Options::default());
        let config = network.config(&options);
        let load = load::load(&page, RaceProtocol::Spdy, "", &config, &options, 1);
        let emulator =
            spdy_tun::emulator::Emulator::new(&config.path, 1, spdy_clock::Instant::ZERO);
        LiveLoad {
            load,
            measured: emulator.stats(spdy_clock::Instant::from_millis(1)),
            was_given_up: false,
            hosts: None,
        }
    }

    #[test]
    fn a_load_is_valid_if_on_time_and_as_complete_as_possible() {
        let mut loaded = loaded();
        assert_eq!(invalid_reasons(&loaded, &[], true), Vec::<String>::new());
        let late = Fault::LateMax {
            measured_ms: 30.0,
            limit_ms: 20.0,
        };
        let reason = "a packet was 30.00 ms late, limit 20 ms";
        assert_eq!(
            invalid_reasons(&loaded, std::slice::from_ref(&late), true),
            [reason]
        );
        loaded.load.failures.push("503 for /".to_owned());
        let not_whole = "it is incomplete: 503 for /";
        assert_eq!(invalid_reasons(&loaded, &[late], true), [reason, not_whole]);
        assert_eq!(invalid_reasons(&loaded, &[], false), Vec::<String>::new());
        loaded.was_given_up = true;
        assert_eq!(invalid_reasons(&loaded, &[], false), ["it did not end"]);
    }

    #[test]
    fn a_stored_run_has_its_attempts_and_their_reasons() {
        let rejected = vec!["1.000 ms: late".to_owned(), "2.000 ms: late".to_owned()];
        let run = real_run(&loaded(), vec!["later still".to_owned()], rejected.clone());
        assert_eq!((run.attempts, &run.rejected), (3, &rejected));
        assert_eq!(run.invalid, ["later still"]);
        assert_eq!((run.down.bps, run.hosts_waited_ms), (None, None));
        assert_eq!(run.down.delay_ms, 14.0);
    }
}
