//! Resources that are sent or hinted with a page: pushed over SPDY, hinted by 103 over HTTP/2 and HTTP/3, and by `Link` over SPDY
//! without pushes.
//!
//! ```text
//! text of a public page, and of public sheets and modules ──▶ what it names ──┐
//! Referer of what clients request, a vote of each network ──▶ spdy-server/learned_resources/ ─────┴▶ candidates ──▶ plan (push_plan.rs)
//!                                                                                 ├ in the cache, and fresh ──▶ push
//!                                                                                 └ else ──▶ hint
//! ```
//!
//! Sheets, scripts and fonts that the page names are pushed or hinted. So are other resources that clients request, if the page, or one of
//! its sheets and modules, names exactly that URL. Otherwise the caller must find that the resource is in the cache as public, and it must
//! have no query. So clients, which are not trusted, choose among public resources, and add nothing. No references are remembered of a
//! page that is not public (`public`): they could be private to one client.
//!
//! A resource that only a sheet or a module of the page names costs a browser another round trip for each level. One client is enough
//! to learn that it is needed. The text of a script is searched, not parsed, so the caller must find that the resource is in the cache as
//! public.
//!
//! `prefetch/document_references.rs` stores the references of each variant of a page, and `prefetch/page_candidates.rs` chooses among them.

use std::net::IpAddr;

use parking_lot::{Mutex, MutexGuard};
use spdy_clock::Instant;
use spdy_page::replica::Kind;
use spdy_rewrite::reference::Reference;
use spdy_rewrite::reference::page_modules::PageModules;
use spdy_server::learned_resources::{LearnedResources, LearningLimits, ResourceLoad};

use crate::prefetch::document_references::{
    DocumentContents, DocumentContext, ModuleContext, ReferenceTables, document_key,
    own_script_key, referenced_resources, target_at,
};
use crate::prefetch::page_candidates::{Candidate, LearnedCandidates, page_candidates};

/// The number of networks that must request a resource before it is pushed or hinted, if a style sheet or a module of the page names it.
const MIN_NETWORKS_IF_NAMED: u32 = 1;

/// The resources of pages, and what was learned from the requests of clients.
#[derive(Debug)]
pub struct PageResources {
    documents: Mutex<ReferenceTables>,
    learned: Mutex<LearnedResources>,
}

/// The request of a client for a subresource.
#[derive(Clone, Copy, Debug)]
pub struct SubresourceRequest<'a> {
    /// Its target, a path with or without a query, and how it is loaded.
    pub loaded: &'a ResourceLoad<'a>,
    /// The request has fields that identify the client to its origin.
    pub has_credentials: bool,
}

impl Default for PageResources {
    fn default() -> Self {
        Self {
            documents: Mutex::default(),
            learned: Mutex::new(LearnedResources::new(LearningLimits::default())),
        }
    }
}

impl PageResources {
    /// Records the references of this variant of the public page at `url`. Under another name of the site it is another page, because a
    /// full URL may be of the page's own origin under one name and not under the other.
    pub fn record_page(
        &self,
        url: &str,
        variant: &[u8],
        context: DocumentContext<'_>,
        references: &[Reference],
        modules: PageModules,
        text: Option<&str>,
    ) {
        let resources = referenced_resources(references, context);
        let contents = DocumentContents {
            resources,
            modules: ModuleContext::of(url, context.rules, &modules),
            imports: modules.inline_imports,
            text: text.map(str::to_owned),
        };
        self.documents().pages.insert(url, variant, contents);
    }

    /// Records the references of the public sheet at `url`, which is the same for all clients.
    pub fn record_stylesheet(
        &self,
        url: &str,
        context: DocumentContext<'_>,
        references: &[Reference],
    ) {
        let key = document_key(context.rules, url);
        let contents = DocumentContents {
            resources: referenced_resources(references, context),
            ..DocumentContents::default()
        };
        self.documents().sheets.insert(&key, &[], contents);
    }

    /// Records the imports of the public script at `target`, which is the same for all clients. For a script of the site's own, `home` is
    /// the origin at which it was requested.
    pub fn record_script(
        &self,
        rules: &str,
        home: Option<&str>,
        target: &str,
        imports: Vec<String>,
    ) {
        let key = match home {
            Some(home) => own_script_key(rules, home, target),
            None => document_key(rules, target),
        };
        let mut documents = self.documents();
        if imports.is_empty() {
            documents.scripts.remove(&key, &[]);
            return; // most scripts
        }
        let contents = DocumentContents {
            imports,
            ..DocumentContents::default()
        };
        documents.scripts.insert(&key, &[], contents);
    }

