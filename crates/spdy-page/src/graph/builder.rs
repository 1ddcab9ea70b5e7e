//! Builds the graph: places exchanges under those that name them, and scans the texts of placed ones.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use url::Url;

use crate::coding::{self, DecodedBody};
use crate::graph::html::{self, Role, ScriptMode};
use crate::graph::{WaitsFor, css};
use crate::head::Head;
use crate::limits::DECODED_BODY_BYTES;
use crate::replica::{Exchange, Kind, without_fragment};

/// The cause of a request, by indices of exchanges.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cause {
    Start,
    Bytes {
        parent: usize,
        at_byte: u64,
    },
    /// In the text of `parent`, at an unknown offset: such causes are finally spread evenly over the text.
    Somewhere {
        parent: usize,
    },
    Done {
        parent: usize,
    },
    /// By an inline script of the document `parent`: one that names it up to this byte, or a module that ends there and imports it.
    Inline {
        parent: usize,
        at_byte: u64,
        /// A module imports it statically. So it is requested before the module runs.
        is_import: bool,
    },
}

impl Cause {
    pub(crate) fn parent(self) -> Option<usize> {
        match self {
            Self::Start => None,
            Self::Bytes { parent, .. }
            | Self::Somewhere { parent }
            | Self::Done { parent }
            | Self::Inline { parent, .. } => Some(parent),
        }
    }
}

/// The position of one exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    pub(crate) cause: Cause,
    pub(crate) delay: Duration,
    pub(crate) role: Role,
    /// For a preload that a tag of the same document uses: the offset after that tag.
    pub(crate) used_at: Option<u64>,
    /// The event whose handler requests it.
    pub(crate) by_handler_of: Option<WaitsFor>,
    /// Whether the load event may wait for it.
    pub(crate) in_page: bool,
    /// DOMContentLoaded of the page's own document waits for it.
    pub(crate) before_dom_content_loaded: bool,
}

/// A real text, decoded.
pub(crate) struct DecodedText {
    pub(crate) exchange: usize,
    pub(crate) text: String,
    /// The positions of its text in the transfer; the text itself has moved to `text`.
    pub(crate) decoded: DecodedBody,
    /// The inline scripts in the text of a document.
    pub(crate) inline_scripts: Vec<Range<usize>>,
}

/// A graph during its construction.
pub(crate) struct GraphBuilder<'a> {
    pub(crate) exchanges: &'a [Exchange],
    pub(crate) start: usize,
    pub(crate) placed: Vec<Option<Placement>>,
    /// Exchanges in the order of their placement.
    pub(crate) order: Vec<usize>,
    /// Exchanges by URL without fragment, in recorded order. For lookups only, never for iteration.
    by_url: HashMap<&'a str, VecDeque<usize>>,
    /// The target of each redirect.
    pub(crate) location: Vec<Option<String>>,
    /// Redirects with a placed target.
    leads_on: Vec<bool>,
    /// Placed scripts and style sheets by the recorded times of their ends.
    pub(crate) ends: BTreeSet<(Duration, usize)>,
    /// For each exchange, the modules that it imports statically; set when all exchanges are placed.
    pub(crate) imports: Vec<Vec<usize>>,
    /// Texts of placed documents and scripts, for references in code.
    pub(crate) texts: Vec<DecodedText>,
    /// Positions in `texts` by exchange. For lookups only, never for iteration.
    text_at: HashMap<usize, usize>,
    /// Offsets at which the bodies of real documents start, as transferred.
    body_at: BTreeMap<usize, u64>,
    /// The last script that the page's own text names.
    pub(crate) last_script: Option<usize>,
    to_scan: VecDeque<usize>,
}

impl<'a> GraphBuilder<'a> {
    pub(crate) fn new(exchanges: &'a [Exchange], start: usize) -> Self {
        let mut by_url = HashMap::<_, VecDeque<usize>>::new();
        for (index, exchange) in exchanges.iter().enumerate() {
            by_url.entry(exchange.key()).or_default().push_back(index);
        }
        Self {
            exchanges,
            start,
            placed: vec![None; exchanges.len()],
            order: Vec::new(),
            by_url,
            location: exchanges.iter().map(location).collect(),
            leads_on: vec![false; exchanges.len()],
            ends: BTreeSet::new(),
            imports: vec![Vec::new(); exchanges.len()],
            texts: Vec::new(),
            text_at: HashMap::new(),
            body_at: BTreeMap::new(),
            last_script: None,
            to_scan: VecDeque::new(),
        }
    }

