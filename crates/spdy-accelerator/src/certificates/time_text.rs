//! Times and durations of certificates, as they are printed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The last time that an HTTP date can express: the end of 9999.
const MAX_HTTP_DATE: Duration = Duration::from_secs(253_402_300_799);

/// `at` to the second, as an HTTP date.
pub(super) fn format_time(at: SystemTime) -> String {
    httpdate::fmt_http_date(at.min(UNIX_EPOCH + MAX_HTTP_DATE))
}

/// `span` in the largest unit of which it has two or more.
pub(super) fn format_duration(span: Duration) -> String {
    match span.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ 120..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}
