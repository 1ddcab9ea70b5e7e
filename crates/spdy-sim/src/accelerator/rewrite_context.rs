//! How the accelerator handles one resource of a page: its rewritten text, its redirect, and its lifetime in a shared cache.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use spdy_cache::freshness::Times;
use spdy_cache::policy::{Policy, SetCookie};
use spdy_cache::storable::may_store;
use spdy_page::coding;
use spdy_page::graph::Node;
use spdy_page::head::{self, Head};
use spdy_page::replica::{Exchange, Kind, Replica};
use spdy_proxy::request::proxy_request::ProxyRequest;
use spdy_proxy::request::rejection::RequestRejection;
use spdy_proxy::rewrite::response_rewriter::{self, ResponseRewriter};
use spdy_proxy::sites::site::Site;
use spdy_rewrite::reference::Reference;
use spdy_rewrite::reference::site_facts::SiteFacts;
use spdy_rewrite::response::redirect::{Redirect, RedirectState};
use spdy_rewrite::response::sanitize_response::{self, SanitizedResponse};
use spdy_rewrite::rules::verdict::{ReferenceSource, SkipReason, Verdict};
use url::{Position, Url};

use crate::accelerator::body_decoder::MAX_TEXT_BYTES;
use crate::accelerator::delivery::{self, Delivery, DirectReason};
use crate::accelerator::known_stylesheets::KnownStylesheets;
use crate::accelerator::page_facts::PageFacts;
use crate::accelerator::script_urls::requested_kind;
use crate::accelerator::site::{OperatorConfig, wall_now};
use crate::load::request_of;

/// References of a text, by [place]: the rewritten target, which is absolute if it is under a name of its host's own; or the reason
/// why it is not rewritten.
pub(super) type ReferencesByUrl = BTreeMap<String, Result<String, DirectReason>>;

/// How the accelerator handles a redirect of another host.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum RedirectOutcome {
    Followed,
    /// The client receives it, with this path under the site's name.
    PassedTo(String),
    /// The client receives it unchanged from the host of an alias.
    Passed,
    /// The client is redirected to the target's own host.
    Direct,
    Refused,
}

impl RedirectOutcome {
    /// Whether the client receives another response in place of the redirect.
    pub(super) fn is_replaced(&self) -> bool {
        !matches!(self, Self::Passed | Self::PassedTo(_))
    }
}

/// The site and its rules, by which the resources of a page are rewritten.
pub(super) struct RewriteContext<'a> {
    pub(super) original: &'a Replica,
    pub(super) site: Arc<Site>,
    pub(super) names: BTreeSet<String>,
    pub(super) secure: bool,
    pub(super) operator: Option<&'a OperatorConfig>,
    /// The page's style sheets, if the accelerator has fetched them.
    pub(super) stylesheets: Arc<KnownStylesheets>,
}

