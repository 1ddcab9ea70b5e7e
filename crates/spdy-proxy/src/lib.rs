#![doc = include_str!("../README.md")]
//!
//! # Inside
//!
//! ```text
//! serve/connection.rs            one client's connection; what is pushed or hinted with its pages (serve/push_and_hints.rs)
//!  │  request/incoming_request.rs  the site and the cache key of a request, or a rejection (request/rejection.rs)
//!  ▼
//! serve/handle_request.rs        looks up the cache: hit, stale, validate, miss or bypass
//!  │  cache/tiers.rs               memory, then disk, then the shared tier
//!  │  websocket/connection.rs      a WebSocket leaves here
//!  ▼
//! serve/miss.rs                  one fetch for all requests that wait for the same response (cache/coalescer.rs)
//!  ▼
//! fetch/foreground.rs            a fetch for a client; fetch/background.rs: one for the cache alone
//!  ▼
//! fetch/origin_exchange.rs       contacts the origin, until there is a response that can be delivered
//!  │  upstream/client.rs           connections to origins; upstream/origin_backoff.rs: origins that failed
//!  ▼
//! fetch/process_response.rs      what is stored, rewritten and served of it
//!  ▼
//! fetch/delivery.rs              its body goes to clients and to the cache (fetch/pump.rs), rewritten (rewrite/response_rewriter.rs)
//!  │  prefetch/observer.rs         starts more fetches
//!  ▼
//! response/from_stored.rs        what a client gets; response/respond.rs: errors and redirects
//! ```
//!
//! proxy.rs puts the parts together. A folder imports only from the folders above it here:
//!
//! ```text
//! images/  telemetry/
//! body/  config/  passwords/
//! sites/
//! request/
//! upstream/
//! cache/  rewrite/
//! response/
//! fetch/
//! prefetch/  websocket/
//! serve/  admin/
//! ```
//!
//! Time, tasks and bytes come from the [`Runtime`](spdy::runtime::Runtime) and the
//! [`Network`](spdy_net::network::Network)s it was made with: in virtual time the same code runs.

pub mod admin;
pub mod body;
pub mod cache;
pub mod config;
pub mod fetch;
pub mod images;
pub mod origin_kind;
pub mod passwords;
pub mod prefetch;
pub mod proxy;
pub mod request;
pub mod response;
pub mod rewrite;
pub mod serve;
pub mod sites;
pub mod telemetry;
pub mod token;
pub mod upstream;
mod websocket;

mod clock;
mod expiring_map;
