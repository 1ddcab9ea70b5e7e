//! A page as a browser sees it through the accelerator.
//!
//! The replica's own text is rewritten by the released rewriter, with the head of the request that a load sends. A browser requests
//! URLs under the site's name from the site, and all other URLs from their own hosts. The URLs are read from the text, and not
//! derived from the rules, because a browser finds only those. A resource that a script requests by itself is proxied only if the script is, and
//! builds the URL from its own (`script_urls.rs`). Imports of modules follow the import map of the rewritten page (`module_imports.rs`).
//!
//! The accelerator decides about a proxied resource that redirects. If it follows the redirect, the client makes one request and
//! receives the last response. Else the client is redirected to the other host, or the request is refused.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use spdy_page::graph::{Node, PageGraph, Trigger, WaitsFor};
use spdy_page::head;
use spdy_page::replica::{Kind, Replica};
use spdy_proxy::sites::site_table::Sites;
use spdy_rewrite::reference::Reference;
use url::Url;

use crate::accelerator::body_decoder::body_decoder;
use crate::accelerator::delivery::{self, Delivery, DirectReason};
use crate::accelerator::module_imports::{Imports, PageImportMap};
use crate::accelerator::rewrite_context::{
    RedirectOutcome, ReferencesByUrl, RewriteContext, decode_body, place, with_fetch_site,
    with_referer,
};
use crate::accelerator::script_urls::ScriptUrls;
use crate::accelerator::site::{self, OperatorConfig};
use crate::load::Page;
use crate::load::proxied_content::{DecodedBody, ProxiedContent, reference};

/// The trigger of a node without a parent.
const UNREACHABLE: Trigger = Trigger::Done { parent: usize::MAX };

/// A page as a browser loads it through an accelerator, and the configuration of that accelerator.
pub struct AcceleratedPage {
    /// The page with rewritten texts and URLs.
    pub(crate) page: Page,
    /// Content that comes through the accelerator.
    pub(crate) content: ProxiedContent,
    /// The names that lead to the accelerator.
    pub(crate) names: Vec<String>,
    pub(crate) sites: Sites,
    /// How each node of the page is delivered.
    pub deliveries: Vec<Delivery>,
    /// For each node, the seconds for which the accelerator may send its response to every client; `None` if it may not store it.
    pub shared_lifetime_s: Vec<Option<u64>>,
}

/// The accelerators of a page.
#[derive(Default)]
pub(crate) struct PageAccelerators {
    /// Their configuration; `None` proxies the whole page.
    operator_config: Option<OperatorConfig>,
    /// The page for each [`Rewriting`], in the order of its `index`. Each is created when the first load needs it.
    pages: [OnceLock<Result<Box<AcceleratedPage>, String>>; 8],
}

/// What affects how an accelerator rewrites a page, beside its configuration.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Rewriting {
    /// Whether clients use TLS.
    pub secure: bool,
    /// Whether URLs are those of the accelerator's paper.
    pub paper_urls: bool,
    /// Whether the accelerator has fetched the page's style sheets before, so that a page that pins one gets its new hash.
    pub knows_stylesheets: bool,
}

impl Rewriting {
    /// By an accelerator through which the page was loaded before, with TLS for clients if `secure`.
    #[must_use]
    pub fn warm(secure: bool) -> Self {
        Self {
            secure,
            knows_stylesheets: true,
            ..Self::default()
        }
    }

    fn index(self) -> usize {
        let bits = [self.secure, self.paper_urls, self.knows_stylesheets];
        bits.iter()
            .rev()
            .fold(0, |index, bit| 2 * index + usize::from(*bit))
    }
}

impl PageAccelerators {
    /// The same configuration, for a page that has changed.
    pub(crate) fn without_pages(self) -> Self {
        Self {
            pages: Default::default(),
            ..self
        }
    }
}

