//! URLs of proxied resources.

pub mod proxied_url;
