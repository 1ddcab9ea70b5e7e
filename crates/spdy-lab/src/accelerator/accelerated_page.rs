//! A page as a browser sees it through the accelerator.
//!
//! The replica's own text goes through the rewriter that ships, with the head of the request that a load sends. What a rewritten
//! text names under the site's name is asked for there; all else where it was. Reading it from the text, and not from the rules
//! alone, keeps what a browser could never find: a resource that a script requests by itself is not moved. What a module imports goes by the
//! import map of the rewritten page (`module_imports.rs`).
//!
//! What becomes of a moved resource that redirects is the accelerator's to decide. What it follows the client asks for once, and
//! gets what the last one answers; else the client is sent to the other host, or gets nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use spdy_cache::freshness::Times;
use spdy_cache::policy::{Policy, SetCookie};
use spdy_cache::storable::may_store;
use spdy_page::coding;
use spdy_page::graph::{Node, PageGraph, Trigger};
use spdy_page::head::{self, Head};
use spdy_page::replica::{Exchange, Kind, Replica};
use spdy_proxy::request::proxy_request::{ProxyRequest, RequestRejection};
use spdy_proxy::rewrite::response_rewriter::{self, ResponseRewriter};
use spdy_proxy::sites::site_table::Site;
use spdy_rewrite::reference::Reference;
use spdy_rewrite::response::redirect::{Redirect, RedirectState};
use spdy_rewrite::response::sanitize_response::{self, SanitizedResponse};
use spdy_rewrite::rules::verdict::{ReferenceSource, SkipReason, Verdict};
use url::{Position, Url};

use crate::accelerator::delivery::{self, Delivery, DirectReason};
use crate::accelerator::module_imports::{Imports, PageImportMap};
use crate::accelerator::site::{self, OperatorConfig, wall_now};
use crate::load::proxied_content::{DecodedBody, ProxiedContent, reference};
use crate::load::recorded_request::request_of;
use crate::load::{AcceleratedPage, Page};

/// The most that a body may decode to, bytes: as much as the accelerator takes of a page.
const MAX_TEXT_BYTES: usize = 64 * 1024 * 1024;

/// A node that nothing leads to.
const UNREACHABLE: Trigger = Trigger::Done { parent: usize::MAX };

/// What a text names, by [place]: the target that it is moved to, in full where that is a name of its host's, or why it stays.
type ReferencesByUrl = BTreeMap<String, Result<String, DirectReason>>;

impl Page {
    /// The page through an accelerator whose clients come in TLS if `secure`, and which writes URLs as in its paper if `paper_urls`.
    pub(crate) fn accelerated(
        &self,
        secure: bool,
        paper_urls: bool,
    ) -> Result<&AcceleratedPage, &String> {
        let made = &self.accelerated_pages[usize::from(secure) + 2 * usize::from(paper_urls)];
        let made = made.get_or_init(|| AcceleratedPage::of(self, secure, paper_urls).map(Box::new));
        made.as_deref()
    }
}

