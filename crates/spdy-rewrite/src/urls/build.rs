//! Decides if a URL of a page is rewritten, and builds the proxied URL. `urls/open.rs` parses it again.
//!
//! ```text
//!  /.spdy/1/<cap>/<s|p>/<host>[~<port>]/<path>[?<query>]
//!    1      version of the form
//!    cap    -                    the host is listed
//!           k<kid><24 chars>     a capability for the origin        rules/capability.rs
//!           u<kid><24 chars>     a capability for this URL only
//!    s, p   https, http
//!    path   as the URL standard writes it; never decoded, never corrected
//! ```
//!
//! For laboratories there is another form, with less information (`rules/url_form.rs`).

use std::borrow::Cow;

use url::{Host, Url};

use crate::kind::{Kind, Kinds};
use crate::rules::capability::Subject;
use crate::rules::config::Scheme;
use crate::rules::host_name;
use crate::rules::refusal::Refusal;
use crate::rules::self_url_scripts;
use crate::rules::url_form::{LISTED, UrlForm, VERSION};
use crate::rules::verdict::{ReferenceSource, SkipReason, Verdict};
use crate::rules::{RuleMatch, Rules};
use crate::urls::target_check::{check_length, check_target};

/// The additional length of a proxied URL compared with the URL and the prefix, bytes: a capability and separators.
const HEAD_BYTES: usize = 32;

impl Rules {
    /// Decides if `url`, used as `kind` and found by `finder`, is rewritten, and builds the proxied URL.
    pub fn verdict(&self, url: &Url, kind: Kind, finder: ReferenceSource) -> Verdict {
        match self.proxied_path(url, kind, finder) {
            Ok(path) => Verdict::Rewrite(path),
            Err(reason) => Verdict::Skip(reason),
        }
    }

    fn proxied_path(
        &self,
        url: &Url,
        kind: Kind,
        finder: ReferenceSource,
    ) -> Result<String, SkipReason> {
        let scheme = Scheme::of_name(url.scheme()).ok_or_else(|| SkipReason::Scheme {
            scheme: url.scheme().to_owned(),
        })?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::Userinfo.into());
        }
        let host = match url.host() {
            Some(Host::Domain(host)) => host,
            Some(host) if self.is_site_host(&host.to_string()) => return Err(SkipReason::SameSite),
            Some(host) => {
                let found = host.to_string();
                return Err(Refusal::Address { found }.into());
            }
            None => return Err(SkipReason::Unreadable),
        };
        if self.is_site_host(host) {
            return Err(SkipReason::SameSite);
        }
        host_name::check_labels(host)?;
        let port = url.port().unwrap_or(scheme.default_port());
        if kind.needs_own_origin() && self.alias_of(url).is_none() {
            return Err(self.no_alias_reason(url));
        }
        let standing = self.match_host(scheme, host, port, url.path())?;
        let kinds = match standing {
            RuleMatch::Listed(entry) => entry.kinds,
            RuleMatch::Discovered
                if matches!(finder, ReferenceSource::Discovered | ReferenceSource::Alias) =>
            {
                let host = host.to_owned();
                return Err(Refusal::NotListed { host }.into());
            }
            RuleMatch::Discovered => Kinds::PASSIVE,
        };
        if !kinds.has(kind) {
            let host = host.to_owned();
            return Err(Refusal::KindNotListed { kind, host }.into());
        }
        let is_named = matches!(standing, RuleMatch::Listed(entry) if entry.is_alias());
        if kind == Kind::Script && self_url_scripts::has_self_url_scripts(host, is_named) {
            return Err(SkipReason::ReadsItsUrl);
        }
        if let Some(place) = self.alias_url(url)? {
            return Ok(place);
        }
        if is_named {
            return Err(SkipReason::NoCertificate);
        }
        if finder == ReferenceSource::Alias {
            return Err(SkipReason::NoAlias);
        }
        Ok(build_path(self, url, scheme, host, port, standing, kind)?)
    }

    /// The part of the URL before the path, for resources of this origin with `capability`; `None` if the form cannot express it.
    pub(crate) fn head(
        &self,
        capability: &str,
        scheme: Scheme,
        host: &str,
        port: u16,
    ) -> Option<String> {
        match self.form {
            UrlForm::Full => {
                let (prefix, letter) = (self.prefix(), scheme.letter());
                let port = match port == scheme.default_port() {
                    true => String::new(),
                    false => format!("~{port}"),
                };
                Some(format!(
                    "{prefix}{VERSION}/{capability}/{letter}/{host}{port}"
                ))
            }
            UrlForm::Literal => {
                let is_expressible =
                    capability == LISTED && self.scheme_and_port(host) == Some((scheme, port));
                is_expressible.then(|| format!("/{host}"))
            }
        }
    }
}

/// The origin of a capability.
#[derive(Clone, Copy)]
pub(crate) struct CapabilityTarget<'a> {
    pub(crate) scheme: Scheme,
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    pub(crate) target: &'a str,
}

impl<'a> CapabilityTarget<'a> {
    /// The subject of a capability for only `target`, or for the whole origin.
    pub(crate) fn subject(self, rules: &'a Rules, target: Option<&'a str>) -> Subject<'a> {
        Subject {
            site: rules.site_origin(),
            scheme: self.scheme.letter(),
            host: self.host,
            port: self.port,
            target,
        }
    }
}

/// The path of `url` under the site's name, including the fragment.
///
/// # Errors
///
/// Why it could not be opened.
fn build_path(
    rules: &Rules,
    url: &Url,
    scheme: Scheme,
    host: &str,
    port: u16,
    standing: RuleMatch<'_>,
    kind: Kind,
) -> Result<String, Refusal> {
    let target = browser_target(url);
    let target = &*target;
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

/// Path and query of `url` as browsers request them: they encode `^` in a path (URL Standard, *path percent-encode set*, since 2024), as in
/// `lodash@^4`, and the url crate does not. A capability is for these bytes.
fn browser_target(url: &Url) -> Cow<'_, str> {
    let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
    if !url.path().contains('^') {
        return Cow::Borrowed(target);
    }
    let query = &target[url.path().len()..];
    Cow::Owned([&url.path().replace('^', "%5E"), query].concat())
}

/// Appends the part before the path in the full form, piece by piece because pages have thousands of them.
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

/// The same in the literal form, if it can express the origin.
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
