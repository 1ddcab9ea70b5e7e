//! The program as people meet it: its command line, and the other programs that it talks to.
//!
//! Everything here runs the built `spdy` over loopback sockets against independent peers, which
//! `scripts/setup-peers` installs. A missing peer is a failure that says so; `SPDY_SKIP_PEERS=1` leaves the
//! peers out for a quick run.

mod accelerate;
mod accelerate_abuse;
#[cfg(unix)]
mod accelerate_acme;
#[cfg(unix)]
mod accelerate_again;
#[cfg(unix)]
mod accelerate_audit;
mod accelerate_broken;
mod accelerate_browser;
mod accelerate_browser_corners;
mod accelerate_browser_hints;
mod accelerate_browser_taught;
#[cfg(unix)]
mod accelerate_certificates;
mod accelerate_check;
#[cfg(target_os = "linux")]
mod accelerate_demo;
mod accelerate_endures;
#[cfg(target_os = "linux")]
mod accelerate_in_front;
#[cfg(unix)]
mod accelerate_killed;
mod accelerate_names;
mod accelerate_names_abuse;
mod accelerate_names_check;
#[cfg(unix)]
mod accelerate_open_files;
#[cfg(unix)]
mod accelerate_origins;
#[cfg(unix)]
mod accelerate_protocols;
mod accelerate_restart;
mod accelerate_schema;
#[cfg(unix)]
mod accelerate_secrets;
mod accelerate_shared;
mod accelerate_sockets;
#[cfg(unix)]
mod accelerate_succession;
mod accelerate_telemetry;
mod bench;
mod browse_files;
mod browsers;
mod cli;
mod header_blocks;
mod http3;
mod inspect;
mod interop;
mod interop_guessed;
mod interop_jvm;
mod interop_moby;
mod interop_netty;
mod interop_node;
mod lab;
mod lab_postgres;
#[cfg(target_os = "linux")]
mod lab_real_time;
mod lab_results;
mod lab_store;
mod lab_view;
mod push;
mod real_time;
mod record;
mod record_ends;
mod reports;
mod slow_clients;
mod slow_crowd;
mod smuggling;
mod suites;
mod support;
mod sweep;
mod wire;
