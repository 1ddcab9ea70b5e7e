//! Two caches and a cluster of three real servers: one finds what the other stores, and receives what the other purges. Nodes that are
//! gone cause misses only.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use http::{HeaderMap, Request, Response};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use spdy_cache::body::Body;
use spdy_cache::freshness::Times;
use spdy_cache::key::{Key, KeyParts, Scope};
use spdy_cache::policy::Policy;
use spdy_cache::purge_tags::PurgeTag;
use spdy_cache::shared_tier::{PurgeTarget, PurgeVersion, SharedTier};
use spdy_cache::storable::may_store;
use spdy_cache::stored::Stored;
use spdy_testkit::redis_cluster::{NODES, RedisCluster, Tls, peers_enabled};
use spdy_testkit::wait::until;
use spdy_valkey::config::Config;
use spdy_valkey::tier::Tier;

const SITE: &str = "https://www.site.test";

fn parts(target: &str) -> KeyParts<'_> {
    KeyParts {
        site: SITE,
        scheme: "https",
        host: "www.site.test",
        port: 443,
        target,
        rules: "rules",
    }
}

fn key(target: &str) -> Key {
    Key::new(&parts(target)).expect("no zero bytes")
}

fn language(language: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("accept-language", language.try_into().expect("a value"));
    headers
}

