//! The only sockets, and everything a connection is before it is HTTP. (Contract)

pub mod network;
pub mod protocol;
// to come: tls.rs (client/server configs, certificates, key log, pins), negotiate.rs, http1.rs, http2.rs, spdy.rs?,
// connection.rs (any of them), listen.rs, byte_count.rs (header bytes on the wire, by looking at frame heads)
