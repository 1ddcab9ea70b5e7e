//! The accelerator between clients and origins that the tests write.

mod cache;
mod client;
mod images;
mod origin;
mod prefetch;
mod rewrite;
mod support;
