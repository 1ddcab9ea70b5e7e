//! The client: sends requests and returns responses, over a pool of connections.
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! use std::sync::Arc;
//!
//! use spdy_client::{Body, Client, Config, Priority, SharedRuntime, SystemNetwork};
//!
//! let client = Client::new(SharedRuntime::tokio(), Arc::new(SystemNetwork), Config::default());
//! let request = http::Request::get("http://localhost:8080/").body(Body::empty())?;
//! let response = client.send(request, Priority::HIGHEST).await?;
//! let body = response.into_body().collect_up_to(1 << 20).await?;
//! # drop(body);
//! # Ok(())
//! # }
//! ```
//!
//! The [`Pool`](crate::pool::Pool) decides which request uses which connection; `connections.rs` executes that, and `retry.rs`
//! decides which requests are retried.

mod connections;
mod handle;
mod retry;
mod stats;

pub use crate::client::handle::{Client, UnclaimedPush};
pub use crate::client::stats::Stats;
pub use crate::config::Config;

pub(crate) use crate::client::connections::Lease;
