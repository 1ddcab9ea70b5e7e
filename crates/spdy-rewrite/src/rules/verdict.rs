//! The verdict on a reference: rewritten, or skipped and why.

use crate::rules::refusal::Refusal;

/// Where a reference was found, and so who could have written it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReferenceSource {
    /// A page or sheet of the site's own origin.
    Site,
    /// A sheet of a listed host.
    Listed,
    /// A document or sheet of a named host, which is not of the site's origin: it may name what has a name, its own host above
    /// all, and nothing under the site's.
    Alias,
    /// A sheet of a host that was discovered. It may name what is listed, and more of its own host (which its
    /// capability opens anyway); for others no capability is made, or a chain of sheets could open any host.
    Discovered,
}

/// What becomes of a reference.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It is replaced by this, with query and fragment: a path from the site's root, or a URL in full where the host has a
    /// name of its own.
    Rewrite(String),
    /// It stays.
    Skip(SkipReason),
}

/// Why a reference stays as it is.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SkipReason {
    /// It is the site's own.
    #[error("the URL belongs to the site")]
    SameSite,
    /// It is not of HTTP (`data:`, `blob:`, …).
    #[error("scheme {scheme} is not proxied")]
    Scheme {
        /// Its scheme.
        scheme: String,
    },
    /// It cannot be read as a URL.
    #[error("invalid URL")]
    Unreadable,
    /// Moved, it would be refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A document, frame or plug-in of a host without a name of its own: under the site's it would have the site's cookies
    /// and storage.
    #[error("documents and frames need a host with mode = \"name\"")]
    Document,
    /// Its host has a name of its own that no certificate has yet, so that browsers would refuse it there.
    #[error("no certificate has the alias of the host")]
    NoCertificate,
    /// A named host's document or sheet names it, and it has no name itself.
    #[error("a reference in content of an aliased host needs an alias itself")]
    NoAlias,
    /// The element has `data-no-spdy`.
    #[error("the element has data-no-spdy")]
    OptOut,
    /// An attribute's name begins with `=` (`<img a/=b>`), so that the rewritten tag would be parsed differently.
    #[error("the tag is malformed")]
    MalformedTag,
    /// The load sends cookies, and a moved request has none.
    #[error("the load sends credentials")]
    Credentials,
    /// The page's policy forbids it where it is, or would where it would be.
    #[error("the page's Content-Security-Policy does not allow it")]
    Policy,
    /// Its bytes are pinned by a hash, and they would be rewritten.
    #[error("the resource has an integrity hash, but it could be rewritten")]
    Integrity,
    /// The script is known to read its own URL.
    #[error("the script is known to read its own URL")]
    ReadsItsUrl,
    /// A module of a host that many share: what it imports it names relative to itself, and what opens its own URL opens no other.
    #[error("module of a shared host: its imports would fail")]
    SharedModule,
    /// An SVG fragment that browsers take from their own origin alone.
    #[error("SVG fragment that browsers load from the same origin only")]
    Fragment,
    /// A character reference or an encoding that is not ours to guess at.
    #[error("ambiguous character encoding")]
    UnknownEncoding,
    /// What it stands in is longer than is looked at.
    #[error("the surrounding text has more than {most} bytes")]
    TooLong {
        /// Bytes that are looked at.
        most: usize,
    },
    /// A hint to connect to a host that the page may still need.
    #[error("the page may need the host for resources that are not proxied")]
    PreconnectNeeded,
}

impl SkipReason {
    /// The name for metrics and reports; that of the refusal where there is one.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SameSite => "same-site",
            Self::Scheme { .. } => "other-scheme",
            Self::Unreadable => "invalid-url",
            Self::Refused(refusal) => refusal.name(),
            Self::Document => "document",
            Self::NoCertificate => "no-certificate",
            Self::NoAlias => "no-alias",
            Self::OptOut => "opt-out",
            Self::MalformedTag => "malformed-tag",
            Self::Credentials => "credentials",
            Self::Policy => "policy",
            Self::Integrity => "integrity",
            Self::ReadsItsUrl => "reads-its-url",
            Self::SharedModule => "shared-module",
            Self::Fragment => "svg-fragment",
            Self::UnknownEncoding => "unknown-encoding",
            Self::TooLong { .. } => "text-too-long",
            Self::PreconnectNeeded => "preconnect-needed",
        }
    }
}
