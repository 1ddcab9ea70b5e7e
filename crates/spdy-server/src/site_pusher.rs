//! Sends the resources of a page with it, by the plan of `push_plan.rs`.
//!
//! ```text
//! request ----------> SessionHistory           LearnedResources           PageResources
//!    |                  |                        |                        |
//! response 200 --note---+---- wishes ------------+------------------------'
//!    |                             `--> plan --> Pusher::push, one by one --refused--+
//!    `<-- Link: <...>; rel=subresource  <-- hints <------------------------- rest <--'
//! ```

use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::header::{self, HeaderName};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use parking_lot::{Mutex, MutexGuard};
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_net::handler::{Pusher, RequestInfo};
use spdy_page::replica::Kind;

use crate::associated_content::parse_associated_content;
use crate::learned_resources::{LearnedResources, LearningLimits, ResourceLoad};
use crate::link_header::parse_links;
use crate::page_resources;
use crate::page_resources::PageResources;
use crate::push_plan::{
    Budget, CandidateState, Hint, Hints, Plan, PlannedPush, PushCandidate, Sources, link_value,
    plan,
};
use crate::respond::add_date;
use crate::session_history::{DigestKey, SessionHistory};
use crate::site::Site;
use crate::stored_response::StoredResponse;

const ASSOCIATED_CONTENT: HeaderName = HeaderName::from_static("x-associated-content");
const SUBRESOURCE: HeaderName = HeaderName::from_static("x-subresource");

/// Options of pushing: sources, hints, and limits.
#[derive(Clone, Copy, Debug, Default)]
pub struct PushConfig {
    /// The sources of a page's resources.
    pub sources: Sources,
    /// When clients get hints instead.
    pub hints: Hints,
    /// Limits of pushes and hints per page.
    pub budget: Budget,
    /// Limits and thresholds of the learned plan.
    pub learning: LearningLimits,
    /// The key of the digests by which sessions remember URLs; random in a program.
    pub digest_key: DigestKey,
}

/// The push state of a site, over all of its sessions.
#[derive(Debug)]
pub struct SitePusher {
    config: PushConfig,
    page_resources: PageResources,
    learned: Mutex<LearnedResources>,
}

impl SitePusher {
    /// Creates it by `config`; `needs` are those of the source `graph`. `None` if `site` never pushes or hints: then its sessions
    /// need not be remembered.
    #[must_use]
    pub fn new(config: PushConfig, needs: PageResources, site: &Site) -> Option<Self> {
        let has_candidates = |response: &StoredResponse| {
            let headers = &response.headers;
            headers.contains_key(header::LINK) || headers.contains_key(&ASSOCIATED_CONTENT)
        };
        let Sources {
            link,
            graph,
            learned,
        } = config.sources;
        let has_any = learned
            || (graph && !needs.is_empty())
            || (link && site.responses().any(has_candidates));
        has_any.then(|| Self {
            config,
            page_resources: needs,
            learned: Mutex::new(LearnedResources::new(config.learning)),
        })
    }
}

/// The push state of one session.
#[derive(Debug)]
pub(crate) struct SessionPusher {
    shared: Arc<SitePusher>,
    history: Arc<Mutex<SessionHistory>>,
    site: Arc<Site>,
    runtime: SharedRuntime,
    /// The client's address.
    from: Option<IpAddr>,
}

/// One push, for a log.
pub(crate) struct SentPush {
    pub(crate) uri: Uri,
    pub(crate) priority: spdy_frame::priority::Priority,
    pub(crate) bytes: usize,
}

impl SessionPusher {
    pub(crate) fn new(
        pushing: Arc<SitePusher>,
        site: Arc<Site>,
        runtime: SharedRuntime,
        from: Option<IpAddr>,
    ) -> Self {
        let visit = SessionHistory::new(pushing.config.digest_key);
        Self {
            shared: pushing,
            history: Arc::new(Mutex::new(visit)),
            site,
            runtime,
            from,
        }
    }

