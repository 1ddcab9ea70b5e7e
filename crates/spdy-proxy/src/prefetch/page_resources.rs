//! Resources that are sent or hinted with a page: pushed over SPDY, hinted by 103 over HTTP/2 and HTTP/3, and by `Link` over SPDY
//! without pushes.
//!
//! ```text
//! text of a public page, and of public sheets ──▶ what it names ──────────────┐
//! Referer of what clients request, a vote of each network ──▶ spdy-server/learned_resources/ ─────┴▶ candidates ──▶ plan (push_plan.rs)
//!                                                                                 ├ in the cache, and fresh ──▶ push
//!                                                                                 └ else ──▶ hint
//! ```
//!
//! Sheets, scripts and fonts that the page names go along. Other resources that clients request go along if the page or one of its sheets
//! names exactly that URL. Otherwise the caller must find that the resource is in the cache as public, and it must have no query. So
//! clients, which are not trusted, choose among public resources, and add nothing. No references are remembered of a page that is not
//! public (`public`): they could be private to one client.
//!
//! The origin may write request fields into a page that varies on them (`Accept-Language`). So the names in a page are stored for each
//! variant, and used only for requests that select this variant. A sheet that varies is not noted at all.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use parking_lot::{Mutex, MutexGuard};
use spdy_clock::Instant;
use spdy_page::replica::Kind;
use spdy_rewrite::kind;
use spdy_rewrite::reference::Reference;
use spdy_rewrite::rules::verdict::SkipReason;
use spdy_server::learned_resources::{LearnedResources, LearningLimits, ResourceLoad};
use spdy_server::push_plan::PushCandidate;

/// The maximum number of pages, and of sheets, whose references are remembered.
const MAX_DOCUMENTS: usize = 1024;
/// Bytes of all URLs together, of pages and of sheets.
const MAX_BYTES: usize = 4 * 1024 * 1024;
/// Variants of one page, as many as the cache stores by default; bytes of the request fields that select one.
const MAX_VARIANTS: usize = 16;
const MAX_VARIANT_BYTES: usize = 2 * 1024;
/// Sheets that lead to one another, and those of one page in all.
const MAX_STYLESHEET_DEPTH: usize = 3;
const MAX_STYLESHEETS_PER_PAGE: usize = 64;

/// What pages bring along.
#[derive(Debug)]
pub struct PageResources {
    texts: Mutex<ReferenceTables>,
    learned: Mutex<LearnedResources>,
}

/// A resource that may be pushed or hinted with a page.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// It, by its URL in full.
    pub resource: PushCandidate,
    /// The page or one of its sheets names exactly this URL.
    pub is_referenced: bool,
}

#[derive(Debug, Default)]
struct ReferenceTables {
    pages: ReferenceTable,
    sheets: ReferenceTable,
}

/// Something that a page or a sheet names: where it is requested, and how.
#[derive(Clone, Debug)]
struct ReferencedResource {
    /// Path and query at the page's own origin; in full at its host's own name here.
    target: String,
    /// `None` if resources of its kind are neither pushed nor hinted.
    kind: Option<Kind>,
    by_cors: bool,
    /// No hint says how the page loads it.
    cannot_preload: bool,
    /// Of a sheet: its key ([`sheet_key`]), which gives the names in it.
    sheet: Option<String>,
}

/// For which pages the URLs in a text are rewritten.
#[derive(Clone, Copy, Debug)]
pub struct DocumentContext<'a> {
    /// The origin of the page.
    pub home: &'a url::Origin,
    /// The tag of the site's rules.
    pub rules: &'a str,
}

/// The request of a client for a subresource.
#[derive(Clone, Copy, Debug)]
pub struct SubresourceRequest<'a> {
    /// Its target, a path with or without a query, and how it is loaded.
    pub loaded: &'a ResourceLoad<'a>,
    /// The request has fields that identify the client to its origin.
    pub has_credentials: bool,
}

