//! The built program, from the outside: its command line, and the other programs that it talks to.
//!
//! Everything here runs the built `spdy` over loopback sockets against independent peers, which
//! `scripts/setup-peers` installs. A missing peer is a failure that says so; `SPDY_SKIP_PEERS=1` leaves the
//! peers out for a quick run.

mod accelerate;
mod bench;
mod cli;
mod doctor;
mod inspect;
mod interop;
mod lab;
mod race;
mod record;
mod replica;
mod serve;
mod support;
