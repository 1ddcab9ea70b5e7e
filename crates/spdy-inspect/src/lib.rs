//! SPDY out of a packet capture, for debugging what is on the wire.
//!
//! Bytes go in, events come out; no socket, no file, no clock. Every layer hands the next one pieces of a byte stream,
//! each with the time at which it was complete, and reports where bytes are missing.
//!
//! ```text
//! file ─▶ Reader ─▶ packet ─▶ Inspector ─▶ Reassembly ─▶ Conversation ─▶ Session ─▶ Event
//!        capture/   packet.rs              (each way)    HTTP, TLS, or    frames,     │
//!                                                        nothing of ours  TimeLine ─▶ Summary
//! raw streams ──────────────────────────────────────────▶
//! ```
//!
//! [`pcapng_writer`] goes the other way: it writes packets to a capture file.
//!
//! A capture is hostile input: nothing in it makes this crate panic, and everything that it can make
//! grow has a name in [`limits`].
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