impl Page {
    /// The same page, behind accelerators with the configuration `operator`.
    #[must_use]
    pub fn with_operator_config(mut self, operator: OperatorConfig) -> Self {
        self.accelerators = PageAccelerators {
            operator_config: Some(operator),
            ..PageAccelerators::default()
        };
        self
    }

    /// The configuration of accelerators; `None` proxies the whole page.
    pub(crate) fn operator_config(&self) -> Option<&OperatorConfig> {
        self.accelerators.operator_config.as_ref()
    }

    /// Returns the page through an accelerator that does `rewriting`.
    ///
    /// # Errors
    ///
    /// The reason why an accelerator cannot serve this page.
    pub fn accelerated(&self, rewriting: Rewriting) -> Result<&AcceleratedPage, &String> {
        let made = &self.accelerators.pages[rewriting.index()];
        let made = made.get_or_init(|| AcceleratedPage::of(self, rewriting).map(Box::new));
        made.as_deref()
    }
}

impl AcceleratedPage {
    /// Rewrites `page` as an accelerator does.
    ///
    /// # Errors
    ///
    /// The reason why an accelerator cannot serve the page.
    pub(crate) fn of(page: &Page, rewriting: Rewriting) -> Result<Self, String> {
        let Rewriting {
            secure, paper_urls, ..
        } = rewriting;
        if !page.earlier().pages.is_empty() {
            return Err("a visit of several pages has no accelerator".to_owned());
        }
        let (original, graph) = (page.replica(), page.graph());
        let names = site::names(original, graph, page.operator_config())?;
        let sites = site::sites(original, &names, secure, paper_urls, page.operator_config())?;
        let site = sites.find(&names[0]).expect("its own name").clone();
        let mut context = RewriteContext {
            original,
            site,
            names: names.iter().cloned().collect(),
            secure,
            operator: page.operator_config(),
            stylesheets: Arc::default(),
        };
        if rewriting.knows_stylesheets {
            context.stylesheets = Arc::new(context.known_stylesheets());
        }
        let mut replica = original.clone();
        let mut accelerated_graph = graph.clone();
        let mut texts: Vec<Option<ReferencesByUrl>> = vec![None; graph.nodes.len()];
        let mut redirects: Vec<Option<RedirectOutcome>> = vec![None; graph.nodes.len()];
        let mut bodies: Vec<Option<DecodedBody>> = Vec::new();
        bodies.resize_with(replica.exchanges.len(), || None);
        let mut deliveries: Vec<Delivery> = Vec::with_capacity(graph.nodes.len());
        let mut lifetimes_s = vec![None; graph.nodes.len()];
        let imports = Imports::of(original, graph);
        let mut page_map = PageImportMap::of(original.document());
        let mut script_urls: Option<ScriptUrls> = None;
        for (number, node) in graph.nodes.iter().enumerate() {
            let exchange = &original.exchanges[node.exchange];
            let parent = node.parent();
            let redirected = parent.and_then(|parent| redirects[parent].clone());
            if redirected == Some(RedirectOutcome::Refused) {
                accelerated_graph.nodes[number].trigger = UNREACHABLE;
                deliveries.push(Delivery::Direct(DirectReason::ReferrerIsDirect));
                continue;
            }
            let imported = imports.first(number).map(|import| {
                let importer = graph.nodes[import.importer].exchange;
                let is_inline = importer == original.start;
                let from = (!is_inline).then(|| &replica.exchanges[importer].url);
                context.import_target(exchange, page_map.resolve(&import.specifier, from))
            });
            let followed = parent.filter(|_| redirected == Some(RedirectOutcome::Followed));
            let script = parent.filter(|&parent| {
                let above = &graph.nodes[parent];
                above.kind == Kind::Script && !above.is_redirect && imported.is_none()
            });
            let proxied_script = script.filter(|&script| deliveries[script] == Delivery::Proxied);
            let derived = proxied_script.and_then(|script| {
                let place = graph.nodes[script].exchange;
                let urls =
                    script_urls.get_or_insert_with(|| ScriptUrls::of(replica.exchanges.iter()));
                let moved = &replica.exchanges[place].url;
                match urls.states(&exchange.url) {
                    true => None,
                    false => context.derived_target(exchange, &original.exchanges[place], moved),
                }
            });
            let target = match (followed, parent) {
                // The accelerator follows the redirect, so its target takes its place.
                (Some(redirect), _) => {
                    let place = graph.nodes[redirect].exchange;
                    let before = accelerated_graph.nodes[redirect].clone();
                    let after = &mut accelerated_graph.nodes[number];
                    (after.trigger, after.delay) = (before.trigger, before.delay);
                    after.blocks_parser_at = before.blocks_parser_at;
                    after.waits_for = before.waits_for;
                    accelerated_graph.nodes[redirect].trigger = UNREACHABLE;
                    Some(head::target(&replica.exchanges[place].url))
                }
                (None, _) if redirected == Some(RedirectOutcome::Passed) => {
                    context.site.rules.alias_url(&exchange.url).ok().flatten()
                }
                (None, _) if let Some(RedirectOutcome::PassedTo(path)) = &redirected => {
                    Some(path.clone())
                }
                _ if context.is_own(&exchange.url) => Some(head::target(&exchange.url)),
                (None, Some(parent)) => {
                    let named = texts[parent].as_ref();
                    let named = named.and_then(|named| named.get(place(&exchange.url)));
                    let named = named.or(imported.as_ref()).or(derived.as_ref());
                    named.and_then(|named| named.clone().ok())
                }
                (None, None) => None,
            };
            let Some(target) = target else {
                let above = parent.map(|parent| (&graph.nodes[parent], &deliveries[parent]));
                let named = parent.and_then(|parent| texts[parent].as_ref());
                let from_script = imported.or(derived);
                let delivery =
                    context.unproxied_delivery(exchange, node, above, named, from_script);
                deliveries.push(delivery);
                continue;
            };
            let is_own = context.is_own(&exchange.url) && followed.is_none();
            // A browser sends `Sec-Fetch-Site` and `Referer` for the URL under the site's name.
            let importer = imports.first(number).map(|import| import.importer);
            let initiator = importer.or(parent).map(|node| graph.nodes[node].exchange);
            let initiator = initiator.map(|at| &replica.exchanges[at].url);
            let exchange = &match is_own {
                true => exchange.clone(),
                false if target.starts_with('/') => {
                    let exchange = with_fetch_site(exchange, "same-origin");
                    initiator.map_or_else(|| exchange.clone(), |url| with_referer(&exchange, url))
                }
                false => with_fetch_site(exchange, "cross-site"),
            };
            redirects[number] =
                (node.is_redirect && !is_own).then(|| context.redirect_outcome(exchange, &target));
            deliveries.push(match is_own {
                true => Delivery::Own,
                false => context.proxied_delivery(exchange, &target, redirects[number].as_ref()),
            });
            lifetimes_s[number] = context.shared_lifetime_s(exchange, &target);
            let rewritten = context.rewrite(exchange, &target);
            let changed = &mut replica.exchanges[node.exchange];
            if !is_own {
                changed.url = context.site_url(&target)?;
                changed.address = None;
                changed.request_head = exchange.request_head.clone();
            }
            let whole = match rewritten {
                Some((text, references)) => {
                    texts[number] = Some(named(references));
                    if node.exchange == original.start {
                        page_map = PageImportMap::of_text(&text, &original.document().url);
                    }
                    changed.body = text.clone();
                    changed.response_head =
                        head::with_field(&changed.response_head, "content-encoding", None);
                    let length = text.len().to_string();
                    changed.response_head =
                        head::with_field(&changed.response_head, "content-length", Some(&length));
                    DecodedBody {
                        text: Some(text),
                        is_rewritten: true,
                        is_replaced: false,
                    }
                }
                None => DecodedBody {
                    text: decode_body(exchange),
                    is_rewritten: false,
                    is_replaced: redirects[number]
                        .as_ref()
                        .is_some_and(RedirectOutcome::is_replaced),
                },
            };
            bodies[node.exchange] = Some(whole);
        }
        remap_offsets(&mut accelerated_graph, original, &replica, &bodies);
        let mut nodes = BTreeMap::new();
        let own = original.document().url.clone();
        for (number, node) in accelerated_graph.nodes.iter().enumerate() {
            if bodies[node.exchange].is_some() && node.trigger != UNREACHABLE {
                let target = reference(&own, &replica.exchanges[node.exchange].url);
                nodes.entry(target).or_insert(number);
            }
        }
        Ok(Self {
            page: Page::with_graph(replica, accelerated_graph)
                .with_hints(page.hints().to_vec())
                .with_paints_of(page),
            content: ProxiedContent {
                bodies,
                nodes,
                own,
                decoder: body_decoder,
            },
            names,
            sites,
            deliveries,
            shared_lifetime_s: lifetimes_s,
        })
    }
}

