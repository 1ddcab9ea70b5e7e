//! The road of a request: which site, which key, what is kept of it, who is asked, and what the client gets.
//!
//! ```text
//!  read (wanted.rs) ──refused──▶ 404, 421, 508 …
//!     │
//!  look up ── Fresh ──────────────────────────▶ kept (respond.rs)
//!     │     ── Stale ─────────────────────────▶ kept, and validated behind it
//!     │     ── Validate ──▶ board ──┐
//!     │     ── Miss ──────▶ board ──┤ Leader ──▶ fetch (fetched.rs) ──▶ 304: kept, else coming
//!     │                             │ Follower ▶ what the leader shares, else fetch alone
//!     │                             │ Alone ───▶ fetch
//!     ├──── Bypass ─────────────────┴──────────▶ fetch; unsafe methods make what is kept doubtful
//!     └──── OnlyIfCached ─────────────────────▶ 504
//! ```

use std::net::IpAddr;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};
use std::time::SystemTime;

use http::{HeaderValue, Request, Response, StatusCode, Uri, header, request};
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_cache::body::Body as KeptBody;
use spdy_cache::cache_status::{CacheStatus, Forward};
use spdy_cache::invalidate::invalidated_by;
use spdy_cache::key::{Key, Parts, Scope};
use spdy_cache::lookup::{self, Lookup};
use spdy_cache::policy::{Policy, SetCookie};
use spdy_cache::store::{self, Object, Purge};
use spdy_cache::stored::Stored;
use spdy_cache::tags::Tag;
use spdy_cache::validate::Conditional;
use spdy_net::calendar::Calendar;
use spdy_page::replica::Kind as PageKind;
use spdy_rewrite::kind::Kind;
use spdy_rewrite::page_report::{PageLeft, PageReport};
use spdy_rewrite::reference::Reference;
use spdy_server::push_plan::Known;

use crate::admin;
use crate::companions::{self, Companions};
use crate::config::{CacheConfig, LearnConfig};
use crate::counters::{Counters, Family, Outcome};
use crate::disk::Disk;
use crate::encodings::Encodings;
use crate::fetched::{Fetch, Got};
use crate::flight::{Flights, Leader, Seat};
use crate::memory::Memory;
use crate::recording::Recording;
use crate::respond::{self, Judged};
use crate::sites::{Site, Sites};
use crate::upstream::{Upstream, Whose};
use crate::wanted::Wanted;

/// The name that `Cache-Status` and `Proxy-Status` know this by.
pub(crate) const NAME: &str = "spdy";

/// Bodies under codings may have so much memory beside what is kept: a part in so many.
const ENCODED_SHARE: usize = 4;

/// Things that are fetched ahead for one page or sheet.
pub(crate) const MAX_AHEAD: usize = 64;
/// How far one thing that was fetched ahead leads to the next: a page's sheet, what that imports, and its pictures. A sheet
/// that imports another one without end is not followed.
const MAX_STEPS_AHEAD: u8 = 3;

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

/// How many objects a purge meant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Purged(pub usize);

/// Who leads the fetch of a key.
pub(crate) type Lead = Leader<Key, Landing>;

