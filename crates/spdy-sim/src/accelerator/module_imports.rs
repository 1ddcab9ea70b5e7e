//! ES modules through the accelerator. Scripts are never rewritten, so only a page's import map can lead their imports to the
//! accelerator.
//!
//! The imports are read from the recorded texts and resolved by the recorded import map. The target of the same specifier behind the
//! accelerator is resolved by the import map of the rewritten page, from the new URL of the importing module.

use std::collections::{BTreeMap, BTreeSet};

use spdy_page::es_modules::{self, DocumentModules, ImportMap};
use spdy_page::graph::PageGraph;
use spdy_page::replica::{Exchange, Kind, Replica};
use url::Url;

use super::rewrite_context::{decode_body, place};

/// One way in which a script is imported.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Import {
    /// The node of the script that imports it; the node of the document for an inline module.
    pub(super) importer: usize,
    /// As written in the importing script.
    pub(super) specifier: String,
}

/// The imports between scripts of a page.
#[derive(Debug, Default)]
pub(super) struct Imports {
    /// By the imported node.
    by_node: BTreeMap<usize, BTreeSet<Import>>,
}

impl Imports {
    /// Reads the imports of the recorded texts of `replica`.
    pub(super) fn of(replica: &Replica, graph: &PageGraph) -> Self {
        let mut imports = Self::default();
        let Some(document) = graph.document(replica) else {
            return imports;
        };
        let mut scripts: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (number, node) in graph.nodes.iter().enumerate() {
            if node.kind == Kind::Script {
                let url = &replica.exchanges[node.exchange].url;
                scripts.entry(place(url)).or_default().push(number);
            }
        }
        let map = PageImportMap::of(replica.document());
        let mut look = |importer: usize, text: &str, from: &Url| {
            for specifier in es_modules::specifiers(text) {
                let url = map.map.resolve(specifier, from);
                let nodes = url.as_ref().and_then(|url| scripts.get(place(url)));
                for &node in nodes.into_iter().flatten().filter(|&&it| it != importer) {
                    let specifier = specifier.to_owned();
                    let of_node = imports.by_node.entry(node).or_default();
                    of_node.insert(Import {
                        importer,
                        specifier,
                    });
                }
            }
        };
        for text in &map.inline {
            look(document, text, &map.base);
        }
        for (number, node) in graph.nodes.iter().enumerate() {
            let exchange = &replica.exchanges[node.exchange];
            if let Some(text) = script(exchange) {
                look(number, &text, &exchange.url);
            }
        }
        imports
    }

    /// The import of node `number` by the first script before it in the order of the page, else the first one; `None` if no recorded
    /// text imports it.
    pub(super) fn first(&self, number: usize) -> Option<&Import> {
        let all = self.by_node.get(&number)?;
        all.first()
    }
}

/// The text of a recorded script.
fn script(exchange: &Exchange) -> Option<String> {
    let is_script = exchange.kind == Kind::Script && exchange.body_is_real;
    let text = is_script.then(|| decode_body(exchange))??;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// The import map of a page.
#[derive(Debug)]
pub(super) struct PageImportMap {
    map: ImportMap,
    /// The base of the page's URLs, from which inline modules import.
    base: Url,
    /// The texts of inline modules.
    inline: Vec<String>,
}

impl PageImportMap {
    /// The import map of a document as recorded.
    pub(super) fn of(document: &Exchange) -> Self {
        let text = decode_body(document).filter(|_| document.body_is_real);
        Self::of_text(&text.unwrap_or_default(), &document.url)
    }

    /// The import map of the document `text` at `url`.
    pub(super) fn of_text(text: &[u8], url: &Url) -> Self {
        let modules = DocumentModules::of_html(text);
        let base = modules.base_url(url);
        Self {
            map: ImportMap::of(&modules.import_maps, &base),
            base,
            inline: modules.inline,
        }
    }

    /// Resolves `specifier` in a module at `from`; `None` is an inline module.
    pub(super) fn resolve(&self, specifier: &str, from: Option<&Url>) -> Option<Url> {
        self.map.resolve(specifier, from.unwrap_or(&self.base))
    }
}
