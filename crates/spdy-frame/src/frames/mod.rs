//! The frames of SPDY, one file each: their bytes, and nothing about when they may be sent.

pub mod data;
pub mod frame;
pub mod goaway;
pub mod head;
pub mod headers;
pub mod kind;
pub mod ping;
pub mod rst_stream;
pub mod settings;
pub mod syn_reply;
pub mod syn_stream;
pub mod window_update;
