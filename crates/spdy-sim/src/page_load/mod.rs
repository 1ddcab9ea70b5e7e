//! A browser's order of requests, as a machine without I/O.
//!
//! The needs of a page and their dependencies are in its [`PageGraph`](spdy_page::graph::PageGraph). This machine follows the graph
//! as bytes arrive. It returns the next request, and the times of DOMContentLoaded and load.
//!
//! ```text
//!       discovered ──delay──► needed ──► requested ──► loaded ──► evaluated
//!              ▲                            │ bytes      │ script: not before its turn
//!   trigger ───┘                            ▼            ▼
//!              Start            reveal what the bytes name     main thread, one at a time
//!              Bytes{parent}    (preload scanner: also while
//!              Done{parent}      the parser is blocked)
//! ```
//!
//! The rules are those of browsers:
//!
//! - The parser of a document advances as its bytes arrive. It stops at a synchronous script until that script has been evaluated.
//!   The preload scanner does not stop.
//! - A script that the parser finds (synchronous or deferred) waits for the style sheets that its document named before it, and for
//!   their imports. An asynchronous script does not.
//! - Deferred scripts run in order after the parser has finished. DOMContentLoaded follows when everything else that it waits for is
//!   also evaluated.
//! - A module runs when all that it imports statically has arrived, and after its imports (`modules.rs`).
//! - Fonts, images of styles and lazy images are requested when their document is laid out, and what inline scripts name when it could
//!   be laid out there (`layout.rs`).
//! - What a handler of DOMContentLoaded requests follows that event. Icons and what a handler of load requests follow the load event.
//! - A redirect is followed as soon as it arrives: it waits for no other resource and not for the main thread.
//! - The load event follows when everything that it waits for is evaluated, not before DOMContentLoaded.
//! - Evaluation takes `compute` on the one main thread, first come, first served.
//! - A resource that the head of the page's document [hints](PageLoad::hint) at is requested when that head arrives, with its own
//!   priority. The page uses it when it needs it.
//! - With a [scheduler](PageLoad::schedule) a resource that the page needs is requested when the scheduler releases it, and not before an
//!   earlier request for its URL has the head of its response (`cache_locks.rs`).
//!
//! The driver sends requests and has the connections and bytes (`load/load_driver.rs`). `outline.rs` has the positions of
//! resources in their page, `requests.rs` the requests and their times, `main_thread.rs` the order of evaluation, `open_nodes.rs` what it waits for, `paint.rs`
//! first and largest paint, and `machine.rs` the public methods.
//!
//! A page with a document and an image:
//!
//! ```
//! # use std::time::Duration;
//! # use spdy_clock::Instant;
//! # use spdy_sim::page_load::PageLoad;
//! # use spdy_page::graph::{Node, PageGraph, Trigger};
//! # use spdy_page::replica::Kind;
//! # let node = |exchange, kind, trigger| Node { exchange, kind, trigger, delay: Duration::ZERO,
//! #     waits_for: None, is_redirect: false, blocks_parser_at: None, is_written: false, blocks_scripts: false, before_dom_content_loaded: exchange == 0,
//! #     before_load: true, compute: Duration::ZERO, imports: Vec::new() };
//! # let graph = PageGraph { nodes: vec![node(0, Kind::Document, Trigger::Start),
//! #     node(1, Kind::Image, Trigger::Bytes { parent: 0, at_byte: 500 })] };
//! let ms = Instant::from_millis;
//! let mut page = PageLoad::new(&graph);
//! page.start(ms(0));
//! assert_eq!(page.poll_request().unwrap().node, 0);
//! page.handle_bytes(ms(100), 0, 700); // the image stands at byte 500
//! assert_eq!(page.poll_request().unwrap().node, 1);
//! page.handle_done(ms(110), 0);
//! assert_eq!(page.dom_content_loaded(), Some(ms(110)));
//! page.handle_done(ms(200), 1);
//! assert_eq!(page.load(), Some(ms(200)));
//! ```

mod cache_locks;
mod layout;
mod machine;
mod main_thread;
mod modules;
mod open_nodes;
mod outline;
mod paint;
mod requests;
mod throttle;
mod urgency;

pub use machine::{PageLoad, Request};
pub use paint::{PaintPlan, RENDER_DELAY};
pub use requests::priority_of;

pub use urgency::{Urgency, UrgencyPlan};
