//! One page load: the page, the released client and servers, and the result.
//!
//! ```text
//! page.rs ──┬─► load_driver.rs   the machine of `page_load/` over a client, in either clock     ─► result.rs: Load
//!           │     exchange.rs                             one request and its response
//!           │     recorded_request.rs, client_cache.rs    what is requested
//!           │     body_check.rs, proxied_content.rs       what must come back
//!           │     urgency.rs, http_priority.rs            how urgent each request is, and its priority field
//!           │     browser_requests.rs                     priorities, and connections opened ahead
//!           │     paint_plan.rs, event_delays.rs          what a browser draws, and how long it takes
//!           └─► serve_page.rs    a server behind every address
//!                 endpoints.rs, tls.rs                    client and servers with the options of a load
//! visit/                         pages one after the other, with a client for each site
//! virtual_time.rs                [`load()`]: the driver and the servers in virtual time
//! ```
//!
//! `spdy-lab/src/live` has the same driver in real time. `host_layout.rs` distributes the resources of a page over hosts.

pub(crate) mod body_check;
mod browser_requests;
mod cancelled_transfer;
pub(crate) mod client_cache;
pub(crate) mod endpoints;
mod event_delays;
mod exchange;
mod host_layout;
mod http_priority;
mod load_driver;
mod page;
mod paint_plan;
#[cfg_attr(not(feature = "accelerator"), allow(dead_code))] // nothing makes such content
pub(crate) mod proxied_content;
mod recorded_request;
mod result;
pub(crate) mod serve_page;
pub(crate) mod tls;
pub(crate) mod urgency;
mod virtual_time;
mod visit;

pub use host_layout::{HostLayout, MAX_SHARDS, folded};

pub use load_driver::LoadDriver;

pub use page::Page;

pub use recorded_request::request_of;

pub use result::{Load, Span, WaterfallRow};

pub use tls::{CHAIN_PEM, KEY_PEM};

pub use virtual_time::load;

pub use visit::{EarlierPages, MAX_PAGES, MAX_PAUSE, SiteClients, check_page_count, visit};
