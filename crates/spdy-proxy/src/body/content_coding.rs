//! Content codings (RFC 9110 §8.4): which coding a body has, and which ones a client accepts.
//!
//! `body/decoder.rs` removes a coding and `body/encoder.rs` applies one.

use http::{HeaderMap, header};

/// A content coding that the proxy supports.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Coding {
    /// No coding.
    Identity,
    /// `gzip`, and `x-gzip`.
    Gzip,
    /// `zstd` (RFC 8878).
    Zstd,
    /// `br`.
    Brotli,
}

impl Coding {
    /// The name in `Content-Encoding`; `identity` is never sent.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Brotli => "br",
        }
    }

    /// The coding of a body with these headers; `None` if it is not supported, or there are several.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut fields = headers.get_all(header::CONTENT_ENCODING).into_iter();
        let Some(field) = fields.next() else {
            return Some(Self::Identity);
        };
        if fields.next().is_some() {
            return None;
        }
        match field.to_str().ok()?.trim().to_ascii_lowercase().as_str() {
            "" | "identity" => Some(Self::Identity),
            "gzip" | "x-gzip" => Some(Self::Gzip),
            "zstd" => Some(Self::Zstd),
            "br" => Some(Self::Brotli),
            _ => None,
        }
    }
}

/// The codings that a client accepts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct AcceptedCodings {
    gzip: bool,
    zstd: bool,
    brotli: bool,
}

impl AcceptedCodings {
    /// Those that a request with these headers accepts.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        // The weights of each coding, and of `*`.
        let (mut gzip, mut zstd, mut brotli, mut every) = (None, None, None, None);
        for field in headers.get_all(header::ACCEPT_ENCODING) {
            for item in field.to_str().unwrap_or_default().split(',') {
                let mut parts = item.split(';').map(str::trim);
                let name = parts.next().unwrap_or_default();
                let is = |other: &str| name.eq_ignore_ascii_case(other);
                let is_accepted = parts.all(|part| weight(part) != Some(0.0));
                if is("gzip") || is("x-gzip") {
                    gzip = gzip.or(Some(is_accepted));
                } else if is("zstd") {
                    zstd = zstd.or(Some(is_accepted));
                } else if is("br") {
                    brotli = brotli.or(Some(is_accepted));
                } else if name == "*" {
                    every = Some(is_accepted);
                }
            }
        }
        let accepts = |weight: Option<bool>| weight.or(every).unwrap_or(false);
        Self {
            gzip: accepts(gzip),
            zstd: accepts(zstd),
            brotli: accepts(brotli),
        }
    }

    /// `Accept-Encoding` for an origin: all accepted codings, the shortest first. A body that is not rewritten goes on unchanged, so no
    /// other coding may be named. Each set has one value, so that responses which vary on it have few variants.
    #[must_use]
    pub fn header_value(self) -> &'static str {
        match (self.brotli, self.zstd, self.gzip) {
            (true, true, true) => "br, zstd;q=0.9, gzip;q=0.8",
            (true, true, false) => "br, zstd;q=0.9",
            (true, false, true) => "br, gzip;q=0.8",
            (true, false, false) => "br",
            (false, true, true) => "zstd, gzip;q=0.8",
            (false, true, false) => "zstd",
            (false, false, true) => "gzip",
            (false, false, false) => "identity",
        }
    }

    /// The coding that makes a body shortest: for stored bodies, which are encoded once.
    #[must_use]
    pub fn shortest(self) -> Coding {
        self.first([
            (self.brotli, Coding::Brotli),
            (self.zstd, Coding::Zstd),
            (self.gzip, Coding::Gzip),
        ])
    }

    /// The coding that costs the least time: for bodies that are encoded for one client while they arrive.
    #[must_use]
    pub fn fastest(self) -> Coding {
        self.first([
            (self.zstd, Coding::Zstd),
            (self.brotli, Coding::Brotli),
            (self.gzip, Coding::Gzip),
        ])
    }

    fn first(self, all: [(bool, Coding); 3]) -> Coding {
        let mut accepted = all.into_iter().filter(|(is_accepted, _)| *is_accepted);
        accepted
            .next()
            .map_or(Coding::Identity, |(_, coding)| coding)
    }
}

/// The value of the parameter `q`, or 0 if it is invalid; `None` for other parameters.
pub(crate) fn weight(parameter: &str) -> Option<f32> {
    let (name, value) = parameter.split_once('=')?;
    let is_weight = name.trim().eq_ignore_ascii_case("q");
    is_weight.then(|| value.trim().parse().unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn best_codings(text: &str) -> [Coding; 2] {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_str(text).expect("a value");
        headers.insert(header::ACCEPT_ENCODING, value);
        let accepted = AcceptedCodings::of(&headers);
        [accepted.shortest(), accepted.fastest()]
    }

    #[test]
    fn best_accepted_coding_is_chosen_for_storage_and_streaming() {
        use Coding::{Brotli, Gzip, Identity, Zstd};
        for (text, expected) in [
            ("gzip, deflate, br, zstd", [Brotli, Zstd]),
            ("gzip, deflate, br", [Brotli, Brotli]),
            ("gzip, ZSTD", [Zstd, Zstd]),
            ("gzip, deflate", [Gzip, Gzip]),
            ("br;q=0, gzip;q=0.5", [Gzip, Gzip]),
            ("*", [Brotli, Zstd]),
            ("*, br;q=0.0", [Zstd, Zstd]),
            ("*, zstd;q=0.0", [Brotli, Brotli]),
            ("x-gzip", [Gzip, Gzip]),
            ("gzip;q=none", [Identity, Identity]),
            ("identity", [Identity, Identity]),
            ("", [Identity, Identity]),
        ] {
            assert_eq!(best_codings(text), expected, "{text:?}");
        }
        assert_eq!(
            AcceptedCodings::of(&HeaderMap::new()),
            AcceptedCodings::default()
        );
    }

    #[test]
    fn origin_accept_encoding_lists_supported_client_codings_only() {
        for (accepted, expected) in [
            ("gzip, deflate, br, zstd", "br, zstd;q=0.9, gzip;q=0.8"),
            ("gzip, deflate, br", "br, gzip;q=0.8"),
            ("zstd, br", "br, zstd;q=0.9"),
            ("gzip, zstd", "zstd, gzip;q=0.8"),
            ("gzip;q=0.1, zstd;q=0", "gzip"),
            ("zstd", "zstd"),
            ("br", "br"),
            ("*, br;q=0, gzip;q=0", "zstd"),
            ("", "identity"),
        ] {
            let of = |text: &str| {
                let text = text.parse().expect("a value");
                AcceptedCodings::of(&HeaderMap::from_iter([(header::ACCEPT_ENCODING, text)]))
            };
            assert_eq!(of(accepted).header_value(), expected, "{accepted:?}");
            // A prefetch sends the value that was parsed.
            assert_eq!(of(expected), of(accepted), "{accepted:?}");
        }
    }
}
