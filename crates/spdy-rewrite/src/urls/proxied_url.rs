//! The URL of a moved resource: made for a page, opened for a request.
//!
//! ```text
//!  /.spdy/1/<cap>/<s|p>/<host>[~<port>]/<path>[?<query>]
//!    1      version of the form
//!    cap    -                    the host is listed
//!           k<kid><24 chars>     a capability for the origin        rules/capability.rs
//!           u<kid><24 chars>     a capability for this very URL
//!    s, p   https, http
//!    path   as the URL standard writes it; never decoded, never mended
//! ```
//!
//! What is opened, what is looked up and what is sent to the origin are the same bytes. So a target is refused
//! whenever two readers could understand it differently, and at last if the URL standard would write it otherwise:
//! browsers write URLs so, and so do we.
//!
//! Laboratories may have another form, with less information (`rules/url_form.rs`).

use url::Url;

use crate::kind::{Kind, Kinds};
use crate::limits::MAX_PROXIED_URL_BYTES;
use crate::request::anonymize::Load;
use crate::response::redirect;
use crate::rules::capability::Subject;
use crate::rules::config::Scheme;
use crate::rules::host_name;
use crate::rules::path_normalization::{has_dot_segment, may_pass};
use crate::rules::refusal::Refusal;
use crate::rules::url_form::{LISTED, UrlForm};
use crate::rules::verdict::ReferenceSource;
use crate::rules::{RuleMatch, Rules};

pub(crate) const VERSION: &str = "1";
/// What a moved URL has more than the URL and the prefix, bytes: a capability and what parts it.
const HEAD_BYTES: usize = 32;

/// On what ground a moved URL was opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Grant {
    /// Its host is listed.
    Listed,
    /// It bears a capability for its origin.
    Origin,
    /// It bears a capability for itself.
    Url,
    /// Its host has a name of its own, and was requested by that.
    Alias,
}

/// A moved URL that was opened: what is to be fetched, and as what it may be served.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProxiedUrl {
    pub(crate) grant: Grant,
    pub(crate) scheme: Scheme,
    pub(crate) kinds: Kinds,
    pub(crate) is_listed: bool,
    pub(crate) url: Url,
    /// What stands before the path in the moved URL.
    pub(crate) head: String,
}

impl ProxiedUrl {
    /// On what ground it was opened.
    pub fn grant(&self) -> Grant {
        self.grant
    }

    /// Whether its host is listed, on whatever ground it was opened.
    pub fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// Whether it is under a name of its host's own, and not under the site's.
    pub fn is_alias(&self) -> bool {
        self.grant == Grant::Alias
    }

    /// The scheme of requests to it.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host's name, in lower case.
    pub fn host(&self) -> &str {
        self.url.host_str().expect("a moved URL has a host")
    }

    /// The port, also where it is the scheme's own.
    pub fn port(&self) -> u16 {
        self.url.port().unwrap_or(self.scheme.default_port())
    }

    /// The value of the Host field: the name, and the port if it is not the scheme's own.
    pub fn authority(&self) -> &str {
        self.url.authority()
    }

    /// Path and query, the very bytes that came.
    pub fn target(&self) -> &str {
        &self.url[url::Position::BeforePath..]
    }

    /// The URL in its own place.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// As what it may be served.
    pub fn kinds(&self) -> Kinds {
        self.kinds
    }

    /// The same, but as none of `kinds`.
    #[must_use]
    pub fn without(self, kinds: Kinds) -> Self {
        let kinds = self.kinds.less(kinds);
        Self { kinds, ..self }
    }

    /// The same, as no more than `other` may be loaded as.
    fn restrict_to(self, other: &Self) -> Self {
        let kinds = self.kinds.and(other.kinds);
        Self { kinds, ..self }
    }

    /// The same, if redirects through `hops` led to what is there, which `load` is to get: as no more than each of them may be loaded as.
    /// `guarded` says as what nothing is served from where; see [`CspGuard`](crate::csp::guard::CspGuard). `None` if redirects that lead so are
    /// the browser's own matter; see [`RedirectState::decide`](crate::response::redirect::RedirectState::decide).
    pub fn after_redirects(
        &self,
        rules: &Rules,
        load: Load,
        hops: &[Url],
        guarded: impl Fn(&Url) -> Kinds,
    ) -> Option<Self> {
        let mut last = self.clone();
        for hop in hops {
            let next = last.redirect_target(rules, hop).ok()?;
            let kinds = guarded(next.url());
            let next = next.without(kinds);
            if !redirect::may_follow(load, &last, &next) {
                return None;
            }
            last = next;
        }
        Some(self.clone().restrict_to(&last))
    }

