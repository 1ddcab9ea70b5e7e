//! A session written with `spdy-frame`.

use bytes::{Bytes, BytesMut};
use spdy_frame::compress::{Compression, Deflater};
use spdy_frame::frame::{Data, Frame, SynReply, SynStream, WindowUpdate};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;

/// The frames of one peer.
pub(crate) struct Writer {
    version: Version,
    deflater: Deflater,
}

impl Writer {
    pub(crate) fn new(version: Version) -> Self {
        Self {
            version,
            deflater: Deflater::new(version, Compression::default()),
        }
    }

    pub(crate) fn frame(&self, frame: &Frame) -> Vec<u8> {
        let mut out = BytesMut::new();
        frame.encode(self.version, &mut out);
        out.to_vec()
    }

    fn block(&mut self, pairs: &[(&'static str, &'static str)]) -> Bytes {
        let mut headers = HeaderBlock::new();
        for (name, value) in pairs {
            headers.push(*name, *value);
        }
        let mut out = BytesMut::new();
        self.deflater.deflate(&headers, &mut out);
        out.freeze()
    }

    pub(crate) fn open(&mut self, id: u32, fin: bool) -> Vec<u8> {
        let block = self.block(&[
            (":method", "GET"),
            (":path", "/index.html"),
            (":host", "site.test"),
            (":scheme", "https"),
            (":version", "HTTP/1.1"),
        ]);
        self.frame(&Frame::SynStream(SynStream {
            stream_id: StreamId::new(id),
            associated_to: StreamId::ZERO,
            priority: Priority::HIGHEST,
            fin,
            unidirectional: false,
            block,
        }))
    }

    pub(crate) fn reply(&mut self, id: u32, fin: bool) -> Vec<u8> {
        let block = self.block(&[(":status", "200 OK"), (":version", "HTTP/1.1")]);
        self.frame(&Frame::SynReply(SynReply {
            stream_id: StreamId::new(id),
            fin,
            block,
        }))
    }

    pub(crate) fn data(&self, id: u32, len: usize, fin: bool) -> Vec<u8> {
        self.frame(&Frame::Data(Data {
            stream_id: StreamId::new(id),
            payload: vec![b'x'; len].into(),
            fin,
        }))
    }

    pub(crate) fn update(&self, id: u32, delta: u32) -> Vec<u8> {
        self.frame(&Frame::WindowUpdate(WindowUpdate {
            stream_id: StreamId::new(id),
            delta,
        }))
    }
}
