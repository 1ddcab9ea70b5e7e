//! Parses values of options: counts, seconds, addresses.

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::time::Duration;

/// Parses a count of at least one.
pub(crate) fn at_least_one(text: &str) -> Result<NonZeroUsize, String> {
    let count = text.parse();
    count.map_err(|_| "expected a whole number, 1 or more, such as 4".to_owned())
}

/// Parses a timeout in seconds.
pub(crate) fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| format!("{text:?} is not a number of seconds"))?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(time) if !time.is_zero() => Ok(time),
        _ => Err(format!("expected a time above 0 s, found {text} s")),
    }
}

/// Parses an address to listen on.
pub(crate) fn parse_address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        "expected an IP address and a port, such as 127.0.0.1:8443 or [::]:443".to_owned()
    })
}
