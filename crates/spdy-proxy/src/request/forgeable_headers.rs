//! Lists the request fields that only a proxy may set and that clients forge, and removes them from requests.
//!
//! An origin behind a proxy trusts such fields: it logs, limits and authorizes by the address in `True-Client-IP`, builds URLs
//! with the host in `X-Host`, and CGI programs connect through the address in `Proxy` (httpoxy, CVE-2016-5385). This proxy
//! writes its own `X-Forwarded-For`, `-Proto` and `-Host`. It removes the fields of the list as follows:
//!
//! ```text
//!                                                       from a client    from a trusted proxy (`listen.trusted`)
//! the client's address (True-Client-IP, ...)            removed          passed if it is the address in X-Forwarded-For
//! its identity (Client-Cert, Remote-User, ...)          removed          passed; as with `Authorization` for the cache
//! the host, the scheme, httpoxy                         removed          removed
//! framing in another spelling (Content_Length, ...)     removed          removed
//! another target (X-Original-URL, ...)                  removed          removed
//! another method (X-HTTP-Method-Override, ...)          removed from GET and HEAD, whose responses are stored
//! ```
//!
//! Gateways pass fields on as variables (`HTTP_X_REAL_IP`), and replace every byte that is neither a letter nor a digit by `_`.
//! `X-Real-IP`, `X_Real_IP` and `X.Real.IP` become the same variable. So names are compared with each such byte replaced by `-`. If a name
//! on the list has such a byte other than `-`, it is removed even if a trusted proxy sent it, because no proxy uses such a spelling. A
//! method override is the exception: its spelling makes no difference.
//!
//! A method override in a POST is passed on: HTML forms send PUT and DELETE in this way, the application decides whether it allows
//! them, and no response to a POST is stored.

use std::borrow::Cow;
use std::net::IpAddr;

use http::{HeaderMap, HeaderName, Method, header};

/// Marks a request that a trusted proxy sent (`listen.trusted`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct FromTrustedProxy;

/// The client's address, as CDNs, load balancers and frameworks name it.
const ADDRESS: [&str; 28] = [
    "ali-cdn-real-ip",
    "cdn-src-ip",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "cf-pseudo-ipv4",
    "client-ip",
    "do-connecting-ip",
    "fastly-client-ip",
    "fly-client-ip",
    "forwarded-for",
    "incap-client-ip",
    "proxy-client-ip",
    "true-client-ip",
    "wl-proxy-client-ip",
    "x-appengine-user-ip",
    "x-azure-clientip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-envoy-external-address",
    "x-nf-client-connection-ip",
    "x-original-forwarded-for",
    "x-originating-ip",
    "x-proxyuser-ip",
    "x-real-ip",
    "x-remote-addr",
    "x-remote-ip",
    "x-sucuri-clientip",
    "x-vercel-forwarded-for",
];
/// The client's identity, from its certificate or from a login at a proxy. Origins trust it. A proxy that terminates TLS must remove such a
/// field if a client sends it (RFC 9440 §2.4).
const IDENTITY: [&str; 28] = [
    "cf-access-authenticated-user-email",
    "remote-email",
    "remote-groups",
    "remote-name",
    "remote-user",
    "ssl-cert",
    "x-arr-clientcert",
    "x-authenticated-user",
    "x-authenticated-userid",
    "x-client-dn",
    "x-client-verify",
    "x-consumer-custom-id",
    "x-consumer-id",
    "x-consumer-username",
    "x-forwarded-access-token",
    "x-forwarded-client-cert",
    "x-forwarded-email",
    "x-forwarded-groups",
    "x-forwarded-preferred-username",
    "x-forwarded-user",
    "x-remote-email",
    "x-remote-group",
    "x-remote-groups",
    "x-remote-name",
    "x-remote-user",
    "x-ssl-cert",
    "x-webauth-user",
    "x-webauth-email",
];
/// Prefixes of other names of the client's identity.
const IDENTITY_PREFIXES: [&str; 14] = [
    "client-cert",
    "ssl-client-",
    "tailscale-user-",
    "x-amzn-mtls-clientcert",
    "x-amzn-oidc-",
    "x-auth-request-",
    "x-authentik-",
    "x-client-cert",
    "x-client-ssl",
    "x-forwarded-tls-client-cert",
    "x-goog-authenticated-user-",
    "x-ms-client-principal",
    "x-ssl-client",
    "x-tls-client",
];
/// The host and scheme that the client used. Names that begin with `x-forward` are added in [`ForgeableField::of`].
const HOST_AND_SCHEME: [&str; 11] = [
    "forwarded",
    "front-end-https",
    "x-host",
    "x-http-host-override",
    "x-original-host",
    "x-original-proto",
    "x-proto",
    "x-scheme",
    "x-ssl",
    "x-url-port",
    "x-url-scheme",
];
/// CGI programs receive it as the variable `HTTP_PROXY`.
const HTTPOXY: &str = "proxy";
/// A target that replaces the request line's. The response would be stored under the wrong URL, and rules for paths would not apply.
const TARGET: [&str; 3] = ["x-original-url", "x-original-uri", "x-rewrite-url"];
/// A method that replaces the request line's.
const METHOD: [&str; 3] = [
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
];
/// Fields that frame a message. They are removed only in another spelling, which a gateway could take for the real field.
const FRAMING: [&str; 3] = ["content-length", "transfer-encoding", "host"];