impl AcceleratedPage {
    /// `page` through an accelerator whose clients come in TLS if `secure`, and which writes URLs as in its paper if `paper_urls`.
    ///
    /// # Errors
    ///
    /// Why there can be none before it.
    pub(crate) fn of(page: &Page, secure: bool, paper_urls: bool) -> Result<Self, String> {
        let (original, graph) = (page.replica(), page.graph());
        let names = site::names(original, graph, page.operator_config())?;
        let sites = site::sites(original, &names, secure, paper_urls, page.operator_config())?;
        let site = sites.find(&names[0]).expect("its own name").clone();
        let sight = RewriteContext {
            original,
            site,
            names: names.iter().cloned().collect(),
            secure,
            operator: page.operator_config(),
        };
        let mut replica = original.clone();
        let mut seen_graph = graph.clone();
        let mut texts: Vec<Option<ReferencesByUrl>> = vec![None; graph.nodes.len()];
        let mut redirects: Vec<Option<RedirectOutcome>> = vec![None; graph.nodes.len()];
        let mut bodies: Vec<Option<DecodedBody>> = Vec::new();
        bodies.resize_with(replica.exchanges.len(), || None);
        let mut fates: Vec<Delivery> = Vec::with_capacity(graph.nodes.len());
        let mut kept = vec![None; graph.nodes.len()];
        let imports = Imports::of(original, graph);
        let mut page_map = PageImportMap::of(original.document());
        for (number, node) in graph.nodes.iter().enumerate() {
            let exchange = &original.exchanges[node.exchange];
            let parent = node.parent();
            let redirected = parent.and_then(|parent| redirects[parent]);
            if redirected == Some(RedirectOutcome::Refused) {
                seen_graph.nodes[number].trigger = UNREACHABLE;
                fates.push(Delivery::Direct(DirectReason::ReferrerIsDirect));
                continue;
            }
            let imported = imports.first(number).map(|import| {
                let importer = graph.nodes[import.importer].exchange;
                let is_inline = importer == original.start;
                let from = (!is_inline).then(|| &replica.exchanges[importer].url);
                sight.import_target(exchange, page_map.resolve(&import.specifier, from))
            });
            let followed = parent.filter(|_| redirected == Some(RedirectOutcome::Followed));
            let target = match (followed, parent) {
                // The accelerator follows it: what it leads to stands where it stood.
                (Some(redirect), _) => {
                    let place = graph.nodes[redirect].exchange;
                    let before = seen_graph.nodes[redirect].clone();
                    let after = &mut seen_graph.nodes[number];
                    (after.trigger, after.delay) = (before.trigger, before.delay);
                    after.blocks_parser_at = before.blocks_parser_at;
                    seen_graph.nodes[redirect].trigger = UNREACHABLE;
                    Some(head::target(&replica.exchanges[place].url))
                }
                (None, _) if redirected == Some(RedirectOutcome::Passed) => {
                    sight.site.rules.alias_url(&exchange.url).ok().flatten()
                }
                _ if sight.is_own(&exchange.url) => Some(head::target(&exchange.url)),
                (None, Some(parent)) => {
                    let named = texts[parent].as_ref();
                    let named = named.and_then(|named| named.get(place(&exchange.url)));
                    let named = named.or(imported.as_ref());
                    named.and_then(|named| named.clone().ok())
                }
                (None, None) => None,
            };
            let Some(target) = target else {
                let above = parent.map(|parent| (&graph.nodes[parent], &fates[parent]));
                let named = parent.and_then(|parent| texts[parent].as_ref());
                fates.push(sight.left(exchange, node, above, named, imported));
                continue;
            };
            let is_own = sight.is_own(&exchange.url) && followed.is_none();
            // Under the site's name a browser calls it what it then is.
            let exchange = &match is_own {
                true => exchange.clone(),
                false if target.starts_with('/') => with_fetch_site(exchange, "same-origin"),
                false => with_fetch_site(exchange, "cross-site"),
            };
            redirects[number] =
                (node.is_redirect && !is_own).then(|| sight.redirect_outcome(exchange, &target));
            fates.push(match is_own {
                true => Delivery::Own,
                false => sight.moved(exchange, &target, redirects[number]),
            });
            kept[number] = sight.shared_lifetime_s(exchange, &target);
            let rewritten = sight.rewrite(exchange, &target);
            let changed = &mut replica.exchanges[node.exchange];
            if !is_own {
                changed.url = sight.site_url(&target)?;
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
                    is_replaced: redirects[number].is_some_and(|it| it != RedirectOutcome::Passed),
                },
            };
            bodies[node.exchange] = Some(whole);
        }
        remap_offsets(&mut seen_graph, original, &replica, &bodies);
        let mut nodes = BTreeMap::new();
        let own = original.document().url.clone();
        for (number, node) in seen_graph.nodes.iter().enumerate() {
            if bodies[node.exchange].is_some() && node.trigger != UNREACHABLE {
                let target = reference(&own, &replica.exchanges[node.exchange].url);
                nodes.entry(target).or_insert(number);
            }
        }
        Ok(Self {
            page: Page::with_graph(replica, seen_graph).with_hints(page.hints().to_vec()),
            content: ProxiedContent { bodies, nodes, own },
            names,
            sites,
            deliveries: fates,
            shared_lifetime_s: kept,
        })
    }
}