/// All of it.
#[derive(Debug)]
pub struct Proxy {
    sites: RwLock<Arc<Sites>>,
    upstream: RwLock<Arc<Upstream>>,
    memory: Memory,
    disk: OnceLock<Disk>,
    encodings: Encodings,
    pub(crate) companions: Companions,
    /// What was done so far.
    pub counters: Counters,
    pub(crate) learn: LearnConfig,
    flights: Arc<Flights<Key, Landing>>,
    of_site: Policy,
    of_others: Policy,
    pub(crate) object_bytes: usize,
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
        Arc::new(Self {
            sites: RwLock::new(Arc::new(sites)),
            upstream: RwLock::new(Arc::new(upstream)),
            memory: Memory::new(store::Config {
                max_bytes: (config.memory_mib << 20) as u64,
                max_object_bytes: (config.object_mib << 20) as u64,
                ..store::Config::default()
            }),
            disk: OnceLock::new(),
            encodings: Encodings::new((config.memory_mib << 20) / ENCODED_SHARE),
            companions: Companions::default(),
            counters: Counters::default(),
            learn: learn.clone(),
            flights: Flights::new(),
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
            runtime,
            calendar,
        })
    }

    /// Keeps on `disk`, too, what is kept from now on, and finds what is there. It is the first that counts.
    pub fn keep_on(&self, disk: Disk) {
        if self.disk.set(disk).is_err() {
            tracing::warn!("a second disk was given");
        }
    }

    /// The tier on a disk, if there is one.
    #[must_use]
    pub fn disk(&self) -> Option<&Disk> {
        self.disk.get()
    }

    /// Requests that come from now on are for `sites`, and ask `upstream`; those that are under way end as they began.
    pub fn replace(&self, sites: Sites, upstream: Upstream) {
        *self.sites.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(sites);
        let mut current = self
            .upstream
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *current = Arc::new(upstream);
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

    /// The answer to `request`, which came from `from`.
    pub async fn answer(
        self: &Arc<Self>,
        request: Request<Body>,
        from: Option<IpAddr>,
    ) -> Response<Body> {
        let (asked, body) = request.into_parts();
        let authority = authority_of(&asked);
        let sites = self.sites();
        let Some(site) = authority
            .as_deref()
            .and_then(|authority| sites.find(authority))
        else {
            let response = respond::plain(StatusCode::MISDIRECTED_REQUEST, "no such site here\n");
            return respond::marked(response, Outcome::MISDIRECTED);
        };
        let authority = authority.as_deref().unwrap_or_default();
        match Wanted::read(site, authority, from, &asked) {
            Ok(wanted) => self.want(wanted, body).await,
            Err(why) => {
                tracing::debug!(%why, target = %asked.uri, "refused");
                self.counters.count(Family::Refused, why.name());
                respond::marked(respond::refused(&why), Outcome::REFUSED)
            }
        }
    }

    /// The answer to what is wanted.
    async fn want(self: &Arc<Self>, wanted: Wanted, body: Body) -> Response<Body> {
        let policy = self.policy(wanted.whose());
        let mut kept = self.memory.find(&wanted.key);
        let now = self.hour();
        let mut found = lookup::lookup(
            policy,
            &wanted.ask,
            kept.as_deref().unwrap_or_default(),
            now,
        );
        if matches!(found, Lookup::Miss(_)) && self.lift(&wanted).await {
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

    /// Lifts what the disk has for `wanted` into memory; `false` if it has nothing.
    async fn lift(&self, wanted: &Wanted) -> bool {
        let Some(disk) = self.disk.get() else {
            return false;
        };
        let policy = self.policy(wanted.whose());
        match disk.find(&wanted.key, &wanted.ask.headers, policy).await {
            Some((stored, body)) => self.memory.keep(&wanted.key, stored, body).is_some(),
            None => false,
        }
    }

    /// Keeps an answer in every tier.
    pub(crate) fn keep(&self, key: &Key, stored: &Arc<Stored>, body: KeptBody) -> Option<Object> {
        if let Some(disk) = self.disk.get() {
            disk.keep(key, stored.clone(), body.clone());
        }
        self.memory.keep(key, Stored::clone(stored), body)
    }

    /// Keeps `object` no longer, in any tier: the origin took its leave back.
    pub(crate) fn forget(&self, key: &Key, object: &Object) {
        if let Some(disk) = self.disk.get() {
            disk.forget(key, object.stored());
        }
        self.memory.forget(object);
    }

    /// Purges a scope in every tier; how many objects of memory were meant.
    fn purge_scope(&self, scope: &Scope<'_>, how: Purge) -> usize {
        if let Some(disk) = self.disk.get() {
            disk.purge(scope);
        }
        self.memory.purge(scope, how)
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
                let policy = self.policy(wanted.whose());
                let encodings = &self.encodings;
                respond::of_kept(policy, wanted, stored, body, encodings, now, status)
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
        if !lookup::may_join(policy, &wanted.ask) {
            return self.fetch(wanted, known, None, forward).await;
        }
        let seat = self.flights.board(wanted.key.clone(), self.runtime.now());
        let shared = match seat {
            Seat::Leader(leader) => {
                // Who led before may have landed and left since this was looked up.
                if let Some(object) = self.fresh(&wanted) {
                    let response = self.hit(&wanted, &object, self.hour());
                    return respond::marked(response, Outcome::HIT);
                }
                return self.fetch(wanted, known, Some(leader), forward).await;
            }
            Seat::Alone => None,
            Seat::Follower(follower) => follower.wait(&self.runtime).await,
        };
        let now = self.hour();
        if let Some(landing) = shared
            && lookup::may_share_with(policy, &landing.stored, &wanted.ask, now)
            && let Some(response) = self.share(&wanted, &landing, now, forward)
        {
            return respond::marked(response, Outcome::COLLAPSED);
        }
        self.fetch(wanted, known, None, forward).await
    }

    /// What another fetched, for `wanted`.
    fn share(
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
                respond::of_coming(policy, wanted, &landing.stored, recording, now, &status)
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
        let fetch = Fetch {
            proxy: self.clone(),
            wanted,
            known,
            leader,
            forward,
            is_wanted_now: true,
        };
        match fetch.run(Body::empty()).await {
            Got::Answer(response) => *response,
            Got::Nothing => unreachable!("who waits gets an answer"),
        }
    }

    /// Passes a request by what is kept.
    async fn pass(
        self: &Arc<Self>,
        wanted: Wanted,
        body: Body,
        forward: Option<Forward>,
    ) -> Response<Body> {
        let (method, uri, site) = (
            wanted.ask.method.clone(),
            wanted.ask.uri.clone(),
            wanted.site.clone(),
        );
        let public = wanted.url().and_then(|url| url.as_str().parse().ok());
        let fetch = Fetch {
            proxy: self.clone(),
            wanted,
            known: None,
            leader: None,
            forward: forward.unwrap_or(Forward::Bypass),
            is_wanted_now: true,
        };
        let response = match fetch.run(body).await {
            Got::Answer(response) => *response,
            Got::Nothing => unreachable!("who waits gets an answer"),
        };
        // It may name others by the site's name or by the origin's.
        for uri in std::iter::once(uri).chain(public) {
            let (status, headers) = (response.status(), response.headers());
            for uri in invalidated_by(&method, &uri, status, headers) {
                self.doubt(&site, &uri);
            }
        }
        response
    }

    /// Nothing that is kept of `uri`, of the site's own, is used any more.
    fn doubt(&self, site: &Site, uri: &Uri) {
        let (scheme, _, port) = site.origin();
        for host in site.asked_hosts() {
            let parts = Parts {
                site: site.rules.site_origin(),
                scheme,
                host,
                port,
                target: uri.path_and_query().map_or("/", |target| target.as_str()),
                rules: "",
            };
            self.purge_scope(&Scope::Url(parts), Purge::Hard);
        }
    }

    /// The site that `asked` is for.
    pub(crate) fn site_of(&self, asked: &request::Parts) -> Option<Arc<Site>> {
        self.sites().find(&authority_of(asked)?).cloned()
    }

    fn sites(&self) -> Arc<Sites> {
        let sites = self.sites.read().unwrap_or_else(PoisonError::into_inner);
        sites.clone()
    }

    /// What is known of `uri`, of the site's own origin, for a client that asked as `page` does.
    pub(crate) fn known(&self, site: &Arc<Site>, page: &request::Parts, uri: &Uri) -> Known {
        let Some(wanted) = self.beside(site, page, uri, None) else {
            return Known::Absent;
        };
        match self.fresh(&wanted) {
            Some(object) => Known::Here {
                bytes: usize::try_from(object.body().len()).unwrap_or(usize::MAX),
                kind: kind_of(object.stored().headers()),
            },
            // It cannot be pushed, and yet it may be told of.
            None => Known::Here {
                bytes: usize::MAX,
                kind: PageKind::Other,
            },
        }
    }

    /// The answer that is pushed for `uri`.
    pub(crate) fn pushed(
        &self,
        site: &Arc<Site>,
        page: &request::Parts,
        uri: &Uri,
    ) -> Option<Response<Body>> {
        let wanted = self.beside(site, page, uri, None)?;
        let object = self.fresh(&wanted)?;
        let response = self.hit(&wanted, &object, self.hour());
        (response.status() == StatusCode::OK).then_some(response)
    }

    /// What is kept for `wanted` and needs nobody's word.
    fn fresh(&self, wanted: &Wanted) -> Option<Object> {
        let variants = self.memory.find(&wanted.key)?;
        let policy = self.policy(wanted.whose());
        match lookup::lookup(policy, &wanted.ask, &variants, self.hour()) {
            Lookup::Fresh { index, .. } => Some(variants[index].clone()),
            _ => None,
        }
    }

    /// The request for `uri` that the client will send for the page it asked for as `page`.
    fn beside(
        &self,
        site: &Arc<Site>,
        page: &request::Parts,
        uri: &Uri,
        kind: Option<Kind>,
    ) -> Option<Wanted> {
        let mut asked = Request::new(()).into_parts().0;
        asked.uri.clone_from(uri);
        asked.version = page.version;
        for name in [
            header::ACCEPT_ENCODING,
            header::ACCEPT_LANGUAGE,
            header::USER_AGENT,
        ] {
            if let Some(value) = page.headers.get(&name) {
                asked.headers.insert(name, value.clone());
            }
        }
        let referer = HeaderValue::from_str(site.rules.site().as_str()).ok()?;
        asked.headers.insert(header::REFERER, referer);
        if page.headers.contains_key("sec-fetch-dest") {
            let kind = kind.unwrap_or_else(|| kind_by_path(uri.path()));
            let (destination, mode) = match kind {
                Kind::Style => ("style", "no-cors"),
                Kind::Script => ("script", "no-cors"),
                Kind::Font => ("font", "cors"),
                Kind::Image => ("image", "no-cors"),
                Kind::Media => ("video", "no-cors"),
            };
            let headers = &mut asked.headers;
            headers.insert("sec-fetch-dest", HeaderValue::from_static(destination));
            headers.insert("sec-fetch-mode", HeaderValue::from_static(mode));
            headers.insert("sec-fetch-site", HeaderValue::from_static("same-origin"));
        }
        let authority = authority_of(page).unwrap_or_else(|| site.name.clone());
        Wanted::read(site, &authority, None, &asked).ok()
    }

    /// Fetches what a page or a sheet, the answer to `wanted`, names: who asked for it will ask for that.
    pub(crate) fn look_ahead(self: &Arc<Self>, wanted: &Wanted, named: &[Reference]) {
        if !self.learn.prefetch || wanted.steps_ahead >= MAX_STEPS_AHEAD {
            return;
        }
        let mut asked = Request::new(()).into_parts().0;
        asked.headers.clone_from(&wanted.told);
        if let Ok(host) = HeaderValue::from_str(&wanted.authority) {
            asked.headers.insert(header::HOST, host);
        }
        for reference in named {
            let path = companions::path_of(reference).filter(|_| reference.kind != Kind::Media);
            let uri = path.and_then(|path| path.parse().ok());
            let next =
                uri.and_then(|uri| self.beside(&wanted.site, &asked, &uri, Some(reference.kind)));
            if let Some(mut next) = next {
                next.steps_ahead = wanted.steps_ahead + 1;
                self.fetch_ahead(next);
            }
        }
    }

    /// All of a page came by, and this became of it.
    pub(crate) fn page_done(
        &self,
        wanted: &Wanted,
        report: &PageReport,
        named: &[Reference],
        is_shared: bool,
    ) {
        let Some(url) = wanted.url() else {
            return;
        };
        let counters = &self.counters;
        counters.count(
            Family::Pages,
            report.left.map_or("rewritten", PageLeft::name),
        );
        counters.add(Family::References, "moved", report.moved as u64);
        for (reason, count) in &report.left_because {
            counters.add(Family::References, reason, *count as u64);
        }
        tracing::debug!(%url, moved = report.moved, left = report.left_count(), "a page was rewritten");
        if is_shared {
            self.companions.remember(url.as_str(), named);
        }
    }

    /// Purges what the operator wants gone.
    ///
    /// # Errors
    ///
    /// What is wrong with the wish.
    pub fn purge(&self, wish: &admin::Purge) -> Result<Purged, String> {
        let how = match wish.soft {
            true => Purge::Soft(self.hour()),
            false => Purge::Hard,
        };
        let sites = self.sites();
        let of_site = match &wish.site {
            Some(name) => {
                let site = sites.find(name).cloned();
                Some(site.ok_or_else(|| format!("no site is called {name}"))?)
            }
            None => None,
        };
        let count = match (&wish.url, &wish.prefix, &wish.tag, &of_site) {
            (Some(url), None, None, _) => {
                self.purge_url(&sites, of_site.as_ref(), url, how, true)?
            }
            (None, Some(url), None, _) => {
                self.purge_url(&sites, of_site.as_ref(), url, how, false)?
            }
            (None, None, Some(tag), Some(site)) => {
                let tag = Tag::of_site(site.rules.site_origin(), tag);
                if let Some(disk) = self.disk.get() {
                    disk.purge_tag(&tag);
                }
                self.memory.purge_tag(&tag, how)
            }
            (None, None, None, Some(site)) => {
                self.purge_scope(&Scope::Site(site.rules.site_origin()), how)
            }
            (None, None, Some(_), None) => return Err("a tag wants a site".to_owned()),
            _ => return Err("want one of url, prefix, tag, or a site alone".to_owned()),
        };
        Ok(Purged(count))
    }

    fn purge_url(
        &self,
        sites: &Sites,
        of_site: Option<&Arc<Site>>,
        url: &str,
        how: Purge,
        is_whole: bool,
    ) -> Result<usize, String> {
        let url = url::Url::parse(url).map_err(|error| format!("{url:?} is no URL: {error}"))?;
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(format!("{url} is no URL of the web"));
        };
        let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let own = sites.find(host);
        let mut count = 0;
        let all = sites
            .all()
            .filter(|site| of_site.is_none_or(|only| Arc::ptr_eq(only, site)));
        for site in all {
            let mut scopes = Vec::new();
            let (scheme, _, origin_port) = site.origin();
            if own.is_some_and(|own| Arc::ptr_eq(own, site)) {
                scopes.extend(site.asked_hosts().map(|host| (scheme, host, origin_port)));
            } else {
                scopes.push((url.scheme(), host, port));
            }
            for (scheme, host, port) in scopes {
                let parts = Parts {
                    site: site.rules.site_origin(),
                    scheme,
                    host,
                    port,
                    target,
                    rules: "",
                };
                count += match is_whole {
                    true => self.purge_scope(&Scope::Url(parts), how),
                    false => self.purge_scope(&Scope::Prefix(parts), how),
                };
            }
        }
        Ok(count)
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

    /// Fetches `wanted` for who will ask for it, unless it is kept or somebody fetches it already.
    pub(crate) fn fetch_ahead(self: &Arc<Self>, wanted: Wanted) {
        let policy = self.policy(wanted.whose());
        let variants = self.memory.find(&wanted.key);
        let variants = variants.as_deref().unwrap_or_default();
        let found = lookup::lookup(policy, &wanted.ask, variants, self.hour());
        if !matches!(found, Lookup::Miss(_)) {
            return;
        }
        let seat = self.flights.board(wanted.key.clone(), self.runtime.now());
        let Seat::Leader(leader) = seat else {
            return;
        };
        let proxy = self.clone();
        self.runtime.spawn(Box::pin(async move {
            if proxy.lift(&wanted).await {
                return drop(leader);
            }
            proxy.counters.count(Family::Ahead, "fetched");
            let fetch = Fetch {
                proxy,
                wanted,
                known: None,
                leader: Some(leader),
                forward: Forward::UriMiss,
                is_wanted_now: false,
            };
            let _ = fetch.run(Body::empty()).await;
        }));
    }
}

/// The host that a client named, with its port.
fn authority_of(asked: &request::Parts) -> Option<String> {
    if let Some(authority) = asked.uri.authority() {
        return Some(authority.as_str().to_owned());
    }
    let host = asked.headers.get(header::HOST)?;
    host.to_str().ok().map(str::to_owned)
}

/// What the path of a moved resource looks like, where nothing else tells.
fn kind_by_path(path: &str) -> Kind {
    let name = path.rsplit('/').next().unwrap_or_default();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    match extension.to_ascii_lowercase().as_str() {
        "css" => Kind::Style,
        "js" | "mjs" => Kind::Script,
        "woff" | "woff2" | "ttf" | "otf" | "eot" => Kind::Font,
        "mp4" | "webm" | "mp3" | "ogg" => Kind::Media,
        _ => Kind::Image,
    }
}

fn kind_of(headers: &http::HeaderMap) -> PageKind {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| PageKind::from_content_type(kind.to_str().ok()?));
    kind.unwrap_or(PageKind::Other)
}