/// What a forgeable field states.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ForgeableField {
    /// The client's address.
    Address,
    /// The client's identity.
    Identity,
    /// Anything else that is never passed on, and an address or identity in another spelling.
    NeverPassed,
    /// A method override, in any spelling.
    Method,
}

impl ForgeableField {
    /// What the field `name` states, as gateways understand its name (see the module); `None` if it is not on the list.
    fn of(name: &HeaderName) -> Option<Self> {
        let is_replaced = |byte: char| !byte.is_ascii_alphanumeric() && byte != '-';
        let is_respelled = name.as_str().contains(is_replaced);
        let plain = match is_respelled {
            true => Cow::Owned(name.as_str().replace(is_replaced, "-")),
            false => Cow::Borrowed(name.as_str()),
        };
        let is_in = |list: &[&str]| list.contains(&&*plain);
        if is_in(&METHOD) {
            return Some(Self::Method);
        }
        let is_address = is_in(&ADDRESS);
        let has_prefix = |prefix: &&str| plain.starts_with(*prefix);
        let is_identity = is_in(&IDENTITY) || IDENTITY_PREFIXES.iter().any(has_prefix);
        match is_respelled {
            false if is_address => return Some(Self::Address),
            false if is_identity => return Some(Self::Identity),
            _ => {}
        }
        let is_never_passed = is_address
            || is_identity
            || plain.starts_with("x-forward")
            || plain == HTTPOXY
            || is_in(&HOST_AND_SCHEME)
            || is_in(&TARGET)
            || is_respelled && is_in(&FRAMING);
        is_never_passed.then_some(Self::NeverPassed)
    }
}

/// Whether `name` is on the list, so that the origin may not receive the value that the client sent.
pub(crate) fn is_forgeable(name: &HeaderName) -> bool {
    ForgeableField::of(name).is_some()
}

/// Whether `headers` state the client's identity. The result is about a trusted proxy's statement only after [`remove_forgeable`], which
/// removes a client's own.
pub(crate) fn has_proxy_identity(headers: &HeaderMap) -> bool {
    headers
        .keys()
        .any(|name| ForgeableField::of(name) == Some(ForgeableField::Identity))
}

/// Whether the origin may identify the user by `headers`: by a cookie, a password or token, or a proxy's statement.
pub(crate) fn has_credentials(headers: &HeaderMap) -> bool {
    headers.contains_key(header::COOKIE)
        || headers.contains_key(header::AUTHORIZATION)
        || has_proxy_identity(headers)
}

