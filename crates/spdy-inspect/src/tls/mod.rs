//! TLS 1.2 and 1.3, decrypted with a key log (RFC 5246, RFC 8446, RFC 9850).
//!
//! ```text
//!            ClientHello ───▶ random, ALPN offered, server name
//! records ─▶ ServerHello ───▶ suite, version, ALPN (1.2)
//!                │
//!        1.2     ├─ ChangeCipherSpec ─▶ keys of CLIENT_RANDOM's master secret ─▶ plain bytes
//!        1.3     └─ at once: handshake secret ─ Finished ─▶ traffic secret ───▶ plain bytes
//!                     └▶ ALPN                   KeyUpdate ─▶ the next one
//! ```
//!
//! AES-GCM and ChaCha20-Poly1305 are supported. Early data of 1.3 is skipped.

mod cipher;
mod connection;
mod hello;
pub mod key_log;

pub(crate) use connection::{Tls, TlsOutput};
