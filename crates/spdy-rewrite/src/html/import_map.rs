//! Import maps: they rewrite absolute imports in modules, whose bytes are never changed (HTML §8.1.6).
//!
//! A module of a proxied host imports others by relative URLs, which resolve to proxied URLs too. An import of
//! `https://cdn.test/b.js` in full would leave the session, and load the same module twice: an entry that maps `https://cdn.test/`
//! to its proxied URL prevents that. An import of `/b.js`, from the root of its host, would resolve to the site's root: a scope for
//! modules from there prevents that.
//!
//! ```text
//! imports  https://cdn.test/           ──▶ /.spdy/1/-/s/cdn.test/
//! scopes   /.spdy/1/-/s/cdn.test/:   / ──▶ /.spdy/1/-/s/cdn.test/     relative imports already resolve to such paths:
//!                              /.spdy/ ──▶ /.spdy/                    a longer key goes before a shorter one
//! ```
//!
//! A map sees the resolved URL, not the text of the import: a proxied module that imports a module of the site by its full URL gets
//! that path of its own host.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use url::{Position, Url};

use crate::csp::CspCredentials;
use crate::kind::Kind;
use crate::reference::{Reference, ReferenceContext, ReferenceRewrite};
use crate::rules::Rules;
use crate::rules::host_name::HostPattern;
use crate::rules::url_form::UrlForm;
use crate::rules::verdict::Verdict;

/// Credentials of imports: none of an element, but the trust of the importing script.
const IMPORT_CREDENTIALS: CspCredentials<'_> = CspCredentials {
    nonce: None,
    integrity: None,
    imported: true,
};

/// Rewrites the addresses in the text of an import map, and adds the proxied hosts; `None` if nothing changes. `named` are the
/// origins that the page has referenced before: those that match a host pattern are added.
///
/// An invalid map is left unchanged, for the browser to report.
pub(crate) fn rewrite(
    place: &ReferenceContext<'_>,
    text: &str,
    named: &BTreeSet<String>,
    found: &mut dyn FnMut(Reference),
) -> Option<String> {
    let mut map: Map<String, Value> = serde_json::from_str(text).ok()?;
    let mut named = named.clone();
    named.extend(address_origins(place, &map));
    let mut changed = false;
    if let Some(imports) = map.get_mut("imports") {
        changed |= rewrite_addresses(place, imports.as_object_mut()?, found);
    }
    if let Some(scopes) = map.get_mut("scopes") {
        let scopes = scopes.as_object_mut()?;
        for imports in scopes.values_mut().filter_map(Value::as_object_mut) {
            changed |= rewrite_addresses(place, imports, found);
        }
        // A scope is a prefix of the importing script's URL, and that script may be moved.
        changed |= rewrite_keys(place, scopes);
    }
    if let Some(hashes) = map.get_mut("integrity") {
        changed |= rewrite_keys(place, hashes.as_object_mut()?);
    }
    changed |= complete(place, &moved(place, &named), &mut map)?;
    changed.then(|| written(&Value::Object(map)))
}

/// The text of a map for a page without one; `None` if there is nothing to map.
pub(crate) fn new_map(place: &ReferenceContext<'_>, named: &BTreeSet<String>) -> Option<String> {
    let mut map = Map::new();
    let is_needed = complete(place, &moved(place, named), &mut map)?;
    is_needed.then(|| written(&Value::Object(map)))
}

/// Serialises the map in the order of its keys, without `<`, which the HTML parser could interpret inside a script element.
fn written(map: &Value) -> String {
    let mut map = map.clone();
    // The features of serde_json that another crate enables must not change a page.
    map.sort_all_objects();
    map.to_string().replace('<', "\\u003c")
}

