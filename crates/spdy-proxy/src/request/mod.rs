//! A client's request on its way to the origin's request, and the reasons to reject it.

pub(crate) mod access;
pub(crate) mod alias_request;
pub(crate) mod call_limit;
pub(crate) mod client_conditions;
pub(crate) mod client_origin;
pub(crate) mod forgeable_headers;
pub(crate) mod forward_headers;
pub(crate) mod forwarded;
pub mod incoming_request;
pub(crate) mod origin_hints;
pub(crate) mod password_checks;
pub(crate) mod prefetch_step;
pub mod proxy_request;
pub mod rejection;
pub(crate) mod status_class;
pub(crate) mod stream_traits;
#[cfg(test)]
pub(crate) mod test_key;
pub(crate) mod trailer_fields;
pub mod websocket_handshake;
