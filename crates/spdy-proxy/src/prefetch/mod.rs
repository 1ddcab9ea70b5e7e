//! What is fetched before a client requests it, and its budgets.

pub(crate) mod accept_history;
pub(crate) mod backoff;
pub(crate) mod limits;
pub mod page_resources;
pub(crate) mod prefetcher;
pub(crate) mod seen;
