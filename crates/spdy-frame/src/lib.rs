//! SPDY frames: bytes to meaning and back (SPDY/2, SPDY/3, SPDY/3.1).
//!
//! This crate knows one direction of one connection at a time: [`Decoder`](decoder::Decoder) cuts a
//! byte stream into [`Frame`](frame::Frame)s, `Frame::encode` writes them, and
//! [`compress`] turns header blocks into the bytes that frames carry. What a frame does to a session
//! is the business of `spdy-session`.
//!
//! ```text
//! bytes in ──▶ Decoder ──▶ Frame ──▶ block ──▶ Inflater ──▶ HeaderBlock
//! bytes out ◀───────────── Frame ◀── block ◀── Deflater ◀── HeaderBlock
//! ```
//!
//! The three versions share one codec. What differs is data in [`version`], [`kind`] and
//! [`dictionary`], and a branch each in SETTINGS, GOAWAY, SYN_STREAM (width of the priority),
//! SYN_REPLY and HEADERS (two unused bytes), RST_STREAM (fewer codes) and the header block (width of
//! its integers).
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod block_rules;
pub mod compress;
pub mod data;
pub mod decoder;
mod deflate_encoder;
pub mod dictionary;
mod earlier_values;
pub mod error;
pub mod frame;
pub mod goaway;
pub mod head;
pub mod header_block;
pub mod headers;
mod huffman;
pub mod inflate;
pub mod kind;
pub mod ping;
mod places;
pub mod priority;
pub mod public_headers;
pub mod rst_stream;
pub mod secrets;
pub mod settings;
pub mod status;
pub mod stream_id;
pub mod syn_reply;
pub mod syn_stream;
pub mod version;
pub mod window_update;
