//! URLs of proxied resources: built for a page, opened for a request.

mod build;
mod host_alias_url;
mod open;
pub mod proxied_url;
pub(crate) mod target_check;
