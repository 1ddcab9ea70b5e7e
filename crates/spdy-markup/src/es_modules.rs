//! ES modules: imports of a script, and their targets by an import map (HTML §8.1.6).
//!
//! Scripts are searched, not parsed: a quoted text after `from`, `import` or `import(` is a specifier. A specifier in a comment is
//! found too; the caller compares the result with what was requested.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use url::Url;

/// Maximum length of a specifier, bytes.
const LONGEST_SPECIFIER: usize = 2048;
/// Maximum number of specifiers that are found in one script.
const MAX_SPECIFIERS: usize = 4096;
/// The text before a quote in which the keyword is searched, bytes. A longer comment between the two hides the import.
const MAX_LOOKBACK_BYTES: usize = 512;

/// The imports of `script`, static or by a literal, each once in the order of the text: at most 4,096.
#[must_use]
pub fn specifiers(script: &str) -> Vec<&str> {
    specifiers_of(script, |_| true)
}

/// The static imports of `script`, as [`specifiers`]. A browser requests them before it runs the module.
#[must_use]
pub fn static_specifiers(script: &str) -> Vec<&str> {
    specifiers_of(script, |form| form == ImportForm::Static)
}

/// The form of an import.
#[derive(Clone, Copy, Eq, PartialEq)]
enum ImportForm {
    /// `import "a"`, `import x from "a"`, `export x from "a"`.
    Static,
    /// `import("a")`.
    Dynamic,
}

fn specifiers_of(script: &str, is_wanted: impl Fn(ImportForm) -> bool) -> Vec<&str> {
    let (mut found, mut known): (Vec<&str>, BTreeSet<&str>) = Default::default();
    for (at, quote) in script.match_indices(['"', '\'']) {
        if !import_form(&script[..at]).is_some_and(&is_wanted) {
            continue;
        }
        let rest = &script[at + 1..];
        let searched = &rest[..rest.floor_char_boundary(LONGEST_SPECIFIER + 1)];
        let end = searched.find(['"', '\'', '\n', '\\']);
        let end = end.filter(|&end| rest[end..].starts_with(quote));
        if let Some(specifier) = end.map(|end| &rest[..end])
            && !specifier.is_empty()
            && known.insert(specifier)
        {
            found.push(specifier);
            if found.len() == MAX_SPECIFIERS {
                break;
            }
        }
    }
    found
}

/// How the text after `before` is imported; `None` if it is not.
fn import_form(before: &str) -> Option<ImportForm> {
    let from = before.ceil_char_boundary(before.len().saturating_sub(MAX_LOOKBACK_BYTES));
    let before = &before[from..];
    let before = without_comment(before);
    let called = before.strip_suffix('(').map(without_comment);
    let word = called.unwrap_or(before);
    let word_before = |keyword: &str| {
        let rest = word.strip_suffix(keyword)?;
        Some(rest.chars().next_back())
    };
    let stands_alone = |last: Option<Option<char>>| {
        let is_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '.');
        last.is_some_and(|last| !last.is_some_and(is_of_name))
    };
    let is_import = stands_alone(word_before("import"));
    match called {
        Some(_) => is_import.then_some(ImportForm::Dynamic),
        None => (is_import || stands_alone(word_before("from"))).then_some(ImportForm::Static),
    }
}

/// `text` without white space and block comments at its end.
fn without_comment(text: &str) -> &str {
    let mut text = text.trim_end();
    while let Some(rest) = text.strip_suffix("*/") {
        match rest.rfind("/*") {
            Some(begin) => text = rest[..begin].trim_end(),
            None => break,
        }
    }
    text
}

/// Import maps, merged as in browsers: of two addresses for one key the first is used.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ImportMap {
    imports: Addresses,
    /// By the URL prefix of importing modules.
    scopes: BTreeMap<String, Addresses>,
}

/// By specifier or its prefix; `None` forbids it.
type Addresses = BTreeMap<String, Option<Url>>;

impl ImportMap {
    /// Merges the maps `texts` in a document with the base `base`. A text that is not a map is ignored.
    #[must_use]
    pub fn of(texts: &[String], base: &Url) -> Self {
        let mut all = Self::default();
        for text in texts {
            let Ok(map) = serde_json::from_str::<Map<String, Value>>(text) else {
                continue;
            };
            add(&mut all.imports, map.get("imports"), base);
            for (prefix, imports) in map
                .get("scopes")
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
            {
                if let Ok(prefix) = base.join(prefix) {
                    let scope = all.scopes.entry(prefix.into()).or_default();
                    add(scope, Some(imports), base);
                }
            }
        }
        all
    }