fn named(references: Vec<Reference>) -> ReferencesByUrl {
    let mut named = ReferencesByUrl::new();
    for reference in references {
        let Ok(url) = Url::parse(&reference.url) else {
            continue;
        };
        let place = place(&url).to_owned();
        let kind = reference.kind;
        let outcome = reference.outcome.map_err(|reason| {
            let named = Some(Box::new(delivery::ResolvedReference { url, kind }));
            DirectReason::Rule { reason, named }
        });
        // A URL that a text names twice is proxied if one of the two references is.
        let entry = named.entry(place);
        entry
            .and_modify(|earlier| {
                if earlier.is_err() {
                    earlier.clone_from(&outcome);
                }
            })
            .or_insert(outcome);
    }
    named
}

/// Moves offsets in rewritten texts to the new positions of the same references: those found in the new text, or scaled ones if only
/// the recording states a position in the old text.
fn remap_offsets(
    graph: &mut PageGraph,
    original: &Replica,
    replica: &Replica,
    bodies: &[Option<DecodedBody>],
) {
    let rewritten_graph = PageGraph::of(replica);
    let exchange_of: Vec<usize> = graph.nodes.iter().map(|node| node.exchange).collect();
    let places: BTreeMap<usize, &Node> = rewritten_graph
        .nodes
        .iter()
        .map(|node| (node.exchange, node))
        .collect();
    for node in &mut graph.nodes {
        let place = places.get(&node.exchange);
        let new_place = place.and_then(|place| place.waits_for);
        if let Some(at_byte) = new_place.and_then(WaitsFor::at_byte) {
            node.waits_for = node.waits_for.map(|waits_for| waits_for.moved_to(at_byte));
        }
        let Trigger::Bytes { parent, at_byte } = node.trigger else {
            continue;
        };
        let above = exchange_of[parent];
        if !bodies[above].as_ref().is_some_and(|body| body.is_rewritten) {
            continue;
        }
        let old_len = original.exchanges[above].body.len().max(1) as u128;
        let new_len = replica.exchanges[above].body.len() as u128;
        let scaled = |at: u64| (u128::from(at) * new_len / old_len) as u64; // no longer than the body
        let place = place.and_then(|place| match place.trigger {
            Trigger::Bytes { parent, at_byte }
                if rewritten_graph.nodes[parent].exchange == above =>
            {
                Some((at_byte, place.blocks_parser_at))
            }
            _ => None,
        });
        let (at_byte, blocks) = match place {
            Some((at, blocks)) => (
                at,
                node.blocks_parser_at
                    .map(|old| blocks.unwrap_or(scaled(old))),
            ),
            None => (scaled(at_byte), node.blocks_parser_at.map(scaled)),
        };
        node.trigger = Trigger::Bytes { parent, at_byte };
        node.blocks_parser_at = blocks;
    }
}