    /// Places the document, the redirects that led to it, and their references.
    pub(crate) fn place_start(&mut self) {
        let start = self.start;
        let mut leads_to = HashMap::<&str, usize>::new();
        for (index, location) in self.location.iter().enumerate() {
            if let Some(location) = location {
                leads_to.entry(location).or_insert(index);
            }
        }
        let mut chain = vec![start];
        let mut in_chain = vec![false; self.exchanges.len()];
        in_chain[start] = true;
        while let Some(&before) = chain
            .last()
            .and_then(|&last| leads_to.get(self.exchanges[last].key()))
            && !std::mem::replace(&mut in_chain[before], true)
        {
            chain.push(before);
        }
        let mut cause = Cause::Start;
        for index in chain.into_iter().rev() {
            self.place(
                index,
                Placement {
                    cause,
                    delay: Duration::ZERO,
                    role: Role::Frame,
                    used_at: None,
                    by_handler_of: None,
                    in_page: true,
                    before_dom_content_loaded: true,
                },
            );
            cause = Cause::Done { parent: index };
            self.leads_on[index] = index != start;
        }
        self.scan_placed();
    }

    /// The text of `exchange`, if it is real and placed; else an empty one.
    pub(crate) fn text(&self, exchange: usize) -> &str {
        let text = self.text_at.get(&exchange);
        text.map_or("", |&at| &self.texts[at].text)
    }