    /// Removes this variant of the page at `url`, which is not public any more.
    pub fn forget_page(&self, url: &str, variant: &[u8]) {
        self.documents().pages.remove(url, variant);
    }

    /// Whether any variant of the page at `url` is recorded.
    #[must_use]
    pub fn has_page(&self, url: &str) -> bool {
        self.documents().pages.documents.contains_key(url)
    }

    /// Whether this variant of the page at `url` is recorded.
    #[cfg(test)]
    fn has_variant(&self, url: &str, variant: &[u8]) -> bool {
        self.documents().pages.variant(url, variant).is_some()
    }

    /// Whether clients requested anything after the page at `url`.
    #[must_use]
    pub fn has_learned(&self, now: Instant, url: &str) -> bool {
        let learned = self.learned();
        !learned
            .resources_with(now, url, MIN_NETWORKS_IF_NAMED)
            .is_empty()
    }

    /// The resources that may be pushed or hinted with this variant of the page at `page`, of `home`: first its style sheets, then the
    /// resources that only they and its modules name, its scripts and fonts, and other resources that clients requested. `None` if the
    /// recorded references are not those of `text`.
    #[must_use]
    pub fn candidates(
        &self,
        now: Instant,
        home: &str,
        page: &str,
        variant: &[u8],
        text: Option<&str>,
    ) -> Option<Vec<Candidate>> {
        let (of_few, of_many) = {
            let learned = self.learned();
            (
                learned.resources_with(now, page, MIN_NETWORKS_IF_NAMED),
                learned.resources_of(now, page),
            )
        };
        let documents = self.documents();
        let document = documents.pages.variant(page, variant);
        let document = document.filter(|document| document.contents.text.as_deref() == text)?;
        let learned = LearnedCandidates { of_few, of_many };
        Some(page_candidates(&documents, home, document, &learned))
    }

    /// Records that a client at `from` received the public page at `page`, and hints for the targets `hinted` before it.
    pub fn record_view(&self, now: Instant, from: Option<IpAddr>, page: &str, hinted: &[String]) {
        let hinted = hinted.iter().map(String::as_str);
        self.learned().record_view(now, from, page, hinted);
    }

    /// A client at `from` sent `request` for a target of `home`, with `referer` as the page or sheet that it is for.
    ///
    /// Which variant of the page the client has is not known. [`candidates`](Self::candidates) checks each learned URL against
    /// the variant that it is used with.
    pub fn record_request(
        &self,
        now: Instant,
        from: Option<IpAddr>,
        home: &str,
        referer: &str,
        request: &SubresourceRequest<'_>,
    ) {
        let &SubresourceRequest {
            loaded,
            has_credentials,
        } = request;
        let documents = self.documents();
        let mut learned = self.learned();
        let find = |page: &str, target: &str| documents.find(home, page, target);
        let page = match documents.pages.documents.contains_key(referer) {
            true => Some(referer.to_owned()),
            // Browsers request the resources of a sheet or a module with it as the referrer.
            false => {
                let page = learned.last_view(now, from);
                let page = page
                    .zip(target_at(home, referer))
                    .filter(|(page, document)| {
                        find(page, document).is_some_and(|resource| {
                            resource.sheet.is_some() || resource.kind == Some(Kind::Script)
                        })
                    });
                page.map(|(page, _)| page.to_owned())
            }
        };
        let Some(page) = page else {
            return;
        };
        // A query may be an action or a secret, and so may the path of a client that the origin knows: these URLs are
        // learned only if a public text names them.
        let needs_name = has_credentials || loaded.url.contains('?');
        if !needs_name || find(&page, loaded.url).is_some() {
            learned.record_request(now, from, &page, loaded);
        }
    }

    /// Records that a client at `from` received all of `target` as a push with the page at `page`.
    pub fn record_accepted_push(&self, from: Option<IpAddr>, page: &str, target: &str) {
        self.learned().record_push(from, page, target);
    }