/// The names in texts, by key and variant.
#[derive(Debug, Default)]
struct ReferenceTable {
    texts: BTreeMap<String, Vec<DocumentReferences>>,
    /// Key and variant of each text, the oldest first.
    order: VecDeque<(String, Vec<u8>)>,
    bytes: usize,
}

/// The names in one variant of a page, or in a sheet.
#[derive(Debug)]
struct DocumentReferences {
    variant: Vec<u8>,
    things: Vec<ReferencedResource>,
}

impl ReferenceTable {
    fn insert(&mut self, key: &str, variant: &[u8], things: Vec<ReferencedResource>) {
        self.remove(key, variant);
        let text = DocumentReferences {
            variant: variant.to_vec(),
            things,
        };
        let bytes = weight(key, &text);
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
        self.texts.entry(key.to_owned()).or_default().push(text);
    }

    fn remove(&mut self, key: &str, variant: &[u8]) {
        let Some(texts) = self.texts.get_mut(key) else {
            return;
        };
        let Some(at) = texts.iter().position(|text| text.variant == variant) else {
            return;
        };
        let text = texts.remove(at);
        if texts.is_empty() {
            self.texts.remove(key);
        }
        self.bytes -= weight(key, &text);
        self.order
            .retain(|(other, selected)| other != key || selected != variant);
    }

    /// The oldest first.
    fn variants(&self, key: &str) -> &[DocumentReferences] {
        self.texts.get(key).map_or(&[], Vec::as_slice)
    }

    fn variant(&self, key: &str, variant: &[u8]) -> Option<&DocumentReferences> {
        let mut texts = self.variants(key).iter();
        texts.find(|text| text.variant == variant)
    }
}

fn weight(key: &str, text: &DocumentReferences) -> usize {
    let bytes = |thing: &ReferencedResource| {
        let sheet = thing.sheet.as_ref().map_or(0, String::len);
        thing.target.len() + sheet + size_of::<ReferencedResource>()
    };
    let targets: usize = text.things.iter().map(bytes).sum();
    key.len() + text.variant.len() + targets
}

/// Sites rewrite the same sheet of another host differently: each has its own URLs for what the sheet names.
fn sheet_key(rules: &str, url: &str) -> String {
    format!("{rules} {url}")
}

/// The target of `url`, if it is at the origin `home`.
pub(crate) fn target_at<'u>(home: &str, url: &'u str) -> Option<&'u str> {
    let target = url.strip_prefix(home)?;
    // `https://shop.example` is also the beginning of `https://shop.example.org/`.
    target.starts_with('/').then_some(target)
}

impl ReferenceTables {
    /// The resource at `target`, if one of these variants of a page or one of its sheets names it.
    fn find<'t>(
        &'t self,
        variants: impl IntoIterator<Item = &'t DocumentReferences>,
        target: &str,
    ) -> Option<&'t ReferencedResource> {
        let mut layer: Vec<_> = variants.into_iter().collect();
        let mut seen = BTreeSet::new();
        for _ in 0..=MAX_STYLESHEET_DEPTH {
            let mut next = Vec::new();
            for thing in layer.into_iter().flat_map(|text| &text.things) {
                if thing.target == target {
                    return Some(thing);
                }
                if let Some(sheet) = &thing.sheet
                    && seen.len() < MAX_STYLESHEETS_PER_PAGE
                    && seen.insert(sheet)
                {
                    next.extend(self.sheets.variants(sheet));
                }
            }
            layer = next;
        }
        None
    }
}

impl Default for PageResources {
    fn default() -> Self {
        Self {
            texts: Mutex::default(),
            learned: Mutex::new(LearnedResources::new(LearningLimits::default())),
        }
    }
}

impl PageResources {
    /// This variant of the public page at `url` names these. By another of the site's names it is another page: what it names
    /// in full is one's own origin, and the other's not.
    pub fn record_page(
        &self,
        url: &str,
        variant: &[u8],
        reader: DocumentContext<'_>,
        references: &[Reference],
    ) {
        let things = things(references, reader);
        self.texts().pages.insert(url, variant, things);
    }

