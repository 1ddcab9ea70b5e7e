//! Responses of third parties, and redirects.

pub(crate) mod alias_response;
pub mod redirect;
pub mod rewritten_head;
pub mod sanitize_response;
pub(crate) mod sanitized_response;
