//! Prefetching: resources that are fetched before a client requests them, and the budgets.

pub(crate) mod accept_history;
pub(crate) mod backoff;
pub mod document_references;
pub(crate) mod history;
pub(crate) mod limits;
pub(crate) mod module_imports;
pub(crate) mod observer;
pub mod page_candidates;
pub mod page_resources;
pub(crate) mod prefetcher;
pub(crate) mod push_candidates;
pub(crate) mod recent_lookups;
mod reference_walk;
pub(crate) mod subresource_request;
