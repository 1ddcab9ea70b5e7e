//! HTTP/3 over loopback: our two ends, the h3 crate as a peer, and peers that break the rules.

mod dynamic_table;
mod early_data;
mod errors;
mod exchanges;
mod floods;
mod qpack;
mod servers;
mod slow_clients;
mod support;
