//! The resources that public pages, style sheets and scripts reference, by URL and variant, within limits.
//!
//! The origin may write request fields into a page that varies on them (`Accept-Language`). So the references in a page are stored for each
//! variant, and used only for requests that select this variant. A sheet that varies is not recorded.

use std::collections::{BTreeMap, VecDeque};

use spdy_markup::es_modules::ImportMap;
use spdy_page::replica::Kind;
use spdy_rewrite::kind;
use spdy_rewrite::reference::Reference;
use spdy_rewrite::reference::page_modules::PageModules;
use spdy_rewrite::rules::verdict::SkipReason;

/// The maximum number of pages, of sheets and of scripts whose references are remembered.
pub(super) const MAX_DOCUMENTS: usize = 1024;
/// Bytes of all URLs together: of pages, of sheets, and of scripts.
pub(super) const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Variants of one page, as many as the cache stores by default; bytes of the request fields that select one.
pub(super) const MAX_VARIANTS: usize = 16;
pub(super) const MAX_VARIANT_BYTES: usize = 2 * 1024;

/// The references in pages, style sheets and scripts.
#[derive(Debug, Default)]
pub(super) struct ReferenceTables {
    pub(super) pages: ReferenceTable,
    pub(super) sheets: ReferenceTable,
    pub(super) scripts: ReferenceTable,
}

/// The references in documents, by key and variant.
#[derive(Debug, Default)]
pub(super) struct ReferenceTable {
    pub(super) documents: BTreeMap<String, Vec<DocumentReferences>>,
    /// Key and variant of each document, the oldest first.
    pub(super) order: VecDeque<(String, Vec<u8>)>,
    pub(super) bytes: usize,
}

/// The references in one variant of a page, in a sheet or in a script.
#[derive(Debug)]
pub(super) struct DocumentReferences {
    variant: Vec<u8>,
    pub(super) contents: DocumentContents,
}

/// What a document references.
#[derive(Debug, Default)]
pub(super) struct DocumentContents {
    pub(super) resources: Vec<ReferencedResource>,
    /// The specifiers of imports: of a script, or of the inline modules of a page.
    pub(super) imports: Vec<String>,
    /// For a page: how its modules resolve their imports.
    pub(super) modules: Option<ModuleContext>,
    /// For a page: the identity of the text that has these references.
    pub(super) text: Option<String>,
}

/// How the modules of a page resolve their imports.
#[derive(Debug)]
pub(super) struct ModuleContext {
    pub(super) import_map: ImportMap,
    /// The base of the page's URLs, for its inline modules.
    pub(super) base: url::Url,
    /// The page pins some modules, which no hint can express.
    pub(super) has_integrity: bool,
    /// The tag of the site's rules.
    pub(super) rules: String,
    /// Memory of the map and of the base, bytes.
    pub(super) bytes: usize,
}

impl ModuleContext {
    /// Of the page at `url`; `None` if that is no URL.
    pub(super) fn of(url: &str, rules: &str, modules: &PageModules) -> Option<Self> {
        let page = url::Url::parse(url).ok()?;
        let base = modules.base.as_ref().and_then(|base| page.join(base).ok());
        let base = base.unwrap_or(page);
        let import_map = ImportMap::of(&modules.import_maps, &base);
        let mut maps = modules.import_maps.iter();
        Some(Self {
            bytes: import_map.memory_bytes() + base.as_str().len() + rules.len(),
            import_map,
            base,
            has_integrity: maps.any(|map| map.contains("\"integrity\"")),
            rules: rules.to_owned(),
        })
    }
}

/// A resource that a page, a sheet or a script references: its URL, and how it is requested.
#[derive(Clone, Debug)]
pub(super) struct ReferencedResource {
    /// Path and query at the page's own origin; the full URL if its host has an alias.
    pub(super) target: String,
    /// `None` if resources of its kind are neither pushed nor hinted.
    pub(super) kind: Option<Kind>,
    pub(super) by_cors: bool,
    /// No hint can state how the page loads it.
    pub(super) cannot_preload: bool,
    /// For a sheet: the key under which its own references are stored ([`document_key`]).
    pub(super) sheet: Option<String>,
}

/// The pages for which the URLs in a document are rewritten.
#[derive(Clone, Copy, Debug)]
pub struct DocumentContext<'a> {
    /// The origin of the page.
    pub home: &'a url::Origin,
    /// The tag of the site's rules.
    pub rules: &'a str,
}

impl ReferenceTable {
    pub(super) fn insert(&mut self, key: &str, variant: &[u8], contents: DocumentContents) {
        self.remove(key, variant);
        let document = DocumentReferences {
            variant: variant.to_vec(),
            contents,
        };
        let bytes = weight(key, &document);
        if bytes > MAX_BYTES || variant.len() > MAX_VARIANT_BYTES {
            return;
        }
        if self.variants(key).len() >= MAX_VARIANTS {
            let oldest = self.variants(key)[0].variant.clone();
            self.remove(key, &oldest);
        }
        while self.bytes + bytes > MAX_BYTES || self.order.len() >= MAX_DOCUMENTS {
            let Some((key, variant)) = self.order.front().cloned() else {
                break;
            };
            self.remove(&key, &variant);
        }
        self.bytes += bytes;
        self.order.push_back((key.to_owned(), variant.to_vec()));
        self.documents
            .entry(key.to_owned())
            .or_default()
            .push(document);
    }

