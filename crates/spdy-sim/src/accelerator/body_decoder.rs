//! Undoes the codings of bodies that came through the accelerator, with the accelerator's own decoder.

use http::HeaderMap;
use spdy_proxy::body::content_coding::Coding;
use spdy_proxy::body::decoder::Decoder;

use crate::load::proxied_content::BodyDecoder;

/// Maximum bytes of a decoded body: the limit of the accelerator for a page.
pub(super) const MAX_TEXT_BYTES: usize = 64 * 1024 * 1024;

/// A decoder for a response with these headers; `None` if a coding is unknown.
pub(super) fn body_decoder(headers: &HeaderMap) -> Option<Box<dyn BodyDecoder>> {
    let coding = Coding::of(headers)?;
    Some(Box::new(Decoder::new(coding, MAX_TEXT_BYTES)))
}

impl BodyDecoder for Decoder {
    fn write(&mut self, piece: &[u8]) -> Result<Vec<u8>, String> {
        Self::write(self, piece).map_err(|error| error.to_string())
    }

    fn finish(self: Box<Self>) -> Result<Vec<u8>, String> {
        Self::finish(*self).map_err(|error| error.to_string())
    }
}
