//! Errors and limits of imports.

use std::time::Duration;

use bytes::Bytes;
use spdy_page::coding;
use spdy_page::limits::Limits;
use spdy_page::open::{ImportOptions, OpenError, open, read};

use crate::support::import::data;

#[test]
fn import_errors_are_one_sentence() {
    let reason = |bytes: &'static [u8]| {
        read(Bytes::from_static(bytes), "x", &ImportOptions::default())
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        reason(b"PK\x03\x04"),
        "unknown format (starts with \"PK\\u{3}\\u{4}\"), expected a WARC, a HAR, a NetLog or a speedreport, each also gzipped"
    );
    assert_eq!(
        reason(b"{}"),
        "JSON: found neither the field log of a HAR nor the field assets of a speedreport"
    );
    assert_eq!(
        reason(br#"{"log":{"entries":[]}}"#),
        "no page load in the recording: the HAR has no entries"
    );
    assert_eq!(
        reason(br#"{"log":{"entries":[{"request":{"url":"data:,"}}]}}"#),
        "no page load in the recording: none of 1 entries was on the wire"
    );
    assert!(reason(br#"{"log":{"entries":[{]}}"#).starts_with("HAR: key must be a string"));
    assert_eq!(
        reason(b"WARC/1.0\r\nA: b\r\n\r\n"),
        "WARC record 1: Content-Length is missing"
    );
    assert_eq!(
        reason(b"WARC/1.0\r\nContent-Length: 9\r\n\r\nx"),
        "WARC record 1: block has 9 bytes, but only 1 bytes are left in the file"
    );
    assert_eq!(
        reason(b"WARC/1.0\r\nContent-Length: 0\r\n\r\n"),
        "no page load in the recording: none of 0 responses is a document"
    );
    assert_eq!(
        open("no such thing").unwrap_err().to_string(),
        "unknown replica \"no such thing\": no such file, and the shipped replicas are flags, portal"
    );
}

/// Found by the fuzz target `har`: the clock of a recorder jumped by seven millennia, and the replica's file cannot contain such a
/// time, so the imported replica differed from the one that was read back.
#[test]
fn a_time_past_the_files_maximum_is_limited_to_it() {
    let har = std::fs::read_to_string(data("small.har")).unwrap();
    let har = har.replacen("2014-05-01T10:00:00.0", "9137-05-01T10:00:00.0", 1);
    let options = ImportOptions::default();
    let replica = read(har.into(), "x", &options).unwrap().replica;
    let longest = Duration::from_nanos(u64::MAX);
    assert!(
        replica
            .exchanges
            .iter()
            .any(|exchange| exchange.started == Some(longest))
    );
    let file = spdy_page::archive::encode(&replica, false);
    assert_eq!(read(file.into(), "x", &options).unwrap().replica, replica);
}

#[test]
fn every_limit_holds_one_past_it() {
    let har = std::fs::read(data("small.har")).unwrap();
    let read = |limits: Limits| {
        read(
            har.clone().into(),
            "x",
            &ImportOptions { page: None, limits },
        )
    };
    let whole = Limits::default();
    assert!(
        read(Limits {
            file_bytes: har.len(),
            records: 11,
            body_bytes: 2_400,
            filler_bytes: 2_400 + 777,
            ..whole
        })
        .is_ok()
    );
    let limit = |limits| match read(limits) {
        Err(OpenError::Limit { what, .. }) => what,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        limit(Limits {
            file_bytes: har.len() - 1,
            ..whole
        }),
        "bytes in the file"
    );
    assert_eq!(
        limit(Limits {
            records: 10,
            ..whole
        }),
        "entries"
    );
    assert_eq!(
        limit(Limits {
            body_bytes: 2_399,
            ..whole
        }),
        "bytes in a body"
    );
    assert_eq!(
        limit(Limits {
            filler_bytes: 2_400 + 776,
            ..whole
        }),
        "bytes of filler"
    );
    assert_eq!(
        limit(Limits {
            head_bytes: 60,
            ..whole
        }),
        "bytes in a literal head"
    );
}

#[test]
fn a_gzip_bomb_and_a_gzip_cut_short_are_refused() {
    let zeros = coding::encode(&vec![0; 1 << 20], "gzip", None).unwrap();
    let limits = Limits {
        inflated_bytes: (1 << 20) - 1,
        ..Limits::default()
    };
    let options = ImportOptions { page: None, limits };
    let fault = read(zeros.clone().into(), "x", &options).unwrap_err();
    assert_eq!(
        fault.to_string(),
        "limit of 1048575 bytes of decompressed data exceeded"
    );
    let cut = Bytes::from(zeros).slice(..500);
    assert!(matches!(
        read(cut, "x", &ImportOptions::default()),
        Err(OpenError::Gzip(_))
    ));
}

#[test]
fn huge_stated_sizes_are_rejected_without_allocation() {
    for (field, value) in [
        ("Content-Length", "18446744073709551615"),
        ("Content-Length", "999999999999"),
        ("X", "1"),
    ] {
        let har = format!(
            r#"{{"log":{{"entries":[{{"request":{{"url":"http://a.test/"}},"response":{{"status":200,"headers":[{{"name":"{field}","value":"{value}"}}],
            "content":{{"size":8999999999999999,"mimeType":"text/html"}}}}}}]}}}}"#
        );
        let fault = read(har.into(), "x", &ImportOptions::default()).unwrap_err();
        assert!(
            matches!(
                fault,
                OpenError::Limit {
                    what: "bytes in a body",
                    ..
                }
            ),
            "{fault}"
        );
    }
}