    /// Sends the resources that `response` to `head` needs: pushes them at once, and adds hints to its headers. Returns the pushes.
    pub(crate) fn push_and_hint(
        &self,
        head: &http::request::Parts,
        response: &mut Response<Bytes>,
        now: Option<SystemTime>,
    ) -> Vec<SentPush> {
        let associated_content = response.headers().get_all(&ASSOCIATED_CONTENT);
        let associated_content: Vec<HeaderValue> = associated_content.iter().cloned().collect();
        response.headers_mut().remove(&ASSOCIATED_CONTENT);
        let Some(page) = absolute(head) else {
            return Vec::new();
        };
        let url = page.to_string();
        if head.method != Method::GET {
            return Vec::new();
        }
        self.learn_from(head, &page);
        let is_new = self.record_response(&url, response.status());
        if response.status() != StatusCode::OK {
            return Vec::new();
        }
        let is_page = kind_of(response.headers()) == Kind::Document;
        let candidates = self.candidates(&page, &url, response.headers(), &associated_content);
        let learns = is_page && is_new && self.shared.config.sources.learned;
        if candidates.is_empty() {
            if learns {
                self.count_view(&url, &[]);
            }
            return Vec::new();
        }
        let Plan { pushes, mut hints } = self.plan(head, &page, candidates);
        // A client that views the page again in this session has the resources already, so its view adds nothing.
        if learns {
            self.count_view(&url, &hints);
        }
        let (pushed, refused) = self.push(head, &url, pushes, now);
        if self.shared.config.hints == Hints::Remaining {
            hints.splice(0..0, refused.iter().filter_map(PlannedPush::as_hint));
            hints.truncate(self.shared.config.budget.hints);
        }
        write_hints(&hints, &head.headers, response.headers_mut());
        pushed
    }

    /// Records a successful response for `url`. Returns true if it is the first in this session.
    fn record_response(&self, url: &str, status: StatusCode) -> bool {
        let mut visit = lock(&self.history);
        let digest = visit.digest(url);
        let is_new = !visit.has(digest);
        if status.is_success() || status == StatusCode::NOT_MODIFIED {
            visit.record(digest);
        }
        is_new
    }

    /// Counts a view of the page at `url`, whose client received `hints`.
    fn count_view(&self, url: &str, hints: &[Hint]) {
        let base = url.parse::<url::Url>().ok();
        let full = |hint: &Hint| base.as_ref()?.join(&hint.url).ok();
        let urls: Vec<String> = hints.iter().filter_map(full).map(String::from).collect();
        let now = self.runtime.now();
        let urls = urls.iter().map(String::as_str);
        self.learned().record_view(now, self.from, url, urls);
    }

    /// Learns from a request for `thing` which page it follows, if this site serves the resource.
    fn learn_from(&self, head: &http::request::Parts, thing: &Uri) {
        if !self.shared.config.sources.learned || !self.may_learn(thing) {
            return;
        }
        let url = thing.to_string();
        let Some(loaded) = ResourceLoad::of(&url, &head.method, &head.headers) else {
            return;
        };
        let referer = head.headers.get(header::REFERER);
        let referer = referer.and_then(|referer| referer.to_str().ok()?.split('#').next());
        let Some(referer) = referer.and_then(|referer| referer.parse::<Uri>().ok()) else {
            return;
        };
        // A request from another site is no evidence, and neither is a reload of the page itself.
        if !spdy_http::push::is_same_origin(&referer, thing) || referer == *thing {
            return;
        }
        let (now, page) = (self.runtime.now(), referer.to_string());
        self.learned()
            .record_request(now, self.from, &page, &loaded);
    }

    /// True if `uri` can be learned: the site serves it under exactly this target, it is not a page, and a client that receives the
    /// hint requests the same target.
    fn may_learn(&self, uri: &Uri) -> bool {
        let is_exact = is_normal(&uri.to_string())
            && (uri.query().is_none() || self.site.directory().is_none());
        let response = self.pushable_response(uri).filter(|_| is_exact);
        response.is_some_and(|response| page_resources::kind(response) != Kind::Document)
    }

