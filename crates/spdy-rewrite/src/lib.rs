#![doc = include_str!("../README.md")]
#![doc = include_str!("../GUIDE.md")]
//!
//! ## Inside
//!
//! A folder imports only from the folders above it in this table.
//!
//! | folder | subject |
//! | --- | --- |
//! | `rules/` | the rules of one site ([`rules::Rules`]): hosts, capabilities, limits, the verdict on a reference, reasons to refuse |
//! | `urls/` | proxied URLs, `/.spdy/1/<cap>/s/host/path`: `build.rs` builds them, `open.rs` reads them; `host_alias_url.rs`: `https://<label>.<zone>/path` |
//! | `csp/` | Content-Security-Policy: what a rewritten page allows |
//! | `response/` | what of a third party's response is passed on; redirects |
//! | `request/` | the upstream request for a proxied resource |
//! | `reference/` | one reference of a page: judged, rewritten, reported |
//! | `css/`, `html/` | style sheets and pages |
//!
//! No I/O, no clock, no randomness: the same input gives the same bytes. Names are not resolved here, and addresses not checked; the
//! caller that connects does that.

pub mod csp;
pub mod css;
pub mod html;
pub mod kind;
pub mod limits;
pub mod load;
pub mod reference;
pub mod referrer;
pub mod request;
pub mod response;
pub mod rules;
pub mod urls;
