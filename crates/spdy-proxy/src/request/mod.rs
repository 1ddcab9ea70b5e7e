//! A client's request on its way to the origin's request, and the reasons to reject it.

pub(crate) mod alias_request;
pub(crate) mod client_conditions;
pub(crate) mod forgeable_headers;
pub(crate) mod forward_headers;
pub(crate) mod forwarded;
pub(crate) mod miss_rate;
pub mod proxy_request;
pub(crate) mod status_class;
#[cfg(test)]
pub(crate) mod test_key;
