//! The road of a request: which site, which key, what is kept of it, who is asked, and what the client gets.
//!
//! ```text
//!  read (wanted.rs) ──refused──▶ 404, 421, 508 …
//!     │ what is kept is fresh, and chosen by what the client said ──▶ kept (respond.rs), before anything waits
//!     │
//!  told (wanted.rs): the request that the origin will see ── a WebSocket's handshake ──▶ sockets.rs
//!     │
//!  look up ── Fresh ──────────────────────────▶ kept (respond.rs)
//!     │     ── Stale ─────────────────────────▶ kept, and validated behind it
//!     │     ── Validate ──▶ board ──┐
//!     │     ── Miss ──────▶ board ──┤ Leader ──▶ fetch (fetched.rs) ──▶ 304: kept, else coming
//!     │                             │ Follower ▶ what a leader shares; leads himself after a while, one at a time; 504 in the end
//!     │                             │ Alone ───▶ fetch
//!     ├──── Bypass ─────────────────┴──────────▶ fetch; unsafe methods make what is kept doubtful
//!     └──── OnlyIfCached ─────────────────────▶ 504
//! ```

use std::collections::BTreeSet;
use std::future::Ready;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use futures_util::future::Either;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, header, request};
use spdy::body::Body;
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_cache::body::Body as KeptBody;
use spdy_cache::cache_status::{CacheStatus, Forward};
use spdy_cache::key::Key;
use spdy_cache::lookup::{self, Failure, Lookup, on_error};
use spdy_cache::policy::{Policy, SetCookie};
use spdy_cache::shared::SharedTier;
use spdy_cache::store::{self, Object};
use spdy_cache::stored::Stored;
use spdy_cache::validate::Conditional;
use spdy_net::calendar::Calendar;

use crate::ahead::Ahead;
use crate::client_body::begun;
use crate::companions::Companions;
use crate::config_cache::CacheConfig;
use crate::config_learn::LearnConfig;
use crate::counters::{Counters, Family, Outcome};
use crate::dead::DeadThings;
use crate::disk::Disk;
use crate::encodings::Encodings;
use crate::fetched::{Fetch, Got};
use crate::flight::{Flights, Leader, Seat, Waited};
use crate::in_flight::InFlight;
use crate::memory::Memory;
use crate::miss_rate::MissRate;
use crate::origin_latency::OriginLatency;
use crate::page_policies::Said;
use crate::purge::Purges;
use crate::recording::Recording;
use crate::reports::Reports;
use crate::respond::{self, Judged};
use crate::sheets::Sheets;
use crate::sites::{Site, Sites};
use crate::sockets::Sockets;
use crate::spans::{OpenSpan, SpanKind, Spans};
use crate::trace_context::SpanContext;
use crate::upstream::{Upstream, UpstreamError, Whose};
use crate::wanted::{Asked, Refused, Wanted};
use crate::wholes::Wholes;

/// The name that `Cache-Status` and `Proxy-Status` know this by.
pub(crate) const NAME: &str = "spdy";

/// Bodies under codings may have so much memory beside what is kept: a part in so many.
const ENCODED_SHARE: usize = 4;

/// What a leader shares.
#[derive(Debug)]
pub(crate) struct Landing {
    pub(crate) stored: Arc<Stored>,
    pub(crate) source: Source,
}

/// Where the body of what is shared is.
#[derive(Debug)]
pub(crate) enum Source {
    Coming(Recording),
    Kept(Object),
}

/// Who leads the fetch of a key.
pub(crate) type Lead = Leader<Key, Landing>;

/// All of it.
#[derive(Debug)]
pub struct Proxy {
    sites: RwLock<Arc<Sites>>,
    upstream: RwLock<Arc<Upstream>>,
    pub(crate) memory: Memory,
    pub(crate) disk: OnceLock<Disk>,
    pub(crate) shared: OnceLock<Arc<dyn SharedTier>>,
    encodings: Arc<Encodings>,
    pub(crate) companions: Companions,
    pub(crate) purges: Purges,
    pub(crate) sheets: Sheets,
    /// What became of pages.
    pub reports: Reports,
    /// What was done so far.
    pub counters: Counters,
    /// How long origins took to answer.
    pub latency: OriginLatency,
    spans: OnceLock<Arc<Spans>>,
    pub(crate) learn: LearnConfig,
    pub(crate) flights: Arc<Flights<Key, Landing>>,
    of_site: Policy,
    of_others: Policy,
    pub(crate) object_bytes: usize,
    /// What is recorded to be kept.
    pub in_flight: Arc<InFlight>,
    pub(crate) fetch_timeout: Duration,
    misses: MissRate,
    pub(crate) sockets: Sockets,
    pub(crate) ahead: Ahead,
    pub(crate) dead: DeadThings,
    pub(crate) wholes: Wholes,
    pub(crate) runtime: SharedRuntime,
    calendar: Calendar,
}

