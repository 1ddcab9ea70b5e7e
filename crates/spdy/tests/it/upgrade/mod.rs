//! HTTP/1.1 `Upgrade: SPDY/3.1`, both sides.

mod channels;
mod client;
mod server;
