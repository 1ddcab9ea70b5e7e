//! Why a request for a proxied resource is refused: one variant for each rule, one name for each metric.

use http::StatusCode;
use url::Url;

use crate::kind::Kind;

/// Why a URL, a request or a response is refused.
///
/// The response does not state the reason (a plain 404, see [`Refusal::status`]). The operator gets it: [`Refusal::name`] is a label of
/// metrics, and the message is logged.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    // ---- the URL's form ----
    /// The path does not begin with the prefix of proxied URLs.
    #[error("the path does not start with the prefix of proxied URLs")]
    NotProxied,
    /// The target is longer than [`MAX_PROXIED_URL_BYTES`](crate::limits::MAX_PROXIED_URL_BYTES).
    #[error("target has {found} bytes, expected at most {most}")]
    TooLong {
        /// The limit, in bytes.
        most: usize,
        /// The length, in bytes.
        found: usize,
    },
    /// A control character, a space or DEL.
    #[error("control byte {byte:#04x} at {at}")]
    ControlByte {
        /// The byte.
        byte: u8,
        /// Its offset.
        at: usize,
    },
    /// A byte above 0x7f, which the URL standard would have encoded.
    #[error("byte {byte:#04x} at {at} is not ASCII")]
    NotAscii {
        /// The byte.
        byte: u8,
        /// Its offset.
        at: usize,
    },
    /// A backslash, which some servers interpret as a slash.
    #[error("backslash at {at}")]
    Backslash {
        /// Its offset.
        at: usize,
    },
    /// A fragment, which no request has.
    #[error("fragment at {at}")]
    Fragment {
        /// Its offset.
        at: usize,
    },
    /// An encoded NUL.
    #[error("encoded NUL byte")]
    Nul,
    /// An unknown version of the URL form.
    #[error("version of a proxied URL is \"{found}\", expected 1")]
    Version {
        /// The value found.
        found: String,
    },
    /// One of capability, scheme, host or path is missing.
    #[error("proxied URL has no {missing}")]
    Incomplete {
        /// The missing part.
        missing: &'static str,
    },
    /// A percent sign before the resource's path, where nothing is ever encoded.
    #[error("encoded byte before the path")]
    EncodedPrefix,
    /// A scheme letter that is neither `s` nor `p`.
    #[error("scheme of a proxied URL is \"{found}\", expected s or p")]
    Scheme {
        /// The value found.
        found: String,
    },
    /// A host that is not a name in canonical form.
    #[error("host is \"{found}\", expected a lower-case hostname")]
    Host {
        /// The value found.
        found: String,
    },
    /// A user or a password before the host.
    #[error("user name before the host")]
    Userinfo,
    /// An address in place of a name.
    #[error("host is the address \"{found}\", expected a hostname")]
    Address {
        /// The value found.
        found: String,
    },
    /// A port that is not a number, or that is the default port, which must be left out.
    #[error("port \"{found}\" is not in canonical form")]
    Port {
        /// The value found.
        found: String,
    },
    /// `.` or `..` as a segment, plain, encoded or with path parameters (`..;v=1`).
    #[error("dot segment in the path")]
    DotSegment,
    /// A proxied URL within a proxied URL.
    #[error("proxied URL inside a proxied URL")]
    NestedProxiedUrl,
    /// An encoded slash in a path of a host of which only a part is listed.
    #[error("encoded slash in a path of a host with listed paths")]
    EncodedSlash {
        /// The URL at the host itself, if it was requested.
        place: Option<String>,
    },
    /// A resource that speaks for the requested name (RFC 8615), which belongs to the operator.
    #[error("well-known path under an alias")]
    WellKnown,
    /// The URL standard would spell it differently, so two parsers could disagree.
    #[error("the URL is not in the canonical form of the URL standard")]
    NotSerialised,

    // ---- allowed hosts and paths ----
    /// The site itself, or a host that is merged with it.
    #[error("{host} belongs to the site")]
    SiteHost {
        /// The host.
        host: String,
    },
    /// The operator denies it.
    #[error("{host} is denied")]
    Denied {
        /// The host.
        host: String,
    },
    /// Neither listed nor discovered.
    #[error("{host} is not listed")]
    NotListed {
        /// The host.
        host: String,
    },
    /// Listed with an alias, so it is not served under the site's name.
    #[error("{host} has an alias")]
    HasAlias {
        /// The host.
        host: String,
        /// The URL at the host itself.
        place: String,
    },
    /// Listed, but not over this scheme and port.
    #[error("{host} is not listed with port {port} for this scheme")]
    PortNotListed {
        /// The host.
        host: String,
        /// The port.
        port: u16,
    },
    /// Listed, but not this path.
    #[error("this path of {host} is not listed")]
    PathNotListed {
        /// The host.
        host: String,
        /// The URL at the host itself, if it was requested.
        place: Option<String>,
    },
    /// Listed, but the operator excluded this path.
    #[error("this path of {host} is excluded by hosts.except")]
    PathExcepted {
        /// The host.
        host: String,
        /// The URL at the host itself, if it was requested.
        place: Option<String>,
    },
    /// A name that no public host has, found in a page.
    #[error("{host} is not a public hostname")]
    PrivateName {
        /// The host.
        host: String,
    },
    /// A capability, although discovery is off.
    #[error("capability for {host} while discovery is off")]
    DiscoveryOff {
        /// The host.
        host: String,
    },
    /// A malformed capability.
    #[error("malformed capability")]
    CapabilityForm,
    /// A capability of an unknown key, or of one that is no longer used.
    #[error("capability with the unknown key \"{kid}\"")]
    UnknownKey {
        /// The key's name.
        kid: char,
    },
    /// A capability for another URL, or of another key.
    #[error("the capability is not for this URL")]
    InvalidCapability {
        /// The URL at the host itself, if the host is listed and the capability is for a single URL.
        place: Option<String>,
    },
    /// A kind that is not listed for the host.
    #[error("kind {kind} is not listed for {host}")]
    KindNotListed {
        /// The kind.
        kind: Kind,
        /// The host.
        host: String,
    },

    /// A page of the site does not allow its scripts, or its style sheets; see [`CspGuard`](crate::csp::guard::CspGuard).
    #[error("a page of the site does not allow scripts or sheets of {host}")]
    CspGuarded {
        /// The host.
        host: String,
    },

    // ---- the request ----
    /// Neither GET nor HEAD, nor a method that documents of a host with an alias use.
    #[error("method is {found}, expected GET or HEAD (other methods need a host with documents)")]
    Method {
        /// The method.
        found: String,
    },
    /// An unknown requesting origin, with a method that could change something.
    #[error("{method} request has no Origin of the site or of an alias")]
    UnknownRequester {
        /// The method.
        method: String,
    },
    /// The request has a body, or announces one.
    #[error("request for a proxied resource has a body")]
    Body,
    /// The request has an Upgrade, or begins a WebSocket.
    #[error("request for a proxied resource has an Upgrade")]
    Upgrade,
    /// The client states that it would open it as a document, a frame, a worker or the like.
    #[error("proxied resource is requested as \"{found}\"")]
    Destination {
        /// Sec-Fetch-Dest or Sec-Fetch-Mode.
        found: String,
    },
    /// The client states that it requests the script of a service worker.
    #[error("proxied resource is requested as a service worker")]
    ServiceWorker,
    /// A page of another site requests it.
    #[error("the request is from a page of another site")]
    CrossSite,
    /// The request has already passed this proxy (RFC 8586).
    #[error("request loop: the request passed this proxy before")]
    Loop,

    // ---- the response ----
    /// A content type that no proxied resource may have, or that was not requested.
    #[error("response has the type \"{found}\"")]
    Type {
        /// Its type.
        found: String,
    },
    /// Several fields where only one is allowed, or an invalid value.
    #[error("invalid {field}")]
    Field {
        /// Its name.
        field: &'static str,
    },
    /// A style sheet with `no-transform`, or an unsupported content coding.
    #[error("the style sheet must be rewritten, but its host or page does not allow it")]
    UnrewritableStylesheet,
    /// Its declared length exceeds the limit of its host (`limits.max_mib`).
    #[error("response has {found} bytes, expected at most {most}")]
    TooLarge {
        /// The limit, in bytes.
        most: u64,
        /// The stated length, in bytes.
        found: u64,
    },
    /// The host forbids its use by other sites (Cross-Origin-Resource-Policy).
    #[error("Cross-Origin-Resource-Policy of the host forbids it")]
    ResourcePolicy,
    /// The host did not allow the site to read it (CORS).
    #[error("the host does not allow the site by CORS")]
    Cors,
    /// The host requires credentials.
    #[error("the host requires credentials")]
    Credentials,
    /// More redirects than [`MAX_REDIRECTS`](crate::limits::MAX_REDIRECTS).
    #[error("more than {most} redirects")]
    Redirects {
        /// The limit.
        most: u32,
    },
    /// A redirect without a usable target.
    #[error("redirect without a valid Location")]
    Location,
}

