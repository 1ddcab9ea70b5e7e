//! What is examined: a page, a network, and how the page is loaded.

use spdy_page::replica::Replica;
use spdy_sim::options::{Options, RaceProtocol};
use spdy_sim::race::RaceNetwork;

/// What is examined: a page as it is loaded today.
#[derive(Clone, Debug)]
pub struct ExaminationCase {
    /// The page.
    pub replica: Replica,
    /// The network.
    pub network: RaceNetwork,
    /// The protocol.
    pub protocol: RaceProtocol,
    /// Every other choice of a load.
    pub options: Options,
    /// Loads with each remedy where there is chance (loss, jitter), at least 1; fewer than [`MIN_RUNS`](crate::stats::MIN_RUNS) show no
    /// difference. Without chance one load is enough.
    pub runs: u32,
    /// The seed of the first run.
    pub seed: u64,
}