    /// The author of the references in it, if it is a sheet.
    pub fn reference_source(&self) -> ReferenceSource {
        if self.is_alias() {
            ReferenceSource::Alias
        } else if self.is_listed {
            ReferenceSource::Listed
        } else {
            ReferenceSource::Discovered
        }
    }

    /// What is fetched when the host sends us on to `next`: more of the same origin, or what is listed; and never as
    /// more than this was opened as.
    ///
    /// # Errors
    ///
    /// Why that is not fetched here.
    pub(crate) fn redirect_target(&self, rules: &Rules, next: &Url) -> Result<Self, Refusal> {
        let mut url = next.clone();
        url.set_fragment(None);
        let host = url.host_str().unwrap_or_default();
        let scheme = Scheme::of_name(url.scheme()).ok_or(Refusal::Location)?;
        let port = url.port().unwrap_or(scheme.default_port());
        host_name::check(host)?;
        check_length(&url[url::Position::BeforePath..])?;
        check_target(rules, &url[url::Position::BeforePath..])?;
        let is_same_origin = url.origin() == self.url.origin();
        let (is_listed, kinds) = match rules.match_host(scheme, host, port, url.path())? {
            RuleMatch::Listed(entry) if entry.is_alias() => {
                let (host, place) = (host.to_owned(), next.to_string());
                return Err(Refusal::HasAlias { host, place });
            }
            RuleMatch::Listed(entry) if is_same_origin || !entry.shared => (true, entry.kinds),
            // A whole host that many share is no more trusted with scripts when another host names it.
            RuleMatch::Listed(entry) => (true, entry.kinds.without(Kind::Script)),
            RuleMatch::Discovered if is_same_origin => (false, Kinds::PASSIVE),
            RuleMatch::Discovered => {
                let host = host.to_owned();
                return Err(Refusal::NotListed { host });
            }
        };
        let kinds = kinds.and(self.kinds);
        if kinds.is_empty() {
            let host = host.to_owned();
            return Err(Refusal::KindNotListed {
                kind: Kind::Script,
                host,
            });
        }
        Ok(Self {
            grant: self.grant,
            scheme,
            kinds,
            is_listed,
            url,
            head: self.head.clone(),
        })
    }

    /// Where `target` (path and query) of the same origin is under the same capability.
    pub(crate) fn sibling_path(&self, target: &str) -> String {
        format!("{}{target}", self.head)
    }

    /// Its path and query under the site's name; in full where its host has one of its own.
    pub fn path(&self) -> String {
        self.sibling_path(self.target())
    }
}

/// The path of `url` under the site's name, fragment and all.
///
/// # Errors
///
/// Why it would not be opened.
pub(crate) fn build_path(
    rules: &Rules,
    url: &Url,
    scheme: Scheme,
    host: &str,
    port: u16,
    standing: RuleMatch<'_>,
    kind: Kind,
) -> Result<String, Refusal> {
    let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
    check_target(rules, target)?;
    let opening = CapabilityTarget {
        scheme,
        host,
        port,
        target,
    };
    let mut path = String::with_capacity(url.as_str().len() + rules.prefix().len() + HEAD_BYTES);
    match rules.form {
        UrlForm::Full => push_head(&mut path, rules, opening, standing, kind),
        UrlForm::Literal => path.push_str(&literal_head(rules, opening, standing, kind)?),
    }
    path.push_str(target);
    check_length(&path)?;
    if let Some(fragment) = url.fragment() {
        path.push('#');
        path.push_str(fragment);
    }
    Ok(path)
}

/// What stands before the path in the full form, bit by bit: pages have thousands.
fn push_head(
    path: &mut String,
    rules: &Rules,
    opening: CapabilityTarget<'_>,
    standing: RuleMatch<'_>,
    kind: Kind,
) {
    let capability = |target| {
        let keys = rules.keys.as_ref();
        let keys = keys.expect("rules that make capabilities have keys");
        keys.sign(opening.subject(rules, target))
    };
    let CapabilityTarget {
        scheme,
        host,
        port,
        target,
    } = opening;
    path.push_str(rules.prefix());
    path.push_str(VERSION);
    path.push('/');
    match standing {
        RuleMatch::Listed(entry) if !entry.needs_url_capability(kind) => path.push_str(LISTED),
        RuleMatch::Listed(_) => path.push_str(&capability(Some(target))),
        RuleMatch::Discovered => {
            let make = || capability(None);
            rules.made.with(host, make, |word| path.push_str(word));
        }
    }
    path.push('/');
    path.push(scheme.letter());
    path.push('/');
    path.push_str(host);
    if port != scheme.default_port() {
        path.push('~');
        path.push_str(&port.to_string());
    }
}

