//! A raw stream: `AsyncRead + AsyncWrite`, with headers.
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use bytes::Bytes;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use crate::error::Error;

/// One stream, without HTTP. Dropping it before both halves have ended resets it with CANCEL.
#[derive(Debug)]
pub struct Stream { _private: () }
impl Stream {
    /// Its number.
    pub fn id(&self) -> StreamId { todo!() }
    /// Waits for the peer's SYN_REPLY and gives its headers, once. On an accepted stream: an error.
    pub async fn reply(&mut self) -> Result<HeaderBlock, Error> { todo!() }
    /// Headers that came in HEADERS frames and were not taken yet.
    pub fn take_headers(&mut self) -> Option<HeaderBlock> { todo!() }
    /// Sends HEADERS.
    pub fn send_headers(&mut self, headers: &HeaderBlock, fin: bool) -> Result<(), Error> { let _ = (headers, fin); todo!() }
    /// Sends `data` without copying it; waits for room.
    pub async fn send(&mut self, data: Bytes) -> Result<(), Error> { let _ = data; todo!() }
    /// The next DATA as it came; `None` at FIN.
    pub async fn receive(&mut self) -> Option<Result<Bytes, Error>> { todo!() }
    /// Closes our half (FIN).
    pub fn finish(&mut self) -> Result<(), Error> { todo!() }
    /// Ends it at once.
    pub fn reset(self, status: RstStatus) { let _ = status; todo!() }
}
impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> { let _ = (cx, buf); todo!() }
}
impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> { let _ = (cx, buf); todo!() }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> { Poll::Ready(Ok(())) }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> { todo!() }
}
