//! Rules for some paths of a site, compiled: who may request them, which headers change, and how their responses are stored.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, StatusCode, request, response};
use ipnet::IpNet;
use spdy_cache::cache_control::{FieldScope, ResponseControl};
use spdy_cache::identity::is_identified;
use spdy_clock::Instant;
use spdy_rewrite::rules::path_normalization::{canonical, has_many_readings, is_in, may_lead_into};
use url::Url;

use crate::config::site_path::{SitePathConfig, header_edits, networks};
use crate::passwords::password_file::{PasswordFile, PasswordFileError};
use crate::sites::client_rate::ClientRateLimit;
use crate::sites::static_folder::StaticFolder;

/// The field for a time to live that only this cache applies (RFC 9213).
const CACHE_TARGET: HeaderName = HeaderName::from_static("cdn-cache-control");

/// The rules for the paths of one site, the longest path first.
#[derive(Clone, Debug, Default)]
pub struct PathRules(Vec<Arc<PathRule>>);

/// The rules for one path.
#[derive(Debug)]
pub struct PathRule {
    path: String,
    /// The origin for the path, if it is not the site's.
    origin: Option<Url>,
    /// Whether requests for the path reach the server of the site, so that the site's rules apply to the path there.
    is_site_origin: bool,
    /// The path that replaces it in requests to the origin.
    origin_path: Option<String>,
    allow: Option<Vec<IpNet>>,
    deny: Vec<IpNet>,
    rate: Option<ClientRateLimit>,
    /// The passwords that clients need.
    pub(crate) passwords: Option<Passwords>,
    /// The files that take the place of the origin.
    pub(crate) folder: Option<StaticFolder>,
    /// Whether the origin speaks gRPC.
    pub(crate) grpc: bool,
    request_headers: HeaderEdits,
    response_headers: HeaderEdits,
    /// Whether responses may be stored.
    pub(crate) store: bool,
    ttl_s: Option<u32>,
    ignore_query: Vec<String>,
    /// The part of the rule that changes stored responses; it is part of their keys.
    tag: String,
}

/// Why a rule for a path cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum PathRuleError {
    /// Its file of passwords cannot be used.
    #[error("basic_auth: {0}")]
    Passwords(#[from] PasswordFileError),
    /// Its folder cannot be opened.
    #[error("folder: cannot open {path}: {error}", path = path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
}

/// The passwords that clients of a path need.
#[derive(Clone, Debug)]
pub(crate) struct Passwords {
    pub(crate) file: Arc<PasswordFile>,
    /// The name that browsers show; `None` for the site's.
    pub(crate) realm: Option<String>,
    /// Whether the origin gets the credentials.
    pub(crate) is_forwarded: bool,
}

/// Changes of headers; `None` removes one.
type HeaderEdits = Vec<(HeaderName, Option<HeaderValue>)>;

/// Why a client may not make a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum AccessDenial {
    /// Its address is not allowed.
    Address,
    /// It makes too many requests.
    Rate,
}

