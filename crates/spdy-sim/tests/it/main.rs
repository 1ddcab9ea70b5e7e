//! Page loads and races in virtual time, and the network under them.

mod accelerator;
mod frames;
mod model;
mod network;
mod page_load;
mod race;
mod recorded_delays;
mod support;
mod visit;
mod visit_sites;
