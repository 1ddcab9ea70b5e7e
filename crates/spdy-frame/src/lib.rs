//! SPDY frames: bytes to meaning and back (SPDY/2, SPDY/3, SPDY/3.1).
//!
//! This crate knows one direction of one connection at a time: [`Decoder`](decoder::Decoder) cuts a
//! byte stream into [`Frame`](frame::Frame)s, `Frame::encode` writes them, and
//! [`compress`] turns header blocks into the bytes that frames carry. What a frame does to a session
//! is the business of `spdy-session`.

pub mod compress;
pub mod decoder;
pub mod error;
pub mod frame;
pub mod header_block;
pub mod kind;
pub mod priority;
pub mod status;
pub mod stream_id;
pub mod version;