impl PathRules {
    /// The rules of `paths`, which were checked, of a site at `origin`. Reads their files of passwords, each once.
    pub(crate) fn compile(paths: &[SitePathConfig], origin: &Url) -> Result<Self, PathRuleError> {
        let mut files: BTreeMap<&Path, Arc<PasswordFile>> = BTreeMap::new();
        let mut rules = Vec::new();
        for path in paths {
            let mut rule = PathRule::compile(path);
            let own = path.origin.as_ref();
            rule.is_site_origin = own.is_none_or(|own| own.origin() == origin.origin());
            if let Some(at) = &path.basic_auth {
                let file = match files.get(&**at) {
                    Some(file) => file.clone(),
                    None => Arc::new(PasswordFile::read(at)?),
                };
                files.insert(at, file.clone());
                rule.passwords = Some(Passwords {
                    file,
                    realm: path.basic_auth_realm.clone(),
                    is_forwarded: path.forward_authorization,
                });
            }
            if let Some(folder) = &path.folder {
                let opened = StaticFolder::open(folder, &path.path);
                rule.folder = Some(opened.map_err(|error| PathRuleError::Folder {
                    path: folder.clone(),
                    error,
                })?);
            }
            rules.push(Arc::new(rule));
        }
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.path.len()));
        Ok(Self(rules))
    }

    /// The passwords that a client needs for `target`: those of every rule that a server may find for it, the longest path first.
    pub(crate) fn passwords(&self, target: &str) -> Vec<Passwords> {
        if self.0.iter().all(|rule| rule.passwords.is_none()) {
            return Vec::new();
        }
        let rules = self.restrictions(target).into_iter();
        rules.filter_map(|rule| rule.passwords.clone()).collect()
    }

    /// Whether `client` may request `target` at `now`. Every rule applies that a server may find for the target, with or without a final
    /// slash. It applies once, even if it is found for the client's target and for the target at the origin.
    pub(crate) fn check_access(
        &self,
        target: &str,
        client: Option<IpAddr>,
        now: Instant,
    ) -> Result<(), AccessDenial> {
        if self.0.iter().any(|rule| rule.restricts()) {
            for rule in self.restrictions(target) {
                rule.check_access(client, now)?;
            }
        }
        Ok(())
    }

    /// Whether not every client may request `target`.
    pub(crate) fn is_restricted(&self, target: &str) -> bool {
        self.0.iter().any(|rule| rule.restricts()) && !self.restrictions(target).is_empty()
    }

    /// Whether a rule restricts clients of `target` that does not restrict those of `other`.
    pub(crate) fn is_more_restricted(&self, target: &str, other: &str) -> bool {
        let of_other = self.restrictions(other);
        let is_of_other = |rule: &Arc<PathRule>| of_other.iter().any(|it| Arc::ptr_eq(it, rule));
        let mut rules = self.restrictions(target).into_iter();
        rules.any(|rule| !is_of_other(rule))
    }

    /// The rules that restrict clients of `target`, each once.
    fn restrictions(&self, target: &str) -> Vec<&Arc<PathRule>> {
        let paths = self.targets(target).flat_map(|target| {
            let path = match path_of(&target) {
                "*" => "/",
                path => path,
            };
            let other = match path.strip_suffix('/') {
                Some(file) => file.to_owned(),
                None => format!("{path}/"),
            };
            [path.to_owned(), other]
        });
        let paths: Vec<String> = paths.collect();
        let rules = self.0.iter().filter(|rule| rule.restricts());
        let is_found = |rule: &&Arc<PathRule>| {
            let mut paths = paths.iter();
            paths.any(|path| may_lead_into(path, &rule.path))
        };
        rules.filter(is_found).collect()
    }

    /// Whether a server may find a rule for `target` whose responses are not stored.
    pub(crate) fn is_unstored(&self, target: &str) -> bool {
        self.0.iter().any(|rule| !rule.store)
            && self.targets(target).any(|target| {
                let mut rules = self.0.iter().filter(|rule| !rule.store);
                rules.any(|rule| may_lead_into(path_of(&target), &rule.path))
            })
    }

    /// The client's `target`, and the target at the site's origin if that is another one there. The rules for both decide who may request
    /// it, and whether its responses are stored.
    fn targets<'a>(&self, target: &'a str) -> impl Iterator<Item = Cow<'a, str>> {
        let rule = self.of_origin(target).filter(|rule| rule.is_site_origin);
        let at_origin = rule.map(|rule| rule.origin_target(target));
        let at_origin = at_origin.filter(|at_origin| matches!(at_origin, Cow::Owned(_)));
        std::iter::once(Cow::Borrowed(target)).chain(at_origin)
    }

    /// The rule whose headers and storage apply to `target`. If servers may resolve the target differently, it is only a rule for all
    /// paths, and only if they can find no other.
    pub(crate) fn of(&self, target: &str) -> Option<&Arc<PathRule>> {
        if self.0.is_empty() {
            return None;
        }
        let path = path_of(target);
        if has_many_readings(path) {
            let mut possible = self.0.iter().filter(|rule| may_lead_into(path, &rule.path));
            return possible.next().filter(|rule| rule.path == "/");
        }
        let path = canonical(path);
        self.0.iter().find(|rule| is_in(&path, &rule.path))
    }

    /// The rule whose origin and path there apply to `target`: only if the target spells the rule's path as the rule does.
    pub(crate) fn of_origin(&self, target: &str) -> Option<&Arc<PathRule>> {
        let path = path_of(target);
        self.of(target)
            .filter(|rule| is_in(path, &rule.path) && !has_many_readings(path))
    }

    /// Whether a folder of files takes the place of the origin for `target`, or may do so for a server that resolves the target differently.
    pub(crate) fn is_kept_from_origin(&self, target: &str) -> bool {
        match self.of_origin(target) {
            Some(rule) => rule.folder.is_some(),
            None => {
                let path = path_of(target);
                let mut folders = self.0.iter().filter(|rule| rule.folder.is_some());
                folders.any(|rule| may_lead_into(path, &rule.path))
            }
        }
    }

    /// All rules, the longest path first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<PathRule>> {
        self.0.iter()
    }

    /// The target in the key of a response for `target`: without the query parameters that do not change it.
    pub(crate) fn key_target<'a>(&self, target: &'a str) -> Cow<'a, str> {
        match self.of(target) {
            Some(rule) => rule.key_target(target),
            None => target.into(),
        }
    }
}

