//! Races: loads of every page over every network by every protocol, [`runs`](Race::runs) times.
//!
//! ```text
//!   cells   page 1 ┬ network 1 ┬ http   run 1, run 2, ..      results have this order,
//!                  │           ├ https  run 1, run 2, ..      for any number of threads
//!                  │           └ ..
//!                  └ network 2 ─ ..
//! ```
//!
//! A cell has its own executor, network, client and servers, so cells run on all cores and share only the page. Run `r` of a race
//! with seed `s` has the seed `s + r`, the same for all protocols and networks: they have the same random numbers, and any load can
//! be repeated alone.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use spdy_netem::profile::{Profile, ProfileError};
use spdy_page::replica::Replica;

use crate::load;
use crate::load::{HostLayout, Load, Page};
use crate::network::{NetworkConfig, PROGRAM_LATENCY};
use crate::options::{Options, RaceProtocol};
use crate::workers;

/// A network of a race.
#[derive(Clone, Debug, PartialEq)]
pub struct RaceNetwork {
    /// Its name in results.
    pub name: String,
    /// Its links, and the TCP of both ends.
    pub profile: Profile,
}

impl RaceNetwork {
    /// The network that `spec` names or describes, as [`spdy_netem::profile`] parses it.
    ///
    /// # Errors
    ///
    /// An unknown name or setting.
    pub fn parse(spec: &str) -> Result<Self, ProfileError> {
        let profile: Profile = spec.parse()?;
        Ok(Self {
            name: spec.to_owned(),
            profile,
        })
    }

    /// True if loads by `protocol` over it differ by their seed: packets are lost or delayed at random, or a QUIC sender skips packet
    /// numbers at random.
    #[must_use]
    pub fn differs_by_seed(&self, protocol: RaceProtocol) -> bool {
        self.profile.path.is_random() || protocol.wire_protocol().is_over_quic()
    }

    /// The network with the values of `options` instead of its own: TCP, the servers' initial window, and name lookups.
    #[must_use]
    pub fn config(&self, options: &Options) -> NetworkConfig {
        let mut profile = self.profile.clone();
        profile.era = options.tcp_era.unwrap_or(profile.era);
        let client_tcp = profile.tcp();
        profile.initial_window = options.initial_window.or(profile.initial_window);
        NetworkConfig {
            client_tcp,
            server_tcp: profile.tcp(),
            path: profile.path,
            name_lookups: options.name_lookups,
            program_latency: PROGRAM_LATENCY,
        }
    }
}

/// A race: pages, networks, protocols, and the options of their loads.
#[derive(Clone, Debug)]
pub struct Race {
    /// Pages.
    pub replicas: Vec<Replica>,
    /// Networks.
    pub networks: Vec<RaceNetwork>,
    /// Protocols.
    pub protocols: Vec<RaceProtocol>,
    /// Loads of each page over each network by each protocol, at least 1.
    pub runs: u32,
    /// The seed of the first run.
    pub seed: u64,
    /// The hosts of the pages' resources.
    pub hosts: HostLayout,
    /// Every other choice of a load.
    pub options: Options,
    /// `Some` if the pages are one [visit](crate::load::visit()), with this pause between two.
    pub visit: Option<Duration>,
    /// Threads; `None` for one per core.
    pub threads: Option<NonZeroUsize>,
}

/// The progress of a race.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Number of reported loads, including this one.
    pub done: usize,
    /// Number of all loads.
    pub total: usize,
    /// The reported load; loads are reported in the order of the race.
    pub load: &'a Load,
}

/// One load of a race: indexes into its lists, and the run.
#[derive(Clone, Copy, Debug)]
struct RaceCell {
    page: usize,
    network: usize,
    protocol: RaceProtocol,
    run: u32,
}

impl Race {
    /// Every default protocol once over `networks`, with default options and seed 1.
    #[must_use]
    pub fn new(replicas: Vec<Replica>, networks: Vec<RaceNetwork>) -> Self {
        let (protocols, options) = (RaceProtocol::DEFAULTS.to_vec(), Options::default());
        Self {
            replicas,
            networks,
            protocols,
            runs: 1,
            seed: 1,
            hosts: HostLayout::Recorded,
            options,
            visit: None,
            threads: None,
        }
    }