/// A host, or a listed part of it, whose scripts are proxied by their path.
struct MappedHost {
    own: Url,
    to: String,
    /// Where the root of the host is proxied.
    root: String,
    /// True if the page's policy allows all of it to be proxied; otherwise modules may be proxied, but their imports are not.
    is_allowed: bool,
    /// True if it is on an alias, where the root is the host's.
    has_name: bool,
}

/// All hosts that the rules list by name, and those of the origins `named` that match a pattern.
fn moved(place: &ReferenceContext<'_>, named: &BTreeSet<String>) -> Vec<MappedHost> {
    let scripts =
        place.rules.entries.iter().filter(|entry| {
            entry.kinds.has(Kind::Script) && !entry.needs_url_capability(Kind::Script)
        });
    let mut all = Vec::new();
    for entry in scripts {
        let origins: Vec<String> = match &entry.pattern {
            HostPattern::Exact(host) => {
                vec![format!("{}://{host}:{}", entry.scheme.name(), entry.port)]
            }
            HostPattern::Wildcard(_) => {
                let is_of = |origin: &&String| {
                    let url = Url::parse(origin).ok();
                    let port = url.as_ref().and_then(Url::port_or_known_default);
                    let host = url.as_ref().and_then(Url::host_str);
                    host.zip(port).is_some_and(|(host, port)| {
                        let scheme = url.as_ref().map(Url::scheme);
                        scheme == Some(entry.scheme.name())
                            && entry.matches_host(entry.scheme, host, port)
                    })
                };
                named.iter().filter(is_of).cloned().collect()
            }
        };
        for origin in origins {
            let Ok(mut own) = Url::parse(&format!("{origin}{}", entry.path)) else {
                continue;
            };
            own.set_query(entry.import_query.as_deref());
            let Verdict::Rewrite(path) = place.rules.verdict(&own, Kind::Script, place.source)
            else {
                continue;
            };
            let judged = place.rewrite(own.as_str(), Kind::Script, IMPORT_CREDENTIALS);
            let is_allowed = judged.written.is_some();
            if is_allowed || named.contains(&own.origin().ascii_serialization()) {
                let to = place.site_path(&path);
                let Some(head) = to.strip_suffix(target(&own)) else {
                    continue;
                };
                let root = format!("{head}/");
                all.push(MappedHost {
                    root,
                    to,
                    own,
                    is_allowed,
                    has_name: entry.is_alias(),
                });
            }
        }
    }
    all
}

/// The path and the query of `url`.
fn target(url: &Url) -> &str {
    &url[Position::BeforePath..Position::AfterQuery]
}

/// Adds the entries to `map` that proxied modules need, unless they are present. Returns whether any was added; `None` if the map
/// is invalid.
fn complete(
    place: &ReferenceContext<'_>,
    moved: &[MappedHost],
    map: &mut Map<String, Value>,
) -> Option<bool> {
    if moved.is_empty() {
        return Some(false);
    }
    let mut changed = false;
    let imports = object(map, "imports")?;
    for host in moved.iter().filter(|host| host.is_allowed) {
        changed |= add(imports, host.own.as_str(), &host.to);
    }
    let mut under_site = moved.iter().filter(|host| !host.has_name).peekable();
    if under_site.peek().is_none() {
        return Some(changed);
    }
    let scopes = object(map, "scopes")?;
    for host in under_site {
        // One scope for all listed parts of a host. It ends in a slash: otherwise it would be for one URL alone, without a query.
        let scope = object(scopes, &host.root)?;
        let root = place.site_path("/");
        let of_root = match (host.own.path(), host.is_allowed) {
            ("/", true) => host.to.clone(),
            _ => {
                // A module may import from another listed part of its host.
                let is_of_host = |other: &&MappedHost| {
                    other.is_allowed && other.own.origin() == host.own.origin()
                };
                for other in moved.iter().filter(is_of_host) {
                    changed |= add(scope, &place.site_path(target(&other.own)), &other.to);
                }
                format!("{}/", host.own.origin().ascii_serialization())
            }
        };
        changed |= add(scope, &root, &of_root);
        for moved_root in roots(place.rules, moved) {
            let stays = place.site_path(&moved_root);
            changed |= add(scope, &stays, &stays);
        }
    }
    Some(changed)
}

