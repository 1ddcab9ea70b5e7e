//! Transfers of a range that the recorded browser cancelled, as players do before they seek.
//!
//! When a browser cancels, more of the range is under way, and delays other resources. A recording over HTTP/1.1 or HTTP/3 does not
//! have these bytes: its body ends where the browser stopped reading. So a load requests the whole range and cancels after the
//! recorded bytes. The site's response [continues](spdy_server::site::Site::with_range_rests) after them with bytes that no client reads.
//!
//! Recordings over HTTP/2 and SPDY have all bytes that arrived, unless the browser's log lacks the frames. Nothing is known of recordings without a protocol: a crawler or the
//! server may have cut them off.

use http::HeaderValue;
use spdy_page::partial_content::ContentRange;
use spdy_page::replica::Exchange;

/// Longest rest of a range. A link of 300 Mbit/s with an RTT of 100 ms holds as much.
pub(crate) const MAX_REST_BYTES: usize = 4 << 20;

/// A transfer that the browser cancelled.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct CancelledTransfer {
    /// The `Range` of the request: that of the response.
    pub(crate) range: HeaderValue,
    /// It ends after so many bytes of body.
    pub(crate) after_bytes: u64,
}

impl CancelledTransfer {
    /// The transfer of `exchange`, if its body is shorter than its range.
    pub(crate) fn of(exchange: &Exchange) -> Option<Self> {
        let range = ContentRange::of(exchange)?;
        let after_bytes = exchange.body.len() as u64;
        let protocol = exchange.observed.protocol.as_deref()?;
        let has_read_bytes = protocol.starts_with("http/1") || protocol.starts_with("h3");
        let is_short = after_bytes > 0 && after_bytes <= range.last - range.first;
        let range = format!("bytes={}-{}", range.first, range.last);
        (has_read_bytes && is_short).then(|| Self {
            range: HeaderValue::try_from(range).expect("digits are valid"),
            after_bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use spdy_page::replica::Kind;

    use super::*;

    #[test]
    fn short_bodies_are_cancelled_if_the_recording_has_only_what_was_read() {
        for (range, body, protocol, after_bytes) in [
            ("7-7/9", "7", Some("h3"), None),
            ("7-8/9", "7", Some("h3"), Some(1)),
            ("7-8/9", "7", Some("http/1.1"), Some(1)),
            ("7-8/9", "7", Some("h2"), None),
            ("7-8/9", "7", Some("spdy/3.1"), None),
            ("7-8/9", "7", None, None),
            ("7-8/9", "", Some("h3"), None),
        ] {
            let url = "https://a.test/v.mp4".parse().unwrap();
            let mut exchange = Exchange::synthetic(url, Kind::Media, "video/mp4", body);
            let head = format!("HTTP/1.1 206 Part\r\nContent-Range: bytes {range}\r\n\r\n");
            exchange.response_head = head.into();
            exchange.observed.protocol = protocol.map(str::to_owned);
            let expected = after_bytes.map(|after_bytes| CancelledTransfer {
                range: HeaderValue::from_static("bytes=7-8"),
                after_bytes,
            });
            let found = CancelledTransfer::of(&exchange);
            assert_eq!(found, expected, "{range} by {protocol:?}");
        }
    }
}