impl Proxy {
    /// For `sites`, whose origins `upstream` asks.
    #[must_use]
    pub fn new(
        sites: Sites,
        upstream: Upstream,
        config: &CacheConfig,
        learn: &LearnConfig,
        runtime: SharedRuntime,
        calendar: Calendar,
    ) -> Arc<Self> {
        let with = |policy| Policy {
            clients_may_revalidate: config.obey_reload,
            ..policy
        };
        let memory = Memory::new(store::Config {
            max_bytes: (config.memory_mib << 20) as u64,
            max_object_bytes: (config.object_mib << 20) as u64,
            site_bytes: sites.memory_quotas(),
            ..store::Config::default()
        });
        let counters = Counters::default();
        let in_flight = InFlight::new(config.in_flight_mib() << 20, counters.clone());
        let of_codings = (config.memory_mib << 20) / ENCODED_SHARE;
        Arc::new(Self {
            sites: RwLock::new(Arc::new(sites)),
            upstream: RwLock::new(Arc::new(upstream)),
            memory,
            disk: OnceLock::new(),
            shared: OnceLock::new(),
            encodings: Encodings::new(of_codings, in_flight.clone()),
            companions: Companions::default(),
            purges: Purges::default(),
            sheets: Sheets::default(),
            reports: Reports::default(),
            in_flight,
            counters,
            latency: OriginLatency::default(),
            spans: OnceLock::new(),
            learn: learn.clone(),
            flights: Flights::new(Duration::from_secs(config.lock_age_s)),
            of_site: with(Policy {
                store_after_cookie: config.after_cookies,
                ..Policy::site()
            }),
            of_others: with(Policy {
                // They were asked in nobody's name, so what they set is nobody's.
                set_cookie: SetCookie::Strip,
                ..Policy::third_party()
            }),
            object_bytes: config.object_mib << 20,
            fetch_timeout: Duration::from_secs(config.fetch_timeout_s),
            misses: MissRate::new(config.misses_per_second),
            sockets: Sockets::default(),
            ahead: Ahead::new(learn),
            dead: DeadThings::default(),
            wholes: Wholes::default(),
            runtime,
            calendar,
        })
    }

    /// Requests that come from now on are for `sites`, and ask `upstream`; those that are under way end as they began.
    pub fn replace(&self, sites: Sites, upstream: Upstream) {
        let mut former = self.sites.write().unwrap_or_else(PoisonError::into_inner);
        sites.take_over(&former);
        self.memory.set_site_bytes(sites.memory_quotas());
        if let Some(disk) = self.disk() {
            disk.set_site_bytes(sites.disk_quotas());
        }
        *former = Arc::new(sites);
        drop(former);
        let mut current = self
            .upstream
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(upstream);
    }

    /// Pages that are rewritten from now on call no other host by one of `names`, which browsers would refuse, and all by theirs
    /// otherwise; whether that is new.
    pub fn withhold(&self, names: &BTreeSet<String>) -> bool {
        let mut sites = self.sites.write().unwrap_or_else(PoisonError::into_inner);
        let is_new = sites.withheld() != names;
        if is_new {
            *sites = Arc::new(sites.withholding(names));
        }
        is_new
    }

    /// Tells of requests by `spans` from now on, for as long as this lives; the first are those that stay.
    pub fn trace(&self, spans: Spans) {
        let _ = self.spans.set(Arc::new(spans));
    }

    pub(crate) fn spans(&self) -> Option<&Arc<Spans>> {
        self.spans.get()
    }

    /// The span of what is rewritten of the answer to `wanted`.
    pub(crate) fn rewriting_span(&self, wanted: &Wanted) -> Option<OpenSpan> {
        let within = wanted.within.as_ref()?;
        let place = self.spans()?.within(within, SpanKind::Internal, "rewrite");
        place.open
    }

