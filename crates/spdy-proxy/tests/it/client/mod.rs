//! Clients: their limits, addresses, slow readers and WebSockets; how they are logged and counted.

mod basic_auth;
mod dashboard;
mod early_data;
mod forwarded;
mod limits;
mod site_paths;
mod slow_readers;
mod slow_readers_over_http1;
mod slow_readers_over_http2;
mod static_folder;
mod websocket;
mod websocket_handshake;
