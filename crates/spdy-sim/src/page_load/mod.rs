//! A browser's order of requests, as a machine without I/O.
//!
//! What a page needs, and what needs what, stands in its [`PageGraph`](spdy_page::graph::PageGraph); this machine follows the graph as
//! bytes arrive and gives the next request, and when DOMContentLoaded and load are reached.
//!
//! ```text
//!       discovered ──delay──► needed ──► requested ──► loaded ──► evaluated
//!              ▲                            │ bytes      │ script: not before its turn
//!   trigger ───┘                            ▼            ▼
//!              Start            reveal what the bytes name     main thread, one at a time
//!              Bytes{parent}    (preload scanner: also while
//!              Done{parent}      the parser stands still)
//! ```
//!
//! The rules, as browsers have them:
//!
//! - The parser of a document goes as far as its bytes have arrived, and stops where a synchronous script
//!   stands until that script has been evaluated. The preload scanner does not stop.
//! - A script that the parser meets (synchronous or deferred) waits for the style sheets that its document
//!   named before it, and for what those import. An asynchronous one does not.
//! - Deferred scripts run in order once the parser is through; then DOMContentLoaded, when everything else
//!   that it waits for is evaluated too.
//! - A redirect is followed as soon as it is there: it waits for no turn and for no thread.
//! - Load comes when everything that it waits for is evaluated, not before DOMContentLoaded.
//! - Evaluating takes `compute` on the one main thread; what is ready first goes first.
//! - What the head of the page's document [hints](PageLoad::hint) at is requested when that head arrives, with its own
//!   priority; the page uses it when it needs it.
//! - With a [scheduler](PageLoad::schedule) a resource that the page needs is requested when the scheduler releases it.
//!
//! Sending requests, connections and bytes are the driver's business (`load/load_driver.rs`). `outline.rs` has where a resource stands
//! in its page, `requests.rs` what is requested and when, and `main_thread.rs` which script or style sheet is evaluated next: what waits
//! for the style sheets and scripts before it, and when the main thread is free. `machine.rs` has the public methods.
//!
//! A page of a document and an image, by hand:
//!
//! ```
//! # use std::time::Duration;
//! # use spdy_clock::Instant;
//! # use spdy_sim::page_load::PageLoad;
//! # use spdy_page::graph::{Node, PageGraph, Trigger};
//! # use spdy_page::replica::Kind;
//! # let node = |exchange, kind, trigger| Node { exchange, kind, trigger, delay: Duration::ZERO,
//! #     is_redirect: false, blocks_parser_at: None, blocks_scripts: false, before_dom_content_loaded: exchange == 0,
//! #     before_load: true, compute: Duration::ZERO };
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

mod machine;
mod main_thread;
mod outline;
mod requests;
mod throttle;
mod urgency;

pub use machine::{PageLoad, Request};
pub use requests::priority_of;

pub use urgency::{Urgency, UrgencyPlan};