/// The paths of proxied modules, below the site's root.
fn roots(rules: &Rules, moved: &[MappedHost]) -> Vec<String> {
    let under_site = moved.iter().filter(|host| !host.has_name);
    let hosts = under_site.filter_map(|host| host.own.host_str());
    match rules.form {
        UrlForm::Full => vec![rules.prefix().to_owned()],
        UrlForm::Literal => hosts.map(|host| format!("/{host}/")).collect(),
    }
}

fn object<'m>(map: &'m mut Map<String, Value>, key: &str) -> Option<&'m mut Map<String, Value>> {
    let value = map.entry(key).or_insert_with(|| Value::Object(Map::new()));
    value.as_object_mut()
}

fn add(map: &mut Map<String, Value>, key: &str, address: &str) -> bool {
    let is_new = !map.contains_key(key);
    if is_new {
        map.insert(key.to_owned(), Value::String(address.to_owned()));
    }
    is_new
}

/// The origins of a map's addresses.
fn address_origins(place: &ReferenceContext<'_>, map: &Map<String, Value>) -> BTreeSet<String> {
    let of = |imports: &Value| -> Vec<String> {
        let addresses = imports.as_object().into_iter().flat_map(Map::values);
        let texts = addresses
            .filter_map(Value::as_str)
            .filter(|text| is_url_like(text));
        let urls = texts.filter_map(|text| place.base.join(text).ok());
        urls.map(|url| url.origin().ascii_serialization()).collect()
    };
    let scopes = map.get("scopes").and_then(Value::as_object);
    let scopes = scopes.into_iter().flat_map(Map::values);
    map.get("imports")
        .into_iter()
        .chain(scopes)
        .flat_map(of)
        .collect()
}

fn rewrite_addresses(
    place: &ReferenceContext<'_>,
    imports: &mut Map<String, Value>,
    found: &mut dyn FnMut(Reference),
) -> bool {
    let mut changed = false;
    for address in imports.values_mut() {
        // A text that is not a URL is not an address: `null` blocks a name, and a bare name is an error of the page.
        let Some(text) = address.as_str().filter(|text| is_url_like(text)) else {
            continue;
        };
        let judged = rewrite_address(place, text);
        judged.reference.into_iter().for_each(&mut *found);
        if let Some(written) = judged.written {
            *address = Value::String(written);
            changed = true;
        }
    }
    changed
}

/// Rewrites an address of the map, used as a module.
fn rewrite_address(place: &ReferenceContext<'_>, text: &str) -> ReferenceRewrite {
    place.rewrite_unless(
        place.module_skip_reason(text),
        text,
        Kind::Script,
        IMPORT_CREDENTIALS,
    )
}

/// Renames keys that are rewritten URLs, or prefixes of them, to their proxied URLs.
fn rewrite_keys(place: &ReferenceContext<'_>, map: &mut Map<String, Value>) -> bool {
    let moved: Vec<_> = map
        .iter()
        .filter(|(key, _)| is_url_like(key))
        .filter_map(|(key, value)| {
            let url = place.base.join(key).ok()?;
            match place.rules.verdict(&url, Kind::Script, place.source) {
                Verdict::Rewrite(_) => Some((rewrite_address(place, key).written?, value.clone())),
                Verdict::Skip(_) => None,
            }
        })
        .collect();
    let mut changed = false;
    for (key, value) in moved {
        if !map.contains_key(&key) {
            map.insert(key, value);
            changed = true;
        }
    }
    changed
}

fn is_url_like(text: &str) -> bool {
    text.starts_with('/')
        || text.starts_with("./")
        || text.starts_with("../")
        || Url::parse(text).is_ok()
}