impl Refusal {
    /// The same refusal, with the requested `url`.
    pub(crate) fn at(self, url: &Url) -> Self {
        let place = Some(url.to_string());
        match self {
            Self::PathNotListed { host, .. } => Self::PathNotListed { host, place },
            Self::PathExcepted { host, .. } => Self::PathExcepted { host, place },
            Self::EncodedSlash { .. } => Self::EncodedSlash { place },
            Self::InvalidCapability { .. } => Self::InvalidCapability { place },
            refusal => refusal,
        }
    }

    /// The URL at the host itself, to which a page that loads it may be redirected: its host is listed, but the URL is not proxied.
    ///
    /// A script gets no redirect if no script of the host is ever proxied. After a redirect a browser checks its policy only by the
    /// host, so an injected script could get past a policy with paths.
    pub fn place(&self, is_script: bool) -> Option<&str> {
        match self {
            Self::HasAlias { place, .. } => Some(place),
            Self::PathExcepted { place, .. } | Self::EncodedSlash { place } => place.as_deref(),
            Self::PathNotListed { place, .. } | Self::InvalidCapability { place } if !is_script => {
                place.as_deref()
            }
            _ => None,
        }
    }

    /// The name for metrics, one for each variant.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NotProxied => "not-proxied",
            Self::TooLong { .. } => "too-long",
            Self::ControlByte { .. } => "control-byte",
            Self::NotAscii { .. } => "not-ascii",
            Self::Backslash { .. } => "backslash",
            Self::Fragment { .. } => "fragment",
            Self::Nul => "nul",
            Self::Version { .. } => "version",
            Self::Incomplete { .. } => "incomplete",
            Self::EncodedPrefix => "encoded-prefix",
            Self::Scheme { .. } => "scheme",
            Self::Host { .. } => "host",
            Self::Userinfo => "userinfo",
            Self::Address { .. } => "address",
            Self::Port { .. } => "port",
            Self::DotSegment => "dot-segment",
            Self::NestedProxiedUrl => "nested",
            Self::EncodedSlash { .. } => "encoded-slash",
            Self::WellKnown => "well-known",
            Self::NotSerialised => "not-serialised",
            Self::SiteHost { .. } => "site-host",
            Self::Denied { .. } => "denied",
            Self::NotListed { .. } => "not-listed",
            Self::HasAlias { .. } => "has-alias",
            Self::PortNotListed { .. } => "port-not-listed",
            Self::PathNotListed { .. } => "path-not-listed",
            Self::PathExcepted { .. } => "path-excepted",
            Self::PrivateName { .. } => "private-name",
            Self::DiscoveryOff { .. } => "discovery-off",
            Self::CapabilityForm => "capability-form",
            Self::UnknownKey { .. } => "unknown-key",
            Self::InvalidCapability { .. } => "invalid-capability",
            Self::KindNotListed { .. } => "kind-not-listed",
            Self::CspGuarded { .. } => "csp-guarded",
            Self::Method { .. } => "method",
            Self::UnknownRequester { .. } => "unknown-requester",
            Self::Body => "body",
            Self::Upgrade => "upgrade",
            Self::Destination { .. } => "destination",
            Self::ServiceWorker => "service-worker",
            Self::CrossSite => "cross-site",
            Self::Loop => "loop",
            Self::Type { .. } => "type",
            Self::Field { .. } => "field",
            Self::UnrewritableStylesheet => "unrewritable-stylesheet",
            Self::TooLarge { .. } => "too-large",
            Self::ResourcePolicy => "resource-policy",
            Self::Cors => "cors",
            Self::Credentials => "credentials",
            Self::Redirects { .. } => "redirects",
            Self::Location => "location",
        }
    }

    /// The status of the response, which has no body and `Cache-Control: no-store`.
    ///
    /// It is the same for nearly all, so that a client cannot find out what is listed.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Method { .. } => StatusCode::METHOD_NOT_ALLOWED,
            _ => StatusCode::NOT_FOUND,
        }
    }
}
