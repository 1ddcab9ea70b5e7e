//! The decoders of HTTP over SPDY (`spdy-http`): header blocks as requests, responses, pushes and trailers.
//!
//! ```text
//! wire     | name: value \n | name: value \n | ...      a repeated name adds a value
//! ```
//!
//! - A decoded block can be encoded again; the result has the same meaning and encodes the same.

use http::HeaderMap;
use spdy_frame::header_block::{BlockLimits, HeaderBlock};
use spdy_frame::version::Version;
use spdy_http::push::{decode_promise, encode_promise};
use spdy_http::{request, response, trailers};

use crate::choices::Choices;
use crate::memory;

/// Decodes the wire as a block of each kind.
pub fn check(input: &[u8]) {
    let (mut choices, wire) = Choices::split(input);
    let version = choices.pick(&Version::ALL);
    let mut block = HeaderBlock::new();
    for line in wire.split(|byte| *byte == b'\n') {
        // A name may begin with a colon.
        let at = line.iter().skip(1).position(|byte| *byte == b':');
        let (name, value) = at.map_or((line, &[][..]), |at| line.split_at(at + 1));
        let value = value.strip_prefix(b":").unwrap_or(value);
        block.push(name, value.trim_ascii());
    }
    // The layer below delivers only such blocks.
    if block.check(version, &BlockLimits::default()).is_err() {
        return;
    }
    memory::at_most(64 * 1024 + 100 * wire.len(), || {
        check_request(version, &block);
        check_response(version, &block);
        check_push(version, &block);
        check_trailers(version, &block);
    });
}

fn check_request(version: Version, block: &HeaderBlock) {
    let head = match request::decode(version, block) {
        Ok(head) => head,
        Err(error) => {
            assert!(error.status().is_client_error(), "{error}");
            return;
        }
    };
    let written = request::encode(version, &head).expect("a decoded request");
    let back = request::decode(version, &written).expect("the encoded form is valid");
    assert_eq!(back.method, head.method);
    // SPDY/2 has no empty values.
    if version != Version::V2 {
        assert_eq!(back.headers, head.headers);
    }
    assert_eq!(target(&back.uri), target(&head.uri));
    let again = request::encode(version, &back).expect("the encoded form was decoded");
    assert_eq!(again, written);
}

fn check_response(version: Version, block: &HeaderBlock) {
    let Ok(head) = response::decode(version, block) else {
        return;
    };
    let written = response::encode(version, &head);
    let back = response::decode(version, &written).expect("the encoded form is valid");
    assert_eq!(back.status, head.status);
    // As for trailers: an omitted value stays omitted.
    assert_eq!(response::encode(version, &back), written);
}

fn check_trailers(version: Version, block: &HeaderBlock) {
    let mut come = HeaderMap::new();
    if trailers::add(version, None, &mut come, block).is_err() {
        return;
    }
    let written = trailers::encode(version, &come);
    let mut back = HeaderMap::new();
    trailers::add(version, None, &mut back, &written).expect("the encoded form is valid");
    // SPDY/2 has no empty values: encoding omits them.
    assert_eq!(trailers::encode(version, &back), written);
    // Every name is in the head, so before DATA this adds nothing if it succeeds.
    let mut more = HeaderMap::new();
    if trailers::add(version, Some(block), &mut more, block).is_ok() {
        assert!(more.is_empty());
    }
}

fn check_push(version: Version, block: &HeaderBlock) {
    let Ok(promise) = decode_promise(version, block) else {
        return;
    };
    let uri = &promise.request.uri;
    let written = encode_promise(version, uri).expect("a decoded URL");
    let back = decode_promise(version, &written).expect("the encoded form is valid");
    assert_eq!(target(&back.request.uri), target(uri));
    assert_eq!(
        encode_promise(version, &back.request.uri).expect("the decoded URL is valid"),
        written
    );
}

/// The target of the request; an empty path is the root.
fn target(uri: &http::Uri) -> (&str, Option<&str>) {
    (uri.path(), uri.query())
}