    pub(crate) fn upstream(&self) -> Arc<Upstream> {
        let upstream = self.upstream.read().unwrap_or_else(PoisonError::into_inner);
        upstream.clone()
    }

    /// What the cache did so far, and how many bytes and objects are in it.
    #[must_use]
    pub fn cache(&self) -> (store::Counters, u64, usize) {
        self.memory.counters()
    }

    /// Ends all connections to origins in order.
    pub async fn close(&self) {
        self.upstream().close().await;
    }

    pub(crate) fn policy(&self, whose: Whose) -> &Policy {
        match whose {
            Whose::Site => &self.of_site,
            Whose::Others => &self.of_others,
        }
    }

    /// The hour. Where nobody knows it, time counts from 1970.
    pub(crate) fn hour(&self) -> SystemTime {
        let since_start =
            || SystemTime::UNIX_EPOCH + (self.runtime.now() - spdy_clock::Instant::ZERO);
        self.calendar.now(&self.runtime).unwrap_or_else(since_start)
    }

    /// The answer to `request`, which came from `from`. What is kept and fresh is on the left, at once and without a
    /// future of what may come of a request else: it is a hit unless its extensions say otherwise.
    pub fn answer(
        self: &Arc<Self>,
        request: Request<Body>,
        from: Option<IpAddr>,
    ) -> Either<Ready<Response<Body>>, BoxFuture<Response<Body>>> {
        self.answer_within(request, from, None)
    }

    /// The same, where the request has a place in a trace.
    pub(crate) fn answer_within(
        self: &Arc<Self>,
        request: Request<Body>,
        from: Option<IpAddr>,
        within: Option<SpanContext>,
    ) -> Either<Ready<Response<Body>>, BoxFuture<Response<Body>>> {
        let (asked, body) = request.into_parts();
        let at_once = |response| Either::Left(std::future::ready(response));
        let Some((authority, site)) = authority_of(&asked)
            .and_then(|authority| Some((authority, self.site_answering(authority)?)))
        else {
            let response = respond::plain(StatusCode::MISDIRECTED_REQUEST, "no such site here\n");
            return at_once(respond::marked(response, Outcome::MISDIRECTED));
        };
        let authority = authority.to_owned();
        // For the log, where there is one.
        let uri = tracing::enabled!(tracing::Level::DEBUG).then(|| asked.uri.clone());
        let asked = match Asked::read(site, authority, from, asked) {
            Ok(asked) => asked.within(within),
            Err(why) => return at_once(self.refuse(&why, uri.as_ref())),
        };
        if let Some(limits) = asked.socket() {
            let proxy = self.clone();
            return Either::Right(Box::pin(async move {
                match asked.told() {
                    Ok(wanted) => proxy.open_socket(wanted, limits).await,
                    Err(why) => proxy.refuse(&why, uri.as_ref()),
                }
            }));
        }
        if http_body::Body::is_end_stream(&body)
            && let Some(response) = self.kept_fresh(&asked)
        {
            return at_once(response);
        }
        let proxy = self.clone();
        Either::Right(Box::pin(async move {
            match asked.told() {
                Ok(wanted) => proxy.want(wanted, body).await,
                Err(why) => proxy.refuse(&why, uri.as_ref()),
            }
        }))
    }

    fn refuse(&self, why: &Refused, uri: Option<&Uri>) -> Response<Body> {
        let target = uri.map(tracing::field::display);
        tracing::debug!(%why, target, "refused");
        self.counters.count(Family::Refused, why.name());
        respond::marked(respond::refused(why), Outcome::REFUSED)
    }

    /// The answer that is kept for `asked` and needs nobody's word, where what the client said tells which it is.
    fn kept_fresh(&self, asked: &Asked) -> Option<Response<Body>> {
        let wanted = asked.so_far();
        let variants = self.memory.find(&wanted.key)?;
        let now = self.hour();
        let mut all = variants.iter();
        let object = all
            .all(|variant| asked.can_choose(variant.stored()))
            .then(|| self.fresh_among(&variants, wanted, now))??;
        Some(self.hit(wanted, object, now))
    }

