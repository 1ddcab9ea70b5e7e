//! Visits what a page references: directly, by its sheets, and by its modules.
//!
//! ```text
//! page ──▶ a.css ──▶ b.css ──▶ font          a sheet by its URL
//!      ──▶ import map, inline module ──▶ /app.js ──▶ ./parts.js      a script by its target
//! ```

use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;

use spdy_page::replica::Kind;
use url::Url;

use crate::prefetch::document_references::{
    DocumentContents, DocumentReferences, ModuleContext, ReferenceTables, ReferencedResource,
    document_key, own_script_key, target_at,
};

/// The longest chain of sheets and modules below a page that is followed.
pub(super) const MAX_DEPTH: usize = 8;
/// Maximum number of sheets and scripts of one page that are followed.
pub(super) const MAX_DOCUMENTS_PER_PAGE: usize = 128;
/// Maximum number of references of one page that are visited, with imports from other hosts and of all variants.
pub(super) const MAX_VISITS: usize = 4096;

/// A document to visit: what it references, its URL if it is a script, and its depth below the page.
struct Visit<'t> {
    contents: &'t DocumentContents,
    script: Option<Url>,
    depth: usize,
}

impl ReferenceTables {
    /// The resource at `target`, if a variant of the page `url` of `home`, or one of its sheets and modules, references it.
    pub(super) fn find(&self, home: &str, url: &str, target: &str) -> Option<ReferencedResource> {
        let mut remaining = MAX_VISITS;
        self.pages.variants(url).iter().find_map(|page| {
            let mut found = None;
            self.walk(home, page, &mut remaining, |_, resource| {
                if resource.target != target {
                    return ControlFlow::Continue(());
                }
                found = Some(resource.clone());
                ControlFlow::Break(())
            });
            found
        })
    }

    /// Calls `visit` with the resources that the page references, then with those of its sheets and modules, with the depth of the
    /// document that references them: 0 for the page. A resource may be visited several times. At most `remaining` are visited.
    pub(super) fn walk(
        &self,
        home: &str,
        page: &DocumentReferences,
        remaining: &mut usize,
        mut visit: impl FnMut(usize, &ReferencedResource) -> ControlFlow<()>,
    ) {
        let modules = page.contents.modules.as_ref();
        let mut queue = VecDeque::from([Visit {
            contents: &page.contents,
            script: None,
            depth: 0,
        }]);
        let mut entered = BTreeSet::new();
        while let Some(document) = queue.pop_front() {
            let resources = document.contents.resources.iter().cloned();
            let imports = modules.into_iter().flat_map(|modules| {
                let base = document.script.as_ref().unwrap_or(&modules.base);
                let specifiers = document.contents.imports.iter();
                specifiers.map(|specifier| modules.imported(home, specifier, base))
            });
            for resource in resources.map(Some).chain(imports) {
                if *remaining == 0 {
                    return;
                }
                *remaining -= 1;
                let Some(resource) = resource else {
                    continue; // an import from elsewhere
                };
                if visit(document.depth, &resource).is_break() {
                    return;
                }
                let is_script = resource.kind == Some(Kind::Script);
                let (table, keys) = match (is_script, modules) {
                    (false, _) => (&self.sheets, resource.sheet.into_iter().collect()),
                    (true, None) => continue,
                    (true, Some(modules)) => {
                        let target = &resource.target;
                        let own = own_script_key(&modules.rules, home, target);
                        (
                            &self.scripts,
                            vec![own, document_key(&modules.rules, target)],
                        )
                    }
                };
                let is_followed =
                    document.depth < MAX_DEPTH && entered.len() < MAX_DOCUMENTS_PER_PAGE;
                let found = keys.into_iter().find_map(|key| {
                    let contents = table.variants(&key).first()?;
                    Some((key, &contents.contents))
                });
                let Some((key, contents)) =
                    found.filter(|(key, _)| is_followed && !entered.contains(key))
                else {
                    continue;
                };
                let script = is_script
                    .then(|| absolute(home, &resource.target))
                    .flatten();
                queue.push_back(Visit {
                    contents,
                    script,
                    depth: document.depth + 1,
                });
                entered.insert(key);
            }
        }
    }
}

impl ModuleContext {
    /// The module that `specifier` in a module at `from` imports, if it is at `home`.
    fn imported(&self, home: &str, specifier: &str, from: &Url) -> Option<ReferencedResource> {
        let url = self.import_map.resolve(specifier, from)?;
        let url = &url[..url::Position::AfterQuery];
        let target = target_at(home, url)?.to_owned();
        Some(ReferencedResource {
            kind: Some(Kind::Script),
            by_cors: true,
            cannot_preload: self.has_integrity,
            sheet: None,
            target,
        })
    }
}

fn absolute(home: &str, target: &str) -> Option<Url> {
    match target.starts_with('/') {
        true => Url::parse(&[home, target].concat()).ok(),
        false => Url::parse(target).ok(),
    }
}
