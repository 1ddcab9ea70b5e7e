//! Extracts SPDY from a packet capture, to debug traffic.
//!
//! The input are bytes and the output are events; there is no socket, no file and no clock. Every layer passes pieces of a byte
//! stream to the next one, each with the time at which it was complete, and reports missing bytes.
//!
//! ```text
//! file ─▶ Reader ─▶ packet ─▶ Inspector ─▶ Reassembly ─▶ Conversation ─▶ Session ─▶ Event
//!        capture/   packet.rs              (each way)    HTTP, TLS, or    frames,     │
//!                                                        another protocol TimeLine ─▶ Summary
//! raw streams ──────────────────────────────────────────▶
//! ```
//!
//! [`pcapng_writer`] works in the other direction: it writes packets to a capture file.
//!
//! A capture is hostile input: nothing in it makes this crate panic, and [`limits`] has a limit for everything that it can make grow.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

pub mod capture;
mod conversation;
pub mod direction;
pub mod event;
pub mod finding;
mod http1;
pub mod inspector;
pub mod limits;
mod packet;
mod reassembly;
mod session;
pub mod timeline;
pub mod tls;
mod websocket;

pub use capture::pcapng_writer;