impl PathRule {
    fn compile(config: &SitePathConfig) -> Self {
        let edits = |fields| header_edits(fields).unwrap_or_default();
        let ranges = |texts| networks(texts).unwrap_or_default();
        let response_headers: HeaderEdits = edits(&config.response_headers);
        let mut tag = String::new();
        for (name, value) in config
            .request_headers
            .iter()
            .chain(&config.response_headers)
        {
            let _ = write!(tag, " {name}:{value}");
        }
        if let Some(ttl_s) = config.ttl_s {
            let _ = write!(tag, " ttl:{ttl_s}");
        }
        if let Some(origin) = &config.origin {
            let _ = write!(tag, " origin:{origin}");
        }
        if let Some(origin_path) = &config.origin_path {
            let _ = write!(tag, " path:{origin_path}");
        }
        Self {
            path: config.path.clone(),
            origin: config.origin.clone(),
            is_site_origin: config.origin.is_none(),
            origin_path: config.origin_path.clone(),
            allow: config.allow.as_deref().map(ranges),
            deny: ranges(&config.deny),
            rate: config.requests_per_second.map(ClientRateLimit::new),
            passwords: None,
            folder: None,
            grpc: config.grpc,
            request_headers: edits(&config.request_headers),
            response_headers,
            store: config.store && config.folder.is_none(),
            ttl_s: config.ttl_s,
            ignore_query: config.ignore_query.clone(),
            tag,
        }
    }

    /// The path of the rule.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The origin for the path, if it is not the site's.
    pub(crate) fn origin(&self) -> Option<&Url> {
        self.origin.as_ref()
    }

