//! What trusted proxies in front of this one (`listen.trusted`) report of a request: its client, and the scheme.
//!
//! ```text
//!  client 203.0.113.7 ──TLS──▶ balancer 10.0.0.5 ──plain──▶ here
//!                                X-Forwarded-For: 198.51.100.1, 203.0.113.7     read from its end: the last address that is no trusted proxy
//!                                X-Forwarded-Proto: https
//! ```
//!
//! Addresses before the last untrusted one are the client's own claim, and are not passed on.

use std::net::IpAddr;

use http::HeaderMap;
use spdy_net::listen::trusted_proxies::TrustedProxies;

use crate::request::forward_headers::{FORWARDED_FOR, FORWARDED_PROTO};

/// The address of the client, by `headers` of a request that arrived from `from`.
pub(crate) fn client(in_front: &TrustedProxies, from: IpAddr, headers: &HeaderMap) -> IpAddr {
    let mut client = from;
    let addresses = headers.get_all(FORWARDED_FOR).iter().rev();
    let addresses = addresses.flat_map(|value| value.to_str().unwrap_or_default().rsplit(','));
    for address in addresses.map(|text| text.trim().parse()) {
        let Ok(address) = address else {
            break; // the proxy that wrote this is the last known address
        };
        client = address;
        if !in_front.has(client) {
            break;
        }
    }
    client
}

/// Whether the request reached the proxy in front over TLS; `None` if it does not report that.
pub(crate) fn is_secure(headers: &HeaderMap) -> Option<bool> {
    let proto = headers.get_all(FORWARDED_PROTO).iter().next_back()?;
    match proto.to_str().ok()?.rsplit(',').next()?.trim() {
        "https" => Some(true),
        "http" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    fn fields(name: &HeaderName, values: &[&str]) -> HeaderMap {
        let values = values.iter().map(|value| value.parse().expect("a value"));
        values.map(|value| (name.clone(), value)).collect()
    }

    #[test]
    fn client_is_the_last_untrusted_address() {
        let texts = ["10.0.0.0/8", "2001:db8::/32", "192.0.2.1"].map(str::to_owned);
        let in_front = TrustedProxies::read(&texts).expect("the value is valid");
        let balancer: IpAddr = "10.0.0.5".parse().expect("an address");
        for (values, expected) in [
            (&[][..], "10.0.0.5"),
            (&["203.0.113.7"], "203.0.113.7"),
            (&["198.51.100.1, 203.0.113.7"], "203.0.113.7"),
            (&["198.51.100.1", "203.0.113.7,10.0.0.6"], "203.0.113.7"),
            (&["203.0.113.7, 2001:db8::1, 192.0.2.1"], "203.0.113.7"),
            (&["10.0.0.7, 10.0.0.6"], "10.0.0.7"),
            (&["203.0.113.7, unknown, 10.0.0.6"], "10.0.0.6"),
            (&["203.0.113.7, "], "10.0.0.5"),
        ] {
            let headers = fields(&FORWARDED_FOR, values);
            let client = client(&in_front, balancer, &headers);
            assert_eq!(client.to_string(), expected, "{values:?}");
        }
    }

    #[test]
    fn last_forwarded_proto_wins() {
        for (values, expected) in [
            (&["https"][..], Some(true)),
            (&["http"], Some(false)),
            (&["http, https"], Some(true)),
            (&["https", "http"], Some(false)),
            (&["ws"], None),
            (&[], None),
        ] {
            let headers = fields(&FORWARDED_PROTO, values);
            assert_eq!(is_secure(&headers), expected, "{values:?}");
        }
    }
}
