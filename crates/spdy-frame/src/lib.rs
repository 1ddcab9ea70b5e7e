//! Decodes and encodes SPDY frames (SPDY/2, SPDY/3, SPDY/3.1).
//!
//! This crate handles one direction of one connection at a time: [`Decoder`](decoder::Decoder) splits a byte stream into
//! [`Frame`](frame::Frame)s, `Frame::encode` writes them, and [`compress`] converts header blocks to the bytes that
//! frames carry. The effect of a frame on a session is defined in `spdy-session`.
//!
//! ```text
//! bytes in ──▶ Decoder ──▶ Frame ──▶ block ──▶ Inflater ──▶ HeaderBlock
//! bytes out ◀───────────── Frame ◀── block ◀── Deflater ◀── HeaderBlock
//! ```
//!
//! | folder | subject |
//! | --- | --- |
//! | `frames/` | one file per frame type: its fields and bytes; [`frame`] lists all types, [`head`] has the first eight bytes |
//! | `blocks/` | header blocks: [`header_block`], the rules for names and values, and which values are secret |
//! | `compression/` | the zlib stream of header blocks: [`compress`], [`inflate`], and an encoder that keeps secrets out of matches |
//!
//! The three versions share one codec. The differences are data in [`version`], [`kind`] and
//! [`dictionary`], and one branch each in SETTINGS, GOAWAY, SYN_STREAM (width of the priority),
//! SYN_REPLY and HEADERS (two unused bytes), RST_STREAM (fewer codes) and the header block (width of
//! its integers).
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![warn(missing_debug_implementations)]

mod blocks;
mod compression;
pub mod decoder;
pub mod error;
mod frames;
pub mod priority;
pub mod status;
pub mod stream_id;
pub mod version;

pub use blocks::{header_block, public_headers, secrets};
pub use compression::{compress, dictionary, inflate};
pub use frames::{
    data, frame, goaway, head, headers, kind, ping, rst_stream, settings, syn_reply, syn_stream,
    window_update,
};