    /// The resources that `page` needs, from the response, the site and earlier requests.
    fn candidates(
        &self,
        page: &Uri,
        url: &str,
        headers: &HeaderMap,
        associated_content: &[HeaderValue],
    ) -> Vec<PushCandidate> {
        let Sources {
            link,
            graph,
            learned,
        } = self.shared.config.sources;
        let mut candidates = Vec::new();
        if link {
            add_link_candidates(headers, &mut candidates);
            let associated_content = associated_content
                .iter()
                .filter_map(|value| value.to_str().ok());
            candidates.extend(associated_content.flat_map(parse_associated_content).map(
                |(url, priority)| PushCandidate {
                    url: url.to_owned(),
                    priority: Some(priority),
                    may_push: true,
                    ..PushCandidate::default()
                },
            ));
        }
        if graph {
            let host = self
                .site
                .host_behind(page.authority().map(Authority::as_str));
            let target = page.path_and_query().map_or("/", |target| target.as_str());
            candidates.extend_from_slice(self.shared.page_resources.of(host, target));
        }
        if learned {
            let mut learned_resources = self.learned().resources_of(self.runtime.now(), url);
            for candidate in &mut learned_resources {
                candidate.kind = self.served_kind(&candidate.url).or(candidate.kind);
            }
            candidates.extend(learned_resources);
        }
        candidates
    }

    /// The kind of the site's own response to a GET of `url`, if its content type states one. The client's statement is not
    /// trusted.
    fn served_kind(&self, url: &str) -> Option<Kind> {
        let response = self.pushable_response(&url.parse().ok()?)?;
        Some(page_resources::kind(response)).filter(|kind| *kind != Kind::Other)
    }

    fn plan(
        &self,
        head: &http::request::Parts,
        page: &Uri,
        candidates: Vec<PushCandidate>,
    ) -> Plan {
        let PushConfig { hints, budget, .. } = &self.shared.config;
        let arrival = head.extensions.get::<RequestInfo>();
        let priority = arrival.map(|arrival| arrival.priority).unwrap_or_default();
        let history = lock(&self.history);
        plan(page, priority, budget, *hints, candidates, |uri, _| {
            if history.has(history.digest(&uri.to_string())) {
                return CandidateState::AlreadyReceived;
            }
            match self.pushable_response(uri) {
                Some(response) => CandidateState::Available {
                    bytes: response.body.len(),
                    kind: page_resources::kind(response),
                },
                None => CandidateState::Unavailable,
            }
        })
    }

    /// The response to a GET of `uri`, if it may be pushed.
    fn pushable_response(&self, uri: &Uri) -> Option<&StoredResponse> {
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let host = uri.authority().map(Authority::as_str);
        let secure = uri.scheme_str() == Some("https");
        let response = self.site.response(host, target, secure);
        // A page requests only a part of a resource that was recorded as a part, but a push sends all of it.
        response.filter(|response| {
            response.status == StatusCode::OK && response.recorded_part.is_none()
        })
    }

    /// Pushes what the client accepts. Returns the accepted pushes, and the rest.
    fn push(
        &self,
        head: &http::request::Parts,
        page: &str,
        pushes: Vec<PlannedPush>,
        now: Option<SystemTime>,
    ) -> (Vec<SentPush>, Vec<PlannedPush>) {
        let Some(pusher) = Pusher::of(&head.extensions) else {
            return (Vec::new(), pushes);
        };
        let mut pushed = Vec::new();
        let mut pushes = pushes.into_iter();
        let mut rest = Vec::new();
        for planned in pushes.by_ref() {
            let Some(stored) = self.pushable_response(&planned.uri) else {
                continue;
            };
            let mut request = Request::new(());
            *request.uri_mut() = planned.uri.clone();
            let mut response = Response::new(Body::full(stored.body.clone()));
            *response.headers_mut() = stored.headers.clone();
            response.headers_mut().remove(&ASSOCIATED_CONTENT);
            add_date(response.headers_mut(), now);
            let push = match pusher.push(&request, planned.priority, response) {
                Ok(push) => push,
                Err(error) => {
                    // The client's limit of open streams is reached, or it accepts no pushes: the others would fail too.
                    tracing::debug!(%error, uri = %planned.uri, "cannot push a resource");
                    rest.push(planned);
                    break;
                }
            };
            let url = planned.uri.to_string();
            self.record_response(&url, StatusCode::OK);
            let (page, pushing, from) = (page.to_owned(), self.shared.clone(), self.from);
            self.runtime.spawn(Box::pin(async move {
                if push.await && pushing.config.sources.learned {
                    lock(&pushing.learned).record_push(from, &page, &url);
                }
            }));
            pushed.push(SentPush {
                uri: planned.uri,
                priority: planned.priority,
                bytes: planned.bytes,
            });
        }
        rest.extend(pushes);
        (pushed, rest)
    }