/// The same in the literal form, if that can express it.
fn literal_head(
    rules: &Rules,
    opening: CapabilityTarget<'_>,
    standing: RuleMatch<'_>,
    kind: Kind,
) -> Result<String, Refusal> {
    let (host, port) = (opening.host.to_owned(), opening.port);
    match standing {
        RuleMatch::Listed(entry) if entry.needs_url_capability(kind) => {
            Err(Refusal::KindNotListed { kind, host })
        }
        _ => rules
            .head(LISTED, opening.scheme, opening.host, port)
            .ok_or(Refusal::PortNotListed { host, port }),
    }
}

/// Reads the target of a request.
///
/// # Errors
///
/// Why nothing is fetched.
pub(crate) fn open(rules: &Rules, raw: &str) -> Result<ProxiedUrl, Refusal> {
    let Some(rest) = raw.strip_prefix(rules.prefix()) else {
        let (host, target) = rules.literal(raw).ok_or(Refusal::NotProxied)?;
        return open_literal(rules, raw, host, target);
    };
    check_length(raw)?;
    check_bytes(raw)?;
    let mut parts = rest.splitn(4, '/');
    let mut part = |missing| {
        parts
            .next()
            .filter(|part| !part.is_empty())
            .ok_or(Refusal::Incomplete { missing })
    };
    let version = part("version")?;
    if version != VERSION {
        let got = version.to_owned();
        return Err(Refusal::Version { got });
    }
    let capability = part("capability")?;
    let letter = part("scheme")?;
    let rest = part("host")?;
    let slash = rest
        .find('/')
        .ok_or(Refusal::Incomplete { missing: "path" })?;
    let (authority, target) = rest.split_at(slash);
    if [capability, letter, authority]
        .iter()
        .any(|part| part.contains('%'))
    {
        return Err(Refusal::EncodedPrefix);
    }
    let scheme = match letter {
        "s" => Scheme::Https,
        "p" => Scheme::Http,
        _ => {
            let got = letter.to_owned();
            return Err(Refusal::Scheme { got });
        }
    };
    let (host, port) = check_authority(authority, scheme)?;
    let opening = CapabilityTarget {
        scheme,
        host,
        port,
        target,
    };
    open_target(rules, raw, capability, opening)
}

/// Reads one in the literal form.
fn open_literal(rules: &Rules, raw: &str, host: &str, target: &str) -> Result<ProxiedUrl, Refusal> {
    check_length(raw)?;
    check_bytes(raw)?;
    host_name::check(host)?;
    let (scheme, port) = rules.scheme_and_port(host).ok_or(Refusal::NotProxied)?;
    let opening = CapabilityTarget {
        scheme,
        host,
        port,
        target,
    };
    open_target(rules, raw, LISTED, opening)
}

/// What `raw` leads to by `capability`, if it does.
fn open_target(
    rules: &Rules,
    raw: &str,
    capability: &str,
    opening: CapabilityTarget<'_>,
) -> Result<ProxiedUrl, Refusal> {
    let CapabilityTarget {
        scheme,
        host,
        port,
        target,
    } = opening;
    check_target(rules, target)?;
    let written_port = if port == scheme.default_port() {
        String::new()
    } else {
        format!(":{port}")
    };
    let text = format!("{}://{host}{written_port}{target}", scheme.name());
    let url = match Url::parse(&text) {
        Ok(url) if url.as_str() == text => url,
        _ => return Err(Refusal::NotSerialised),
    };
    let standing = rules.match_host(scheme, host, port, url.path());
    let standing = standing.map_err(|why| why.at(&url))?;
    if matches!(standing, RuleMatch::Listed(entry) if entry.is_alias()) {
        let (host, place) = (host.to_owned(), url.into());
        return Err(Refusal::HasAlias { host, place });
    }
    let (ground, kinds) = check_grant(rules, capability, opening, standing, &url)?;
    Ok(ProxiedUrl {
        grant: ground,
        scheme,
        kinds,
        is_listed: matches!(standing, RuleMatch::Listed(_)),
        head: raw[..raw.len() - target.len()].to_owned(),
        url,
    })
}

/// What a capability is made for, and checked against.
#[derive(Clone, Copy)]
struct CapabilityTarget<'a> {
    scheme: Scheme,
    host: &'a str,
    port: u16,
    target: &'a str,
}

