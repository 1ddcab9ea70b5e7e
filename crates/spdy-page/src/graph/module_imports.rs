//! Static imports of modules. A browser requests them when the text that names them has arrived, and before the module runs.
//!
//! Importers are scripts and the page's own document. Its import map counts for all of them, also for those of a frame.

use std::collections::{HashMap, HashSet};

use url::Url;

use crate::graph::builder::GraphBuilder;
use crate::graph::es_modules::{DocumentModules, ImportMap, static_specifiers};
use crate::replica::{Exchange, Kind};

/// Limit on the bytes of all texts and URLs that are read together; after that no import is found.
const READ_BYTES: usize = 64 << 20;

/// The imports of the page's own document and of the scripts that import others.
pub(crate) struct ModuleImports<'a> {
    page: Option<PageModules>,
    /// URLs of exchanges, by the exchange whose text imports them. For lookups only, never for iteration.
    by_importer: HashMap<usize, HashSet<&'a str>>,
    bytes_left: usize,
}

/// What the page's own document says of modules.
struct PageModules {
    base: Url,
    map: ImportMap,
    inline: Vec<String>,
}

impl<'a> ModuleImports<'a> {
    pub(crate) fn new() -> Self {
        Self {
            page: None,
            by_importer: HashMap::new(),
            bytes_left: READ_BYTES,
        }
    }

    /// True if the text of `importer`, a script or the page's own document, imports `exchange` statically.
    pub(crate) fn has(
        &mut self,
        plan: &GraphBuilder<'a>,
        importer: usize,
        exchange: &Exchange,
    ) -> bool {
        let is_importer = importer == plan.start || plan.exchanges[importer].kind == Kind::Script;
        if exchange.kind != Kind::Script || !is_importer {
            return false;
        }
        if !self.by_importer.contains_key(&importer) {
            let urls = self.urls(plan, importer);
            self.by_importer.insert(importer, urls);
        }
        self.by_importer[&importer].contains(exchange.key())
    }

    /// URLs of exchanges that `importer` imports.
    fn urls(&mut self, plan: &GraphBuilder<'a>, importer: usize) -> HashSet<&'a str> {
        let page = self.page.get_or_insert_with(|| PageModules::of(plan));
        let (from, texts) = match importer == plan.start {
            true => (&page.base, page.inline.iter().map(String::as_str).collect()),
            false => (&plan.exchanges[importer].url, vec![plan.text(importer)]),
        };
        let mut urls = HashSet::new();
        for text in texts {
            let Some(left) = self.bytes_left.checked_sub(text.len()) else {
                break;
            };
            self.bytes_left = left;
            for specifier in static_specifiers(text) {
                let Some(url) = page.map.resolve(specifier, from) else {
                    continue;
                };
                let Some(left) = self.bytes_left.checked_sub(url.as_str().len()) else {
                    break;
                };
                self.bytes_left = left;
                urls.extend(plan.known_url(url.as_str()));
            }
        }
        urls
    }
}

impl PageModules {
    fn of(plan: &GraphBuilder<'_>) -> Self {
        let modules = DocumentModules::of_html(plan.text(plan.start).as_bytes());
        let base = modules.base_url(&plan.exchanges[plan.start].url);
        Self {
            map: ImportMap::of(&modules.import_maps, &base),
            base,
            inline: modules.inline,
        }
    }
}
