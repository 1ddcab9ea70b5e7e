//! Properties of every parser and state machine that receives untrusted bytes, checked for any input.
//!
//! A target is a function of an input that panics if a property does not hold. `targets/` passes them to libFuzzer,
//! `scripts/fuzz` runs those, and the tests of `seeds/` check every seed.
//!
//! ```text
//! vectors/ ──▶ seeds ──▶ libFuzzer ──▶ input ──▶ target ──▶ a property that does not hold
//!                 └──────────────────────────────▲                └──▶ a test in the crate with the bug
//! ```
//!
//! Typical properties: the result does not depend on how the bytes are split, decoding and encoding round-trip, and
//! memory is within a stated factor of the input ([`memory`]). Panics and integer overflows are always failures.

pub mod cache;
pub mod capture;
pub mod channels;
pub mod choices;
pub mod dns;
pub mod frame;
pub mod header_block;
pub mod http;
pub mod http3;
pub mod io;
pub mod memory;
pub mod page;
pub mod pod_url;
pub mod profile;
pub mod qpack;
pub mod rewrite;
pub mod session;
pub mod tunnel;
pub mod upgrade;

/// An entry point for untrusted bytes, and its properties.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Name of the target.
    pub name: &'static str,
    /// Panics if a property does not hold.
    pub check: fn(&[u8]),
}

const fn target(name: &'static str, check: fn(&[u8])) -> Target {
    Target { name, check }
}

/// Every target, from the wire up.
pub const TARGETS: &[Target] = &[
    target("frame", frame::check),
    target("header_block", header_block::check),
    target("server_session", session::check_server),
    target("client_session", session::check_client),
    target("http", http::check),
    target("http3", http3::check),
    target("qpack", qpack::check),
    target("upgrade", upgrade::check),
    target("websocket_tunnel", tunnel::check),
    target("websocket_channels", channels::check),
    target("pod_url", pod_url::check),
    target("replica", page::check_file),
    target("har", page::check_file),
    target("warc", page::check_file),
    target("speedreport", page::check_file),
    target("netlog", page::check_netlog),
    target("mahimahi", page::check_folder),
    target("markup", page::check_markup),
    target("moved_url", rewrite::check_proxied_url),
    target("rewrite_html", rewrite::check_rewrite_html),
    target("capture", capture::check_file),
    target("raw_streams", capture::check_streams),
    target("profile", profile::check),
    target("dns_query", dns::check_query),
    target("cache_headers", cache::check),
];