    fn learned(&self) -> MutexGuard<'_, LearnedResources> {
        lock(&self.shared.learned)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// True if a browser requests `url` unchanged, without removing dot segments or replacing backslashes.
#[must_use]
pub fn is_normal(url: &str) -> bool {
    url::Url::parse(url).is_ok_and(|read| read.as_str() == url && !read.path().starts_with("//"))
}

/// The requested URL; in HTTP/1.1 it is in two places.
fn absolute(head: &http::request::Parts) -> Option<Uri> {
    if head.uri.scheme().is_some() {
        return Some(head.uri.clone());
    }
    let secure = head.extensions.get::<RequestInfo>()?.secure;
    let host = head.headers.get(header::HOST)?.to_str().ok()?;
    Uri::builder()
        .scheme(if secure { "https" } else { "http" })
        .authority(host)
        .path_and_query(head.uri.path_and_query()?.as_str())
        .build()
        .ok()
}

fn kind_of(headers: &HeaderMap) -> Kind {
    let content_type = headers.get(header::CONTENT_TYPE);
    content_type
        .and_then(|value| Kind::from_content_type(value.to_str().ok()?))
        .unwrap_or(Kind::Other)
}

/// Adds the resources that the `Link` headers of a response name.
fn add_link_candidates(headers: &HeaderMap, wishes: &mut Vec<PushCandidate>) {
    let values = headers.get_all(header::LINK).into_iter();
    let all = values
        .filter_map(|value| value.to_str().ok())
        .flat_map(parse_links);
    let preloads = all.filter(|link| link.has_relation("preload") && !link.anchored);
    wishes.extend(preloads.map(|link| PushCandidate {
        url: link.target.to_owned(),
        kind: link.destination.and_then(kind_of_destination),
        may_push: !link.nopush,
        is_in_response: true,
        ..PushCandidate::default()
    }));
}

/// The `as` of a preload (HTML, *potential destinations*).
fn kind_of_destination(destination: &str) -> Option<Kind> {
    Some(match destination.to_ascii_lowercase().as_str() {
        "style" => Kind::Stylesheet,
        "script" | "worker" => Kind::Script,
        "font" => Kind::Font,
        "image" => Kind::Image,
        "audio" | "video" | "track" => Kind::Media,
        "fetch" => Kind::Fetch,
        "document" | "embed" | "object" => Kind::Document,
        _ => return None,
    })
}

/// Writes hints into the headers of a response: as `X-Subresource` if the client requests that, else as `Link`.
fn write_hints(hints: &[Hint], request: &HeaderMap, response: &mut HeaderMap) {
    if hints.is_empty() {
        return;
    }
    let accepts_subresource = request
        .get(&SUBRESOURCE)
        .is_some_and(|value| value == "enabled");
    let (name, text) = if accepts_subresource {
        let one = |hint: &Hint| format!("{}; {}", media_type(hint.kind), hint.url);
        (
            SUBRESOURCE,
            hints.iter().map(one).collect::<Vec<_>>().join("; "),
        )
    } else {
        (
            header::LINK,
            hints.iter().map(link_value).collect::<Vec<_>>().join(", "),
        )
    };
    if let Ok(value) = HeaderValue::try_from(text) {
        response.append(name, value);
    }
}

/// The media type that `X-Subresource` uses for a kind.
fn media_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Document => "text/html",
        Kind::Stylesheet => "text/css",
        Kind::Script => "text/javascript",
        Kind::Font => "font/*",
        Kind::Image => "image/*",
        Kind::Media => "video/*",
        Kind::Fetch | Kind::Other => "*/*",
    }
}
