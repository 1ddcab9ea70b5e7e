//! `spdy serve`, with `spdy fetch` and other programs as clients.

mod browsers;
mod header_blocks;
mod http3;
mod push;
mod serve_and_fetch;
mod tshark;
