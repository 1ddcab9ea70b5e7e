//! The loads of an audit over one network as waterfalls, side by side.

use spdy_lab::audit::case::Audit;
use spdy_sim::load::Load;

/// Names of the loads, in their order.
const NAMES: [&str; 4] = [
    "direct",
    "accelerator just started",
    "accelerator with the page in its cache",
    "the same, as advised",
];

/// Draws the loads of `audit` over its first network, as SVG. `seed` is that of the first run.
pub(super) fn draw(audit: &Audit, seed: u64) -> String {
    let network = audit.savings.first();
    let network = network.map_or("", |saving| &saving.network);
    let loads: Vec<(&str, &Load)> = NAMES.into_iter().zip(&audit.first_loads).collect();
    let conditions = format!(
        "{}, {} over {network}; clock: virtual, seed {seed}; program: spdy {}",
        audit.page,
        audit.protocol,
        env!("CARGO_PKG_VERSION")
    );
    spdy_report::named_loads(&loads, network, &conditions)
}
