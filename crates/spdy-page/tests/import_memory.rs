//! Memory of importing a small recording: a stated multiple of the file, for any repetition in it.
//!
//! A separate test program, because it counts with a global allocator.

use bytes::Bytes;
use spdy_page::limits::Limits;
use spdy_page::open::{ImportOptions, OpenError, OpenedReplica, read};

/// Bytes of each file.
const LEN: usize = 4 << 20;

/// Reads `text`, and returns the maximum heap bytes in use for it, without the text itself.
fn held(text: String) -> (Result<OpenedReplica, OpenError>, usize) {
    let (text, mut outcome) = (Bytes::from(text), None);
    let held = allocation_counter::measure(|| {
        outcome = Some(read(text.clone(), "page.har", &ImportOptions::default()));
    });
    (outcome.expect("it was read"), held.bytes_max as usize)
}

/// `item` as often as it fits [`LEN`], with commas between.
fn repeated(item: &str) -> String {
    let mut text = format!("{item},").repeat(LEN / (item.len() + 1));
    text.pop();
    text
}

fn har_of_entry(entry: &str) -> String {
    format!(r#"{{"log":{{"entries":[{entry}]}}}}"#)
}

#[test]
fn too_many_entries_pages_or_assets_are_refused_before_they_are_held() {
    let many = repeated("{}");
    for (text, expected) in [
        (har_of_entry(&many), "entries"),
        (
            format!(r#"{{"log":{{"pages":[{many}],"entries":[{{}}]}}}}"#),
            "pages",
        ),
        (format!(r#"{{"assets":[{many}]}}"#), "assets"),
    ] {
        let (outcome, held) = held(text);
        match outcome {
            Err(OpenError::Limit { what, limit }) => {
                assert_eq!((what, limit), (expected, Limits::default().records));
            }
            other => panic!("{expected}: {other:?}"),
        }
        assert!(held < 64 << 10, "{expected}: {held} bytes were held");
    }
}

/// A truncated file costs as little as a whole one, and text that is not UTF-8 costs its replacement.
#[test]
fn entries_that_never_end_are_refused_before_they_are_held() {
    let text = har_of_entry(&repeated("{}"));
    let cut = text[..text.len() - 3].to_owned();
    let (outcome, held) = held(cut);
    assert!(
        matches!(outcome, Err(OpenError::Json { .. })),
        "{outcome:?}"
    );
    assert!(held < 64 << 10, "{held} bytes were held");
}

#[test]
fn as_many_entries_as_are_allowed_hold_a_kilobyte_each() {
    let most = Limits::default().records;
    let text = har_of_entry(&vec!["{}"; most].join(","));
    let (outcome, held) = held(text);
    assert!(
        matches!(outcome, Err(OpenError::NoPageLoad { .. })),
        "{outcome:?}"
    );
    assert!(held < most << 10, "{held} bytes were held");
}

#[test]
fn an_entry_holds_no_more_than_twenty_times_its_text() {
    let url = r#""url":"http://a.test/""#;
    for (what, entry) in [
        (
            "nameless fields",
            format!(r#"{{"request":{{{url},"headers":[{}]}}}}"#, repeated("{}")),
        ),
        (
            "short fields",
            format!(
                r#"{{"request":{{{url},"headers":[{}]}}}}"#,
                repeated(r#"{"name":"a"}"#)
            ),
        ),
        (
            "short fields of a whole exchange",
            format!(
                r#"{{"request":{{{url},"headers":[{}]}},"response":{{"status":200}}}}"#,
                repeated(r#"{"name":"a"}"#)
            ),
        ),
        (
            "an initiator of numbers",
            format!(
                r#"{{"request":{{{url}}},"_initiator":[{}]}}"#,
                repeated("0")
            ),
        ),
        (
            "an initiator of frames",
            format!(
                r#"{{"request":{{{url}}},"_initiator":{{"stack":{{"callFrames":[{}]}}}}}}"#,
                repeated("{}")
            ),
        ),
        (
            "numbers for texts",
            format!(
                r#"{{"request":{{{url},"headers":[{}]}}}}"#,
                repeated(r#"{"name":1e308}"#)
            ),
        ),
    ] {
        let (outcome, held) = held(har_of_entry(&entry));
        assert!(outcome.is_err(), "{what}");
        assert!(held < 20 * LEN, "{what}: {held} bytes were held");
    }
}
