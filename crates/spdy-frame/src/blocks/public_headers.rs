//! The headers whose values are compressed like any other text. All other values are private.
//!
//! The length of compressed output reveals whether two texts are alike, so an attacker that chooses one text can guess the
//! other (CRIME, CVE-2012-4929). An unknown header may contain a token, so this list names the safe headers, not the
//! secret ones. A name is on it only if its value
//!
//! - is not secret: no token, no identifier or data of a user, no part of a URL except the host; and
//! - is written only by the program or the operator: it contains no text copied from a request or a user. The
//!   exceptions are `accept`, `accept-language`, `content-type` and `:method`, which a script may choose. Such a text
//!   can only reveal the other values of this list, which are not secret.
//!
//! The request headers are Chromium's list of 2012, and headers that browsers have added since. Names that look harmless
//! but are not: `etag` and `if-none-match` (identify a document, and through it users), `if-modified-since` (the same,
//! in a message with text that a script chooses), `content-length` (the size of a private document), `location`, `link`
//! and `referer` (URLs), `access-control-allow-origin` (copies the request's `origin`), `content-security-policy` and
//! `www-authenticate` (nonces), `content-disposition` (names of files), `x-request-id` and similar headers.

use crate::version::Version;

/// Whether the values of `name` are public, so that they may be matched in part. Names are in lower case; any other
/// spelling is private.
#[must_use]
pub fn is_public(version: Version, name: &[u8]) -> bool {
    if let Some(first_line) = first_line(version, name) {
        return match first_line {
            // An eavesdropper knows the host from the address, the name service or TLS.
            b"host" => true,
            // A few fixed words each.
            b"method" | b"scheme" | b"status" | b"version" => true,
            // `path` (`url` in SPDY/2) contains tokens and search terms.
            _ => false,
        };
    }
    match name {
        // What the client program accepts, and its name: the same in every request.
        b"accept" | b"accept-charset" | b"accept-encoding" | b"accept-language" | b"user-agent" => {
            true
        }
        b"sec-ch-ua" | b"sec-ch-ua-mobile" | b"sec-ch-ua-platform" => true,
        // Fixed words that the browser sets: what a request is for, and how urgent it is.
        b"sec-fetch-dest" | b"sec-fetch-mode" | b"sec-fetch-site" | b"sec-fetch-user" => true,
        b"dnt" | b"priority" | b"upgrade-insecure-requests" => true,
        // Directives for caches: words and ages.
        b"age" | b"cache-control" | b"pragma" | b"vary" => true,
        // Dates that the server sends to all caches on the path. Nothing next to them is chosen by a client.
        b"date" | b"expires" | b"last-modified" => true,
        // How to read a body, not its content.
        b"accept-ranges" | b"content-encoding" | b"content-type" => true,
        // Programs and machines that handled the response.
        b"server" | b"via" | b"x-cache" | b"x-cache-lookup" | b"x-powered-by" => true,
        // An operator's policies: the same in all responses of a site.
        b"p3p" | b"referrer-policy" | b"strict-transport-security" => true,
        b"x-content-type-options" | b"x-frame-options" | b"x-xss-protection" => true,
        // The part of CORS that names no origin and no header.
        b"access-control-allow-credentials"
        | b"access-control-allow-methods"
        | b"access-control-max-age" => true,
        _ => false,
    }
}

/// The name without its colon, if it belongs to the first line of a request or response (SPDY/3.1 §3.2.1). In SPDY/2
/// these names have no colon and are reserved.
fn first_line(version: Version, name: &[u8]) -> Option<&[u8]> {
    match version {
        Version::V2 => {
            let is_first = matches!(
                name,
                b"host" | b"method" | b"scheme" | b"status" | b"url" | b"version"
            );
            is_first.then_some(name)
        }
        Version::V3 | Version::V31 => name.strip_prefix(b":"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_first_line_have_a_colon_but_in_spdy_2() {
        for name in ["host", "method", "scheme", "status", "version"] {
            let with_colon = format!(":{name}");
            for version in [Version::V3, Version::V31] {
                assert!(is_public(version, with_colon.as_bytes()), "{name}");
                // An application's own header.
                assert!(!is_public(version, name.as_bytes()), "{name}");
            }
            assert!(is_public(Version::V2, name.as_bytes()), "{name}");
            assert!(!is_public(Version::V2, with_colon.as_bytes()), "{name}");
        }
    }

    #[test]
    fn headers_with_secrets_or_copied_text_are_private() {
        for name in [
            ":path",
            "url",
            ":host:",
            "",
            "cookie",
            "set-cookie",
            "authorization",
            "referer",
            "location",
            "etag",
            "if-none-match",
            "if-modified-since",
            "content-length",
            "origin",
            "link",
            "x-csrf-token",
            "x-api-key",
            "access-control-allow-origin",
            "User-Agent",
        ] {
            for version in Version::ALL {
                assert!(!is_public(version, name.as_bytes()), "{name}");
            }
        }
    }
}
