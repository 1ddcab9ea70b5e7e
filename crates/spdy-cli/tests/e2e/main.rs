//! Tests of the built program: its command line, and the other programs that it communicates with.
//!
//! All tests run the built `spdy` over loopback sockets with independent peers, which `scripts/setup-peers` installs. A test fails
//! with a message if a peer is missing; `SPDY_SKIP_PEERS=1` skips tests with peers.

mod accelerate;
mod bench;
mod cli;
mod doctor;
mod inspect;
mod interop;
mod lab;
mod race;
mod race_tutorial;
mod record;
mod replica;
mod serve;
mod support;
