#![doc = include_str!("../README.md")]
//!
//! # Structure
//!
//! ```text
//!  renewer.rs           a task for each certificate: waits, orders, reports events
//!    │                  certificates.rs: what is held, and used                        Identities of spdy-net
//!    │
//!  renewal_schedule.rs  when to order next: validity, failures, the authority's advice; no I/O, `now` is an argument
//!    │
//!  acme_client.rs       an order, from the account (account.rs) to the chain           instant-acme, over
//!    │                  challenge.rs: how a name is proven, one of                     transport.rs: spdy-client
//!    │                    tls-alpn-01  a certificate for acme-tls/1 (RFC 8737)         Identities of spdy-net
//!    │                    http-01      /.well-known/acme-challenge/TOKEN               http01.rs before a handler
//!    │                    dns-01       TXT of _acme-challenge.NAME                     zones of spdy-dns
//!    │
//!  state_dir.rs         the account, and each certificate with its key
//!  certificate_info.rs  until when a certificate is valid, and for which names
//! ```

mod account;
pub mod acme_client;
pub mod certificate_info;
pub mod certificates;
pub mod challenge;
pub mod error;
pub mod http01;
pub mod renewal_schedule;
pub mod renewer;
pub mod settings;
pub mod state_dir;
mod transport;