    /// The URL of exchanges without fragment, if `url` is that of one.
    pub(crate) fn known_url(&self, url: &str) -> Option<&'a str> {
        let (&known, _) = self.by_url.get_key_value(without_fragment(url))?;
        Some(known)
    }

    /// The first exchange of `url` that is not placed yet. If no exchange has that URL, one of the same URL with the other of http and
    /// https, because browsers upgrade some URLs of a page.
    pub(crate) fn unplaced(&mut self, url: &str) -> Option<usize> {
        let url = without_fragment(url);
        if self.by_url.contains_key(url) {
            return self.unplaced_exactly(url);
        }
        let other = || {
            let other = match url.split_once("://")? {
                ("http", rest) => format!("https://{rest}"),
                ("https", rest) => format!("http://{rest}"),
                _ => return None,
            };
            Some(other)
        };
        self.unplaced_exactly(&other()?)
    }

    fn unplaced_exactly(&mut self, url: &str) -> Option<usize> {
        let candidates = self.by_url.get_mut(url)?;
        while let Some(&first) = candidates.front() {
            if self.placed[first].is_none() {
                return Some(first);
            }
            candidates.pop_front();
        }
        None
    }

    /// Places `index`. The caller has placed the parent before.
    pub(crate) fn place(&mut self, index: usize, placed: Placement) {
        debug_assert!(
            self.placed[index].is_none(),
            "exchange {index} is placed twice"
        );
        self.placed[index] = Some(placed);
        self.order.push(index);
        self.to_scan.push_back(index);
        let exchange = &self.exchanges[index];
        if matches!(exchange.kind, Kind::Script | Kind::Stylesheet)
            && let Some(end) = exchange.finished()
        {
            self.ends.insert((end, index));
        }
    }

    /// Scans placed texts, and places their references, until there are no new ones.
    pub(crate) fn scan_placed(&mut self) {
        while let Some(index) = self.to_scan.pop_front() {
            if let Some(location) = self.location[index].take() {
                if let Some(target) = self.unplaced(&location) {
                    let own = self.placed[index]
                        .unwrap_or_else(|| panic!("exchange {index} has no place"));
                    self.leads_on[index] = true;
                    self.place(
                        target,
                        Placement {
                            cause: Cause::Done { parent: index },
                            delay: Duration::ZERO,
                            by_handler_of: None,
                            ..own
                        },
                    );
                }
                continue;
            }
            let exchange = &self.exchanges[index];
            match exchange.kind {
                Kind::Document => self.scan_document(index),
                Kind::Stylesheet => self.scan_stylesheet(index),
                Kind::Script => {
                    if let Some(decoded) = text_of(exchange) {
                        self.keep_text(index, decoded, Vec::new());
                    }
                }
                _ => {}
            }
        }
    }

    fn scan_document(&mut self, index: usize) {
        let exchange = &self.exchanges[index];
        let Some(decoded) = text_of(exchange) else {
            return;
        };
        let scan = html::scan(&decoded.text);
        let base = scan.base.and_then(|base| exchange.url.join(&base).ok());
        let base = base.unwrap_or_else(|| exchange.url.clone());
        let own = self.placed[index].unwrap_or_else(|| panic!("exchange {index} has no place"));
        let is_page = index == self.start;
        if let Some(body) = scan.body {
            self.body_at.insert(index, decoded.transferred_at(body));
        }
        let mut preloads: HashMap<String, (usize, u64)> = HashMap::new();
        // Of several references to one URL, the first that requests it when its tag has arrived counts.
        let (at_once, later): (Vec<_>, Vec<_>) = scan
            .references
            .into_iter()
            .partition(|reference| reference.role.is_requested_at_once());
        for reference in at_once.into_iter().chain(later) {
            let Ok(url) = base.join(&reference.url) else {
                continue;
            };
            let at_byte = decoded.transferred_at(reference.at);
            let key = without_fragment(url.as_str());
            let unplaced = self.unplaced(key);
            // A tag that uses a preload decides how it is used, and not when it is requested.
            let preload = match (unplaced, reference.role) {
                (None, Role::Script(_) | Role::Stylesheet { .. }) => preloads.remove(key),
                (None, Role::Embedded) => {
                    if let Some((preload, _)) = preloads.remove(key)
                        && let Some(placed) = &mut self.placed[preload]
                    {
                        placed.in_page = own.in_page;
                    }
                    None
                }
                _ => None,
            };
            let Some((target, requested_at)) = unplaced.map(|it| (it, at_byte)).or(preload) else {
                continue;
            };
            if reference.role == Role::Preload {
                preloads.insert(key.to_owned(), (target, at_byte));
            }
            if is_page && matches!(reference.role, Role::Script(_)) {
                self.last_script = Some(target);
            }
            let before_dom_content_loaded = is_page
                && match reference.role {
                    Role::Script(mode) => mode != ScriptMode::Async,
                    // Only the scripts after a sheet wait for it, and DOMContentLoaded waits for those scripts.
                    Role::Stylesheet { blocking } => {
                        blocking && scan.last_script.is_some_and(|last| reference.at < last)
                    }
                    _ => false,
                };
            let placed = Placement {
                cause: Cause::Bytes {
                    parent: index,
                    at_byte: requested_at,
                },
                delay: Duration::ZERO,
                role: reference.role,
                used_at: preload.map(|_| at_byte),
                by_handler_of: None,
                in_page: own.in_page && self.may_delay_load(reference.role, target),
                before_dom_content_loaded,
            };
            match preload {
                Some(_) => self.placed[target] = Some(placed),
                None => self.place(target, placed),
            }
        }
        self.keep_text(index, decoded, scan.inline_scripts);
    }

    /// True if the load event may wait for a resource that a document names in `role`. It waits for a preload if that is used: fonts and
    /// modules can be used without a tag.
    fn may_delay_load(&self, role: Role, exchange: usize) -> bool {
        let is_used = matches!(self.exchanges[exchange].kind, Kind::Font | Kind::Script);
        match role {
            Role::Preload => is_used,
            _ => !matches!(role, Role::Aside | Role::Icon),
        }
    }

    fn keep_text(
        &mut self,
        exchange: usize,
        mut decoded: DecodedBody,
        inline_scripts: Vec<Range<usize>>,
    ) {
        let text = String::from_utf8(std::mem::take(&mut decoded.text));
        let text =
            text.unwrap_or_else(|fault| String::from_utf8_lossy(fault.as_bytes()).into_owned());
        self.text_at.insert(exchange, self.texts.len());
        self.texts.push(DecodedText {
            exchange,
            text,
            decoded,
            inline_scripts,
        });
    }

    fn scan_stylesheet(&mut self, index: usize) {
        let exchange = &self.exchanges[index];
        let Some(decoded) = text_of(exchange) else {
            return;
        };
        let own = self.placed[index].unwrap_or_else(|| panic!("exchange {index} has no place"));
        for reference in css::scan(&String::from_utf8_lossy(&decoded.text)) {
            let Some(target) = self.named(&exchange.url, &reference.url) else {
                continue;
            };
            let (role, before_dom_content_loaded) = match reference.is_import {
                true => (own.role, own.before_dom_content_loaded),
                false => (Role::Styled, false),
            };
            let cause = Cause::Done { parent: index };
            self.place(
                target,
                Placement {
                    cause,
                    delay: Duration::ZERO,
                    role,
                    by_handler_of: None,
                    before_dom_content_loaded,
                    ..own
                },
            );
        }
    }

    fn named(&mut self, base: &Url, url: &str) -> Option<usize> {
        let url = base.join(url).ok()?;
        self.unplaced(url.as_str())
    }

    /// The byte of the transfer of `exchange` that made the byte `at` of its text known.
    pub(crate) fn transferred_at(&self, exchange: usize, at: usize) -> Option<u64> {
        let text = self.text_at.get(&exchange)?;
        Some(self.texts[*text].decoded.transferred_at(at))
    }

    /// Redirects and their targets.
    pub(crate) fn redirects(&self) -> impl Iterator<Item = (usize, usize)> {
        self.order.iter().filter_map(|&target| {
            let redirect = self.placed[target]?.cause.parent()?;
            self.leads_on[redirect].then_some((redirect, target))
        })
    }

    /// True if `index` is a deferred script or a module of the document.
    pub(crate) fn is_deferred(&self, index: usize) -> bool {
        let role = self.placed[index].map(|placed| placed.role);
        role == Some(Role::Script(ScriptMode::Defer))
    }

    /// Modules that a document preloads, and that a module imports, are used like the importing module.
    pub(crate) fn use_preloaded_modules(&mut self) {
        for (importer, imports) in self.imports.iter().enumerate() {
            let importer = self.placed[importer];
            let Some(importer) = importer.filter(|it| matches!(it.role, Role::Script(_))) else {
                continue;
            };
            for &import in imports {
                if let Some(placed) = &mut self.placed[import]
                    && placed.role == Role::Preload
                {
                    placed.role = importer.role;
                    // A frame may come after the event.
                    placed.before_dom_content_loaded = importer.before_dom_content_loaded
                        && placed.cause.parent() == Some(self.start);
                }
            }
        }
    }

    /// True if `index` is a redirect to a placed target.
    pub(crate) fn is_redirect(&self, index: usize) -> bool {
        self.leads_on[index]
    }

    /// True if `index` is a script that the parser does not wait for.
    pub(crate) fn is_deferred_or_async(&self, index: usize) -> bool {
        let role = self.placed[index].map(|placed| placed.role);
        let is_script = self.exchanges[index].kind == Kind::Script && !self.leads_on[index];
        let is_other = match role {
            Some(Role::Script(mode)) => mode != ScriptMode::Sync,
            _ => role == Some(Role::Preload),
        };
        is_script && is_other
    }

    /// The document whose layout requests `index`; `None` if layout does not request it.
    pub(crate) fn laid_out_in(&self, index: usize) -> Option<usize> {
        let placed = self.placed[index]?;
        if !matches!(placed.role, Role::Styled | Role::Lazy) {
            return None;
        }
        let above = |&at: &usize| self.placed[at]?.cause.parent();
        std::iter::successors(placed.cause.parent(), above)
            .find(|&at| self.exchanges[at].kind == Kind::Document && !self.leads_on[at])
    }

    /// Offset at which the body of `document` starts, if it is real.
    pub(crate) fn body_at(&self, document: usize) -> Option<u64> {
        self.body_at.get(&document).copied()
    }
}

