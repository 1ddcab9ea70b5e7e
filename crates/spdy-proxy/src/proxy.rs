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
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;

use http::{Request, Response, StatusCode, header};
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_cache::body::Body as KeptBody;
use spdy_cache::cache_status::{CacheStatus, Forward};
use spdy_cache::invalidate::invalidated_by;
use spdy_cache::key::{Key, Parts, Scope};
use spdy_cache::lookup::{self, Lookup};
use spdy_cache::policy::Policy;
use spdy_cache::store::{self, Object, Purge};
use spdy_cache::stored::Stored;
use spdy_cache::validate::Conditional;
use spdy_net::calendar::Calendar;

use crate::config::CacheConfig;
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
    pub(crate) upstream: Upstream,
    pub(crate) memory: Memory,
    encodings: Encodings,
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
        runtime: SharedRuntime,
        calendar: Calendar,
    ) -> Arc<Self> {
        let with = |policy| Policy {
            clients_may_revalidate: config.obey_reload,
            ..policy
        };
        Arc::new(Self {
            sites: RwLock::new(Arc::new(sites)),
            upstream,
            memory: Memory::new(store::Config {
                max_bytes: (config.memory_mib << 20) as u64,
                max_object_bytes: (config.object_mib << 20) as u64,
                ..store::Config::default()
            }),
            encodings: Encodings::new((config.memory_mib << 20) / ENCODED_SHARE),
            flights: Flights::new(),
            of_site: with(Policy::site()),
            of_others: with(Policy::third_party()),
            object_bytes: config.object_mib << 20,
            runtime,
            calendar,
        })
    }

    /// Requests that come from now on are for `sites`; those that are under way end as they began.
    pub fn replace_sites(&self, sites: Sites) {
        *self.sites.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(sites);
    }

    /// Ends all connections to origins in order.
    pub async fn close(&self) {
        self.upstream.close().await;
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
        let sites = self
            .sites
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let Some(site) = authority
            .as_deref()
            .and_then(|authority| sites.find(authority))
        else {
            return respond::plain(StatusCode::MISDIRECTED_REQUEST, "no such site here\n");
        };
        let authority = authority.as_deref().unwrap_or_default();
        match Wanted::read(site, authority, from, &asked) {
            Ok(wanted) => self.want(wanted, body).await,
            Err(why) => {
                tracing::debug!(%why, target = %asked.uri, "refused");
                respond::refused(&why)
            }
        }
    }

    /// The answer to what is wanted.
    async fn want(self: &Arc<Self>, wanted: Wanted, body: Body) -> Response<Body> {
        let policy = self.policy(wanted.whose());
        let variants = self.memory.find(&wanted.key);
        let variants = variants.as_deref().unwrap_or_default();
        let now = self.hour();
        let found = lookup::lookup(policy, &wanted.ask, variants, now);
        let forward = found.forward();
        match found {
            Lookup::Fresh { index, .. } => self.hit(&wanted, &variants[index], now),
            Lookup::Stale {
                index, background, ..
            } => {
                let stale = variants[index].clone();
                self.validate_behind(wanted.clone(), stale.clone(), background);
                self.hit(&wanted, &stale, now)
            }
            Lookup::Validate {
                index, conditional, ..
            } => {
                let known = Some((variants[index].clone(), conditional));
                self.board(wanted, known, forward).await
            }
            Lookup::Miss(_) => self.board(wanted, None, forward).await,
            Lookup::Bypass(_) => self.pass(wanted, body, forward).await,
            Lookup::OnlyIfCached => respond::plain(
                StatusCode::GATEWAY_TIMEOUT,
                "not kept, and not to be fetched\n",
            ),
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
            Seat::Leader(leader) => return self.fetch(wanted, known, Some(leader), forward).await,
            Seat::Alone => None,
            Seat::Follower(follower) => follower.wait(&self.runtime).await,
        };
        let now = self.hour();
        if let Some(landing) = shared
            && lookup::may_share_with(policy, &landing.stored, &wanted.ask, now)
            && let Some(response) = self.share(&wanted, &landing, now, forward)
        {
            return response;
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
    fn doubt(&self, site: &Site, uri: &http::Uri) {
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
            self.memory.purge(&Scope::Url(parts), Purge::Hard);
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
fn authority_of(asked: &http::request::Parts) -> Option<String> {
    if let Some(authority) = asked.uri.authority() {
        return Some(authority.as_str().to_owned());
    }
    let host = asked.headers.get(header::HOST)?;
    host.to_str().ok().map(str::to_owned)
}
