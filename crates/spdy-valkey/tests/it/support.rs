//! A cache in front of a cluster, and objects for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use http::{HeaderMap, Request, Response};
use spdy_cache::body::Body;
use spdy_cache::freshness::Times;
use spdy_cache::key::{Key, KeyParts, Scope};
use spdy_cache::policy::Policy;
use spdy_cache::shared_tier::{PurgeTarget, PurgeVersion, SharedTier};
use spdy_cache::storable::may_store;
use spdy_cache::stored::Stored;
use spdy_testkit::redis_cluster::RedisCluster;
use spdy_testkit::wait::until;
use spdy_valkey::config::Config;
use spdy_valkey::tier::Tier;

pub(crate) const SITE: &str = "https://www.site.test";

pub(crate) fn parts(target: &str) -> KeyParts<'_> {
    KeyParts {
        site: SITE,
        scheme: "https",
        host: "www.site.test",
        port: 443,
        target,
        rules: "rules",
    }
}

pub(crate) fn key(target: &str) -> Key {
    Key::new(&parts(target)).expect("no zero bytes")
}

pub(crate) fn language(language: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("accept-language", language.try_into().expect("a value"));
    headers
}

pub(crate) fn stored(request_headers: &HeaderMap, fields: &[(&'static str, &str)]) -> Arc<Stored> {
    let mut request = Request::new(());
    *request.headers_mut() = request_headers.clone();
    let mut response = Response::new(());
    let headers = response.headers_mut();
    headers.insert("cache-control", "max-age=600".try_into().expect("a value"));
    for (name, value) in fields {
        headers.append(*name, (*value).try_into().expect("a value"));
    }
    let (request, response) = (request.into_parts().0, response.into_parts().0);
    let times = Times::at(SystemTime::now());
    may_store(&Policy::site(), &request, &response, times)
        .expect("the response is storable")
        .into()
}

/// A cache's tier, and the purges it received.
pub(crate) struct Cache {
    pub(crate) tier: Tier,
    pub(crate) purges: Arc<Mutex<Vec<(PurgeTarget, bool)>>>,
}

impl Cache {
    pub(crate) async fn start(config: Config) -> Self {
        Self::start_again(config, PurgeVersion::default()).await
    }

    pub(crate) async fn start_again(config: Config, version: PurgeVersion) -> Self {
        let purges = Arc::<Mutex<Vec<(PurgeTarget, bool)>>>::default();
        let purge_log = purges.clone();
        let on_purge = Arc::new(move |target: &PurgeTarget, soft| {
            purge_log.lock().unwrap().push((target.clone(), soft));
        });
        let tier = Tier::start(config, version, on_purge).expect("a valid configuration");
        Self { tier, purges }
    }

    pub(crate) async fn at(cluster: &RedisCluster) -> Self {
        let cache = Self::start(config(cluster)).await;
        cache.is_ready("the cluster is found");
        cache
    }

    pub(crate) fn is_ready(&self, what: &str) {
        tokio::task::block_in_place(|| until(what, || self.tier.parts().1 == 0));
    }

    pub(crate) async fn store_flushed(
        &self,
        target: &str,
        request_headers: &HeaderMap,
        fields: &[(&'static str, &str)],
        body: &str,
    ) {
        let (stored, body) = (
            stored(request_headers, fields),
            Body::copy_of(body.as_bytes()),
        );
        self.tier
            .store(&key(target), &stored, &body, self.tier.purge_version());
        self.tier.flushed().await;
    }

    pub(crate) async fn find_for(
        &self,
        target: &str,
        request_headers: &HeaderMap,
    ) -> Option<String> {
        let (_, body) = self
            .tier
            .lookup(&key(target), request_headers, &Policy::site())
            .await?;
        let bytes: Vec<u8> = body.chunks().flatten().copied().collect();
        Some(String::from_utf8(bytes).expect("text"))
    }

    pub(crate) async fn find(&self, target: &str) -> Option<String> {
        self.find_for(target, &HeaderMap::new()).await
    }

    pub(crate) async fn purge(&self, target: PurgeTarget) {
        self.tier.purge(target, false);
        assert!(self.tier.flush_purges().await, "the log is there");
    }

    /// Waits until it knows what `other` knows.
    pub(crate) fn catches_up_with(&self, other: &Self) {
        let has = || self.tier.log_position() == other.tier.purge_version();
        tokio::task::block_in_place(|| until("it has heard all of it", has));
    }

    pub(crate) fn waits_for_purge(&self, what: &str, target: &PurgeTarget) {
        let has = || {
            self.purges
                .lock()
                .unwrap()
                .iter()
                .any(|(purged, _)| purged == target)
        };
        tokio::task::block_in_place(|| until(what, has));
    }
}

pub(crate) fn config(cluster: &RedisCluster) -> Config {
    Config {
        nodes: cluster.urls(),
        // Under load everything takes its time.
        timeout: Duration::from_secs(10),
        poll: Duration::from_millis(50),
        ..Config::default()
    }
}

pub(crate) fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

pub(crate) fn scope(scope: &Scope<'_>) -> PurgeTarget {
    PurgeTarget::Prefix(scope.prefix().expect("no zero bytes").into())
}
