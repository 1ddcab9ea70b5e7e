//! Opens proxied URLs: parses the target of a request, and checks its grant.
//!
//! The same bytes are opened, looked up and sent to the origin. So a target is refused whenever two parsers could interpret it
//! differently, and also if the URL standard would spell it differently: browsers use that spelling, and so does the rewriter.

use url::Url;

use crate::kind::{Kind, Kinds};
use crate::rules::config::Scheme;
use crate::rules::host_limits::HostLimits;
use crate::rules::host_name;
use crate::rules::host_rule::HostRule;
use crate::rules::refusal::Refusal;
use crate::rules::url_form::{LISTED, VERSION};
use crate::rules::{RuleMatch, Rules};
use crate::urls::build::CapabilityTarget;
use crate::urls::proxied_url::{Grant, ProxiedUrl};
use crate::urls::target_check::{check_authority, check_bytes, check_length, check_target};

impl Rules {
    /// Parses the target of a request (path and query, unchanged), and returns the resource to fetch.
    ///
    /// Invalid targets are refused, never corrected: see [`Refusal`] for every reason.
    ///
    /// # Errors
    ///
    /// Why nothing is fetched.
    pub fn open(&self, target: &str) -> Result<ProxiedUrl, Refusal> {
        open(self, target)
    }

    /// The entry that applies to `moved`, if it is listed.
    pub fn entry(&self, moved: &ProxiedUrl) -> Option<&HostRule> {
        let path = moved.target().split('?').next().unwrap_or_default();
        match self.match_host(moved.scheme(), moved.host(), moved.port(), path) {
            Ok(RuleMatch::Listed(entry)) => Some(entry),
            _ => None,
        }
    }

    /// The limits of the response to `moved`.
    pub fn limits(&self, moved: &ProxiedUrl) -> HostLimits {
        self.entry(moved).map_or(self.limits, HostRule::limits)
    }
}

/// Parses the target of a request.
///
/// # Errors
///
/// Why nothing is fetched.
fn open(rules: &Rules, raw: &str) -> Result<ProxiedUrl, Refusal> {
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
        let found = version.to_owned();
        return Err(Refusal::Version { found });
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
            let found = letter.to_owned();
            return Err(Refusal::Scheme { found });
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

/// Parses a target in the literal form.
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

/// The URL of `raw` by `capability`, if that is valid.
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
        // The url crate leaves `^` in a path, and browsers encode it.
        Ok(url) if url.as_str() == text && !url.path().contains('^') => url,
        _ => return Err(Refusal::NotSerialised),
    };
    let standing = rules.match_host(scheme, host, port, url.path());
    let standing = standing.map_err(|reason| reason.at(&url))?;
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

/// The grant by which this is opened, and its kinds.
///
/// A capability for a host that was listed later is still valid, but only for what the entry allows: browsers have stored pages
/// with it.
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
            // Resources that such a script loads relative to its own URL have its capability.
            check(Some(target)).map_err(|reason| reason.at(url))?;
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