fn stored(request_headers: &HeaderMap, fields: &[(&'static str, &str)]) -> Arc<Stored> {
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
struct Cache {
    tier: Tier,
    purges: Arc<Mutex<Vec<(PurgeTarget, bool)>>>,
}

impl Cache {
    async fn start(config: Config) -> Self {
        Self::start_again(config, PurgeVersion::default()).await
    }

    async fn start_again(config: Config, version: PurgeVersion) -> Self {
        let purges = Arc::<Mutex<Vec<(PurgeTarget, bool)>>>::default();
        let purge_log = purges.clone();
        let on_purge = Arc::new(move |target: &PurgeTarget, soft| {
            purge_log.lock().unwrap().push((target.clone(), soft));
        });
        let tier = Tier::start(config, version, on_purge).expect("a valid configuration");
        Self { tier, purges }
    }

    async fn at(cluster: &RedisCluster) -> Self {
        let cache = Self::start(config(cluster)).await;
        cache.is_ready("the cluster is found");
        cache
    }

    fn is_ready(&self, what: &str) {
        tokio::task::block_in_place(|| until(what, || self.tier.parts().1 == 0));
    }

    async fn store_flushed(
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

    async fn find_for(&self, target: &str, request_headers: &HeaderMap) -> Option<String> {
        let (_, body) = self
            .tier
            .lookup(&key(target), request_headers, &Policy::site())
            .await?;
        let bytes: Vec<u8> = body.chunks().flatten().copied().collect();
        Some(String::from_utf8(bytes).expect("text"))
    }

    async fn find(&self, target: &str) -> Option<String> {
        self.find_for(target, &HeaderMap::new()).await
    }

    async fn purge(&self, target: PurgeTarget) {
        self.tier.purge(target, false);
        assert!(self.tier.flush_purges().await, "the log is there");
    }

    /// Waits until it knows what `other` knows.
    fn catches_up_with(&self, other: &Self) {
        let has = || self.tier.log_position() == other.tier.purge_version();
        tokio::task::block_in_place(|| until("it has heard all of it", has));
    }

    fn waits_for_purge(&self, what: &str, target: &PurgeTarget) {
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

fn config(cluster: &RedisCluster) -> Config {
    Config {
        nodes: cluster.urls(),
        // Under load everything takes its time.
        timeout: Duration::from_secs(10),
        poll: Duration::from_millis(50),
        ..Config::default()
    }
}

fn count(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn scope(scope: &Scope<'_>) -> PurgeTarget {
    PurgeTarget::Prefix(scope.prefix().expect("no zero bytes").into())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_of_one_node_is_found_complete_by_another() {
    if !peers_enabled() {
        return;
    }
    let cluster = RedisCluster::start();
    let (cache_a, cache_b) = (Cache::at(&cluster).await, Cache::at(&cluster).await);
    let none = HeaderMap::new();
    assert_eq!(cache_b.find("/a").await, None);
    cache_a.store_flushed("/a", &none, &[], "the first").await;
    assert_eq!(cache_b.find("/a").await.as_deref(), Some("the first"));
    cache_a.store_flushed("/a", &none, &[], "the second").await;
    assert_eq!(cache_b.find("/a").await.as_deref(), Some("the second"));

    // Each variant for its own requests.
    for name in ["de", "en"] {
        cache_a
            .store_flushed("/v", &language(name), &[("vary", "accept-language")], name)
            .await;
    }
    assert_eq!(
        cache_b.find_for("/v", &language("de")).await.as_deref(),
        Some("de")
    );
    assert_eq!(
        cache_b.find_for("/v", &language("en")).await.as_deref(),
        Some("en")
    );
    assert_eq!(cache_b.find_for("/v", &language("fr")).await, None);

    // Many chunks.
    let long = "0123456789".repeat(20_000);
    cache_a.store_flushed("/long", &none, &[], &long).await;
    assert_eq!(cache_b.find("/long").await, Some(long));

    // Too large, or of an unknown time: not stored.
    let limit = usize::try_from(Config::default().max_object_bytes).expect("it fits");
    cache_a
        .store_flushed("/at-limit", &none, &[], &"x".repeat(limit))
        .await;
    assert!(cache_b.find("/at-limit").await.is_some());
    cache_a
        .store_flushed("/past-limit", &none, &[], &"x".repeat(limit + 1))
        .await;
    assert_eq!(cache_b.find("/past-limit").await, None);
    let unwritten = count(&cache_a.tier.counters().unwritten);
    let body = Body::copy_of(b"x");
    cache_a.tier.store(
        &key("/unknown"),
        &stored(&none, &[]),
        &body,
        PurgeVersion::default(),
    );
    cache_a.tier.flushed().await;
    assert_eq!(count(&cache_a.tier.counters().unwritten), unwritten + 1);
    assert_eq!(cache_b.find("/unknown").await, None);

    // A head past its limit, and more variants than there may be of a URL.
    let field = "x".repeat(33 << 10);
    cache_a
        .store_flushed("/head", &none, &[("x-long", &field)], "x")
        .await;
    assert_eq!(cache_b.find("/head").await, None);
    let languages: Vec<String> = (0..=32).map(|number| format!("x-{number}")).collect();
    let vary = [("vary", "accept-language")];
    for name in &languages[..32] {
        cache_a
            .store_flushed("/many", &language(name), &vary, name)
            .await;
    }
    assert!(cache_b.find_for("/many", &language("x-0")).await.is_some());
    cache_a
        .store_flushed("/many", &language("x-32"), &vary, "x-32")
        .await;
    cache_a.tier.flushed().await;
    assert_eq!(cache_b.find_for("/many", &language("x-0")).await, None);

    // All of it goes, and a URL is in one place.
    let mut keys = Vec::new();
    for node in 0..NODES {
        let listed = cluster.query(node, "KEYS *");
        keys.extend(
            listed
                .lines()
                .filter(|line| line.starts_with("spdy:"))
                .map(|key| (node, key.to_owned())),
        );
    }
    for (node, key) in &keys {
        let ttl = cluster.query(*node, &format!("TTL {key}"));
        let is_log = key == "spdy:{purges}";
        assert_eq!(ttl.starts_with(":-1"), is_log, "{key}: {ttl}");
    }

    // Nodes that accept no more are still read.
    for node in 0..NODES {
        let reply = cluster.query(node, "CONFIG SET maxmemory 1");
        assert!(reply.starts_with("+OK"), "{reply}");
    }
    for number in 0..20 {
        cache_a
            .store_flushed(&format!("/full/{number}"), &none, &[], "x")
            .await;
        assert_eq!(cache_b.find(&format!("/full/{number}")).await, None);
    }
    assert!(cache_b.find("/a").await.is_some());
    assert_eq!(cache_a.tier.parts().1, 0);
    for node in 0..NODES {
        let reply = cluster.query(node, "CONFIG SET maxmemory 0");
        assert!(reply.starts_with("+OK"), "{reply}");
    }

    // A byte that is another is no answer, and does not stay.
    let objects = keys.iter().filter(|(_, key)| key.contains("}:"));
    for (node, key) in objects.clone() {
        let reply = cluster.query(*node, &format!("SETRANGE {key} 500 \"?\""));
        assert!(reply.starts_with(':'), "{reply}");
    }
    for target in ["/a", "/long", "/at-limit"] {
        assert_eq!(cache_b.find(target).await, None, "{target}");
    }
    assert_eq!(count(&cache_b.tier.counters().broken), 3);
    cache_b.tier.flushed().await;
    assert_eq!(cache_a.find("/a").await, None);
    assert_eq!(count(&cache_a.tier.counters().broken), 0, "it is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_holds_everywhere_despite_writes_in_flight() {
    if !peers_enabled() {
        return;
    }
    let cluster = RedisCluster::start();
    let (cache_a, cache_b) = (Cache::at(&cluster).await, Cache::at(&cluster).await);
    let none = HeaderMap::new();
    let targets = ["/url", "/dir/a", "/dir/b", "/tagged", "/rest"];
    let fill = async |cache: &Cache| {
        for target in targets {
            cache
                .store_flushed(target, &none, &[("cache-tag", &target[1..])], target)
                .await;
        }
    };
    let found_targets = async |cache: &Cache| {
        let mut hits = Vec::new();
        for target in targets {
            hits.extend(cache.find(target).await.map(|_| target));
        }
        hits
    };
    fill(&cache_a).await;
    assert_eq!(found_targets(&cache_b).await, targets);
    let cases = [
        (
            scope(&Scope::Url(parts("/url"))),
            vec!["/dir/a", "/dir/b", "/tagged", "/rest"],
        ),
        (
            scope(&Scope::Prefix(parts("/dir/"))),
            vec!["/url", "/tagged", "/rest"],
        ),
        (
            PurgeTarget::Tag(PurgeTag::of_site(SITE, "tagged")),
            vec!["/url", "/dir/a", "/dir/b", "/rest"],
        ),
        (scope(&Scope::Site(SITE)), vec![]),
        (PurgeTarget::all(), vec![]),
    ];
    for (purge_target, remaining) in cases {
        let version = cache_b.tier.purge_version();
        cache_a.purge(purge_target.clone()).await;
        assert_eq!(found_targets(&cache_a).await, remaining, "{purge_target:?}");
        cache_b.waits_for_purge("the other hears of it", &purge_target);
        cache_b.catches_up_with(&cache_a);
        assert_eq!(found_targets(&cache_b).await, remaining, "{purge_target:?}");
        // The other's fetch had begun before.
        let unwritten = count(&cache_b.tier.counters().unwritten);
        for target in targets {
            let late_object = stored(&none, &[("cache-tag", &target[1..])]);
            let body = Body::copy_of(b"late");
            cache_b
                .tier
                .store(&key(target), &late_object, &body, version);
        }
        cache_b.tier.flushed().await;
        let left_out = count(&cache_b.tier.counters().unwritten) - unwritten;
        assert_eq!(
            left_out as usize,
            targets.len() - remaining.len(),
            "{purge_target:?}"
        );
        for target in targets {
            let is_late = cache_a
                .find(target)
                .await
                .is_some_and(|body| body == "late");
            assert_eq!(
                is_late,
                remaining.contains(&target),
                "{purge_target:?} {target}"
            );
        }
        fill(&cache_b).await;
        assert_eq!(
            found_targets(&cache_a).await,
            targets,
            "{purge_target:?}: fetched since"
        );
    }
    assert!(
        cache_a.purges.lock().unwrap().is_empty(),
        "a machine ignores its own purges"
    );
    // A cache that starts now knows all purges.
    let third = Cache::at(&cluster).await;
    third.catches_up_with(&cache_a);
    assert_eq!(third.purges.lock().unwrap().len(), 5);
    assert_eq!(found_targets(&third).await, targets);
    // A cache that restarts knows the purges in between.
    let position = third.tier.log_position();
    assert_eq!(position, cache_a.tier.purge_version());
    drop(third);
    let purge_target = scope(&Scope::Url(parts("/url")));
    cache_a.purge(purge_target.clone()).await;
    let third = Cache::start_again(config(&cluster), position).await;
    third.catches_up_with(&cache_a);
    assert_eq!(*third.purges.lock().unwrap(), [(purge_target, false)]);
    cache_b.catches_up_with(&cache_a);
    fill(&cache_b).await;

    // A cache that read a log that is lost since, or is far behind, may have missed any purge.
    let lost = Cache::start_again(config(&cluster), PurgeVersion(1)).await;
    lost.catches_up_with(&cache_a);
    let first = lost.purges.lock().unwrap().first().cloned();
    assert_eq!(first, Some((PurgeTarget::all(), true)));

    // An object that a client invalidated is gone for all caches, without an event: only later events arrive.
    cache_b.purges.lock().unwrap().clear();
    cache_a.tier.remove(key("/url").url());
    assert_eq!(cache_a.find("/url").await, None, "at once");
    cache_a.tier.flushed().await;
    assert_eq!(cache_b.find("/url").await, None);
    // So is what waited to be written then.
    let forgotten: Vec<String> = (0..20).map(|number| format!("/gone/{number}")).collect();
    for target in &forgotten {
        let (stored, body) = (stored(&none, &[]), Body::copy_of(b"old"));
        let (key, mark) = (key(target), cache_a.tier.purge_version());
        cache_a.tier.store(&key, &stored, &body, mark);
        cache_a.tier.remove(key.url());
    }
    cache_a.tier.flushed().await;
    for target in &forgotten {
        assert_eq!(cache_b.find(target).await, None, "{target}");
        assert_eq!(cache_a.find(target).await, None, "{target}");
    }
    let later = scope(&Scope::Url(parts("/later")));
    cache_a.purge(later.clone()).await;
    cache_b.catches_up_with(&cache_a);
    assert_eq!(*cache_b.purges.lock().unwrap(), [(later, false)]);
    cache_a.store_flushed("/url", &none, &[], "anew").await;
    assert_eq!(cache_b.find("/url").await.as_deref(), Some("anew"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_node_only_causes_misses_until_it_returns() {
    if !peers_enabled() {
        return;
    }
    let mut cluster = RedisCluster::start();
    let (cache_a, cache_b) = (Cache::at(&cluster).await, Cache::at(&cluster).await);
    let none = HeaderMap::new();
    let targets: Vec<String> = (0..30).map(|number| format!("/{number}")).collect();
    for target in &targets {
        cache_a.store_flushed(target, &none, &[], target).await;
    }
    let found_bodies = async |cache: &Cache| {
        let mut hits = Vec::new();
        for target in &targets {
            hits.extend(cache.find(target).await);
        }
        hits
    };
    assert_eq!(found_bodies(&cache_b).await, targets);

    // One that has no purges: without those nothing would be believed.
    let node = (cluster.node_of("spdy:{purges}") + 1) % NODES;
    cluster.kill(node);
    let wait_until_missed = |cache: &Cache| {
        tokio::task::block_in_place(|| until("it is missed", || cache.tier.parts().1 >= 5));
    };
    wait_until_missed(&cache_b);
    wait_until_missed(&cache_a);
    let remaining = found_bodies(&cache_b).await;
    assert!(remaining.len() < targets.len(), "{remaining:?}");
    assert!(
        remaining.iter().all(|body| targets.contains(body)),
        "{remaining:?}"
    );
    // Requested while impossible: done once it is possible.
    let lost = targets.iter().filter(|target| !remaining.contains(target));
    let lost: Vec<_> = lost.cloned().collect();
    cache_a.tier.remove(key(&lost[0]).url());
    cluster.restart(&[node]);
    cache_a.is_ready("one finds it again");
    cache_b.is_ready("the other finds it again");
    // What the node had is gone with it; what the others have is there, also in parts that are of two nodes.
    let available = found_bodies(&cache_b).await;
    assert!(
        remaining.iter().all(|body| available.contains(body)),
        "{remaining:?}, {available:?}"
    );
    assert!(
        available.len() < targets.len() && !available.contains(&lost[0]),
        "{available:?}"
    );
    for target in &lost {
        cache_a.store_flushed(target, &none, &[], target).await;
    }
    assert_eq!(found_bodies(&cache_b).await, targets);

    // All of them, and the log with them.
    (0..NODES).for_each(|node| cluster.kill(node));
    tokio::task::block_in_place(|| until("all is gone", || cache_a.tier.parts().0 == 0));
    assert_eq!(found_bodies(&cache_a).await, Vec::<String>::new());
    let purge_target = scope(&Scope::Prefix(parts("/2")));
    cache_a.tier.purge(purge_target.clone(), true);
    cache_b.purges.lock().unwrap().clear();
    cluster.restart(&[0, 1, 2]);
    cache_a.is_ready("one finds them again");
    cache_b.is_ready("the other finds them again");
    cache_b.waits_for_purge("it was told when it could be", &purge_target);
    cache_a.store_flushed("/5", &none, &[], "after all").await;
    assert_eq!(cache_b.find("/5").await.as_deref(), Some("after all"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_stalls_holds_up_no_more_than_may_wait() {
    if !peers_enabled() {
        return;
    }
    let cluster = RedisCluster::start();
    let none = HeaderMap::new();
    let long_timeout = Cache::start(Config {
        // The cause is not detected in the meantime.
        poll: Duration::from_secs(3600),
        timeout: Duration::from_secs(600),
        ..config(&cluster)
    });
    let long_timeout = long_timeout.await;
    long_timeout.is_ready("the cluster is found");
    let short_timeout = Cache::start(Config {
        timeout: Duration::from_millis(300),
        ..config(&cluster)
    });
    let short_timeout = short_timeout.await;
    tokio::task::block_in_place(|| until("it is found", || short_timeout.tier.parts().0 > 0));
    (0..NODES).for_each(|node| cluster.pause(node));

    // Requests: as many as may wait do, and one more is a miss.
    let (key, policy) = (key("/a"), Policy::site());
    let mut context = Context::from_waker(Waker::noop());
    let mut waiting: Vec<_> = (0..256)
        .map(|_| long_timeout.tier.lookup(&key, &none, &policy))
        .collect();
    for find in &mut waiting {
        assert!(find.as_mut().poll(&mut context).is_pending());
    }
    let mut one_more = long_timeout.tier.lookup(&key, &none, &policy);
    assert!(matches!(
        one_more.as_mut().poll(&mut context),
        Poll::Ready(None)
    ));

    // Writes: so many bytes wait, and no byte more.
    let (stored, body) = (stored(&none, &[]), Body::copy_of(&vec![0; 1 << 20]));
    let keep = |target: usize, body: &Body| {
        let key = self::key(&format!("/{target}"));
        long_timeout
            .tier
            .store(&key, &stored, body, long_timeout.tier.purge_version());
        count(&long_timeout.tier.counters().unwritten)
    };
    for target in 0..64 {
        assert_eq!(keep(target, &body), 0);
    }
    assert_eq!(keep(64, &Body::copy_of(b"x")), 1);

    // A caller with a short timeout tries a few times, and then no more.
    let unanswered = &short_timeout.tier.counters().unanswered;
    for _ in 0..10 {
        assert_eq!(short_timeout.find("/a").await, None);
    }
    assert!(count(unanswered) <= 3, "{unanswered:?}");

    // Waiting requests are answered when the nodes resume, and callers that had given up retry.
    (0..NODES).for_each(|node| cluster.resume(node));
    for find in waiting {
        assert!(find.await.is_none(), "the object does not exist");
    }
    long_timeout.tier.flushed().await;
    assert_eq!(count(&long_timeout.tier.counters().written), 64);
    long_timeout
        .store_flushed("/small", &none, &[], "small")
        .await;
    let lookup = async {
        while short_timeout.find("/small").await.is_none() {
            tokio::task::yield_now().await;
        }
    };
    let result = tokio::time::timeout(Duration::from_secs(60), lookup).await;
    result.expect("a second request arrives");
}

/// An authority, and what it signed for the nodes at `address`, which show it to clients and to each other: all PEM.
fn nodes(address: IpAddr) -> (String, String, String) {
    let key = || KeyPair::generate().expect("a key");
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // Of the same name as what it signs, it would look as if that had signed itself.
    params
        .distinguished_name
        .push(DnType::CommonName, "authority");
    let authority = CertifiedIssuer::self_signed(params, key()).expect("an authority");
    let params = CertificateParams::new([address.to_string()]).expect("an address");
    let key = key();
    let node = params.signed_by(&key, &authority).expect("a certificate");
    (authority.pem(), node.pem(), key.serialize_pem())
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_are_verified_over_tls() {
    if !peers_enabled() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("the folder can be written to");
        path
    };
    let mut authority = String::new();
    let cluster = RedisCluster::with_tls(|address| {
        let chain;
        let key;
        (authority, chain, key) = nodes(address.into());
        Tls {
            chain: write("chain.pem", &chain),
            key: write("key.pem", &key),
            authority: write("authority.pem", &authority),
        }
    });
    let with_authority = |authority: &str| Config {
        authorities: Some(authority.as_bytes().to_vec()),
        ..config(&cluster)
    };
    let trusting = Cache::start(with_authority(&authority)).await;
    trusting.is_ready("the cluster is found");
    trusting
        .store_flushed("/a", &HeaderMap::new(), &[], "a")
        .await;
    assert_eq!(trusting.find("/a").await.as_deref(), Some("a"));
    let (other_authority, ..) = nodes(Ipv4Addr::LOCALHOST.into());
    let untrusting = Cache::start(with_authority(&other_authority)).await;
    untrusting.tier.started().await;
    assert_eq!(untrusting.tier.parts().0, 0, "signed by an unknown key");
}