    /// Records the references of the public sheet at `url`, which is the same for all clients.
    pub fn record_stylesheet(
        &self,
        url: &str,
        reader: DocumentContext<'_>,
        references: &[Reference],
    ) {
        let key = sheet_key(reader.rules, url);
        let things = things(references, reader);
        self.texts().sheets.insert(&key, &[], things);
    }

    /// This variant of the page at `url` is not public any more.
    pub fn forget_page(&self, url: &str, variant: &[u8]) {
        self.texts().pages.remove(url, variant);
    }

    /// Whether any variant of the page at `url` is noted.
    #[must_use]
    pub fn has_page(&self, url: &str) -> bool {
        self.texts().pages.texts.contains_key(url)
    }

    /// Whether this variant of the page at `url` is noted.
    #[must_use]
    pub fn has_variant(&self, url: &str, variant: &[u8]) -> bool {
        self.texts().pages.variant(url, variant).is_some()
    }

    /// What may go along with this variant of the page at `page`, of `home`: first what it names and cannot be drawn without,
    /// then what else clients were seen to need.
    #[must_use]
    pub fn candidates(
        &self,
        now: Instant,
        home: &str,
        page: &str,
        variant: &[u8],
    ) -> Vec<Candidate> {
        let mut needed = self.learned().resources_of(now, page);
        let texts = self.texts();
        let text = texts.pages.variant(page, variant);
        let named = text.map_or(&[][..], |text| &text.things);
        let mut own: Vec<_> = named.iter().filter(|it| is_candidate(it)).collect();
        // A client first needs what it cannot draw without.
        own.sort_by_key(|thing| rank(thing.kind));
        let mut seen = BTreeSet::new();
        own.retain(|thing| seen.insert(thing.target.clone()));
        let mut candidates: Vec<_> = own.into_iter().map(|thing| thing.candidate(home)).collect();
        needed.retain(|wish| !seen.contains(&wish.url));
        if needed.is_empty() {
            return candidates;
        }
        for wish in needed {
            candidates.extend(match texts.find(text, &wish.url) {
                Some(thing) => thing.kind.is_some().then(|| thing.candidate(home)),
                None if wish.url.contains('?') => None,
                None => Some(Candidate {
                    resource: PushCandidate {
                        url: [home, &wish.url].concat(),
                        ..wish
                    },
                    is_referenced: false,
                }),
            });
        }
        candidates
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
        let texts = self.texts();
        let mut learned = self.learned();
        let page = match texts.pages.texts.contains_key(referer) {
            true => Some(referer.to_owned()),
            // Browsers request the resources of a sheet with the sheet as the referrer.
            false => {
                let page = learned.last_view(now, from);
                let page = page.zip(target_at(home, referer)).filter(|(page, sheet)| {
                    let thing = texts.find(texts.pages.variants(page), sheet);
                    thing.is_some_and(|thing| thing.sheet.is_some())
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
        let variants = texts.pages.variants(&page);
        if !needs_name || texts.find(variants, loaded.url).is_some() {
            learned.record_request(now, from, &page, loaded);
        }
    }

    /// A client at `from` was pushed `target` with the page at `page`, and took all of it.
    pub fn record_accepted_push(&self, from: Option<IpAddr>, page: &str, target: &str) {
        self.learned().record_push(from, page, target);
    }

    fn texts(&self) -> MutexGuard<'_, ReferenceTables> {
        self.texts.lock()
    }

    fn learned(&self) -> MutexGuard<'_, LearnedResources> {
        self.learned.lock()
    }
}

/// The path of a reference that is served here: its path at `home`, or the path it was moved to. A resource of the site under another name
/// is requested by that name.
pub(crate) fn path_at_origin(reference: &Reference, home: &url::Origin) -> Option<String> {
    let own = match &reference.outcome {
        Ok(place) if place.starts_with('/') || reference.is_alias() => return Some(place.clone()),
        Ok(place) => place,
        Err(SkipReason::SameSite) => &reference.url,
        Err(_) => return None,
    };
    let url = url::Url::parse(own).ok()?;
    (url.origin() == *home).then_some(())?;
    Some(url[url::Position::BeforePath..url::Position::AfterQuery].to_owned())
}

impl ReferencedResource {
    fn candidate(&self, home: &str) -> Candidate {
        Candidate {
            resource: PushCandidate {
                // In full: alone, a path that begins with two slashes would name another host.
                url: match self.target.starts_with('/') {
                    true => [home, &self.target].concat(),
                    false => self.target.clone(),
                },
                kind: self.kind,
                by_cors: self.by_cors,
                is_unhintable: self.cannot_preload,
                may_push: true,
                ..PushCandidate::default()
            },
            is_referenced: true,
        }
    }
}

/// The resources that `references` name at the home of `reader`, each once.
fn things(references: &[Reference], reader: DocumentContext<'_>) -> Vec<ReferencedResource> {
    let mut things: Vec<ReferencedResource> = Vec::new();
    let mut places = BTreeMap::new();
    for reference in references {
        let Some(target) = path_at_origin(reference, reader.home) else {
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
            sheet_key(reader.rules, url)
        };
        match places.get(&target) {
            Some(&at) => {
                let before: &mut ReferencedResource = &mut things[at];
                before.cannot_preload |= reference.cannot_preload;
            }
            None => {
                places.insert(target.clone(), things.len());
                things.push(ReferencedResource {
                    target,
                    kind,
                    by_cors: reference.by_cors,
                    cannot_preload: reference.cannot_preload,
                    sheet: (kind == Some(Kind::Stylesheet)).then(sheet),
                });
            }
        }
    }
    things
}

/// Whether a resource that a page names is a candidate before any client requested it. An image is not: a client may choose one of several,
/// and nothing waits for it.
fn is_candidate(thing: &ReferencedResource) -> bool {
    matches!(
        thing.kind,
        Some(Kind::Stylesheet | Kind::Script | Kind::Font)
    )
}

fn rank(kind: Option<Kind>) -> u8 {
    match kind {
        Some(Kind::Stylesheet) => 0,
        Some(Kind::Script | Kind::Font) => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};
    use spdy_rewrite::referrer::ReferrerScope;

    use super::*;

    const HOME: &str = "https://www.site.test";
    const PAGE: &str = "https://www.site.test/";

    fn own(target: &str, kind: kind::Kind, unhintable: bool) -> Reference {
        Reference {
            url: format!("{HOME}{target}"),
            kind,
            by_cors: true,
            cannot_preload: unhintable,
            is_candidate: false,
            referrer_scope: ReferrerScope::All,
            outcome: Err(SkipReason::SameSite),
        }
    }

    fn home() -> url::Origin {
        url::Url::parse(PAGE).unwrap().origin()
    }

    fn note_page(companions: &PageResources, references: &[Reference]) {
        let (home, rules) = (home(), "rules");
        companions.record_page(
            PAGE,
            &[],
            DocumentContext { home: &home, rules },
            references,
        );
    }

    fn note_sheet(companions: &PageResources, url: &str, references: &[Reference]) {
        let (home, rules) = (home(), "rules");
        companions.record_stylesheet(url, DocumentContext { home: &home, rules }, references);
    }

    /// Four networks view the page and request these with that referrer.
    fn teach(companions: &PageResources, referer: &str, targets: &[&str]) {
        for network in 0..4 {
            let from = Some(IpAddr::from([198, 51, network, 1]));
            companions.record_view(Instant::ZERO, from, PAGE, &[]);
            for target in targets {
                let loaded = ResourceLoad::of(target, &Method::GET, &HeaderMap::new());
                let loaded = loaded.expect("it may be learned");
                let request = SubresourceRequest {
                    loaded: &loaded,
                    has_credentials: false,
                };
                companions.record_request(Instant::ZERO, from, HOME, referer, &request);
            }
        }
    }

    /// URLs of what may go along, whether they are named, and whether they may be hinted at.
    fn candidates(companions: &PageResources) -> Vec<(String, bool, bool)> {
        let candidates = companions.candidates(Instant::ZERO, HOME, PAGE, &[]);
        let one = |it: Candidate| {
            (
                it.resource.url,
                it.is_referenced,
                !it.resource.is_unhintable,
            )
        };
        candidates.into_iter().map(one).collect()
    }

    fn is(target: &str, is_named: bool, may_hint: bool) -> (String, bool, bool) {
        (format!("{HOME}{target}"), is_named, may_hint)
    }

    #[test]
    fn pinned_and_credentialed_resources_are_not_hinted() {
        let companions = PageResources::default();
        let references = [
            own("/plain.js", kind::Kind::Script, false),
            own("/pinned.js", kind::Kind::Script, true),
            own("/with-cookies.png", kind::Kind::Image, true),
        ];
        note_page(&companions, &references);
        let named = [is("/plain.js", true, true), is("/pinned.js", true, false)];
        assert_eq!(candidates(&companions), named);
        teach(
            &companions,
            PAGE,
            &["/plain.js", "/pinned.js", "/with-cookies.png"],
        );
        let all = [&named[..], &[is("/with-cookies.png", true, false)]].concat();
        assert_eq!(candidates(&companions), all);
        note_page(&companions, &[]);
        let unnamed = ["/plain.js", "/pinned.js", "/with-cookies.png"];
        assert_eq!(
            candidates(&companions),
            unnamed.map(|it| is(it, false, true))
        );
    }

    #[test]
    fn query_is_learned_only_if_page_or_stylesheet_references_it() {
        let companions = PageResources::default();
        let style = own("/a.css?v=1", kind::Kind::Style, false);
        note_page(&companions, &[style]);
        let fonts = [own("/f.woff2?v=4.7", kind::Kind::Font, false)];
        let sheet = format!("{HOME}/a.css?v=1");
        note_sheet(&companions, &sheet, &fonts);
        let planted = ["/logout?confirm=1", "/f.woff2?v=4.8", "/f.woff2?v=4.7"];
        teach(&companions, PAGE, &planted);
        let want = [
            is("/a.css?v=1", true, true),
            is("/f.woff2?v=4.7", true, true),
        ];
        assert_eq!(candidates(&companions), want);
    }

    #[test]
    fn resources_of_a_page_stylesheet_are_learned_for_the_page() {
        let companions = PageResources::default();
        let style = own("/a.css", kind::Kind::Style, false);
        note_page(&companions, &[style]);
        let import = [own("/b.css", kind::Kind::Style, false)];
        note_sheet(&companions, &format!("{HOME}/a.css"), &import);
        let fonts = [own("/f.woff2?v=4.7", kind::Kind::Font, false)];
        note_sheet(&companions, &format!("{HOME}/b.css"), &fonts);
        note_sheet(&companions, &format!("{HOME}/other.css"), &fonts);
        let own = is("/a.css", true, true);
        teach(
            &companions,
            &format!("{HOME}/other.css"),
            &["/f.woff2?v=4.7"],
        );
        assert_eq!(
            candidates(&companions),
            std::slice::from_ref(&own),
            "no sheet of the page"
        );
        teach(&companions, &format!("{HOME}/b.css"), &["/f.woff2?v=4.7"]);
        let font = is("/f.woff2?v=4.7", true, true);
        assert_eq!(candidates(&companions), [own, font]);
    }

    #[test]
    fn nothing_is_learned_for_a_private_page() {
        let companions = PageResources::default();
        teach(&companions, PAGE, &["/files/x.jpg"]);
        assert_eq!(candidates(&companions), []);
    }

    #[test]
    fn target_starting_with_two_slashes_is_same_origin() {
        let companions = PageResources::default();
        let odd = own("//other.test/x.js", kind::Kind::Script, false);
        note_page(&companions, &[odd]);
        assert_eq!(
            candidates(&companions),
            [is("//other.test/x.js", true, true)]
        );
    }

    #[test]
    fn stylesheet_rewritten_by_two_sites_has_urls_of_each() {
        let companions = PageResources::default();
        let home = home();
        let moved = |target: &str, kind: kind::Kind, url: &str| Reference {
            url: url.to_owned(),
            outcome: Ok(target.to_owned()),
            ..own("/", kind, false)
        };
        let sheet = "https://cdn.test/a.css";
        let font = "https://cdn.test/f.woff2?v=1";
        let style = [moved("/moved/a.css", kind::Kind::Style, sheet)];
        for (rules, target) in [
            ("rules", "/own/f.woff2?v=1"),
            ("others", "/else/f.woff2?v=1"),
        ] {
            let reader = DocumentContext { home: &home, rules };
            let font = [moved(target, kind::Kind::Font, font)];
            companions.record_stylesheet(sheet, reader, &font);
        }
        note_page(&companions, &style);
        teach(
            &companions,
            PAGE,
            &["/else/f.woff2?v=1", "/own/f.woff2?v=1"],
        );
        let want = ["/moved/a.css", "/own/f.woff2?v=1"].map(|it| is(it, true, true));
        assert_eq!(candidates(&companions), want);
    }

    #[test]
    fn page_count_and_bytes_are_limited() {
        let home = home();
        let reader = DocumentContext {
            home: &home,
            rules: "rules",
        };
        let thing = |bytes: usize| {
            let target = format!("/{}", "a".repeat(bytes));
            [own(&target, kind::Kind::Script, false)]
        };
        let companions = PageResources::default();
        let note = |url: &str, variant: usize, bytes: usize| {
            let variant = "v".repeat(variant).into_bytes();
            companions.record_page(url, &variant, reader, &thing(bytes));
        };
        let knows = |url: &str, variant: usize| {
            companions.has_variant(url, &"v".repeat(variant).into_bytes())
        };
        for n in 0..=MAX_DOCUMENTS {
            note(&n.to_string(), 0, 1);
        }
        assert!(!companions.has_page("0"), "one past the limit");
        assert!(companions.has_page("1"));
        for variant in 0..=MAX_VARIANTS {
            note("varies", variant, 1);
        }
        assert!(!knows("varies", 0), "one past the limit");
        assert!(knows("varies", 1) && knows("varies", MAX_VARIANTS));
        note("varies", MAX_VARIANT_BYTES, 1);
        note("varies", MAX_VARIANT_BYTES + 1, 1);
        assert!(knows("varies", MAX_VARIANT_BYTES) && !knows("varies", MAX_VARIANT_BYTES + 1));
        assert!(companions.texts().pages.order.len() <= MAX_DOCUMENTS);
        note("large", 0, MAX_BYTES - 1000);
        assert!(companions.has_page("large") && !companions.has_page("100"));
        note("larger", 0, MAX_BYTES);
        assert!(!companions.has_page("larger") && companions.has_page("large"));
        companions.forget_page("large", b"other");
        assert!(companions.has_page("large"));
        companions.forget_page("large", b"");
        note("some", 0, 1);
        note("some", 1, 1);
        let texts = companions.texts();
        let all = texts.pages.texts.iter();
        let all = all.flat_map(|(url, texts)| texts.iter().map(move |text| (url, text)));
        assert_eq!(texts.pages.order.len(), all.clone().count());
        let weights = all.map(|(url, text)| weight(url, text));
        assert_eq!(texts.pages.bytes, weights.sum::<usize>());
    }
}
