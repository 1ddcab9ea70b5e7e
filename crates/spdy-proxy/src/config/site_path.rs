//! The part of the configuration that is about some paths of a site: who may request them, and how they are cached.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

use http::HeaderValue;
use http::header::{self, HeaderName};
use http::uri::PathAndQuery;
use ipnet::IpNet;
use serde::Deserialize;
use spdy_rewrite::rules::path_normalization::canonical;
use url::Url;

use crate::config::error::InvalidValue;
use crate::config::servers::{is_origin_url, redact_origin};

/// Fields that state how a message is framed or routed. Only the proxy sets them.
const FRAMING_FIELDS: [HeaderName; 9] = [
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::HOST,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::VARY,
];

/// Rules for some paths of a site's own origin. `allow`, `deny`, `requests_per_second` and `basic_auth` apply for each entry whose path matches;
/// of the other keys, those of the entry with the longest path apply.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SitePathConfig {
    /// A folder (ending in `/`) or one path. `origin` and `origin_path` apply only to paths in this spelling. The other keys also apply
    /// to encoded spellings of it.
    pub path: String,
    /// URL of another origin for these paths: scheme, host and optional port. Default the site's.
    pub origin: Option<Url>,
    /// The path that takes the place of `path` in requests to the origin, such as `/` for an application that is written to
    /// run at `/`. Redirects of the origin to it lead back to `path`. Default `path` itself.
    pub origin_path: Option<String>,
    /// A folder of files that takes the place of the origin for these paths, which end in `/`. Files are neither stored in the cache nor
    /// listed. Symbolic links that lead out of it, and names that begin with a dot, get 404. Default none.
    pub folder: Option<PathBuf>,
    /// Whether the origin speaks gRPC: POST requests with the type `application/grpc` go to it over HTTP/2 only, also without TLS, and
    /// both bodies are streams. They are not stored, and may be silent for `upstream.grpc_idle_timeout_s`. Default
    /// `false`.
    #[serde(default)]
    pub grpc: bool,
    /// Addresses and ranges (`10.0.0.0/8`) of the clients that may request these paths; all others get 403. Default all.
    pub allow: Option<Vec<String>>,
    /// Addresses and ranges of clients that get 403.
    #[serde(default)]
    pub deny: Vec<String>,
    /// Requests of one client, saved up for five seconds; more get 429. Range: at least 1. Default no limit.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub requests_per_second: Option<u32>,
    /// A file of users and hashes of their passwords, as Apache's `htpasswd -B` writes (bcrypt; `$5$`, `$6$` and `{SHA}` too). Clients
    /// need a password by HTTP's Basic scheme, or get 401. Default none.
    pub basic_auth: Option<PathBuf>,
    /// The name that browsers show when they ask for the password. Default the site's first name.
    pub basic_auth_realm: Option<String>,
    /// Whether the origin gets the `Authorization` header of requests that `basic_auth` has checked. Default `false`.
    #[serde(default)]
    pub forward_authorization: bool,
    /// Headers of requests to the origin: their names and values. An empty value removes the header.
    #[serde(default)]
    pub request_headers: BTreeMap<String, String>,
    /// Headers of responses, set as if the origin had sent them. An empty value removes the header.
    #[serde(default)]
    pub response_headers: BTreeMap<String, String>,
    /// Whether responses may be stored and shared. Default `true`.
    #[serde(default = "yes")]
    pub store: bool,
    /// How long stored responses are fresh, instead of what the origin states to caches. It does not apply to responses with
    /// `private`, `no-store` or `Set-Cookie`, to errors, and to requests with cookies or `Authorization`. Clients still get the origin's `Cache-Control`. Range: at least 1.
    /// Default as the origin states.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub ttl_s: Option<u32>,
    /// Query parameters that do not change the response, such as `utm_*` and `fbclid`: URLs that differ only in them share a
    /// stored response. The origin still receives them.
    #[serde(default)]
    pub ignore_query: Vec<String>,
}

fn yes() -> bool {
    true
}

