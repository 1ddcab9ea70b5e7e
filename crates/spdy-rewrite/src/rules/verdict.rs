//! The verdict on a reference: rewritten, or skipped and why.

use crate::rules::refusal::Refusal;

/// Where a reference was found, which determines its possible author.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReferenceSource {
    /// A page or style sheet of the site's own origin.
    Site,
    /// A style sheet of a listed host.
    Listed,
    /// A document or style sheet of a host with an alias, which is not of the site's origin: it may reference hosts with aliases,
    /// including its own, and nothing under the site's name.
    Alias,
    /// A style sheet of a discovered host. It may reference listed hosts, and its own host (which its capability opens anyway). For
    /// other hosts no capability is created, because a chain of style sheets could otherwise open any host.
    Discovered,
}

/// The decision about a reference.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It is replaced by this, with query and fragment: a path from the site's root, or a full URL if the host has an alias.
    Rewrite(String),
    /// It stays unchanged.
    Skip(SkipReason),
}

/// Why a reference stays unchanged.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SkipReason {
    /// It belongs to the site.
    #[error("the URL belongs to the site")]
    SameSite,
    /// Its scheme is not HTTP (`data:`, `blob:`, …).
    #[error("scheme {scheme} is not proxied")]
    Scheme {
        /// Its scheme.
        scheme: String,
    },
    /// It cannot be read as a URL.
    #[error("invalid URL")]
    Unreadable,
    /// A proxied URL for it would be refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A document, frame or plug-in of a host without an alias: under the site's name it would have access to the site's cookies
    /// and storage.
    #[error("documents and frames need a host with mode = \"name\"")]
    Document,
    /// Its host has an alias that no certificate covers yet, so that browsers would reject it there.
    #[error("no certificate has the alias of the host")]
    NoCertificate,
    /// It is in a document or style sheet of a host with an alias, and its own host has none.
    #[error("a reference in content of an aliased host needs an alias itself")]
    NoAlias,
    /// The element has `data-no-spdy`.
    #[error("the element has data-no-spdy")]
    OptOut,
    /// An attribute's name begins with `=` (`<img a/=b>`), so that the rewritten tag would be parsed differently.
    #[error("the tag is malformed")]
    MalformedTag,
    /// The load sends cookies, but a proxied request has none.
    #[error("the load sends credentials")]
    Credentials,
    /// The page's policy does not allow it on its host, or would not allow its proxied URL.
    #[error("the page's Content-Security-Policy does not allow it")]
    Policy,
    /// Its bytes are pinned by a hash, but they would be rewritten.
    #[error("the resource has an integrity hash, but it could be rewritten")]
    Integrity,
    /// The script is known to read its own URL.
    #[error("the script is known to read its own URL")]
    ReadsItsUrl,
    /// A module of a shared host: its imports are relative to itself, but the capability for its URL opens no other URL.
    #[error("module of a shared host: its imports would fail")]
    SharedModule,
    /// An SVG fragment that browsers load only from the same origin.
    #[error("SVG fragment that browsers load from the same origin only")]
    Fragment,
    /// A character reference or an encoding whose meaning is not certain.
    #[error("ambiguous character encoding")]
    UnknownEncoding,
    /// The surrounding text exceeds the limit.
    #[error("the surrounding text has more than {most} bytes")]
    TooLong {
        /// The limit, bytes.
        most: usize,
    },
    /// A hint to connect to a host that the page may still need.
    #[error("the page may need the host for resources that are not proxied")]
    PreconnectNeeded,
}

impl SkipReason {
    /// The name for metrics and reports; that of the refusal if there is one.
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
