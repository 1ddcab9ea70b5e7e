//! One entry of the rules: a host, which of its paths are proxied, and as which kinds.

use url::Url;

use crate::kind::{Kind, Kinds};
use crate::rules::config::{HostConfig, HostMode, Scheme};
use crate::rules::error::RulesError;
use crate::rules::host_limits::{HostLimits, LimitsConfig};
use crate::rules::host_name::HostPattern;
use crate::rules::path_normalization::{canonical, is_in};

/// A compiled entry of the rules.
#[derive(Clone, Debug, PartialEq)]
pub struct HostRule {
    pub(crate) pattern: HostPattern,
    pub(crate) scheme: Scheme,
    pub(crate) mode: HostMode,
    pub(crate) port: u16,
    pub(crate) path: String,
    /// The query with which modules import the path, in import maps. It does not limit the entry.
    pub(crate) import_query: Option<String>,
    /// Paths that are not proxied, each in its [`canonical`] form.
    except: Vec<String>,
    pub(crate) kinds: Kinds,
    pub(crate) shared: bool,
    /// The operator's setting; `None`: derived from the other settings.
    whole: Option<bool>,
    accept_language: bool,
    user_agent: bool,
    limits: HostLimits,
}

impl HostRule {
    pub(crate) fn compile(config: &HostConfig, general: &LimitsConfig) -> Result<Self, RulesError> {
        let wrong = |reason: String| RulesError::Host {
            field: "hosts.host",
            found: config.host.clone(),
            reason,
        };
        let default_port = config.scheme.default_port();
        let (name, port) = match config.host.rsplit_once(':') {
            Some((name, port)) => match port.parse() {
                Ok(port) if port != 0 => (name, port),
                _ => return Err(wrong(format!("port \"{port}\", expected 1 to 65535"))),
            },
            None => (config.host.as_str(), default_port),
        };
        let kinds: Kinds = config.kinds.iter().copied().collect();
        if kinds.is_empty() {
            return Err(RulesError::NoKinds {
                host: config.host.clone(),
            });
        }
        let (path, import_query) = check_module("hosts.path", &config.path)?;
        if import_query.is_some() && (config.shared || !kinds.has(Kind::Script)) {
            return Err(RulesError::UselessQuery {
                path: config.path.clone(),
            });
        }
        let except = config.except.iter().map(|part| check_part(part, &path));
        let except = except.collect::<Result<_, _>>()?;
        let pattern = HostPattern::parse(name).map_err(wrong)?;
        check_mode(config, &pattern, kinds)?;
        Ok(Self {
            pattern,
            scheme: config.scheme,
            mode: config.mode,
            port,
            kinds,
            shared: config.shared,
            whole: config.whole,
            path,
            import_query,
            except,
            accept_language: config.accept_language,
            user_agent: config.user_agent,
            limits: HostLimits::compile(&config.limits, general)?,
        })
    }

    pub(crate) fn matches_host(&self, scheme: Scheme, host: &str, port: u16) -> bool {
        self.scheme == scheme && self.port == port && self.pattern.matches(host)
    }

    /// True if the entries have the same path and all the same settings, except the query.
    pub(crate) fn differs_in_query_only(&self, other: &Self) -> bool {
        let import_query = self.import_query.clone();
        let with_same_query = Self {
            import_query,
            ..other.clone()
        };
        self.import_query != other.import_query && *self == with_same_query
    }

    /// True if a URL needs its own capability to be proxied as `kind`.
    pub(crate) fn needs_url_capability(&self, kind: Kind) -> bool {
        self.shared && kind == Kind::Script
    }

    /// True if the host has an alias.
    pub(crate) fn is_alias(&self) -> bool {
        self.mode == HostMode::Name
    }

    /// True if pages need the host only for proxied resources: by the operator's setting, otherwise by the last rewrite of a page,
    /// otherwise if all paths of the host are proxied as any kind.
    pub fn removes_preconnect(&self, all_moved: Option<bool>) -> bool {
        // Modules of a shared host are not rewritten, and need the connection.
        let is_every_kind = self.kinds.and(Kinds::PROXIED) == Kinds::PROXIED;
        let is_all = !self.is_partial() && is_every_kind && !self.shared;
        self.whole.or(all_moved).unwrap_or(is_all)
    }