    /// The target at the origin for the client's `target`.
    pub(crate) fn origin_target<'a>(&self, target: &'a str) -> Cow<'a, str> {
        replace_path(target, &self.path, self.origin_path.as_deref())
    }

    /// The target for clients of `target` at the origin.
    pub(crate) fn client_target<'a>(&self, target: &'a str) -> Cow<'a, str> {
        let origin_path = self.origin_path.as_deref();
        replace_path(
            target,
            origin_path.unwrap_or_default(),
            origin_path.map(|_| &self.path[..]),
        )
    }

    fn restricts(&self) -> bool {
        self.allow.is_some()
            || !self.deny.is_empty()
            || self.rate.is_some()
            || self.passwords.is_some()
    }

    fn check_access(&self, client: Option<IpAddr>, now: Instant) -> Result<(), AccessDenial> {
        let Some(client) = client else {
            // Only requests of the proxy itself have no address.
            return Ok(());
        };
        let address = client.to_canonical();
        let is_in = |ranges: &[IpNet]| ranges.iter().any(|range| range.contains(&address));
        if is_in(&self.deny) || self.allow.as_deref().is_some_and(|allow| !is_in(allow)) {
            return Err(AccessDenial::Address);
        }
        match &self.rate {
            Some(rate) if !rate.admits(client, now) => Err(AccessDenial::Rate),
            _ => Ok(()),
        }
    }

    fn key_target<'a>(&self, target: &'a str) -> Cow<'a, str> {
        let Some((path, query)) = target.split_once('?') else {
            return target.into();
        };
        if self.ignore_query.is_empty() {
            return target.into();
        }
        let is_kept = |pair: &&str| {
            let name = pair.split('=').next().unwrap_or_default();
            // Some servers also split at semicolons.
            pair.contains(';')
                || !self
                    .ignore_query
                    .iter()
                    .any(|ignored| match ignored.strip_suffix('*') {
                        Some(start) => name.starts_with(start),
                        None => name == ignored,
                    })
        };
        let kept: Vec<&str> = query.split('&').filter(is_kept).collect();
        match kept.is_empty() {
            true => path.into(),
            false => format!("{path}?{}", kept.join("&")).into(),
        }
    }

    /// The part of the rule that changes stored responses; it is part of their keys.
    pub(crate) fn tag(&self) -> &str {
        &self.tag
    }

    /// Changes the headers of a request to the origin.
    pub(crate) fn edit_request(&self, headers: &mut HeaderMap) {
        edit(headers, &self.request_headers);
    }

    /// Whether the rule sets or removes the request header `name`.
    pub(crate) fn edits_request(&self, name: &HeaderName) -> bool {
        let mut edits = self.request_headers.iter();
        edits.any(|(edited, _)| edited == name)
    }

    /// Whether the rule sets or removes the response header `name`.
    pub(crate) fn edits_response(&self, name: &HeaderName) -> bool {
        let mut edits = self.response_headers.iter();
        edits.any(|(edited, _)| edited == name)
    }

    /// Changes the headers of a response of the origin.
    pub(crate) fn edit_response(&self, headers: &mut HeaderMap) {
        edit(headers, &self.response_headers);
    }

    /// States in the head of a response, as it will be stored, how long it is fresh.
    ///
    /// A response to a request with credentials may be for their owner alone, and is not changed.
    pub(crate) fn set_ttl(&self, head: &mut response::Parts, request: &request::Parts) {
        let Some(ttl_s) = self.ttl_s else {
            return;
        };
        if request.headers.contains_key(header::COOKIE) || is_identified(request) {
            return;
        }
        let is_lasting = matches!(
            head.status,
            StatusCode::OK
                | StatusCode::NON_AUTHORITATIVE_INFORMATION
                | StatusCode::MOVED_PERMANENTLY
                | StatusCode::PERMANENT_REDIRECT
        );
        let control = ResponseControl::parse(&head.headers, &[CACHE_TARGET]);
        let is_private = control.private != FieldScope::None || control.no_store;
        if !is_lasting || is_private || head.headers.contains_key(header::SET_COOKIE) {
            return;
        }
        if let Ok(value) = HeaderValue::try_from(format!("max-age={ttl_s}")) {
            head.headers.insert(CACHE_TARGET, value);
        }
    }
}

fn edit(headers: &mut HeaderMap, edits: &HeaderEdits) {
    for (name, value) in edits {
        match value {
            Some(value) => _ = headers.insert(name, value.clone()),
            None => _ = headers.remove(name),
        }
    }
}

/// `target` with `to` in place of `from` at its start. A target in another spelling than `from` stays as it is.
fn replace_path<'a>(target: &'a str, from: &str, to: Option<&str>) -> Cow<'a, str> {
    let Some(to) = to else {
        return target.into();
    };
    match target.strip_prefix(from) {
        // A single path, and not the start of another name.
        Some(rest) if from.ends_with('/') || rest.is_empty() || rest.starts_with('?') => {
            format!("{to}{rest}").into()
        }
        _ => target.into(),
    }
}

fn path_of(target: &str) -> &str {
    target.split('?').next().unwrap_or_default()
}
