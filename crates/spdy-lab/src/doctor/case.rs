//! The subject of an examination: a page, a network, and the options of its loads.

use spdy_page::replica::Replica;
use spdy_sim::options::{Options, RaceProtocol};
use spdy_sim::race::RaceNetwork;

/// The subject of an examination: a page with its current conditions.
#[derive(Clone, Debug)]
pub struct ExaminationCase {
    /// The page.
    pub replica: Replica,
    /// The network.
    pub network: RaceNetwork,
    /// The protocol.
    pub protocol: RaceProtocol,
    /// All other options of a load.
    pub options: Options,
    /// Loads with each remedy if there is randomness (loss, jitter), at least 1; fewer than [`MIN_RUNS`](crate::stats::MIN_RUNS) show
    /// no difference. Without randomness one load is enough.
    pub runs: u32,
    /// The seed of the first run.
    pub seed: u64,
}