    pub(super) fn remove(&mut self, key: &str, variant: &[u8]) {
        let Some(documents) = self.documents.get_mut(key) else {
            return;
        };
        let Some(index) = documents
            .iter()
            .position(|document| document.variant == variant)
        else {
            return;
        };
        let document = documents.remove(index);
        if documents.is_empty() {
            self.documents.remove(key);
        }
        self.bytes -= weight(key, &document);
        self.order
            .retain(|(other, selected)| other != key || selected != variant);
    }

    /// All variants, the oldest first.
    pub(super) fn variants(&self, key: &str) -> &[DocumentReferences] {
        self.documents.get(key).map_or(&[], Vec::as_slice)
    }

    pub(super) fn variant(&self, key: &str, variant: &[u8]) -> Option<&DocumentReferences> {
        let mut documents = self.variants(key).iter();
        documents.find(|document| document.variant == variant)
    }
}

pub(super) fn weight(key: &str, document: &DocumentReferences) -> usize {
    let bytes = |resource: &ReferencedResource| {
        let sheet = resource.sheet.as_ref().map_or(0, String::len);
        resource.target.len() + sheet + size_of::<ReferencedResource>()
    };
    let contents = &document.contents;
    let targets: usize = contents.resources.iter().map(bytes).sum();
    let imports = contents.imports.iter();
    let imports: usize = imports.map(|text| text.len() + size_of::<String>()).sum();
    let modules = contents.modules.as_ref();
    let modules = modules.map_or(0, |modules| modules.bytes + size_of::<ModuleContext>());
    let text = contents.text.as_ref().map_or(0, String::len);
    key.len() + document.variant.len() + text + targets + imports + modules
}

/// The key of a sheet by its URL, or of a script by its target. Sites rewrite the same sheet of another host differently: each has its own
/// URLs for the resources that it references.
pub(super) fn document_key(rules: &str, place: &str) -> String {
    format!("{rules} {place}")
}

/// The key of a script of the site's own: names of one site may belong to different owners. The text of a proxied script is the same for
/// all of them, so its key is that of its target.
pub(super) fn own_script_key(rules: &str, home: &str, target: &str) -> String {
    format!("{rules} {home}{target}")
}

/// The resources of `references` that are served at the home of `context`, each once.
pub(super) fn referenced_resources(
    references: &[Reference],
    context: DocumentContext<'_>,
) -> Vec<ReferencedResource> {
    let mut resources: Vec<ReferencedResource> = Vec::new();
    let mut indexes = BTreeMap::new();
    for reference in references {
        let Some(target) = path_at_origin(reference, context.home) else {
            continue;
        };
        let kind = match reference.kind {
            kind::Kind::Style => Some(Kind::Stylesheet),
            kind::Kind::Script => Some(Kind::Script),
            kind::Kind::Font => Some(Kind::Font),
            kind::Kind::Image => Some(Kind::Image),
            kind::Kind::Media | kind::Kind::Document | kind::Kind::Worker => None,
        };
        let sheet = || {
            let url = reference.url.split('#').next().unwrap_or_default();
            document_key(context.rules, url)
        };
        match indexes.get(&target) {
            Some(&at) => {
                let earlier: &mut ReferencedResource = &mut resources[at];
                earlier.cannot_preload |= reference.cannot_preload;
            }
            None => {
                indexes.insert(target.clone(), resources.len());
                resources.push(ReferencedResource {
                    target,
                    kind,
                    by_cors: reference.by_cors,
                    cannot_preload: reference.cannot_preload,
                    sheet: (kind == Some(Kind::Stylesheet)).then(sheet),
                });
            }
        }
    }
    resources
}

/// The path of a reference that the proxy serves: its path at `home`, or its proxied path. A resource of the site under another name is
/// requested by that name.
pub(crate) fn path_at_origin(reference: &Reference, home: &url::Origin) -> Option<String> {
    let url_text = match &reference.outcome {
        Ok(proxied) if proxied.starts_with('/') || reference.is_alias() => {
            return Some(proxied.clone());
        }
        Ok(proxied) => proxied,
        Err(SkipReason::SameSite) => &reference.url,
        Err(_) => return None,
    };
    let url = url::Url::parse(url_text).ok()?;
    (url.origin() == *home).then_some(())?;
    Some(url[url::Position::BeforePath..url::Position::AfterQuery].to_owned())
}

/// The target of `url`, if it is at the origin `home`.
pub(crate) fn target_at<'u>(home: &str, url: &'u str) -> Option<&'u str> {
    let target = url.strip_prefix(home)?;
    // `https://shop.example` is also the beginning of `https://shop.example.org/`.
    target.starts_with('/').then_some(target)
}
