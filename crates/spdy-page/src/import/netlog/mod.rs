//! Chromium's NetLog as a replica: what `--log-net-log` with `--net-log-capture-mode=Everything` writes.
//!
//! ```text
//! {"constants": {names of numbers},
//! "events": [
//! {"params":{"bytes":"SFRU…"},"phase":0,"source":{"id":81,"type":10},"time":"34068516","type":98},
//! …                                                                  ms of a clock of its own
//! ],
//! "polledData": …}
//!
//!  bytes ─► parse.rs (event.rs) ─► log.rs ─► messages.rs (http1.rs, http2.rs) ─► import.rs ─► Replica
//!           lenient                by source  heads and bodies                        ▲ page.rs: which page
//!                                                                       devtools.rs ──┘ observation_matcher.rs: initiators, times, priorities
//! ```
//!
//! The log has the plain bytes of every connection, also of those under TLS. So the heads of HTTP/1.1 and all bodies are
//! cut out of the connections themselves, and are what the server sent to the byte; the heads of HTTP/2 are its lists
//! of fields. Where the bytes of a connection do not match its requests (a proxy's CONNECT, HTTP/3), Chromium's
//! own reading of them takes their place, and a note is added.
//!
//! A log ends where its browser was killed. What stands before the cut is read.

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