    fn documents(&self) -> MutexGuard<'_, ReferenceTables> {
        self.documents.lock()
    }

    fn learned(&self) -> MutexGuard<'_, LearnedResources> {
        self.learned.lock()
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};
    use spdy_rewrite::kind;
    use spdy_rewrite::referrer::ReferrerScope;
    use spdy_rewrite::rules::verdict::SkipReason;

    use super::*;
    use crate::prefetch::document_references::{
        MAX_BYTES, MAX_DOCUMENTS, MAX_VARIANT_BYTES, MAX_VARIANTS, weight,
    };
    use crate::prefetch::page_candidates::{MAX_DEEP, NamedBy};
    use crate::prefetch::reference_walk::{MAX_DEPTH, MAX_DOCUMENTS_PER_PAGE, MAX_VISITS};

    const HOME: &str = "https://www.site.test";
    const PAGE: &str = "https://www.site.test/";

    fn own(target: &str, kind: kind::Kind, cannot_preload: bool) -> Reference {
        Reference {
            url: format!("{HOME}{target}"),
            kind,
            by_cors: true,
            cannot_preload,
            is_candidate: false,
            referrer_scope: ReferrerScope::All,
            outcome: Err(SkipReason::SameSite),
        }
    }

    fn home() -> url::Origin {
        url::Url::parse(PAGE).unwrap().origin()
    }

    fn note_page(resources: &PageResources, references: &[Reference]) {
        let (home, rules) = (home(), "rules");
        resources.record_page(
            PAGE,
            &[],
            DocumentContext { home: &home, rules },
            references,
            PageModules::default(),
            None,
        );
    }

    fn note_sheet(resources: &PageResources, url: &str, references: &[Reference]) {
        let (home, rules) = (home(), "rules");
        resources.record_stylesheet(url, DocumentContext { home: &home, rules }, references);
    }

    /// Four networks view the page and request these with that referrer.
    fn teach(resources: &PageResources, referer: &str, targets: &[&str]) {
        for network in 0..4 {
            let from = Some(IpAddr::from([198, 51, network, 1]));
            resources.record_view(Instant::ZERO, from, PAGE, &[]);
            for target in targets {
                let loaded = ResourceLoad::of(target, &Method::GET, &HeaderMap::new());
                let loaded = loaded.expect("the resource can be learned");
                let request = SubresourceRequest {
                    loaded: &loaded,
                    has_credentials: false,
                };
                resources.record_request(Instant::ZERO, from, HOME, referer, &request);
            }
        }
    }

    /// URLs of the candidates, whether they are named, and whether they may be hinted.
    fn candidates(resources: &PageResources) -> Vec<(String, bool, bool)> {
        let candidates = resources.candidates(Instant::ZERO, HOME, PAGE, &[], None);
        let candidates = candidates.unwrap_or_default();
        let summary = |candidate: Candidate| {
            (
                candidate.resource.url,
                candidate.named_by != NamedBy::Nothing,
                !candidate.resource.is_unhintable,
            )
        };
        candidates.into_iter().map(summary).collect()
    }

    fn is(target: &str, is_named: bool, may_hint: bool) -> (String, bool, bool) {
        (format!("{HOME}{target}"), is_named, may_hint)
    }

    #[test]
    fn pinned_and_credentialed_resources_are_not_hinted() {
        let resources = PageResources::default();
        let references = [
            own("/plain.js", kind::Kind::Script, false),
            own("/pinned.js", kind::Kind::Script, true),
            own("/with-cookies.png", kind::Kind::Image, true),
        ];
        note_page(&resources, &references);
        let named = [is("/plain.js", true, true), is("/pinned.js", true, false)];
        assert_eq!(candidates(&resources), named);
        teach(
            &resources,
            PAGE,
            &["/plain.js", "/pinned.js", "/with-cookies.png"],
        );
        let all = [&named[..], &[is("/with-cookies.png", true, false)]].concat();
        assert_eq!(candidates(&resources), all);
        note_page(&resources, &[]);
        let targets = ["/plain.js", "/pinned.js", "/with-cookies.png"];
        assert_eq!(
            candidates(&resources),
            targets.map(|target| is(target, false, true))
        );
    }

    #[test]
    fn query_is_learned_only_if_page_or_stylesheet_references_it() {
        let resources = PageResources::default();
        let style = own("/a.css?v=1", kind::Kind::Style, false);
        note_page(&resources, &[style]);
        let fonts = [own("/f.woff2?v=4.7", kind::Kind::Font, false)];
        let sheet = format!("{HOME}/a.css?v=1");
        note_sheet(&resources, &sheet, &fonts);
        let planted = ["/logout?confirm=1", "/f.woff2?v=4.8", "/f.woff2?v=4.7"];
        teach(&resources, PAGE, &planted);
        let expected = [
            is("/a.css?v=1", true, true),
            is("/f.woff2?v=4.7", true, true),
        ];
        assert_eq!(candidates(&resources), expected);
    }

    #[test]
    fn resources_of_a_page_stylesheet_are_learned_for_the_page() {
        let resources = PageResources::default();
        let style = own("/a.css", kind::Kind::Style, false);
        note_page(&resources, &[style]);
        let import = [own("/b.css", kind::Kind::Style, false)];
        note_sheet(&resources, &format!("{HOME}/a.css"), &import);
        let fonts = [own("/f.woff2?v=4.7", kind::Kind::Font, false)];
        note_sheet(&resources, &format!("{HOME}/b.css"), &fonts);
        note_sheet(&resources, &format!("{HOME}/other.css"), &fonts);
        let stylesheet = is("/a.css", true, true);
        teach(
            &resources,
            &format!("{HOME}/other.css"),
            &["/f.woff2?v=4.7"],
        );
        assert_eq!(
            candidates(&resources),
            std::slice::from_ref(&stylesheet),
            "no sheet of the page"
        );
        teach(&resources, &format!("{HOME}/b.css"), &["/f.woff2?v=4.7"]);
        let font = is("/f.woff2?v=4.7", true, true);
        assert_eq!(candidates(&resources), [stylesheet, font]);
    }

    #[test]
    fn nothing_is_learned_for_a_private_page() {
        let resources = PageResources::default();
        teach(&resources, PAGE, &["/files/x.jpg"]);
        assert_eq!(candidates(&resources), []);
    }

    #[test]
    fn target_starting_with_two_slashes_is_same_origin() {
        let resources = PageResources::default();
        let odd = own("//other.test/x.js", kind::Kind::Script, false);
        note_page(&resources, &[odd]);
        assert_eq!(
            candidates(&resources),
            [is("//other.test/x.js", true, true)]
        );
    }

    #[test]
    fn stylesheet_rewritten_by_two_sites_has_urls_of_each() {
        let resources = PageResources::default();
        let home = home();
        let proxied = |target: &str, kind: kind::Kind, url: &str| Reference {
            url: url.to_owned(),
            outcome: Ok(target.to_owned()),
            ..own("/", kind, false)
        };
        let sheet = "https://cdn.test/a.css";
        let font = "https://cdn.test/f.woff2?v=1";
        let style = [proxied("/moved/a.css", kind::Kind::Style, sheet)];
        for (rules, target) in [
            ("rules", "/own/f.woff2?v=1"),
            ("others", "/else/f.woff2?v=1"),
        ] {
            let context = DocumentContext { home: &home, rules };
            let font = [proxied(target, kind::Kind::Font, font)];
            resources.record_stylesheet(sheet, context, &font);
        }
        note_page(&resources, &style);
        teach(&resources, PAGE, &["/else/f.woff2?v=1", "/own/f.woff2?v=1"]);
        let expected = ["/moved/a.css", "/own/f.woff2?v=1"].map(|target| is(target, true, true));
        assert_eq!(candidates(&resources), expected);
    }

    /// Sheet `n` imports sheet `n + 1`.
    #[test]
    fn chains_of_sheets_are_followed_up_to_a_depth() {
        let resources = PageResources::default();
        let sheet = |n: usize| own(&format!("/{n}.css"), kind::Kind::Style, false);
        note_page(&resources, &[sheet(0)]);
        for n in 0..=MAX_DEPTH {
            note_sheet(&resources, &format!("{HOME}/{n}.css"), &[sheet(n + 1)]);
        }
        let documents = resources.documents();
        let is_found = |n: usize| documents.find(HOME, PAGE, &format!("/{n}.css")).is_some();
        assert!(is_found(MAX_DEPTH) && !is_found(MAX_DEPTH + 1));
    }

    #[test]
    fn sheets_and_references_of_a_page_are_followed_up_to_a_number() {
        let resources = PageResources::default();
        let sheets: Vec<_> = (0..=MAX_DOCUMENTS_PER_PAGE)
            .map(|n| own(&format!("/{n}.css"), kind::Kind::Style, false))
            .collect();
        note_page(&resources, &sheets);
        for n in 0..=MAX_DOCUMENTS_PER_PAGE {
            let font = [own(&format!("/{n}.woff2"), kind::Kind::Font, false)];
            note_sheet(&resources, &format!("{HOME}/{n}.css"), &font);
        }
        let is_found = |target: &str| resources.documents().find(HOME, PAGE, target).is_some();
        let last = MAX_DOCUMENTS_PER_PAGE;
        assert!(is_found(&format!("/{}.woff2", last - 1)));
        assert!(is_found(&format!("/{last}.css")) && !is_found(&format!("/{last}.woff2")));

        let images: Vec<_> = (0..=MAX_VISITS)
            .map(|n| own(&format!("/{n}.png"), kind::Kind::Image, false))
            .collect();
        note_page(&resources, &images);
        assert!(is_found(&format!("/{}.png", MAX_VISITS - 1)));
        assert!(!is_found(&format!("/{MAX_VISITS}.png")));
    }

    #[test]
    fn hints_of_what_only_sheets_name_are_limited() {
        let resources = PageResources::default();
        note_page(&resources, &[own("/a.css", kind::Kind::Style, false)]);
        let fonts = (0..=MAX_DEEP).map(|n| format!("/{n}.woff2"));
        let fonts: Vec<_> = fonts.collect();
        let named: Vec<_> = fonts
            .iter()
            .map(|font| own(font, kind::Kind::Font, false))
            .collect();
        let sheet = format!("{HOME}/a.css");
        note_sheet(&resources, &sheet, &named);
        let targets: Vec<_> = fonts.iter().map(|font| &font[..]).collect();
        teach(&resources, &sheet, &targets);
        assert_eq!(candidates(&resources).len(), 1 + MAX_DEEP);
    }

    #[test]
    fn page_count_and_bytes_are_limited() {
        let home = home();
        let context = DocumentContext {
            home: &home,
            rules: "rules",
        };
        let script = |bytes: usize| {
            let target = format!("/{}", "a".repeat(bytes));
            [own(&target, kind::Kind::Script, false)]
        };
        let resources = PageResources::default();
        let note = |url: &str, variant: usize, bytes: usize| {
            let variant = "v".repeat(variant).into_bytes();
            resources.record_page(
                url,
                &variant,
                context,
                &script(bytes),
                PageModules::default(),
                None,
            );
        };
        let has_variant = |url: &str, variant: usize| {
            resources.has_variant(url, &"v".repeat(variant).into_bytes())
        };
        for number in 0..=MAX_DOCUMENTS {
            note(&number.to_string(), 0, 1);
        }
        assert!(!resources.has_page("0"), "one past the limit");
        assert!(resources.has_page("1"));
        for variant in 0..=MAX_VARIANTS {
            note("varies", variant, 1);
        }
        assert!(!has_variant("varies", 0), "one past the limit");
        assert!(has_variant("varies", 1) && has_variant("varies", MAX_VARIANTS));
        note("varies", MAX_VARIANT_BYTES, 1);
        note("varies", MAX_VARIANT_BYTES + 1, 1);
        assert!(
            has_variant("varies", MAX_VARIANT_BYTES)
                && !has_variant("varies", MAX_VARIANT_BYTES + 1)
        );
        assert!(resources.documents().pages.order.len() <= MAX_DOCUMENTS);
        note("large", 0, MAX_BYTES - 1000);
        assert!(resources.has_page("large") && !resources.has_page("100"));
        note("larger", 0, MAX_BYTES);
        assert!(!resources.has_page("larger") && resources.has_page("large"));
        resources.forget_page("large", b"other");
        assert!(resources.has_page("large"));
        resources.forget_page("large", b"");
        note("some", 0, 1);
        note("some", 1, 1);
        let documents = resources.documents();
        let all = documents.pages.documents.iter();
        let all =
            all.flat_map(|(url, documents)| documents.iter().map(move |document| (url, document)));
        assert_eq!(documents.pages.order.len(), all.clone().count());
        let weights = all.map(|(url, document)| weight(url, document));
        assert_eq!(documents.pages.bytes, weights.sum::<usize>());
    }
}
