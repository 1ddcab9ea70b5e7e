//! Import maps: what catches absolute imports in modules, of which no byte is rewritten (HTML §8.1.6).
//!
//! A module of a moved host names others of it relative to itself, and those follow. One that names
//! `https://cdn.test/b.js` in full would leave the session, and load a second time what was loaded under the site's
//! name: an entry that maps `https://cdn.test/` to where it is moved brings it back.

use serde_json::{Map, Value};
use url::Url;

use crate::csp::Credentials;
use crate::host::Pattern;
use crate::kind::Kind;
use crate::reference::{Judged, Place, Reference};
use crate::verdict::Verdict;

/// What imports bear: nothing of an element's, and the trust of the script that imports.
const IMPORTED: Credentials<'_> = Credentials {
    nonce: None,
    integrity: None,
    imported: true,
};

/// The text of an import map with its addresses moved and the moved hosts added; `None` if it stays.
///
/// What is no map is left for the browser to complain of.
pub(crate) fn rewrite(
    place: &Place<'_>,
    text: &str,
    found: &mut dyn FnMut(Reference),
) -> Option<String> {
    let mut map: Map<String, Value> = serde_json::from_str(text).ok()?;
    let mut changed = false;
    if let Some(imports) = map.get_mut("imports") {
        changed |= move_addresses(place, imports.as_object_mut()?, found);
    }
    if let Some(scopes) = map.get_mut("scopes") {
        let scopes = scopes.as_object_mut()?;
        for imports in scopes.values_mut().filter_map(Value::as_object_mut) {
            changed |= move_addresses(place, imports, found);
        }
        // A scope is a prefix of the URL of whoever imports, who may be moved.
        changed |= move_keys(place, scopes);
    }
    if let Some(hashes) = map.get_mut("integrity") {
        changed |= move_keys(place, hashes.as_object_mut()?);
    }
    let entries = entries(place);
    if !entries.is_empty() {
        let imports = map
            .entry("imports")
            .or_insert_with(|| Value::Object(Map::new()))
            .as_object_mut()?;
        for (key, address) in entries {
            if !imports.contains_key(&key) {
                imports.insert(key, Value::String(address));
                changed = true;
            }
        }
    }
    changed.then(|| written(&Value::Object(map)))
}

/// The text of a map for a page that has none; `None` if there is nothing to map.
pub(crate) fn fresh(place: &Place<'_>) -> Option<String> {
    let entries = entries(place);
    if entries.is_empty() {
        return None;
    }
    let imports = entries
        .into_iter()
        .map(|(key, address)| (key, Value::String(address)))
        .collect();
    let map = [("imports".to_owned(), Value::Object(imports))]
        .into_iter()
        .collect();
    Some(written(&Value::Object(map)))
}

/// In a script element no `<` may stand that the page's parser could make something of.
fn written(map: &Value) -> String {
    map.to_string().replace('<', "\\u003c")
}

/// For each host whose scripts are moved by their path: what it is called, and where it is.
fn entries(place: &Place<'_>) -> Vec<(String, String)> {
    let scripts = place
        .rules
        .entries
        .iter()
        .filter(|entry| entry.kinds.has(Kind::Script) && !entry.is_exact(Kind::Script));
    scripts
        .filter_map(|entry| {
            let Pattern::Exact(host) = &entry.pattern else {
                return None;
            };
            let url = Url::parse(&format!(
                "{}://{host}:{}{}",
                entry.scheme.name(),
                entry.port,
                entry.path
            ))
            .ok()?;
            let judged = place.judge(url.as_str(), Kind::Script, IMPORTED);
            Some((url.to_string(), judged.written?))
        })
        .collect()
}

fn move_addresses(
    place: &Place<'_>,
    imports: &mut Map<String, Value>,
    found: &mut dyn FnMut(Reference),
) -> bool {
    let mut changed = false;
    for address in imports.values_mut() {
        // What is not a URL is no address: `null` forbids a name, and a bare name is an error of the page's.
        let Some(text) = address.as_str().filter(|text| is_url_like(text)) else {
            continue;
        };
        let judged = judge(place, text);
        judged.reference.into_iter().for_each(&mut *found);
        if let Some(written) = judged.written {
            *address = Value::String(written);
            changed = true;
        }
    }
    changed
}

/// Judges what the map makes modules of.
fn judge(place: &Place<'_>, text: &str) -> Judged {
    place.judge_unless(place.module_stays(text), text, Kind::Script, IMPORTED)
}

/// Adds to keys that are moved URLs, or prefixes of such, what they are where they are moved to.
fn move_keys(place: &Place<'_>, map: &mut Map<String, Value>) -> bool {
    let moved: Vec<_> = map
        .iter()
        .filter(|(key, _)| is_url_like(key))
        .filter_map(|(key, value)| {
            let url = place.base.join(key).ok()?;
            match place.rules.verdict(&url, Kind::Script, place.finder) {
                Verdict::Move(_) => Some((judge(place, key).written?, value.clone())),
                Verdict::Leave(_) => None,
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
