//! The recorded heads of a corpus as header blocks, and their compressed lengths.

use std::collections::BTreeMap;

use bytes::BytesMut;
use http::Response;
use spdy_frame::compress::{DeflateOptions, Deflater};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::version::Version;
use spdy_http::{http1_text, request, response};
use spdy_page::head::{self, Head};
use spdy_page::replica::{Exchange, Replica};
use spdy_sim::load::request_of;

const VERSION: Version = Version::V31;

/// Heads of one recording, by host.
#[derive(Default)]
pub(crate) struct Heads {
    streams: BTreeMap<String, [Stream; 2]>,
}

/// The header blocks of one direction, and their length as text.
#[derive(Default)]
struct Stream {
    blocks: Vec<HeaderBlock>,
    text_bytes: usize,
}

impl Heads {
    /// Adds the exchanges of `replica`.
    pub(crate) fn add(&mut self, replica: &Replica) {
        for exchange in &replica.exchanges {
            if let Some([request, response]) = blocks(exchange) {
                let streams = self
                    .streams
                    .entry(head::authority(&exchange.url))
                    .or_default();
                for (stream, (block, text_bytes)) in streams.iter_mut().zip([request, response]) {
                    stream.blocks.push(block);
                    stream.text_bytes += text_bytes;
                }
            }
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// Bytes of a direction as text, and compressed.
    pub(crate) fn sizes(&self, direction: usize, options: &DeflateOptions) -> (f64, f64) {
        let mut out = BytesMut::new();
        let (mut before, mut after) = (0, 0);
        for stream in self.streams.values().map(|streams| &streams[direction]) {
            let mut deflater = Deflater::new(VERSION, options.clone());
            out.clear();
            for block in &stream.blocks {
                deflater.deflate(block, &mut out);
            }
            before += stream.text_bytes;
            after += out.len();
        }
        (before as f64, after as f64)
    }
}

/// Request and response of `exchange` as header blocks, with their lengths as text; `None` if it cannot be requested.
fn blocks(exchange: &Exchange) -> Option<[(HeaderBlock, usize); 2]> {
    let (request_head, _) = request_of(exchange, false).ok()?.into_parts();
    let recorded = Head::parse(&exchange.response_head)?;
    let mut answer = Response::builder().status(recorded.status()?);
    for (name, value) in recorded.fields() {
        answer = answer.header(name, value);
    }
    let (answer, ()) = answer.body(()).ok()?.into_parts();
    Some([
        (
            request::encode(VERSION, &request_head).ok()?,
            http1_text::request_head_bytes(&request_head),
        ),
        (
            response::encode(VERSION, &answer),
            http1_text::response_head_bytes(&answer),
        ),
    ])
}