    /// Memory of its entries, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let bytes_of = |(key, url): (&String, &Option<Url>)| {
            let url = url.as_ref().map_or(0, |url| url.as_str().len());
            key.len() + url + size_of::<(String, Option<Url>)>()
        };
        let scopes = self.scopes.iter();
        let scopes = scopes.map(|(prefix, addresses)| {
            let entries: usize = addresses.iter().map(bytes_of).sum();
            prefix.len() + size_of::<(String, Addresses)>() + entries
        });
        self.imports.iter().map(bytes_of).sum::<usize>() + scopes.sum::<usize>()
    }

    /// Resolves `specifier` in a module at `from`; `None` if that is an error.
    #[must_use]
    pub fn resolve(&self, specifier: &str, from: &Url) -> Option<Url> {
        let url = url_like(specifier, from);
        let normal = url.as_ref().map_or(specifier, Url::as_str);
        let is_of = |prefix: &str| {
            prefix == from.as_str() || prefix.ends_with('/') && from.as_str().starts_with(prefix)
        };
        // The longest of nested prefixes is the last in alphabetical order.
        let scopes = self.scopes.iter().rev().filter(|(prefix, _)| is_of(prefix));
        let all = scopes
            .map(|(_, addresses)| addresses)
            .chain([&self.imports]);
        for addresses in all {
            if let Some(address) = look_up(addresses, normal) {
                return address;
            }
        }
        url
    }
}

/// The entry of `addresses` for `specifier`, which may forbid it.
fn look_up(addresses: &Addresses, specifier: &str) -> Option<Option<Url>> {
    if let Some(address) = addresses.get(specifier) {
        return Some(address.clone());
    }
    // The longest prefix is used.
    specifier.rmatch_indices('/').find_map(|(at, _)| {
        let (prefix, rest) = specifier.split_at(at + 1);
        let address = addresses.get(prefix)?;
        Some(address.as_ref().and_then(|address| address.join(rest).ok()))
    })
}

fn add(addresses: &mut Addresses, imports: Option<&Value>, base: &Url) {
    for (key, address) in imports.and_then(Value::as_object).into_iter().flatten() {
        let key = url_like(key, base).map_or_else(|| key.clone(), String::from);
        let address = address.as_str().and_then(|text| url_like(text, base));
        addresses.entry(key).or_insert(address);
    }
}

