//! Static imports of modules. A browser requests them before the module runs: when its text has arrived, or when the parser has passed
//! it if it is inline.
//!
//! Importers are scripts and the page's own document. Its import map counts for all of them, also for those of a frame.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use url::Url;

use crate::graph::builder::GraphBuilder;
use crate::graph::es_modules::{ImportMap, static_specifiers};
use crate::graph::html::{self, InlineModule};
use crate::replica::{Exchange, Kind};

/// Limit on the bytes of all texts and URLs that are read together; after that no import is found.
const READ_BYTES: usize = 64 << 20;

/// The imports of the page's own document and of the scripts that import others.
pub(crate) struct ModuleImports<'a> {
    page: Option<PageModules>,
    /// By the exchange whose text has them. For lookups only, never for iteration.
    by_importer: HashMap<usize, ImportedUrls<'a>>,
    /// For each inline module of the page's document, the last one that it imports; empty before they are read.
    last_of_inline: Vec<Option<&'a str>>,
    bytes_left: usize,
}

/// URLs of exchanges that one text imports.
#[derive(Default)]
struct ImportedUrls<'a> {
    in_order: Vec<&'a str>,
    /// With the end of the inline module that has them first.
    ends: HashMap<&'a str, usize>,
}

/// The import map and the inline modules of the page's own document.
struct PageModules {
    base: Url,
    map: ImportMap,
    inline: Vec<InlineModule>,
}

impl<'a> ModuleImports<'a> {
    pub(crate) fn new() -> Self {
        Self {
            page: None,
            by_importer: HashMap::new(),
            last_of_inline: Vec::new(),
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
        self.urls(plan, importer).ends.contains_key(exchange.key())
    }

    /// The byte of the page's own document where the first inline module that imports `exchange` ends.
    pub(crate) fn inline_end(
        &mut self,
        plan: &GraphBuilder<'a>,
        exchange: &Exchange,
    ) -> Option<u64> {
        let end = self
            .urls(plan, plan.start)
            .ends
            .get(exchange.key())
            .copied()?;
        plan.transferred_at(plan.start, end)
    }

    /// For the inline module of the page that contains `text`: the last exchange that it imports, which `by_url` has. `None` if no inline
    /// module contains it.
    pub(crate) fn of_inline_module(
        &mut self,
        plan: &GraphBuilder<'a>,
        text: &str,
        by_url: &HashMap<&str, usize>,
    ) -> Option<Option<usize>> {
        self.urls(plan, plan.start);
        let page = self.page.as_ref()?;
        let number = page
            .inline
            .iter()
            .position(|module| module.text.contains(text))?;
        let last = self.last_of_inline.get(number).copied().flatten();
        let import = last.and_then(|url| by_url.get(url).copied());
        // The target of a redirect is not known yet.
        Some(import.filter(|&import| plan.placed[import].is_some() && !plan.is_redirect(import)))
    }

    /// For each exchange of `plan`, the modules that it imports, in their order. All exchanges are placed. `by_url` has the first exchange
    /// of each URL.
    pub(crate) fn of_all(
        &mut self,
        plan: &GraphBuilder<'a>,
        by_url: &HashMap<&str, usize>,
    ) -> Vec<Vec<usize>> {
        let mut redirects: Vec<(usize, usize)> = plan.redirects().collect();
        redirects.reverse(); // the last one of a chain first
        let mut target_of = HashMap::new();
        for (redirect, next) in redirects {
            let target = target_of.get(&next).copied().unwrap_or(next);
            target_of.insert(redirect, target);
        }
        let target = |&url: &&str| {
            let first = *by_url.get(url)?;
            Some(target_of.get(&first).copied().unwrap_or(first))
        };
        let of_one = |importer: usize| match plan.is_deferred_or_async(importer) {
            true => self
                .urls(plan, importer)
                .in_order
                .iter()
                .filter_map(target)
                .collect(),
            false => Vec::new(),
        };
        (0..plan.exchanges.len()).map(of_one).collect()
    }

    fn urls(&mut self, plan: &GraphBuilder<'a>, importer: usize) -> &ImportedUrls<'a> {
        if !self.by_importer.contains_key(&importer) {
            let urls = self.read_urls(plan, importer);
            self.by_importer.insert(importer, urls);
        }
        &self.by_importer[&importer]
    }

    fn read_urls(&mut self, plan: &GraphBuilder<'a>, importer: usize) -> ImportedUrls<'a> {
        let page = self.page.get_or_insert_with(|| PageModules::of(plan));
        let (from, texts) = match importer == plan.start {
            true => {
                let inline = page.inline.iter();
                let texts = inline.map(|module| (&module.text[..], module.end));
                (&page.base, texts.collect())
            }
            false => {
                let text = plan.text(importer);
                (&plan.exchanges[importer].url, vec![(text, text.len())])
            }
        };
        let mut urls = ImportedUrls::default();
        for (text, end) in texts {
            let Some(left) = self.bytes_left.checked_sub(text.len()) else {
                break;
            };
            self.bytes_left = left;
            let mut last = None;
            for specifier in static_specifiers(text) {
                let Some(url) = page.map.resolve(specifier, from) else {
                    continue;
                };
                let Some(left) = self.bytes_left.checked_sub(url.as_str().len()) else {
                    break;
                };
                self.bytes_left = left;
                let known = plan.known_url(url.as_str());
                last = known.or(last);
                if let Some(known) = known
                    && let Entry::Vacant(new) = urls.ends.entry(known)
                {
                    new.insert(end);
                    urls.in_order.push(known);
                }
            }
            if importer == plan.start {
                self.last_of_inline.push(last);
            }
        }
        urls
    }
}

impl PageModules {
    fn of(plan: &GraphBuilder<'_>) -> Self {
        let scan = html::scan(plan.text(plan.start).as_bytes());
        let url = &plan.exchanges[plan.start].url;
        let base = scan.base.and_then(|base| url.join(&base).ok());
        let base = base.unwrap_or_else(|| url.clone());
        Self {
            map: ImportMap::of(&scan.import_maps, &base),
            base,
            inline: scan.inline_modules,
        }
    }
}