    /// The number of its loads.
    #[must_use]
    pub fn total(&self) -> usize {
        self.replicas.len() * self.networks.len() * self.protocols.len() * self.runs as usize
    }

    /// The cell with this number; `None` past the last.
    fn cell(&self, number: usize) -> Option<RaceCell> {
        let (rest, run) = (number / self.runs as usize, number % self.runs as usize);
        let (rest, protocol) = (rest / self.protocols.len(), rest % self.protocols.len());
        let (page, network) = (rest / self.networks.len(), rest % self.networks.len());
        (page < self.replicas.len()).then(|| RaceCell {
            page,
            network,
            protocol: self.protocols[protocol],
            run: run as u32, // below `runs`
        })
    }

    /// Runs it, and calls `on_load` with each load as soon as all earlier ones are done.
    ///
    /// `on_load` receives every waterfall and qlog. No returned load has qlogs. Of the returned loads, only the [typical](typical_run) run of each page, network and
    /// protocol has its waterfall: those of a thousand runs would fill the memory.
    ///
    /// It may be called inside a tokio runtime: loads run on their own threads.
    ///
    /// # Panics
    ///
    /// If a load panics, which is a fault of this program.
    pub fn run(&self, mut on_load: impl FnMut(Progress<'_>)) -> Vec<Load> {
        self.run_while(|progress| {
            on_load(progress);
            ControlFlow::Continue(())
        })
    }

    /// Like [`run`](Self::run), until `on_load` returns `Break`. It then returns the reported loads.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    pub fn run_while(&self, mut on_load: impl FnMut(Progress<'_>) -> ControlFlow<()>) -> Vec<Load> {
        let pages = self.replicas.iter().map(|it| self.hosts.page(it));
        let pages: Vec<Arc<Page>> = match self.visit {
            Some(pause) => load::visit(pages.collect(), pause),
            None => pages.map(Arc::new).collect(),
        };
        let total = self.total();
        // Loads that were done before an earlier one.
        let mut early = BTreeMap::new();
        let mut loads: Vec<Load> = Vec::new();
        let work = |number| {
            let cell = self.cell(number).expect("a number below the total");
            self.load(&pages[cell.page], cell)
        };
        workers::each(total, self.threads, work, |number, load| {
            early.insert(number, load);
            while let Some(load) = early.remove(&loads.len()) {
                loads.push(load);
                on_load(Progress {
                    done: loads.len(),
                    total,
                    load: &loads[loads.len() - 1],
                })?;
                if let Some(last) = loads.last_mut() {
                    last.qlogs = Vec::new();
                }
                if loads.len().is_multiple_of(self.runs as usize) {
                    let first = loads.len() - self.runs as usize;
                    keep_typical_waterfall(&mut loads[first..]);
                }
            }
            ControlFlow::Continue(())
        });
        loads
    }

    fn load(&self, page: &Page, cell: RaceCell) -> Load {
        let network = &self.networks[cell.network];
        let seed = self.seed.wrapping_add(u64::from(cell.run));
        load::load(
            page,
            cell.protocol,
            &network.name,
            &network.config(&self.options),
            &self.options,
            seed,
        )
    }
}

/// The index of the typical one of `len` runs, fastest first: the middle one, or the faster of the two in the middle. It is an actual
/// load, and not a mean.
///
/// # Panics
///
/// If `len` is zero.
#[must_use]
pub const fn typical_run(len: usize) -> usize {
    (len - 1) / 2
}

/// Removes the waterfalls of all runs but the typical one.
fn keep_typical_waterfall(runs: &mut [Load]) {
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by(|&a, &b| runs[a].load_ms.total_cmp(&runs[b].load_ms));
    let typical = order[typical_run(order.len())];
    for (at, load) in runs.iter_mut().enumerate() {
        if at != typical {
            load.waterfall = Vec::new();
        }
    }
}