    /// True if only some paths of the host are proxied.
    pub(crate) fn is_partial(&self) -> bool {
        self.path != "/" || !self.except.is_empty()
    }

    /// True if a host may interpret `path` as one of this entry although it is spelled differently: `/%61ds/`, `//ads/` or
    /// `/ads;v=1/` for `/ads/`.
    pub(crate) fn may_match_path(&self, path: &str) -> bool {
        is_in(&canonical(path), &canonical(&self.path))
    }

    /// True if a host may interpret `path` as one that is not proxied.
    pub(crate) fn excludes(&self, path: &str) -> bool {
        !self.except.is_empty() && {
            let path = canonical(path);
            self.except.iter().any(|part| is_in(&path, part))
        }
    }

    /// True if the host's responses depend on Accept-Language.
    pub fn varies_on_language(&self) -> bool {
        self.accept_language
    }

    /// True if the host's responses depend on the class of browser.
    pub fn varies_on_user_agent(&self) -> bool {
        self.user_agent
    }

    /// The limits of the host's responses.
    pub fn limits(&self) -> HostLimits {
        self.limits
    }
}

/// Checks the host pattern and the kinds of an entry against its mode.
fn check_mode(config: &HostConfig, pattern: &HostPattern, kinds: Kinds) -> Result<(), RulesError> {
    let host = || config.host.clone();
    let named = |reason| {
        Err(RulesError::Alias {
            host: host(),
            reason,
        })
    };
    match (config.mode, pattern) {
        (HostMode::Path, _) => match kinds.iter().find(|kind| kind.needs_own_origin()) {
            Some(kind) => Err(RulesError::NeedsAlias { host: host(), kind }),
            None => Ok(()),
        },
        (HostMode::Name, HostPattern::Wildcard(_)) => {
            named("expected one host, because an alias is for one host")
        }
        (HostMode::Name, HostPattern::Exact(_)) if config.shared => {
            named("expected no `shared`, because an aliased host needs no capabilities")
        }
        (HostMode::Name, HostPattern::Exact(_)) => Ok(()),
    }
}

/// Checks a path that must be a part of `whole`, and returns its canonical form.
fn check_part(part: &str, whole: &str) -> Result<String, RulesError> {
    let part = check_path("hosts.except", part)?;
    let read = canonical(&part).into_owned();
    match is_in(&part, whole) && !is_in(&canonical(whole), &read) {
        true => Ok(read),
        false => Err(RulesError::NotWithin {
            found: part,
            whole: whole.to_owned(),
        }),
    }
}

/// Checks a folder, or one path that may have a query, and returns the path and the query.
fn check_module(field: &'static str, text: &str) -> Result<(String, Option<String>), RulesError> {
    let Some((path, query)) = text.split_once('?') else {
        return Ok((check_path(field, text)?, None));
    };
    let url = Url::parse("https://host.test")
        .expect("a URL")
        .join(text)
        .ok();
    match url {
        Some(url)
            if url.query() == Some(query) && url.fragment().is_none() && !path.ends_with('/') =>
        {
            Ok((check_path(field, path)?, Some(query.to_owned())))
        }
        _ => Err(RulesError::Path {
            field,
            found: text.to_owned(),
        }),
    }
}

/// Checks that a path is in the form that it has in URLs.
pub(crate) fn check_path(field: &'static str, path: &str) -> Result<String, RulesError> {
    let url = Url::parse("https://host.test")
        .expect("a URL")
        .join(path)
        .ok();
    match url {
        // Browsers write `^` as `%5E`, and the crate `url` does not.
        Some(url)
            if url.path() == path
                && !path.contains('^')
                && url.query().is_none()
                && url.fragment().is_none() =>
        {
            Ok(path.to_owned())
        }
        _ => Err(RulesError::Path {
            field,
            found: path.to_owned(),
        }),
    }
}

/// Parses patterns of hosts.
pub(crate) fn patterns(
    field: &'static str,
    texts: &[String],
) -> Result<Vec<HostPattern>, RulesError> {
    let pattern = |text: &String| {
        HostPattern::parse(text).map_err(|reason| RulesError::Host {
            field,
            found: text.clone(),
            reason,
        })
    };
    texts.iter().map(pattern).collect()
}
