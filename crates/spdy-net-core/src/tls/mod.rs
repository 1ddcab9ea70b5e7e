//! TLS of clients and servers: certificates, pins, the local authority, key logs.
//!
//! A [`ClientTls`] or [`ServerTls`] is created once and used for all connections of a client or a server. Clones share the session
//! tickets, so a second connection to the same host is resumed. rustls does the handshake.

pub mod certificates;
mod client;
mod client_certificates;
pub(crate) mod dynamic_record_size;
pub mod error;
mod handshake;
pub mod identities;
pub mod key_log;
pub mod local_ca_file;
pub mod local_certificates;
mod options;
pub mod pins;
mod provider;
mod server;
pub mod verify;
mod version;

pub use client::ClientTls;
pub use client_certificates::ClientCertificates;
pub use handshake::{HandshakeInfo, PeerCertificates, is_certificate_error};
pub use options::{KeyLogTarget, TlsOptions};
pub use server::ServerTls;
pub use version::TlsVersion;