/// Removes the fields that the origin must not receive with a request of `method`. `client` is the address that
/// `X-Forwarded-For` will state; `is_from_trusted` is true if a trusted proxy sent the request.
pub(crate) fn remove_forgeable(
    headers: &mut HeaderMap,
    method: &Method,
    client: Option<IpAddr>,
    is_from_trusted: bool,
) {
    let is_stored = matches!(*method, Method::GET | Method::HEAD);
    let states_client = |name: &HeaderName| {
        let mut values = headers.get_all(name).iter();
        values.all(|value| {
            let address = value
                .to_str()
                .ok()
                .and_then(|text| text.trim().parse().ok());
            address.map(|address: IpAddr| address.to_canonical())
                == client.map(|client| client.to_canonical())
        })
    };
    let is_removed = |name: &&HeaderName| match ForgeableField::of(name) {
        None => false,
        Some(ForgeableField::Address) => {
            !(is_from_trusted && client.is_some() && states_client(name))
        }
        Some(ForgeableField::Identity) => !is_from_trusted,
        Some(ForgeableField::NeverPassed) => true,
        Some(ForgeableField::Method) => is_stored,
    };
    // Most requests have no such field, and an empty `Vec` allocates nothing.
    let removed: Vec<HeaderName> = headers.keys().filter(is_removed).cloned().collect();
    for name in removed {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the field `name: value` of a request from 192.0.2.1 is passed on.
    fn is_passed(name: &str, value: &str, method: &Method, is_from_trusted: bool) -> bool {
        let mut headers = HeaderMap::new();
        let name: HeaderName = name.parse().expect("a name");
        headers.insert(&name, value.parse().expect("a value"));
        let client = "192.0.2.1".parse().ok();
        remove_forgeable(&mut headers, method, client, is_from_trusted);
        headers.contains_key(name)
    }

    #[test]
    fn client_cannot_forge_address_host_certificate_or_target() {
        let others = HOST_AND_SCHEME.iter().chain(&TARGET).chain([&HTTPOXY]);
        let names = ADDRESS.iter().chain(&IDENTITY).chain(&IDENTITY_PREFIXES);
        let respelled = [
            "x-forwarded-server",
            "x_real_ip",
            "x.real.ip",
            "true.client.ip",
            "x!forwarded!for",
            "x-forwarded.proto",
            "x~http|host^override",
            "content_length",
            "content.length",
            "transfer'encoding",
        ];
        let added = [
            "incap-client-ip",
            "x-sucuri-clientip",
            "x-original-forwarded-for",
            "x-vercel-forwarded-for",
            "x-nf-client-connection-ip",
            "x-ssl-client-verify",
            "x-ssl-client",
            "x-ssl",
            "x-client-verify",
            "x-client-dn",
            "x-tls-client-dn",
            "ssl-cert",
            "x-client-ssl-verify",
            "ssl-client-subject-dn",
            "x-client-certificate",
            "x-arr-clientcert",
            "remote-user",
            "x.remote.user",
            "x-forwarded-user",
            "x-auth-request-email",
        ];
        for name in names.chain(others).chain(&respelled).chain(&added) {
            for method in [Method::GET, Method::POST] {
                assert!(!is_passed(name, "192.0.2.1", &method, false), "{name}");
            }
        }
    }

    #[test]
    fn trusted_proxy_may_repeat_the_x_forwarded_for_address() {
        for (name, value, expected) in [
            ("true-client-ip", "192.0.2.1", true),
            ("true-client-ip", "::ffff:192.0.2.1", true),
            ("true-client-ip", "127.0.0.1", false),
            ("true-client-ip", "192.0.2.1, 127.0.0.1", false),
            ("true-client-ip", "", false),
            ("true_client_ip", "192.0.2.1", false),
            ("client-cert", ":MIIB:", true),
            ("true.client.ip", "192.0.2.1", false),
            ("x-vercel-forwarded-for", "192.0.2.1", true),
            ("client_cert", ":MIIB:", false),
            ("client-cert-chain", ":MIIB:", true),
            ("x-forwarded-user", "alice", true),
            ("x-forwarded.user", "alice", false),
            ("x-forwarded-for", "192.0.2.1", false),
            ("remote-user", "alice", true),
            ("remote*user", "alice", false),
            ("x-ssl-client-verify", "SUCCESS", true),
            ("x-ssl-client", "1", true),
            ("x-tls-client-dn", "CN=alice", true),
            ("x-client-ssl-verify", "SUCCESS", true),
            ("x-ssl", "1", false),
            ("x-ssl-client+verify", "SUCCESS", false),
            ("x-auth-request-groups", "admin", true),
            ("proxy", "192.0.2.1", false),
            ("x-host", "192.0.2.1", false),
            ("x-original-url", "/", false),
        ] {
            assert_eq!(
                is_passed(name, value, &Method::GET, true),
                expected,
                "{name}: {value}"
            );
        }
    }

    #[test]
    fn method_override_is_removed_from_get_and_head_only() {
        for name in METHOD {
            assert!(!is_passed(name, "DELETE", &Method::GET, false), "{name}");
            assert!(!is_passed(name, "DELETE", &Method::HEAD, true), "{name}");
            assert!(is_passed(name, "DELETE", &Method::POST, false), "{name}");
        }
    }

    #[test]
    fn unrelated_headers_are_forwarded() {
        for name in [
            "cookie",
            "x-request-id",
            "content-length",
            "x-for",
            "remote-users",
            "ssl-client",
            "x.custom_field",
        ] {
            assert!(is_passed(name, "1", &Method::GET, false), "{name}");
        }
    }
}
