//! TLS of clients and servers: certificates, pins, the local authority, key logs.

pub mod certificates;
mod config;
pub(crate) mod dynamic_record_size;
pub mod error;
pub mod identities;
pub mod key_log;
pub mod local_ca_file;
pub mod local_certificates;
pub mod pins;
pub mod verify;

pub use config::{
    ClientTls, HandshakeInfo, KeyLogTarget, PeerCertificates, ServerTls, TlsOptions, TlsVersion,
    is_certificate_error,
};
