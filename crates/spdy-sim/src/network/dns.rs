//! Name lookups: one query and one response in UDP, over the same path as all other packets.
//!
//! The resolver is at the far end of the path and has every name of the run, so a lookup costs one round trip. While there is no
//! response the query is sent again, after [`FIRST_RETRY`] and then after twice as long each time, at most [`ATTEMPTS`] times in all.
//! A response to any of them counts. There is no cache here: the client has its own.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use futures_util::future::{Either, select};
use spdy::runtime::Runtime;

/// How the client resolves names.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum NameLookups {
    /// From a resolver, in one round trip for each name.
    #[default]
    RoundTrip,
    /// From a hosts file, as in many laboratories: without a packet and without delay.
    HostsFile,
}

/// Time without a response after which the query is first sent again: 1 s, as Chromium's resolver waits.
pub const FIRST_RETRY: Duration = Duration::from_secs(1);

/// Queries before a lookup fails; it fails 31 s after the first.
pub const ATTEMPTS: u32 = 5;

/// `host` as the resolver stores it: in lower case, and without a dot at the end, which a URL may have.
#[must_use]
pub fn name(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// Bytes of the IP packet of the query for the address of [`name`] `host`: IP 20, UDP 8, DNS head 12, the name with its
/// first length byte and its root, type and class 4.
#[must_use]
pub fn query_len_bytes(host: &str) -> usize {
    20 + 8 + 12 + host.len() + 2 + 4
}

/// Bytes of the IP packet of the response: the question, and 16 for each IPv4 address, 28 for IPv6.
#[must_use]
pub fn answer_len_bytes(host: &str, addresses: &[IpAddr]) -> usize {
    let records: usize = addresses
        .iter()
        .map(|address| if address.is_ipv4() { 16 } else { 28 })
        .sum();
    query_len_bytes(host) + records
}

/// Calls `send_query`, which sends a query, until `answer` is ready, in virtual or in real time: again after [`FIRST_RETRY`], then
/// after twice as long each time.
///
/// # Errors
///
/// No response after [`ATTEMPTS`] queries.
pub async fn query_with_retries<A: Future + Unpin>(
    runtime: &dyn Runtime,
    host: &str,
    mut send_query: impl FnMut(),
    mut answer: A,
) -> io::Result<A::Output> {
    let mut patience = FIRST_RETRY;
    for _ in 0..ATTEMPTS {
        send_query();
        let deadline = runtime.now() + patience;
        match select(answer, runtime.sleep_until(deadline)).await {
            Either::Left((answered, _)) => return Ok(answered),
            Either::Right(((), unanswered)) => answer = unanswered,
        }
        patience *= 2;
    }
    Err(io::Error::new(
        io::ErrorKind::TimedOut,
        format!("no response for {host:?} after {ATTEMPTS} queries"),
    ))
}

/// The error of a host that the resolver does not know.
#[must_use]
pub fn unknown(host: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("unknown host {host:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_and_its_answer_have_the_lengths_of_real_ones() {
        // `www.example.com A` is 33 bytes of DNS, 61 of IP; one A record adds 16.
        assert_eq!(query_len_bytes("www.example.com"), 61);
        assert_eq!(
            answer_len_bytes("www.example.com", &[[192, 0, 2, 1].into()]),
            77
        );
    }
}
