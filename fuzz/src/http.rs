//! The doors of HTTP over SPDY (`spdy-http`): header blocks as requests, responses, pushes and trailers.
//!
//! ```text
//! wire     | name: value \n | name: value \n | ...      a name that comes again adds a value
//! ```
//!
//! - What a block says can be written as a block again, which says the same and is written the same.

use spdy_frame::header_block::{BlockLimits, HeaderBlock};
use spdy_frame::version::Version;
use spdy_http::push::{decode_promise, encode_promise};
use spdy_http::{request, response};

use crate::choices::Choices;
use crate::memory;

/// Reads the wire as a block of each kind.
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
    // No other block comes out of the layer below.
    if block.check(version, &BlockLimits::default()).is_err() {
        return;
    }
    memory::at_most(64 * 1024 + 100 * wire.len(), || {
        check_request(version, &block);
        check_response(version, &block);
        check_push(version, &block);
        if let Ok(trailers) = response::decode_trailers(&block) {
            let written = response::encode_trailers(version, &trailers);
            let back = response::decode_trailers(&written).expect("what we wrote");
            // Names that are the request line's in SPDY/2 are not written: once gone, they are gone.
            assert_eq!(response::encode_trailers(version, &back), written);
        }
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
    let written = request::encode(version, &head).expect("a request that was read");
    let back = request::decode(version, &written).expect("what we wrote");
    assert_eq!(back.method, head.method);
    // SPDY/2 has no empty values.
    if version != Version::V2 {
        assert_eq!(back.headers, head.headers);
    }
    assert_eq!(target(&back.uri), target(&head.uri));
    let again = request::encode(version, &back).expect("what we wrote and read");
    assert_eq!(again, written);
}

fn check_response(version: Version, block: &HeaderBlock) {
    let Ok(mut head) = response::decode(version, block) else {
        return;
    };
    let written = response::encode(version, &head);
    let back = response::decode(version, &written).expect("what we wrote");
    assert_eq!(back.status, head.status);
    // As of trailers: what is once gone stays so.
    assert_eq!(response::encode(version, &back), written);
    // Every name was there before, so this adds nothing, if it does anything.
    let before = head.headers.clone();
    if response::add_headers(version, &mut head, block).is_ok() {
        assert_eq!(head.headers, before);
    }
}

fn check_push(version: Version, block: &HeaderBlock) {
    let Ok(promise) = decode_promise(version, block) else {
        return;
    };
    let uri = &promise.request.uri;
    let written = encode_promise(version, uri).expect("a url that was read");
    let back = decode_promise(version, &written).expect("what we wrote");
    assert_eq!(target(&back.request.uri), target(uri));
    assert_eq!(
        encode_promise(version, &back.request.uri).expect("and read"),
        written
    );
}

/// What is asked for; a path of nothing is the root.
fn target(uri: &http::Uri) -> (&str, Option<&str>) {
    (uri.path(), uri.query())
}
