//! A TCP segment as the model sends it: real payload, counted headers. (Contract)
use bytes::Bytes;

#[derive(Clone, Debug)]
pub struct Segment { /* seq, ack, flags, window, sack blocks, timestamps */ pub payload: Bytes }
impl Segment {
    /// Length of the IPv4 packet: 20 + 20 + options + payload, bytes.
    pub fn ip_len_bytes(&self) -> usize { todo!() }
}