/// What the accelerator does with a redirect of another host.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum RedirectOutcome {
    Followed,
    /// The client is told of it, as the host of a name told it.
    Passed,
    /// The client is sent there itself.
    Direct,
    Refused,
}

/// What a page is seen by.
struct RewriteContext<'a> {
    original: &'a Replica,
    site: Arc<Site>,
    names: BTreeSet<String>,
    secure: bool,
    operator: Option<&'a OperatorConfig>,
}

impl RewriteContext<'_> {
    fn is_own(&self, url: &Url) -> bool {
        url.host_str().is_some_and(|host| self.names.contains(host))
    }

    /// `target` under the page's own name.
    fn site_url(&self, target: &str) -> Result<Url, String> {
        let own = &self.original.document().url;
        let url = own.join(target);
        url.map_err(|error| format!("{target} is no target of {own}: {error}"))
    }

    /// The text of `exchange` as the accelerator serves it under `target`, and what it names; `None` if it leaves it.
    fn rewrite(&self, exchange: &Exchange, target: &str) -> Option<(Bytes, Vec<Reference>)> {
        if !matches!(exchange.kind, Kind::Document | Kind::Stylesheet) {
            return None; // what the accelerator would also look at by its media type is no text that names anything
        }
        let wanted = self.wanted(exchange, target)?;
        let (status, headers) = response_of(exchange)?;
        let mut served = headers.clone();
        let work = response_rewriter::plan_rewrite(&wanted, &wanted, status, &mut served, None);
        if work.passes() {
            return None;
        }
        let mut rewriter = ResponseRewriter::new(work, &wanted, &headers, None);
        let mut text = rewriter.write(exchange.body.clone()).ok()?.to_vec();
        let mut references = rewriter.take_references();
        text.extend_from_slice(&rewriter.finish().ok()?.0);
        references.extend(rewriter.take_references());
        Some((text.into(), references))
    }

    /// What becomes of the redirect `exchange` that is asked for under `target`.
    fn redirect_outcome(&self, exchange: &Exchange, target: &str) -> RedirectOutcome {
        let wanted = self.wanted(exchange, target);
        let moved = wanted.as_ref().and_then(|wanted| wanted.moved.as_ref());
        let (Some((moved, load)), Some((status, headers))) = (moved, response_of(exchange)) else {
            return RedirectOutcome::Refused;
        };
        if moved.is_alias() {
            return match sanitize_response::sanitize(
                &self.site.rules,
                moved,
                *load,
                status,
                &headers,
            ) {
                SanitizedResponse::Serve(_) => RedirectOutcome::Passed,
                SanitizedResponse::Redirect(_) => RedirectOutcome::Direct,
                SanitizedResponse::StatusOnly(_) | SanitizedResponse::Refuse(_) => {
                    RedirectOutcome::Refused
                }
            };
        }
        match RedirectState::default().decide(&self.site.rules, moved, *load, &headers) {
            Redirect::Follow(_) => RedirectOutcome::Followed,
            Redirect::Direct(_) => RedirectOutcome::Direct,
            Redirect::Refuse(_) => RedirectOutcome::Refused,
        }
    }

    /// What becomes of `exchange`, which a module imports by a specifier that leads to `resolved` now.
    fn import_target(
        &self,
        exchange: &Exchange,
        resolved: Option<Url>,
    ) -> Result<String, DirectReason> {
        let kind = spdy_rewrite::kind::Kind::Script;
        let own = &self.original.document().url;
        match self
            .site
            .rules
            .verdict(&exchange.url, kind, ReferenceSource::Listed)
        {
            Verdict::Skip(reason) => {
                let url = exchange.url.clone();
                let named = Some(Box::new(delivery::ResolvedReference { url, kind }));
                Err(DirectReason::Rule { reason, named })
            }
            Verdict::Rewrite(target) => {
                let moved = own.join(&target).ok();
                let leads_there = moved
                    .zip(resolved)
                    .is_some_and(|(moved, resolved)| place(&moved) == place(&resolved));
                let end = target.find('#').unwrap_or(target.len());
                match leads_there {
                    true => Ok(target[..end].to_owned()),
                    false => Err(DirectReason::Unmapped),
                }
            }
        }
    }

    /// Why `exchange` stays where it is, which `above` leads to: the node, and what becomes of that; `named` is what its text names,
    /// if it is rewritten, and `imported` what becomes of it as a module that another imports.
    fn left(
        &self,
        exchange: &Exchange,
        node: &Node,
        above: Option<(&Node, &Delivery)>,
        named: Option<&ReferencesByUrl>,
        imported: Option<Result<String, DirectReason>>,
    ) -> Delivery {
        let rule = |reason| DirectReason::Rule {
            reason,
            named: None,
        };
        if self
            .site
            .rules
            .is_site_host(exchange.url.host_str().unwrap_or_default())
        {
            return Delivery::Own;
        }
        let told = named.and_then(|named| named.get(place(&exchange.url)));
        let why = match (told, above) {
            (Some(Err(why)), _) => why.clone(),
            _ if let Some(Err(why)) = imported => why,
            _ if node.kind == Kind::Document => rule(SkipReason::Document),
            _ if !self.original.document().body_is_real => DirectReason::NotRecorded,
            (_, Some((above, Delivery::Direct(_)))) if has_references(above) => {
                DirectReason::ReferrerIsDirect
            }
            (_, Some((above, _))) if has_references(above) && !self.has_recorded_text(above) => {
                DirectReason::NotRecorded
            }
            (_, Some((above, _))) if has_references(above) && named.is_none() => {
                DirectReason::TextNotRewritten
            }
            (_, Some((above, Delivery::Direct(why)))) if above.is_redirect => why.clone(),
            _ => DirectReason::DynamicUrl,
        };
        Delivery::Direct(why)
    }

    /// Whether the text of `node` was recorded.
    fn has_recorded_text(&self, node: &Node) -> bool {
        self.original.exchanges[node.exchange].body_is_real
    }

    /// What becomes of `exchange`, which was moved to `target`, by its answer.
    fn moved(
        &self,
        exchange: &Exchange,
        target: &str,
        redirected: Option<RedirectOutcome>,
    ) -> Delivery {
        match redirected {
            Some(RedirectOutcome::Followed) => return Delivery::Proxied,
            Some(RedirectOutcome::Direct) => {
                return Delivery::Direct(DirectReason::RedirectedToHost);
            }
            Some(RedirectOutcome::Passed | RedirectOutcome::Refused) | None => {}
        }
        let here = match target.starts_with('/') {
            true => Delivery::Proxied,
            false => Delivery::Aliased,
        };
        let answer = response_of(exchange);
        let wanted = match self.read(exchange, target) {
            Some(Ok(wanted)) => wanted,
            Some(Err(RequestRejection::Rule(refusal))) => {
                return Delivery::Direct(DirectReason::Refused(refusal));
            }
            Some(Err(_)) | None => return Delivery::Direct(DirectReason::RedirectedToHost),
        };
        let (Some((moved, load)), Some((status, headers))) = (&wanted.moved, answer) else {
            return here;
        };
        match sanitize_response::sanitize(&self.site.rules, moved, *load, status, &headers) {
            SanitizedResponse::Serve(_) | SanitizedResponse::StatusOnly(_) => here,
            SanitizedResponse::Redirect(_) => Delivery::Direct(DirectReason::RedirectedToHost),
            SanitizedResponse::Refuse(refusal) => Delivery::Direct(DirectReason::Refused(refusal)),
        }
    }

    /// For how many seconds the answer that was recorded may be given to everyone who asks for `target`.
    fn shared_lifetime_s(&self, exchange: &Exchange, target: &str) -> Option<u64> {
        let wanted = self.wanted(exchange, target)?;
        let (status, headers) = response_of(exchange)?;
        let mut answer = http::Response::new(()).into_parts().0;
        (answer.status, answer.headers) = (status, headers);
        let now = wall_now(self.original);
        let policy = self.policy(&wanted);
        let times = Times {
            requested: now,
            received: now,
        };
        let stored = may_store(&policy, &wanted.ask, &answer, times).ok()?;
        u64::try_from(stored.ttl(now)).ok()
    }

    /// The policy that the accelerator has for such a thing.
    fn policy(&self, wanted: &ProxyRequest) -> Policy {
        match wanted.moved {
            Some(_) => Policy {
                set_cookie: SetCookie::Strip,
                ..Policy::third_party()
            },
            None => Policy {
                store_after_cookie: self.operator.is_some_and(|it| it.cache.after_cookies),
                ..Policy::site()
            },
        }
    }

    fn wanted(&self, exchange: &Exchange, target: &str) -> Option<ProxyRequest> {
        self.read(exchange, target)?.ok()
    }

    /// The request for `target` as the accelerator reads it; `None` if it makes no request.
    fn read(
        &self,
        exchange: &Exchange,
        target: &str,
    ) -> Option<Result<ProxyRequest, RequestRejection>> {
        let (mut asked, _) = request_of(exchange, self.secure).ok()?.into_parts();
        asked.uri = target.parse().ok()?;
        let authority = match asked.uri.authority() {
            Some(authority) => authority.to_string(),
            None => self.site.name.clone(),
        };
        Some(ProxyRequest::read(self.site.clone(), authority, asked))
    }
}