impl RewriteContext<'_> {
    pub(super) fn is_own(&self, url: &Url) -> bool {
        url.host_str().is_some_and(|host| self.names.contains(host))
    }

    /// Returns `target` under the page's own name.
    pub(super) fn site_url(&self, target: &str) -> Result<Url, String> {
        let own = &self.original.document().url;
        let url = own.join(target);
        url.map_err(|error| format!("invalid target {target} of {own}: {error}"))
    }

    /// Returns the text of `exchange` that the accelerator serves under `target`, and its references; `None` if it is not rewritten.
    pub(super) fn rewrite(
        &self,
        exchange: &Exchange,
        target: &str,
    ) -> Option<(Bytes, Vec<Reference>)> {
        if !matches!(exchange.kind, Kind::Document | Kind::Stylesheet) {
            return None; // other texts have no references
        }
        let request = self.proxy_request(exchange, target)?;
        let (status, headers) = response_of(exchange)?;
        let mut served = headers.clone();
        // What the page's policy guards is not served to it.
        request.record_policy_of(&served);
        let work = response_rewriter::plan_rewrite(&request, &request, status, &mut served, None);
        if work.passes() {
            return None;
        }
        let facts: Arc<dyn SiteFacts> = Arc::new(PageFacts {
            site: self.site.clone(),
            stylesheets: self.stylesheets.clone(),
        });
        let mut rewriter = ResponseRewriter::new(work, &request, &headers, Some(facts));
        let mut text = rewriter.write(exchange.body.clone()).ok()?.to_vec();
        let mut references = rewriter.take_references();
        text.extend_from_slice(&rewriter.finish().ok()?.0);
        references.extend(rewriter.take_references());
        Some((text.into(), references))
    }

    /// The page's style sheets, as stored by an accelerator that has fetched all of them.
    pub(super) fn known_stylesheets(&self) -> KnownStylesheets {
        let mut known = KnownStylesheets::default();
        let exchanges = self.original.exchanges.iter();
        for sheet in exchanges.filter(|exchange| exchange.kind == Kind::Stylesheet) {
            let kind = spdy_rewrite::kind::Kind::Style;
            let rules = &self.site.rules;
            let target = match rules.verdict(&sheet.url, kind, ReferenceSource::Site) {
                Verdict::Rewrite(target) => target,
                Verdict::Skip(SkipReason::SameSite) => head::target(&sheet.url),
                Verdict::Skip(_) => continue,
            };
            let Some(original) = decode_body(sheet) else {
                continue;
            };
            let rewritten = self.rewrite(sheet, &target);
            let served = rewritten.map_or_else(|| original.clone(), |(text, _)| text);
            known.record(&sheet.url, &original, &served);
        }
        known
    }

    /// Decides about the redirect `exchange` that the client requests as `target`.
    pub(super) fn redirect_outcome(&self, exchange: &Exchange, target: &str) -> RedirectOutcome {
        let request = self.proxy_request(exchange, target);
        let proxied = request
            .as_ref()
            .and_then(|request| request.proxied.as_ref());
        let (Some((proxied, load)), Some((status, headers))) = (proxied, response_of(exchange))
        else {
            return RedirectOutcome::Refused;
        };
        if proxied.is_alias() {
            return match sanitize_response::sanitize(
                &self.site.rules,
                proxied,
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
        match RedirectState::default().decide(&self.site.rules, proxied, *load, &headers) {
            Redirect::Follow(_) => RedirectOutcome::Followed,
            Redirect::Pass(path) => RedirectOutcome::PassedTo(path),
            Redirect::Direct(_) => RedirectOutcome::Direct,
            Redirect::Refuse(_) => RedirectOutcome::Refused,
        }
    }

    /// Returns the target of `exchange`, which a module imports by a specifier that the rewritten page resolves to `resolved`.
    pub(super) fn import_target(
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
                let rewritten = own.join(&target).ok();
                let leads_there = rewritten
                    .zip(resolved)
                    .is_some_and(|(rewritten, resolved)| place(&rewritten) == place(&resolved));
                let end = target.find('#').unwrap_or(target.len());
                match leads_there {
                    true => Ok(target[..end].to_owned()),
                    false => Err(DirectReason::Unmapped),
                }
            }
        }
    }

    /// Returns the target of `exchange` under the site's name, which the proxied script `from` derives from its own URL, `moved`; `None`
    /// if it is of another origin, or of a kind that is never proxied.
    pub(super) fn derived_target(
        &self,
        exchange: &Exchange,
        from: &Exchange,
        moved: &Url,
    ) -> Option<Result<String, DirectReason>> {
        let kind = requested_kind(exchange)?;
        let own = &moved[Position::BeforePath..];
        let head = own.strip_suffix(&head::target(&from.url))?;
        if exchange.url.origin() != from.url.origin() {
            return None;
        }
        let target = format!("{head}{}", head::target(&exchange.url));
        let rules = &self.site.rules;
        Some(match rules.open(&target) {
            Ok(opened) if opened.kinds().has(kind) => Ok(target),
            Ok(_) => match rules.verdict(&exchange.url, kind, ReferenceSource::Listed) {
                Verdict::Rewrite(_) => Err(DirectReason::DerivedUrl(kind)),
                Verdict::Skip(reason) => {
                    let url = exchange.url.clone();
                    let named = Some(Box::new(delivery::ResolvedReference { url, kind }));
                    Err(DirectReason::Rule { reason, named })
                }
            },
            Err(_) => Err(DirectReason::DerivedUrl(kind)),
        })
    }

    /// Returns the delivery of an `exchange` that is not proxied. `above` is the node that leads to it, with its delivery; `named`
    /// has the references of that node's text if it is rewritten; `from_script` is the outcome of a request by a proxied script.
    pub(super) fn unproxied_delivery(
        &self,
        exchange: &Exchange,
        node: &Node,
        above: Option<(&Node, &Delivery)>,
        named: Option<&ReferencesByUrl>,
        from_script: Option<Result<String, DirectReason>>,
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
        let outcome = named.and_then(|named| named.get(place(&exchange.url)));
        let reason = match (outcome, above) {
            (Some(Err(reason)), _) => reason.clone(),
            _ if let Some(Err(reason)) = from_script => reason,
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
            (_, Some((above, Delivery::Direct(reason)))) if above.is_redirect => reason.clone(),
            _ => DirectReason::DynamicUrl,
        };
        Delivery::Direct(reason)
    }

    /// True if the text of `node` was recorded.
    fn has_recorded_text(&self, node: &Node) -> bool {
        self.original.exchanges[node.exchange].body_is_real
    }

    /// Returns the delivery of `exchange`, which the client requests as `target`, by its response.
    pub(super) fn proxied_delivery(
        &self,
        exchange: &Exchange,
        target: &str,
        redirected: Option<&RedirectOutcome>,
    ) -> Delivery {
        match redirected {
            Some(RedirectOutcome::Followed) => return Delivery::Proxied,
            Some(RedirectOutcome::Direct) => {
                return Delivery::Direct(DirectReason::RedirectedToHost);
            }
            Some(
                RedirectOutcome::Passed | RedirectOutcome::PassedTo(_) | RedirectOutcome::Refused,
            )
            | None => {}
        }
        let here = match target.starts_with('/') {
            true => Delivery::Proxied,
            false => Delivery::Aliased,
        };
        let answer = response_of(exchange);
        let request = match self.read(exchange, target) {
            Some(Ok(request)) => request,
            Some(Err(RequestRejection::Rule(refusal))) => {
                return Delivery::Direct(DirectReason::Refused(refusal));
            }
            Some(Err(_)) | None => return Delivery::Direct(DirectReason::RedirectedToHost),
        };
        let (Some((proxied, load)), Some((status, headers))) = (&request.proxied, answer) else {
            return here;
        };
        match sanitize_response::sanitize(&self.site.rules, proxied, *load, status, &headers) {
            SanitizedResponse::Serve(_) | SanitizedResponse::StatusOnly(_) => here,
            SanitizedResponse::Redirect(_) => Delivery::Direct(DirectReason::RedirectedToHost),
            SanitizedResponse::Refuse(refusal) => Delivery::Direct(DirectReason::Refused(refusal)),
        }
    }

    /// Seconds for which a shared cache may serve the recorded response for `target`.
    pub(super) fn shared_lifetime_s(&self, exchange: &Exchange, target: &str) -> Option<u64> {
        let request = self.proxy_request(exchange, target)?;
        let (status, headers) = response_of(exchange)?;
        let mut answer = http::Response::new(()).into_parts().0;
        (answer.status, answer.headers) = (status, headers);
        let now = wall_now(self.original);
        let policy = self.policy(&request);
        let times = Times {
            requested: now,
            received: now,
        };
        let stored = may_store(&policy, &request.head, &answer, times).ok()?;
        u64::try_from(stored.ttl(now)).ok()
    }

    /// The accelerator's caching policy for this request.
    fn policy(&self, request: &ProxyRequest) -> Policy {
        match request.proxied {
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

    fn proxy_request(&self, exchange: &Exchange, target: &str) -> Option<ProxyRequest> {
        self.read(exchange, target)?.ok()
    }

    /// Parses the request for `target` as the accelerator does; `None` if there is no such request.
    fn read(
        &self,
        exchange: &Exchange,
        target: &str,
    ) -> Option<Result<ProxyRequest, RequestRejection>> {
        let (mut parts, _) = request_of(exchange, self.secure).ok()?.into_parts();
        parts.uri = target.parse().ok()?;
        let authority = match parts.uri.authority() {
            Some(authority) => authority.to_string(),
            None => self.site.name.clone(),
        };
        Some(ProxyRequest::read(self.site.clone(), authority, parts))
    }
}

/// True if the text of `node` can have references.
fn has_references(node: &Node) -> bool {
    matches!(node.kind, Kind::Document | Kind::Stylesheet) && !node.is_redirect
}

/// Returns `exchange` with the request of a browser for a URL that has this `relation` to the page's own origin.
pub(super) fn with_fetch_site(exchange: &Exchange, relation: &str) -> Exchange {
    with_recorded_field(exchange, "sec-fetch-site", relation)
}

/// Returns `exchange` with the request of a browser for a resource of its page's own origin, which the document at `initiator` requests.
pub(super) fn with_referer(exchange: &Exchange, initiator: &Url) -> Exchange {
    with_recorded_field(exchange, "referer", &initiator[..Position::AfterQuery])
}

/// Returns `exchange` with another value of `field`, if its request has one.
fn with_recorded_field(exchange: &Exchange, field: &'static str, value: &str) -> Exchange {
    let recorded = Head::parse(&exchange.request_head);
    let has_field = recorded.is_some_and(|head| head.value(field).is_some());
    let request_head = match has_field {
        true => head::with_field(&exchange.request_head, field, Some(value)),
        false => exchange.request_head.clone(),
    };
    Exchange {
        request_head,
        ..exchange.clone()
    }
}

/// Status and header fields of a recorded response.
pub(super) fn response_of(exchange: &Exchange) -> Option<(StatusCode, HeaderMap)> {
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

/// Host, port and target of `url`, without the scheme: a load may use another scheme than the recording.
pub(super) fn place(url: &Url) -> &str {
    &url[Position::BeforeHost..Position::AfterQuery]
}
