//! Imports Chromium's NetLog as a replica: the output of `--log-net-log` with `--net-log-capture-mode=Everything`.
//!
//! ```text
//! {"constants": {names of numbers},
//! "events": [
//! {"params":{"bytes":"SFRU…"},"phase":0,"source":{"id":81,"type":10},"time":"34068516","type":98},
//! …                                                                  ms of its own clock
//! ],
//! "polledData": …}
//!
//!  bytes ─► parse.rs (event.rs) ─► log.rs ─► messages.rs (http1.rs, http2.rs) ─► import.rs ─► Replica
//!           lenient                by source  heads and bodies                        ▲ page.rs: the page
//!                                                                       devtools.rs ──┘ observation_matcher.rs: initiators, times, priorities
//! ```
//!
//! The log has the plain bytes of every connection, also with TLS. So the heads of HTTP/1.1 and all bodies are extracted from the
//! connections themselves, and are exactly the server's bytes. The heads of HTTP/2 are its lists of fields. If the bytes of a
//! connection do not match its requests (a proxy's CONNECT, HTTP/3), Chromium's own parsed form is used, and a note is added.
//!
//! A log ends where its browser was killed. The part before the cut is used.

mod event;
mod http1;
mod http2;
mod import;
mod log;
mod messages;
mod observation_matcher;
mod page;
mod parse;

pub use import::{import, record};
