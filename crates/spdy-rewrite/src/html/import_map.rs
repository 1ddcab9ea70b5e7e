//! Import maps: what catches absolute imports in modules, of which no byte is rewritten (HTML §8.1.6).
//!
//! A module of a moved host names others of it relative to itself, and those follow. One that names
//! `https://cdn.test/b.js` in full would leave the session, and load a second time what was loaded under the site's
//! name: an entry that maps `https://cdn.test/` to where it is moved brings it back. One that names `/b.js`, from the root of its
//! host, would come to the site's: a scope for what imports from there brings that back, too.
//!
//! ```text
//! imports  https://cdn.test/           ──▶ /.spdy/1/-/s/cdn.test/
//! scopes   /.spdy/1/-/s/cdn.test/:   / ──▶ /.spdy/1/-/s/cdn.test/     what is relative already stands there:
//!                              /.spdy/ ──▶ /.spdy/                    a longer key goes before a shorter one
//! ```
//!
//! A map sees what a name means, not how it was written: a moved module that imports the site's own by its URL in full gets that path
//! of its own host.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use url::Url;

use crate::csp::CspCredentials;
use crate::kind::Kind;
use crate::reference::{Reference, ReferenceContext, ReferenceRewrite};
use crate::rules::Rules;
use crate::rules::host_name::HostPattern;
use crate::rules::url_form::UrlForm;
use crate::rules::verdict::Verdict;

/// What imports bear: nothing of an element's, and the trust of the script that imports.
const IMPORT_CREDENTIALS: CspCredentials<'_> = CspCredentials {
    nonce: None,
    integrity: None,
    imported: true,
};

/// The text of an import map with its addresses moved and the moved hosts added; `None` if it stays. `named` are the origins that
/// the page named before: of a pattern of hosts those are added.
///
/// What is no map is left for the browser to complain of.
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

/// The text of a map for a page that has none; `None` if there is nothing to map.
pub(crate) fn new_map(place: &ReferenceContext<'_>, named: &BTreeSet<String>) -> Option<String> {
    let mut map = Map::new();
    let is_of_use = complete(place, &moved(place, named), &mut map)?;
    is_of_use.then(|| written(&Value::Object(map)))
}

/// In a script element no `<` may stand that the page's parser could make something of.
fn written(map: &Value) -> String {
    map.to_string().replace('<', "\\u003c")
}

/// A host, or what of it is listed, whose scripts are moved by their path.
struct MappedHost {
    own: Url,
    to: String,
    /// Whether the page's policy lets all of it be moved; else modules may be, and what they name is left where it is.
    is_allowed: bool,
    /// Whether that is a name of its own, where the root is the host's.
    has_name: bool,
}

/// All that the rules list by name, and what of their patterns is among the origins `named`.
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
            let Ok(own) = Url::parse(&format!("{origin}{}", entry.path)) else {
                continue;
            };
            let Verdict::Rewrite(path) = place.rules.verdict(&own, Kind::Script, place.source)
            else {
                continue;
            };
            let judged = place.rewrite(own.as_str(), Kind::Script, IMPORT_CREDENTIALS);
            let is_allowed = judged.written.is_some();
            if is_allowed || named.contains(&own.origin().ascii_serialization()) {
                all.push(MappedHost {
                    to: place.site_path(&path),
                    own,
                    is_allowed,
                    has_name: entry.is_alias(),
                });
            }
        }
    }
    all
}

/// Adds to `map` what modules need where they are moved to, unless it is there; whether anything was added. `None` if it is no map.
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
        let scope = object(scopes, &host.to)?;
        let root = place.site_path("/");
        let of_root = match (host.own.path(), host.is_allowed) {
            ("/", true) => host.to.clone(),
            (path, is_allowed) => {
                if is_allowed {
                    changed |= add(scope, &place.site_path(path), &host.to);
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

/// Where modules that were moved stand, below the site's root.
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
        // What is not a URL is no address: `null` forbids a name, and a bare name is an error of the page's.
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

/// Judges what the map makes modules of.
fn rewrite_address(place: &ReferenceContext<'_>, text: &str) -> ReferenceRewrite {
    place.rewrite_unless(
        place.module_skip_reason(text),
        text,
        Kind::Script,
        IMPORT_CREDENTIALS,
    )
}

/// Adds to keys that are moved URLs, or prefixes of such, what they are where they are moved to.
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
