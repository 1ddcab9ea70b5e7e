//! Content-Security-Policy, and what it allows in a rewritten page.

pub mod guard;
pub(crate) mod inline;
pub(crate) mod page_location;
mod policy;
pub(crate) mod source;

pub use policy::{CspCredentials, Policies, rewrite};
pub(crate) use policy::{Policy, has, has_nonce, is_hash, is_nonce, parse_all};
