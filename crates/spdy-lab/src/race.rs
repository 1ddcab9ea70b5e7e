//! Many loads: every page over every network by every protocol, as often as asked.
//!
//! ```text
//!   cells   page 1 ┬ network 1 ┬ http   run 1, run 2, ..      in this order they come out,
//!                  │           ├ https  run 1, run 2, ..      whatever the number of threads
//!                  │           └ ..
//!                  └ network 2 ─ ..
//! ```
//!
//! A cell is a world of its own (executor, network, client, servers), so cells run on all cores and share
//! nothing but the page. Run `r` of a race with seed `s` has the seed `s + r`, the same for all protocols and
//! networks: they meet the same chance, and any one load can be repeated alone.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use spdy_netem::profile::{Profile, ProfileError};
use spdy_page::replica::Replica;

use crate::browser::{self, Page};
use crate::measure::Load;
use crate::options::{Options, RaceProtocol};
use crate::sim::network::NetworkConfig;

/// A network as a race names it.
#[derive(Clone, Debug, PartialEq)]
pub struct RaceNetwork {
    /// Its name in results.
    pub name: String,
    /// Its links, and the TCP of both ends.
    pub profile: Profile,
}

impl RaceNetwork {
    /// The network that `spec` names or describes, as [`spdy_netem::profile`] reads it.
    ///
    /// # Errors
    ///
    /// Names and settings that it does not know.
    pub fn parse(spec: &str) -> Result<Self, ProfileError> {
        let profile: Profile = spec.parse()?;
        Ok(Self {
            name: spec.to_owned(),
            profile,
        })
    }
}

/// What is raced.
#[derive(Clone, Debug)]
pub struct Race {
    /// Pages.
    pub replicas: Vec<Replica>,
    /// Networks.
    pub networks: Vec<RaceNetwork>,
    /// Protocols.
    pub protocols: Vec<RaceProtocol>,
    /// Loads of each page over each network by each protocol.
    pub runs: u32,
    /// The seed of the first run.
    pub seed: u64,
    /// Everything else.
    pub options: Options,
    /// Threads; `None` for one a core.
    pub threads: Option<NonZeroUsize>,
}

/// How far a race is.
#[derive(Clone, Copy, Debug)]
pub struct Progress<'a> {
    /// Loads that are done and told, this one among them.
    pub done: usize,
    /// Loads in all.
    pub total: usize,
    /// The load that was just told; they come in the order of the race.
    pub load: &'a Load,
}

/// One load to be done: indexes into the race's lists, and the run.
#[derive(Clone, Copy, Debug)]
struct Cell {
    page: usize,
    network: usize,
    protocol: RaceProtocol,
    run: u32,
}

/// Stack of a thread that loads pages: futures of an unoptimised build nest deeply.
const STACK_BYTES: usize = 8 * 1024 * 1024;

impl Race {
    /// Every protocol once over `networks`, with the defaults of today and seed 1.
    #[must_use]
    pub fn new(replicas: Vec<Replica>, networks: Vec<RaceNetwork>) -> Self {
        let (protocols, options) = (RaceProtocol::ALL.to_vec(), Options::default());
        Self {
            replicas,
            networks,
            protocols,
            runs: 1,
            seed: 1,
            options,
            threads: None,
        }
    }

    /// How many loads it consists of.
    #[must_use]
    pub fn total(&self) -> usize {
        self.replicas.len() * self.networks.len() * self.protocols.len() * self.runs as usize
    }

    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::with_capacity(self.total());
        for page in 0..self.replicas.len() {
            for network in 0..self.networks.len() {
                for &protocol in &self.protocols {
                    cells.extend((0..self.runs).map(|run| Cell {
                        page,
                        network,
                        protocol,
                        run,
                    }));
                }
            }
        }
        cells
    }

    /// Runs it, and calls `on_load` with each load as soon as all before it are done.
    ///
    /// May be called from anywhere: loads run on threads of their own.
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

    /// As [`run`](Self::run), until `on_load` breaks off: then the loads that were told are all.
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    pub fn run_while(&self, mut on_load: impl FnMut(Progress<'_>) -> ControlFlow<()>) -> Vec<Load> {
        let pages: Vec<Page> = self.replicas.iter().cloned().map(Page::new).collect();
        let cells = self.cells();
        let total = cells.len();
        let cores = || thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let threads = self.threads.unwrap_or_else(cores).get().min(total);
        let next = AtomicUsize::new(0);
        let mut finished: Vec<Option<Load>> = vec![None; total];
        let mut loads = Vec::with_capacity(total);
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for _ in 0..threads {
                let sender = sender.clone();
                let (pages, cells, next) = (&pages, &cells, &next);
                let work = move || {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        let Some(cell) = cells.get(number) else {
                            return;
                        };
                        let load = self.load(&pages[cell.page], *cell);
                        if sender.send((number, load)).is_err() {
                            return; // the race was given up
                        }
                    }
                };
                thread::Builder::new()
                    .name("load".to_owned())
                    .stack_size(STACK_BYTES)
                    .spawn_scoped(scope, work)
                    .expect("a thread can be started");
            }
            drop(sender);
            for (number, load) in receiver {
                finished[number] = Some(load);
                while let Some(load) = finished.get_mut(loads.len()).and_then(Option::take) {
                    loads.push(load);
                    if on_load(Progress {
                        done: loads.len(),
                        total,
                        load: &loads[loads.len() - 1],
                    })
                    .is_break()
                    {
                        return; // and drops the receiver, which ends the threads
                    }
                }
            }
        });
        loads
    }

    fn load(&self, page: &Page, cell: Cell) -> Load {
        let network = &self.networks[cell.network];
        let mut profile = network.profile.clone();
        profile.era = self.options.tcp_era.unwrap_or(profile.era);
        let client_tcp = profile.tcp();
        profile.initial_window = self.options.initial_window.or(profile.initial_window);
        let config = NetworkConfig {
            path: profile.path.clone(),
            client_tcp,
            server_tcp: profile.tcp(),
            name_lookups: self.options.name_lookups,
        };
        let seed = self.seed.wrapping_add(u64::from(cell.run));
        browser::load(
            page,
            cell.protocol,
            &network.name,
            &config,
            &self.options,
            seed,
        )
    }
}
