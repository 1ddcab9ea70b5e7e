//! The parsers of `Upgrade: SPDY/3.1` (`spdy/src/upgrade`): a server that reads a request, a client that reads
//! the response.
//!
//! - How the bytes are split changes nothing.
//! - No byte after the head is lost: these are the first bytes of the session.
//! - A refusal stores no more of its body than the limit.

use std::time::Duration;

use http::Request;
use spdy::upgrade::{Limits, Rewind, UpgradeError, connect, read_request};

use crate::choices::Choices;
use crate::io::{Script, complete, runtime};
use crate::memory;

const PROTOCOLS: [&str; 2] = ["v4.channel.k8s.io", "channel.k8s.io"];

/// Decodes the wire as a request and as a response, whole and split.
pub fn check(input: &[u8]) {
    let (mut choices, wire) = Choices::split(input);
    let client = choices.flag();
    let mut limits = Limits::default();
    limits.head_bytes = choices.pick(&[16 * 1024, 200]);
    limits.header_lines = choices.pick(&[100, 4]);
    limits.refusal_bytes = choices.pick(&[64 * 1024, 20, 0]);
    limits.timeout = Duration::from_secs(30);
    let upgrade = if client {
        request_upgrade
    } else {
        accept_upgrade
    };
    // Two slots for each header line; and the input, in pieces and joined.
    memory::at_most(64 * 1024 + 64 * wire.len(), || {
        let whole: &[&[u8]] = if wire.is_empty() { &[] } else { &[wire] };
        let whole = upgrade(whole, limits, wire);
        assert_eq!(upgrade(&choices.cut(wire), limits, wire), whole);
    });
}

/// The result at a server: the request it decoded and its response.
fn accept_upgrade(pieces: &[&[u8]], limits: Limits, wire: &[u8]) -> String {
    let offer = complete(read_request(Script::new(pieces), limits, &runtime()));
    let offer = match offer {
        Ok(offer) => offer,
        Err(error) => return error_text(&error),
    };
    let request = format!("{:?}", offer.request());
    match complete(offer.accept(&PROTOCOLS)) {
        Ok(upgraded) => {
            assert!(
                upgraded
                    .protocol()
                    .is_some_and(|name| PROTOCOLS.contains(&name))
            );
            let written = rest(upgraded.into_io(), wire);
            assert!(written.starts_with(b"HTTP/1.1 101 ") && written.ends_with(b"\r\n\r\n"));
            format!("{request} {}", written.escape_ascii())
        }
        Err(error) => format!("{request} {}", error_text(&error)),
    }
}

/// The result at a client.
fn request_upgrade(pieces: &[&[u8]], limits: Limits, wire: &[u8]) -> String {
    let request = Request::post("http://a.test/exec/1?stdin=1")
        .body(())
        .expect("a request");
    let script = Script::new(pieces);
    match complete(connect(script, &request, &PROTOCOLS, limits, &runtime())) {
        Ok(upgraded) => {
            assert!(
                upgraded
                    .protocol()
                    .is_none_or(|name| PROTOCOLS.contains(&name))
            );
            let seen = format!("{:?} {:?}", upgraded.protocol(), upgraded.headers());
            rest(upgraded.into_io(), wire);
            seen
        }
        Err(UpgradeError::Refused {
            status,
            headers,
            body,
        }) => {
            assert!(
                body.len() <= limits.refusal_bytes,
                "{} bytes of refusal",
                body.len()
            );
            format!("{status} {headers:?} {body:?}")
        }
        Err(error) => error_text(&error),
    }
}

/// Checks that all bytes after the head are still to be read. Returns the written bytes.
fn rest(io: Rewind<Script>, wire: &[u8]) -> Vec<u8> {
    let (seen, script) = io.into_parts();
    let rest = [&seen[..], &script.left()].concat();
    assert!(
        wire.ends_with(&rest),
        "{} bytes after the head differ",
        rest.len()
    );
    let head = &wire[..wire.len() - rest.len()];
    assert!(
        head.ends_with(b"\n\n") || head.ends_with(b"\n\r\n"),
        "{}",
        head.escape_ascii()
    );
    script.written
}

/// The text of an error.
fn error_text(error: &UpgradeError) -> String {
    match error {
        // The number of bytes depends on how the input was split.
        UpgradeError::Closed { .. } => "closed".to_owned(),
        error => error.to_string(),
    }
}
