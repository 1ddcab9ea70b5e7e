//! The rules of HTTP caching: which responses are stored, for how long, and which requests they answer (RFC 9110, RFC 9111).

pub mod cache_control;
pub mod cache_deception;
pub mod conditions;
pub mod date;
pub(crate) mod etag;
pub mod freshness;
pub mod identity;
pub mod invalidate;
pub mod lookup;
pub mod policy;
pub(crate) mod range;
pub mod redirect_limits;
pub mod response;
pub mod storable;
pub mod stored;
pub mod validate;
pub(crate) mod vary;