impl<'a> CapabilityTarget<'a> {
    /// The subject of a capability for `target` alone, or for all of the origin.
    fn subject(self, rules: &'a Rules, target: Option<&'a str>) -> Subject<'a> {
        Subject {
            site: rules.site_origin(),
            scheme: self.scheme.letter(),
            host: self.host,
            port: self.port,
            target,
        }
    }
}

/// On what ground this opens, and what for.
///
/// A capability for a host that was listed since is still good, for what the entry allows and no more: pages with it are stored in
/// browsers.
fn check_grant(
    rules: &Rules,
    capability: &str,
    opening: CapabilityTarget<'_>,
    standing: RuleMatch<'_>,
    url: &Url,
) -> Result<(Grant, Kinds), Refusal> {
    let CapabilityTarget { host, target, .. } = opening;
    let not_listed = || Refusal::NotListed {
        host: host.to_owned(),
    };
    let check = |target| match &rules.keys {
        Some(keys) => keys.verify(capability, opening.subject(rules, target)),
        None => Err(Refusal::DiscoveryOff {
            host: host.to_owned(),
        }),
    };
    let (ground, kinds) = match (capability.as_bytes()[0], standing) {
        (b'-', _) if capability.len() > 1 => return Err(Refusal::CapabilityForm),
        (b'-', RuleMatch::Listed(entry)) if entry.shared => {
            (Grant::Listed, entry.kinds.without(Kind::Script))
        }
        (b'-', RuleMatch::Listed(entry)) => (Grant::Listed, entry.kinds),
        (b'-', RuleMatch::Discovered) => return Err(not_listed()),
        (b'k', standing) => {
            check(None)?;
            let kinds = match standing {
                RuleMatch::Listed(entry) => entry.kinds.and(Kinds::PASSIVE),
                RuleMatch::Discovered => Kinds::PASSIVE,
            };
            (Grant::Origin, kinds)
        }
        (b'u', RuleMatch::Listed(entry)) => {
            // What such a script loads relative to its own URL stands under its capability.
            check(Some(target)).map_err(|why| why.at(url))?;
            (Grant::Url, entry.kinds.and(Kinds::NONE.with(Kind::Script)))
        }
        (b'u', RuleMatch::Discovered) => return Err(not_listed()),
        _ => return Err(Refusal::CapabilityForm),
    };
    if kinds.is_empty() {
        let host = host.to_owned();
        return Err(Refusal::KindNotListed {
            kind: Kind::Script,
            host,
        });
    }
    Ok((ground, kinds))
}

pub(crate) fn check_length(target: &str) -> Result<(), Refusal> {
    match target.len() {
        got if got > MAX_PROXIED_URL_BYTES => Err(Refusal::TooLong {
            most: MAX_PROXIED_URL_BYTES,
            got,
        }),
        _ => Ok(()),
    }
}

/// Bytes that stand in no target, or that some read as others.
fn check_bytes(target: &str) -> Result<(), Refusal> {
    for (at, byte) in target.bytes().enumerate() {
        return Err(match byte {
            0..=0x20 | 0x7f => Refusal::ControlByte { byte, at },
            0x80.. => Refusal::NotAscii { byte, at },
            b'\\' => Refusal::Backslash { at },
            b'#' => Refusal::Fragment { at },
            b'%' if target[at..].starts_with("%00") => Refusal::Nul,
            _ => continue,
        });
    }
    Ok(())
}

fn check_authority(authority: &str, scheme: Scheme) -> Result<(&str, u16), Refusal> {
    if authority.contains('@') {
        return Err(Refusal::Userinfo);
    }
    let (host, port) = match authority.split_once('~') {
        None => (authority, scheme.default_port()),
        Some((host, text)) => {
            let wrong = || Refusal::Port {
                got: text.to_owned(),
            };
            let port: u16 = text.parse().map_err(|_| wrong())?;
            // `+443`, `0443`, and the port that is not written.
            if port.to_string() != text || port == 0 || port == scheme.default_port() {
                return Err(wrong());
            }
            (host, port)
        }
    };
    host_name::check(host)?;
    Ok((host, port))
}

/// Checks path and query, both of a URL that is opened and of one that is made.
pub(crate) fn check_target(rules: &Rules, target: &str) -> Result<(), Refusal> {
    check_bytes(target)?;
    let path = target.split('?').next().unwrap_or_default();
    if has_dot_segment(path) {
        return Err(Refusal::DotSegment);
    }
    if may_pass(path, rules.prefix()) {
        return Err(Refusal::NestedProxiedUrl);
    }
    Ok(())
}