/// `text` as a URL, or as a path that begins like one (HTML, *resolve a URL-like module specifier*).
fn url_like(text: &str, base: &Url) -> Option<Url> {
    let is_path = ["/", "./", "../"]
        .iter()
        .any(|begin| text.starts_with(begin));
    let mut url = match is_path {
        true => base.join(text).ok()?,
        false => Url::parse(text).ok()?,
    };
    // Browsers encode it (URL, *path percent-encode set*), and the crate `url` does not. Versions are written with it: `@^1.2.1`.
    if url.path().contains('^') {
        let encoded = url.path().replace('^', "%5E");
        url.set_path(&encoded);
    }
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_found_in_any_style_and_other_texts_are_not() {
        let script = r#"
            import a from './a.js'; import"./b.js";import*as c from"https://cdn.test/c.js"
            export { d } from
                "./d.js"; export*from'./e.js';
            // don't mind this apostrophe
            const f = await import( /* webpackIgnore: true */ "f");
            import { 'odd' as g } from './a.js';
            fetch('./no.js'); Array.from('no'); my_import('no'); x.import('no'); xfrom = 'no'; from("no");
            import('./' + name); import("no
            break"); import("\x6eo"); import ''"#;
        let found = [
            "./a.js",
            "./b.js",
            "https://cdn.test/c.js",
            "./d.js",
            "./e.js",
            "f",
            "./",
        ];
        assert_eq!(specifiers(script), found);
        let long = format!("import '{}'", "x".repeat(LONGEST_SPECIFIER + 1));
        assert_eq!(specifiers(&long), [""; 0]);
        assert_eq!(specifiers(&long.replacen('x', "", 1)).len(), 1);
    }

    #[test]
    fn static_imports_are_distinguished_from_dynamic_ones() {
        let script = r#"import a from "./a.js"; import './b.js'; import ( /* now */ "./c.js"); export * from"./d.js""#;
        assert_eq!(static_specifiers(script), ["./a.js", "./b.js", "./d.js"]);
        assert_eq!(specifiers(script).len(), 4);
    }

    #[test]
    fn circumflex_in_a_path_is_encoded_as_by_browsers() {
        let base = Url::parse("https://esm.test/a.mjs").expect("a URL");
        let map = r#"{"imports": {"/b@^1.2?q=^": "/moved.mjs"}}"#;
        let map = ImportMap::of(&[map.to_owned()], &base);
        let resolved = |specifier| map.resolve(specifier, &base).map(String::from);
        let found = ["/b@^1.2?q=^", "/b@%5E1.2?q=^", "/b@^1.2"].map(resolved);
        let expected = ["/moved.mjs", "/moved.mjs", "/b@%5E1.2"];
        let expected = expected.map(|path| Some(format!("https://esm.test{path}")));
        assert_eq!(found, expected);
    }

    #[test]
    fn specifiers_are_resolved_as_in_the_html_standard() {
        let base = Url::parse("https://www.test/app/").expect("a URL");
        let first = r#"{"imports": {
            "three": "https://cdn.test/three.js", "three/": "https://cdn.test/three/", "no": null, "odd": "bare",
            "https://cdn.test/": "/moved/", "https://cdn.test/own/": "/longer/", "./local.js": "./other.js"
        }, "scopes": {"/app/": {"three": "/mine.js"}, "/app/deep/": {"three": "/deeper.js"}, "/one.js": {"a": "/b.js"}}}"#;
        let second = r#"{"imports": {"three": "/late.js", "late": "/late.js"}}"#;
        let maps = [first, second, "no map"].map(str::to_owned);
        let map = ImportMap::of(&maps, &base);
        for (specifier, from, expected) in [
            (
                "three",
                "https://www.test/",
                Some("https://cdn.test/three.js"),
            ),
            (
                "three",
                "https://www.test/app/x.js",
                Some("https://www.test/mine.js"),
            ),
            (
                "three",
                "https://www.test/app/deep/x.js",
                Some("https://www.test/deeper.js"),
            ),
            (
                "a",
                "https://www.test/one.js",
                Some("https://www.test/b.js"),
            ),
            ("a", "https://www.test/one.js?", None),
            (
                "three/x.js",
                "https://www.test/",
                Some("https://cdn.test/three/x.js"),
            ),
            (
                "late",
                "https://www.test/",
                Some("https://www.test/late.js"),
            ),
            ("no", "https://www.test/", None),
            ("odd", "https://www.test/", None),
            ("bare", "https://www.test/", None),
            (
                "https://cdn.test/a.js",
                "https://www.test/",
                Some("https://www.test/moved/a.js"),
            ),
            (
                "https://cdn.test/own/a.js",
                "https://www.test/",
                Some("https://www.test/longer/a.js"),
            ),
            (
                "./a.js",
                "https://cdn.test/b.js",
                Some("https://www.test/moved/a.js"),
            ),
            (
                "./local.js",
                "https://www.test/app/",
                Some("https://www.test/app/other.js"),
            ),
            (
                "./local.js",
                "https://www.test/",
                Some("https://www.test/local.js"),
            ),
            (
                "../up.js",
                "https://www.test/a/b.js",
                Some("https://www.test/up.js"),
            ),
        ] {
            let from = Url::parse(from).expect("a URL");
            let found = map.resolve(specifier, &from).map(String::from);
            assert_eq!(found.as_deref(), expected, "{specifier} from {from}");
        }
    }

    /// The work for a text grows with its length, also if many comments end before quotes, or all imports differ.
    #[test]
    fn long_hostile_texts_are_searched_in_linear_time() {
        let comments = "*/'".repeat(1 << 20);
        assert_eq!(specifiers(&comments), [""; 0]);
        let imports: String = (0..1 << 17).map(|n| format!("import '{n}';")).collect();
        assert_eq!(specifiers(&imports).len(), MAX_SPECIFIERS);
        let unended = "import '".repeat(1 << 18);
        assert_eq!(specifiers(&unended), ["import "]);
        let hidden = format!("import /*{}*/ 'a'", " ".repeat(MAX_LOOKBACK_BYTES));
        assert_eq!(specifiers(&hidden), [""; 0]);
    }
}
