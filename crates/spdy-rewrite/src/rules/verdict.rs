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
    #[error("it is the site's own")]
    SameSite,
    /// It is not of HTTP (`data:`, `blob:`, …).
    #[error("scheme {scheme} is not moved")]
    Scheme {
        /// Its scheme.
        scheme: String,
    },
    /// It cannot be read as a URL.
    #[error("it is no URL")]
    Unreadable,
    /// Moved, it would be refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A document, frame or plug-in of a host without a name of its own: under the site's it would have the site's cookies
    /// and storage.
    #[error("documents and frames are never moved but to a name of their own")]
    Document,
    /// Its host has a name of its own that no certificate has yet, so that browsers would refuse it there.
    #[error("no certificate has the name of its host")]
    NoCertificate,
    /// A named host's document or sheet names it, and it has no name itself.
    #[error("what a named host names is moved only where it has a name, too")]
    NoAlias,
    /// The element has `data-no-spdy`.
    #[error("the element says data-no-spdy")]
    OptOut,
    /// An attribute's name begins with `=` (`<img a/=b>`), so that the rewritten tag would be parsed differently.
    #[error("the tag is malformed")]
    MalformedTag,
    /// The load sends cookies, and a moved request has none.
    #[error("the load wants credentials")]
    Credentials,
    /// The page's policy forbids it where it is, or would where it would be.
    #[error("the page's Content-Security-Policy does not allow it")]
    Policy,
    /// Its bytes are pinned by a hash, and they would be rewritten.
    #[error("its bytes are pinned, and they may be rewritten")]
    Integrity,
    /// The script is known to read its own URL.
    #[error("the script is known to read its own URL")]
    ReadsItsUrl,
    /// A module of a host that many share: what it imports it names relative to itself, and what opens its own URL opens no other.
    #[error("a module of a shared host, whose imports would not open")]
    SharedModule,
    /// An SVG fragment that browsers take from their own origin alone.
    #[error("a fragment of an SVG that browsers take from one origin alone")]
    Fragment,
    /// A character reference or an encoding that is not ours to guess at.
    #[error("its characters cannot be read for certain")]
    UnknownEncoding,
    /// What it stands in is longer than is looked at.
    #[error("it stands in a text longer than {most} bytes")]
    TooLong {
        /// Bytes that are looked at.
        most: usize,
    },
    /// A hint to connect to a host that the page may still need.
    #[error("the page may need the host for more than what is moved")]
    PreconnectNeeded,
}

impl SkipReason {
    /// The name for metrics and reports; that of the refusal where there is one.
    pub fn name(&self) -> &'static str {
        match self {
            Self::SameSite => "own",
            Self::Scheme { .. } => "other-scheme",
            Self::Unreadable => "unreadable",
            Self::Refused(refusal) => refusal.name(),
            Self::Document => "document",
            Self::NoCertificate => "no-certificate",
            Self::NoAlias => "not-named",
            Self::OptOut => "opt-out",
            Self::MalformedTag => "malformed-tag",
            Self::Credentials => "credentials",
            Self::Policy => "policy",
            Self::Integrity => "integrity",
            Self::ReadsItsUrl => "reads-its-url",
            Self::SharedModule => "shared-module",
            Self::Fragment => "svg-fragment",
            Self::UnknownEncoding => "characters",
            Self::TooLong { .. } => "too-long-text",
            Self::PreconnectNeeded => "still-needed",
        }
    }
}
