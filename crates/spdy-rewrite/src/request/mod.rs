//! Requests to third parties, without what identifies the client.

pub mod alias_request;
pub mod anonymize;
