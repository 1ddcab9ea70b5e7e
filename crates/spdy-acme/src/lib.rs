#![doc = include_str!("../README.md")]
//!
//! # Inside
//!
//! ```text
//!  keeper.rs     a task for each certificate: waits, orders, shows what came
//!    │           certificates.rs: what is held, and shown                          Identities of spdy-net
//!    │
//!  course.rs     when to order next: from validity, failures, the authority's advice; no I/O, `now` is an argument
//!    │
//!  authority.rs  an order, from the account (account.rs) to the chain              instant-acme, over
//!    │           proofs.rs: what is shown meanwhile, one of                          transport.rs: spdy-client
//!    │             tls-alpn-01  a certificate for who offers acme-tls/1 (RFC 8737)  Identities of spdy-net
//!    │             http-01      /.well-known/acme-challenge/TOKEN                   http01.rs before a handler
//!    │             dns-01       TXT of _acme-challenge.NAME                         zones of spdy-dns
//!    │
//!  folder.rs     the account, and each certificate with its key
//!  facts.rs      until when a certificate is valid, and for which names
//! ```

mod account;
pub mod authority;
pub mod certificates;
pub mod course;
pub mod error;
pub mod facts;
pub mod folder;
pub mod http01;
pub mod keeper;
pub mod proofs;
mod transport;
