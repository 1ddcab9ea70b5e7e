//! Laws of every door that bytes come in by, for any bytes.
//!
//! A door is a function of an input that panics if a law does not hold. `targets/` hands them to libFuzzer,
//! `scripts/fuzz` runs those, and the tests of `seeds/` hold every seed to them.
//!
//! ```text
//! vectors/ ──▶ seeds ──▶ libFuzzer ──▶ input ──▶ door ──▶ a law that is broken
//!                 └──────────────────────────────▲              └──▶ a test in the crate that was wrong
//! ```
//!
//! Laws are about what a door promises: any cut gives the same, what is read is written the same again, memory
//! is within a stated factor of the input ([`memory`]). That nothing panics and no sum overflows comes for free.

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
pub mod profile;
pub mod rewrite;
pub mod session;
pub mod tunnel;
pub mod upgrade;

/// A way in for bytes, and the laws of it.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Name of the target.
    pub name: &'static str,
    /// Panics if a law does not hold.
    pub check: fn(&[u8]),
}

const fn target(name: &'static str, check: fn(&[u8])) -> Target {
    Target { name, check }
}

/// Every door, from the wire up.
pub const TARGETS: &[Target] = &[
    target("frame", frame::check),
    target("header_block", header_block::check),
    target("server_session", session::check_server),
    target("client_session", session::check_client),
    target("http", http::check),
    target("http3", http3::check),
    target("upgrade", upgrade::check),
    target("websocket_tunnel", tunnel::check),
    target("websocket_channels", channels::check),
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