impl SitePathConfig {
    /// A fault: the key, what is valid, and the value. `used` has the paths of entries before.
    pub(crate) fn fault<'a>(&'a self, used: &mut BTreeSet<&'a str>) -> Option<InvalidValue> {
        let path = &self.path;
        if !path.starts_with('/')
            || path.contains(['?', '#', '*'])
            || path.parse::<PathAndQuery>().is_err()
            || canonical(path) != *path
        {
            let expected = "a path that begins with /, without a query, an encoding or a pattern";
            return Some(("site.paths.path", expected, format!("{path:?}")));
        }
        if !used.insert(path) {
            let expected = "each path once in a site";
            return Some(("site.paths.path", expected, format!("{path:?}")));
        }
        if let Some(origin) = self.origin.as_ref().filter(|it| !is_origin_url(it)) {
            let expected = "an http or https URL of a host, without a path or a user";
            let found = format!("{:?}", redact_origin(origin).as_str());
            return Some(("site.paths.origin", expected, found));
        }
        if let Some(to) = &self.origin_path {
            let is_alike = to.ends_with('/') == path.ends_with('/');
            if !to.starts_with('/')
                || !is_alike
                || to.parse::<PathAndQuery>().is_err()
                || canonical(to) != *to
            {
                let expected = "a path that begins with /, and ends with / if `path` does";
                return Some(("site.paths.origin_path", expected, format!("{to:?}")));
            }
        }
        if let Some(folder) = &self.folder {
            let has_origin = self.origin.is_some() || self.origin_path.is_some() || self.grpc;
            if has_origin || !path.ends_with('/') {
                let expected =
                    "a `path` that ends with /, and no origin, origin_path or grpc beside it";
                return Some(("site.paths.folder", expected, format!("{folder:?}")));
            }
        }
        for (key, texts) in [
            (
                "site.paths.allow",
                self.allow.as_deref().unwrap_or_default(),
            ),
            ("site.paths.deny", &self.deny),
        ] {
            if let Err(wrong) = networks(texts) {
                let expected =
                    "addresses and ranges, such as 10.0.0.0/8, and no mapped IPv4 addresses";
                return Some((key, expected, format!("{wrong:?}")));
            }
        }
        if self.requests_per_second == Some(0) {
            let expected = "at least 1";
            return Some(("site.paths.requests_per_second", expected, "0".to_owned()));
        }
        if let Some(realm) = &self.basic_auth_realm {
            let is_text = |c: char| (' '..='~').contains(&c) && c != '"' && c != '\\';
            if self.basic_auth.is_none() || realm.is_empty() || !realm.chars().all(is_text) {
                let expected = "ASCII text without \" and \\, beside basic_auth";
                return Some((
                    "site.paths.basic_auth_realm",
                    expected,
                    format!("{realm:?}"),
                ));
            }
        }
        if self.forward_authorization && self.basic_auth.is_none() {
            let key = "site.paths.forward_authorization";
            return Some((key, "basic_auth to be set", "true".to_owned()));
        }
        if self.ttl_s == Some(0) {
            let expected = "at least 1; `store = false` stores nothing";
            return Some(("site.paths.ttl_s", expected, "0".to_owned()));
        }
        for (key, fields) in [
            ("site.paths.request_headers", &self.request_headers),
            ("site.paths.response_headers", &self.response_headers),
        ] {
            if let Err(wrong) = header_edits(fields) {
                let expected =
                    "a header that does not frame or route a message, with a valid value";
                return Some((key, expected, format!("{wrong:?}")));
            }
        }
        let is_pattern = |text: &&String| {
            let name = text.strip_suffix('*').unwrap_or(text);
            text.is_empty() || name.contains(['*', '&', '=', '?'])
        };
        let wrong = self.ignore_query.iter().find(is_pattern)?;
        let expected = "names of query parameters, with * only at the end";
        Some(("site.paths.ignore_query", expected, format!("{wrong:?}")))
    }
}

/// The ranges in `texts`.
///
/// # Errors
///
/// The first text that is neither a range nor an address.
pub(crate) fn networks(texts: &[String]) -> Result<Vec<IpNet>, &String> {
    let network = |text: &String| {
        let address = || text.parse::<IpAddr>().map(IpNet::from);
        let network = text.parse().or_else(|_| address()).ok()?;
        // Addresses of clients are compared as IPv4.
        let is_mapped =
            matches!(network, IpNet::V6(range) if range.addr().to_ipv4_mapped().is_some());
        (!is_mapped).then_some(network)
    };
    let networks = texts.iter().map(|text| network(text).ok_or(text));
    networks.collect()
}

/// The changes of `fields`; `None` removes a header.
///
/// # Errors
///
/// The first name of which name or value is not valid.
pub(crate) fn header_edits(
    fields: &BTreeMap<String, String>,
) -> Result<Vec<(HeaderName, Option<HeaderValue>)>, &String> {
    let edit = |name: &String, value: &String| {
        let name = HeaderName::try_from(name.as_str()).ok()?;
        let value = match value.is_empty() {
            true => None,
            false => Some(HeaderValue::try_from(value.as_str()).ok()?),
        };
        (!FRAMING_FIELDS.contains(&name)).then_some((name, value))
    };
    let edits = fields.iter();
    edits
        .map(|(name, value)| edit(name, value).ok_or(name))
        .collect()
}
