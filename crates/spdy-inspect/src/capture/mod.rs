//! Capture files: pcap and pcapng, read piece by piece, and pcapng written.

mod byte_order;
mod pcap;
mod pcapng;
pub mod pcapng_writer;
mod reader;
mod record;

pub use reader::Reader;
pub use record::{CaptureError, Record};
