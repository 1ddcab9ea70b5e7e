//! Shifts the dates of a replica, so that caches see its responses as fresh as when it was recorded.
//!
//! For a cache a page of years ago is stale, independent of its heads: its age is computed from `Date` (RFC 9111 §4.2.3). So a server
//! shifts the dates of all responses equally, and responses that were fresh are fresh again. Many pages state no freshness lifetime:
//! a lifetime can be set for them.

use std::time::{Duration, SystemTime};

use bytes::{BufMut, Bytes, BytesMut};

use crate::head::{Head, with_field};
use crate::replica::Replica;

/// Fields that contain only a date.
const DATES: [&[u8]; 3] = [b"date", b"expires", b"last-modified"];
/// The year 10000, from 1970: an HTTP date cannot be as late (RFC 9110 §5.6.7).
const NO_DATE: Duration = Duration::from_secs(253_402_300_800);

/// When `replica` was recorded: by its own field, else by the `Date` of its document.
#[must_use]
pub fn recorded(replica: &Replica) -> Option<SystemTime> {
    let answered = || {
        let head = Head::parse(&replica.document().response_head)?;
        httpdate::parse_http_date(head.value("date")?).ok()
    };
    replica.recorded.map(SystemTime::from).or_else(answered)
}

/// Shifts `Date`, `Expires` and `Last-Modified` of every response by the time between the recording and `wall_now`. Invalid dates,
/// and dates that would be out of range, stay. Returns `false` and changes nothing if the [recording time](recorded) is unknown.
pub fn shift_dates(replica: &mut Replica, wall_now: SystemTime) -> bool {
    let Some(recorded) = recorded(replica) else {
        return false;
    };
    let shift = |date: SystemTime| match wall_now.duration_since(recorded) {
        Ok(later) => date.checked_add(later),
        Err(earlier) => date.checked_sub(earlier.duration()),
    };
    for exchange in &mut replica.exchanges {
        exchange.response_head = with_dates(&exchange.response_head, shift);
    }
    true
}

/// Adds `Cache-Control: max-age` to every 200 that has neither `Cache-Control` nor `Expires`.
pub fn set_default_lifetime(replica: &mut Replica, seconds: u32) {
    let lifetime = format!("max-age={seconds}");
    for exchange in &mut replica.exchanges {
        let Some(head) = Head::parse(&exchange.response_head) else {
            continue;
        };
        let has_field = |name| head.values(name).next().is_some();
        if head.status() == Some(200) && !has_field("cache-control") && !has_field("expires") {
            exchange.response_head =
                with_field(&exchange.response_head, "Cache-Control", Some(&lifetime));
        }
    }
}

/// `head` with every date shifted, and all other bytes unchanged.
fn with_dates(head: &[u8], shift: impl Fn(SystemTime) -> Option<SystemTime>) -> Bytes {
    let mut out = BytesMut::with_capacity(head.len());
    for line in head.split_inclusive(|&byte| byte == b'\n') {
        match shift_line(line, &shift) {
            Some(line) => out.put_slice(&line),
            None => out.put_slice(line),
        }
    }
    out.freeze()
}

fn shift_line(line: &[u8], shift: &impl Fn(SystemTime) -> Option<SystemTime>) -> Option<Vec<u8>> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let name = line[..colon].trim_ascii();
    DATES.iter().find(|date| name.eq_ignore_ascii_case(date))?;
    let value = std::str::from_utf8(line[colon + 1..].trim_ascii()).ok()?;
    let date = shift(httpdate::parse_http_date(value).ok()?)?;
    let since = date.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    (since < NO_DATE).then_some(())?;
    let date = httpdate::fmt_http_date(date);
    Some([&line[..=colon], b" ", date.as_bytes(), b"\r\n"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin;

    const DAY: Duration = Duration::from_secs(86_400);

    fn with_head(head: &str) -> Replica {
        let mut replica = builtin::portal();
        replica.exchanges[1].response_head = Bytes::copy_from_slice(head.as_bytes());
        replica
    }

    #[test]
    fn dates_move_with_the_recording_and_all_other_bytes_stay() {
        let mut replica = with_head(
            "HTTP/1.1 200 OK\r\ndate:Tue, 04 Jun 2013 10:00:00 GMT\nLAST-MODIFIED: Mon, 03 Jun 2013 10:00:00 GMT\r\n\
             Expires: 0\r\nX-Date: Tue, 04 Jun 2013 10:00:00 GMT\r\nETag: \"a:b\"\r\n\r\n",
        );
        let wall_now = recorded(&replica).unwrap() + 2 * DAY;
        assert!(shift_dates(&mut replica, wall_now));
        let head = String::from_utf8_lossy(&replica.exchanges[1].response_head).into_owned();
        assert_eq!(
            head,
            "HTTP/1.1 200 OK\r\ndate: Thu, 06 Jun 2013 10:00:00 GMT\r\nLAST-MODIFIED: Wed, 05 Jun 2013 10:00:00 GMT\r\n\
             Expires: 0\r\nX-Date: Tue, 04 Jun 2013 10:00:00 GMT\r\nETag: \"a:b\"\r\n\r\n"
        );
    }

    #[test]
    fn a_date_that_shifts_out_of_range_stays() {
        let head = "HTTP/1.1 200 OK\r\nExpires: Fri, 31 Dec 9999 23:59:59 GMT\r\n\r\n";
        let mut replica = with_head(head);
        let wall_now = recorded(&replica).unwrap() + DAY;
        assert!(shift_dates(&mut replica, wall_now));
        assert_eq!(&replica.exchanges[1].response_head[..], head.as_bytes());
        let mut back = with_head("HTTP/1.1 200 OK\r\nDate: Tue, 04 Jun 2013 10:00:00 GMT\r\n\r\n");
        let wall_now = recorded(&back).unwrap() - DAY;
        assert!(shift_dates(&mut back, wall_now));
        let head = &back.exchanges[1].response_head[..];
        assert!(head.ends_with(b"Date: Mon, 03 Jun 2013 10:00:00 GMT\r\n\r\n"));
    }

    #[test]
    fn explicit_freshness_is_never_overridden() {
        for (head, expected) in [
            ("HTTP/1.1 200 OK\r\nETag: a\r\n\r\n", true),
            ("HTTP/1.1 200 OK\r\ncache-control: no-store\r\n\r\n", false),
            ("HTTP/1.1 200 OK\r\nExpires: 0\r\n\r\n", false),
            ("HTTP/1.1 404 Not Found\r\n\r\n", false),
        ] {
            let mut replica = with_head(head);
            set_default_lifetime(&mut replica, 60);
            let actual = String::from_utf8_lossy(&replica.exchanges[1].response_head).into_owned();
            let added = actual.contains("Cache-Control: max-age=60\r\n");
            assert_eq!(added, expected, "{actual}");
            assert_eq!(actual == head, !expected, "{actual}");
        }
    }

    #[test]
    fn a_page_without_a_recording_time_is_unchanged() {
        let mut replica = builtin::portal();
        replica.recorded = None;
        let start = replica.start;
        replica.exchanges[start].response_head = Bytes::from_static(b"HTTP/1.1 200 OK\r\n\r\n");
        assert!(!shift_dates(
            &mut replica,
            SystemTime::UNIX_EPOCH + 20_000 * DAY
        ));
    }
}