/// The URLs of frames in a real document.
pub(crate) fn frames_in(exchange: &Exchange) -> Vec<String> {
    let text = Some(exchange)
        .filter(|exchange| exchange.kind == Kind::Document)
        .and_then(text_of);
    let Some(text) = text else { return Vec::new() };
    let scan = html::scan(&text.text);
    let base = scan.base.and_then(|base| exchange.url.join(&base).ok());
    let base = base.unwrap_or_else(|| exchange.url.clone());
    let frames = scan
        .references
        .iter()
        .filter(|reference| reference.role == Role::Frame);
    let urls = frames.filter_map(|reference| base.join(&reference.url).ok());
    urls.map(|url| without_fragment(url.as_str()).to_owned())
        .collect()
}

/// The decoded text of a real body.
pub(crate) fn text_of(exchange: &Exchange) -> Option<DecodedBody> {
    if !exchange.body_is_real || exchange.body.is_empty() {
        return None;
    }
    let codings = Head::parse(&exchange.response_head)
        .map(|head| head.content_codings())
        .unwrap_or_default();
    coding::decode(&exchange.body, &codings, DECODED_BODY_BYTES).ok()
}

/// The target of a redirect, without fragment.
pub(crate) fn location(exchange: &Exchange) -> Option<String> {
    let head = Head::parse(&exchange.response_head)?;
    if !matches!(head.status(), Some(301 | 302 | 303 | 307 | 308)) {
        return None;
    }
    let target = exchange.url.join(head.value("location")?).ok()?;
    Some(without_fragment(target.as_str()).to_owned())
}