    /// The answer to what is wanted.
    async fn want(self: &Arc<Self>, mut wanted: Wanted, body: Body) -> Response<Body> {
        let is_safe = matches!(wanted.ask.method, Method::GET | Method::HEAD);
        let mut body = body;
        if is_safe && wanted.moved.is_none() && !http_body::Body::is_end_stream(&body) {
            // Over HTTP/2 and HTTP/3 a body may be announced by its head's not being the end, and be empty.
            body = match begun(body).await {
                Ok(body) => body,
                Err(_) => return Fetch::cut_short(),
            };
            if !http_body::Body::is_end_stream(&body) {
                // What comes of the content is not to be had by the target alone.
                wanted.has_content = true;
                return self.pass(wanted, body, None).await;
            }
        }
        let policy = self.policy(wanted.whose());
        let mut kept = self.memory.find(&wanted.key);
        let now = self.hour();
        let mut found = lookup::lookup(
            policy,
            &wanted.ask,
            kept.as_deref().unwrap_or_default(),
            now,
        );
        let is_lifted = match &found {
            Lookup::Miss(_) => self.lift(&wanted).await,
            // Somebody else may have asked the origin already.
            Lookup::Validate { index, .. } => {
                let known = kept.as_deref().map(|variants| variants[*index].stored());
                self.lift_newer(&wanted, known, now).await
            }
            _ => false,
        };
        if is_lifted {
            kept = self.memory.find(&wanted.key);
            found = lookup::lookup(
                policy,
                &wanted.ask,
                kept.as_deref().unwrap_or_default(),
                now,
            );
        }
        let variants = kept.as_deref().unwrap_or_default();
        let forward = found.forward();
        match found {
            Lookup::Fresh { index, .. } => {
                let response = self.hit(&wanted, &variants[index], now);
                respond::marked(response, Outcome::HIT)
            }
            Lookup::Stale {
                index, background, ..
            } => {
                let stale = variants[index].clone();
                self.validate_behind(wanted.clone(), stale.clone(), background);
                let response = self.hit(&wanted, &stale, now);
                respond::marked(response, Outcome::STALE)
            }
            Lookup::Validate {
                index, conditional, ..
            } => {
                let known = Some((variants[index].clone(), conditional));
                self.board(wanted, known, forward).await
            }
            Lookup::Miss(_) => self.board(wanted, None, forward).await,
            Lookup::Bypass(_) => self.pass(wanted, body, forward).await,
            Lookup::OnlyIfCached => {
                let text = "not kept, and not to be fetched\n";
                let response = respond::plain(StatusCode::GATEWAY_TIMEOUT, text);
                respond::marked(response, Outcome::NOT_KEPT)
            }
        }
    }

    /// Answers from what is kept.
    pub(crate) fn hit(&self, wanted: &Wanted, object: &Object, now: SystemTime) -> Response<Body> {
        object.count_use();
        let status = CacheStatus::hit(NAME).ttl(object.stored().ttl(now));
        self.kept(wanted, object.stored(), object.body(), now, &status)
    }

    pub(crate) fn kept(
        &self,
        wanted: &Wanted,
        stored: &Stored,
        body: &KeptBody,
        now: SystemTime,
        status: &CacheStatus,
    ) -> Response<Body> {
        match respond::judge(wanted, stored) {
            Judged::Other(response) => *response,
            Judged::Good => {
                wanted.learn(Said::of_note(stored.note()));
                let policy = self.policy(wanted.whose());
                let coder = (&self.encodings, &self.runtime);
                respond::of_kept(policy, wanted, stored, body, coder, now, status)
            }
        }
    }

