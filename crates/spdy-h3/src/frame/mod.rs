//! Frames of HTTP/3 (RFC 9114 §7).

mod decoder;
mod encode;
pub(crate) mod kind;
mod reader;

pub(crate) use decoder::{FrameDecoder, FrameEvent, MAX_CONTROL_FRAME_BYTES, StreamKind};
pub(crate) use encode::{frame, put_head, put_varint};
pub(crate) use reader::FrameReader;
