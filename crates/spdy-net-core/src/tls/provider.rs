//! The cryptography of rustls that the features of this crate choose: aws-lc-rs, or ring without it.

#[cfg(feature = "aws-lc-rs")]
pub(super) use rustls::crypto::aws_lc_rs::{Ticketer, default_provider};
#[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
pub(super) use rustls::crypto::ring::{Ticketer, default_provider};

#[cfg(not(any(feature = "aws-lc-rs", feature = "ring")))]
compile_error!("no cryptography for TLS: enable the feature `aws-lc-rs` (the default) or `ring`");