    /// Fetches, or shares what another fetches.
    async fn board(
        self: &Arc<Self>,
        wanted: Wanted,
        known: Option<(Object, Conditional)>,
        forward: Option<Forward>,
    ) -> Response<Body> {
        let policy = self.policy(wanted.whose());
        let forward = forward.unwrap_or(Forward::Miss);
        let until = self.runtime.now() + self.upstream().head_timeout;
        loop {
            // Who led before may have found that the whole is not to be kept.
            if !lookup::may_join(policy, &wanted.ask) && !self.begins_whole(&wanted) {
                return match self.part_of_coming(&wanted, forward) {
                    Some(part) => part,
                    None => self.fetch(wanted, known, None, forward).await,
                };
            }
            let seat = self.flights.board(wanted.key.clone(), self.runtime.now());
            let waited = match seat {
                Seat::Leader(leader) => Waited::Leader(leader),
                Seat::Alone => Waited::Private,
                Seat::Follower(follower) => {
                    let waited = follower.wait(&self.runtime, until).await;
                    if matches!(waited, Waited::Leader(_) | Waited::TooLong) {
                        self.counters.count(Family::Limits, "lock_age_s");
                    }
                    waited
                }
            };
            let lead = match waited {
                Waited::Leader(leader) => Some(leader),
                Waited::Private => None,
                Waited::Nothing => continue,
                Waited::Failed(failure) => {
                    let known = known.as_ref().map(|(object, _)| object);
                    match self.stale_instead(&wanted, known, failure) {
                        Some(stale) => return stale,
                        None => continue,
                    }
                }
                Waited::TooLong => return self.unanswered(wanted, known, forward),
                Waited::Shared(landing) => {
                    let now = self.hour();
                    if lookup::may_share_with(policy, &landing.stored, &wanted.ask, now)
                        && let Some(response) = self.share(&wanted, &landing, now, forward)
                    {
                        return respond::marked(response, Outcome::COLLAPSED);
                    }
                    None
                }
            };
            // Who led before may have landed and left since this was looked up.
            if lead.is_some()
                && let Some(object) = self.fresh(&wanted)
            {
                let response = self.hit(&wanted, &object, self.hour());
                return respond::marked(response, Outcome::HIT);
            }
            return self.fetch(wanted, known, lead, forward).await;
        }
    }

    /// The origin has not answered others who wanted the same for as long as it may take.
    fn unanswered(
        self: &Arc<Self>,
        wanted: Wanted,
        known: Option<(Object, Conditional)>,
        forward: Forward,
    ) -> Response<Body> {
        let fetch = Fetch {
            proxy: self.clone(),
            since: self.since(),
            wanted,
            known,
            leader: None,
            forward,
            is_wanted_now: true,
        };
        match fetch.failed(&UpstreamError::Waited) {
            Got::Answer(response) => *response,
            Got::Nothing { .. } => unreachable!("who waits gets an answer"),
        }
    }

    /// What is kept of `wanted`, though it is stale, if the origin's failure allows it.
    pub(crate) fn stale_instead(
        &self,
        wanted: &Wanted,
        known: Option<&Object>,
        failure: Failure,
    ) -> Option<Response<Body>> {
        let stored = known?.stored();
        let now = self.hour();
        if !on_error(
            self.policy(wanted.whose()),
            &wanted.ask,
            stored,
            failure,
            now,
        ) {
            return None;
        }
        let mut status = CacheStatus::hit(NAME).ttl(stored.ttl(now));
        status = match failure {
            Failure::Unreachable => status.detail("origin-unreachable"),
            Failure::Status(_) => status.detail("origin-error"),
        };
        let response = self.kept(wanted, stored, known?.body(), now, &status);
        Some(respond::marked(response, Outcome::STALE_ON_ERROR))
    }

    /// What another fetched, for `wanted`.
    pub(crate) fn share(
        &self,
        wanted: &Wanted,
        landing: &Landing,
        now: SystemTime,
        forward: Forward,
    ) -> Option<Response<Body>> {
        let status = CacheStatus::forwarded(NAME, forward).collapsed(true);
        if let Judged::Other(response) = respond::judge(wanted, &landing.stored) {
            return Some(*response);
        }
        let policy = self.policy(wanted.whose());
        match &landing.source {
            Source::Coming(recording) => {
                let stored = &landing.stored;
                respond::of_coming(policy, wanted, stored, None, recording, now, &status)
            }
            Source::Kept(object) => {
                Some(self.kept(wanted, &landing.stored, object.body(), now, &status))
            }
        }
    }

    async fn fetch(
        self: &Arc<Self>,
        wanted: Wanted,
        known: Option<(Object, Conditional)>,
        leader: Option<Lead>,
        forward: Forward,
    ) -> Response<Body> {
        if let Some(refused) = self.too_often(&wanted) {
            return refused;
        }
        self.ahead.learn(&wanted);
        let fetch = Fetch {
            proxy: self.clone(),
            since: self.since(),
            wanted,
            known,
            leader,
            forward,
            is_wanted_now: true,
        };
        match fetch.run(Body::empty()).await {
            Got::Answer(response) => *response,
            Got::Nothing { .. } => unreachable!("who waits gets an answer"),
        }
    }