/// Whether other resources stand in the text of `node`.
fn has_references(node: &Node) -> bool {
    matches!(node.kind, Kind::Document | Kind::Stylesheet) && !node.is_redirect
}

/// `exchange` as a browser asks for it that finds it in this relation to the page's own origin.
fn with_fetch_site(exchange: &Exchange, relation: &str) -> Exchange {
    let field = "sec-fetch-site";
    let recorded = Head::parse(&exchange.request_head);
    let says = recorded.is_some_and(|head| head.value(field).is_some());
    let request_head = match says {
        true => head::with_field(&exchange.request_head, field, Some(relation)),
        false => exchange.request_head.clone(),
    };
    Exchange {
        request_head,
        ..exchange.clone()
    }
}

/// Status and fields of a recorded response.
fn response_of(exchange: &Exchange) -> Option<(StatusCode, HeaderMap)> {
    let recorded = Head::parse(&exchange.response_head)?;
    let status = StatusCode::from_u16(recorded.status()?).ok()?;
    let mut headers = HeaderMap::new();
    for (name, value) in recorded.fields() {
        let (name, value) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value));
        if let (Ok(name), Ok(value)) = (name, value) {
            headers.append(name, value);
        }
    }
    Some((status, headers))
}

/// The body of `exchange` without its codings, if they can be undone.
pub(super) fn decode_body(exchange: &Exchange) -> Option<Bytes> {
    let codings = Head::parse(&exchange.response_head)?.content_codings();
    if codings.is_empty() {
        return Some(exchange.body.clone());
    }
    let decoded = coding::decode(&exchange.body, &codings, MAX_TEXT_BYTES).ok()?;
    Some(decoded.text.into())
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
        // What stands twice in a text is asked for where it can be had.
        let told = named.entry(place);
        told.and_modify(|told| {
            if told.is_err() {
                told.clone_from(&outcome);
            }
        })
        .or_insert(outcome);
    }
    named
}

/// Host, port and target of `url`: a load may have another scheme than the recording.
pub(super) fn place(url: &Url) -> &str {
    &url[Position::BeforeHost..Position::AfterQuery]
}

/// Leads offsets in texts that were rewritten to where the same reference stands now: as the new text has it, or in proportion
/// where only a recording says that it stood in the old one.
fn remap_offsets(
    graph: &mut PageGraph,
    original: &Replica,
    replica: &Replica,
    bodies: &[Option<DecodedBody>],
) {
    let anew = PageGraph::of(replica);
    let exchange_of: Vec<usize> = graph.nodes.iter().map(|node| node.exchange).collect();
    let places: BTreeMap<usize, &Node> = anew
        .nodes
        .iter()
        .map(|node| (node.exchange, node))
        .collect();
    for node in &mut graph.nodes {
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
        let place = places
            .get(&node.exchange)
            .and_then(|place| match place.trigger {
                Trigger::Bytes { parent, at_byte } if anew.nodes[parent].exchange == above => {
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