    /// Passes a request by what is kept.
    async fn pass(
        self: &Arc<Self>,
        wanted: Wanted,
        body: Body,
        forward: Option<Forward>,
    ) -> Response<Body> {
        if let Some(refused) = self.too_often(&wanted) {
            return refused;
        }
        let fetch = Fetch {
            proxy: self.clone(),
            since: self.since(),
            wanted,
            known: None,
            leader: None,
            forward: forward.unwrap_or(Forward::Bypass),
            is_wanted_now: true,
        };
        match fetch.run(body).await {
            Got::Answer(response) => *response,
            Got::Nothing { .. } => unreachable!("who waits gets an answer"),
        }
    }

    /// Counts that an origin could not be asked.
    pub(crate) fn count_failure(&self, error: &UpstreamError) {
        match error.limit() {
            Some(limit) => self.counters.count(Family::Limits, limit),
            None => self.counters.count(Family::Origins, error.name()),
        }
    }

    /// What a client is told that has origins asked too often.
    pub(crate) fn too_often(&self, wanted: &Wanted) -> Option<Response<Body>> {
        let from = wanted.from?;
        if self.misses.admits(from, self.runtime.now()) {
            return None;
        }
        self.counters.count(Family::Limits, "misses_per_second");
        let text = "too many requests that nothing is kept for; try again soon\n";
        let mut response = respond::plain(StatusCode::TOO_MANY_REQUESTS, text);
        let soon = HeaderValue::from_static("1");
        response.headers_mut().insert(header::RETRY_AFTER, soon);
        Some(respond::marked(response, Outcome::LIMITED))
    }

    /// The site that `asked` is for.
    pub(crate) fn site_of(&self, asked: &request::Parts) -> Option<Arc<Site>> {
        self.site_named(authority_of(asked)?)
    }

    fn site_named(&self, authority: &str) -> Option<Arc<Site>> {
        let sites = self.sites.read().unwrap_or_else(PoisonError::into_inner);
        sites.find(authority).cloned()
    }

    fn site_answering(&self, authority: &str) -> Option<Arc<Site>> {
        let sites = self.sites.read().unwrap_or_else(PoisonError::into_inner);
        sites.answering(authority).cloned()
    }

    /// The sites by now.
    #[must_use]
    pub fn sites(&self) -> Arc<Sites> {
        let sites = self.sites.read().unwrap_or_else(PoisonError::into_inner);
        sites.clone()
    }

    /// What is kept for `wanted` and needs nobody's word.
    pub(crate) fn fresh(&self, wanted: &Wanted) -> Option<Object> {
        let variants = self.memory.find(&wanted.key)?;
        let object = self.fresh_among(&variants, wanted, self.hour());
        object.cloned()
    }

    fn fresh_among<'a>(
        &self,
        variants: &'a [Object],
        wanted: &Wanted,
        now: SystemTime,
    ) -> Option<&'a Object> {
        let policy = self.policy(wanted.whose());
        match lookup::lookup(policy, &wanted.ask, variants, now) {
            Lookup::Fresh { index, .. } => Some(&variants[index]),
            _ => None,
        }
    }

    /// Fetches anew what was served though it is stale, unless somebody does already.
    fn validate_behind(
        self: &Arc<Self>,
        mut wanted: Wanted,
        stale: Object,
        conditional: Conditional,
    ) {
        let seat = self.flights.board(wanted.key.clone(), self.runtime.now());
        let Seat::Leader(leader) = seat else {
            return;
        };
        // What this client had and wanted of it is its own matter.
        spdy_cache::validate::strip_conditions(&mut wanted.ask.headers);
        let fetch = Fetch {
            proxy: self.clone(),
            since: self.since(),
            wanted,
            known: Some((stale, conditional)),
            leader: Some(leader),
            forward: Forward::Stale,
            is_wanted_now: false,
        };
        self.runtime.spawn(Box::pin(async move {
            let _ = fetch.run(Body::empty()).await;
        }));
    }
}

/// The host that a client named, with its port.
pub(crate) fn authority_of(asked: &request::Parts) -> Option<&str> {
    match asked.uri.authority() {
        Some(authority) => Some(authority.as_str()),
        None => asked.headers.get(header::HOST)?.to_str().ok(),
    }
}
