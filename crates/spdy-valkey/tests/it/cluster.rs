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
use spdy_testkit::patience::until;
use spdy_testkit::redis_cluster::{NODES, RedisCluster, Tls, peers_enabled};
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
    let mut asked = HeaderMap::new();
    asked.insert("accept-language", language.try_into().expect("a value"));
    asked
}

fn stored(asked: &HeaderMap, fields: &[(&'static str, &str)]) -> Arc<Stored> {
    let mut request = Request::new(());
    *request.headers_mut() = asked.clone();
    let mut answer = Response::new(());
    let headers = answer.headers_mut();
    headers.insert("cache-control", "max-age=600".try_into().expect("a value"));
    for (name, value) in fields {
        headers.append(*name, (*value).try_into().expect("a value"));
    }
    let (request, answer) = (request.into_parts().0, answer.into_parts().0);
    let times = Times::at(SystemTime::now());
    may_store(&Policy::site(), &request, &answer, times)
        .expect("the response is storable")
        .into()
}

/// A cache's tier, and the purges it received.
struct Cache {
    tier: Tier,
    heard: Arc<Mutex<Vec<(PurgeTarget, bool)>>>,
}

impl Cache {
    async fn start(config: Config) -> Self {
        Self::start_again(config, PurgeVersion::default()).await
    }

    async fn start_again(config: Config, before: PurgeVersion) -> Self {
        let heard = Arc::<Mutex<Vec<(PurgeTarget, bool)>>>::default();
        let ear = heard.clone();
        let ear = Arc::new(move |meant: &PurgeTarget, soft| {
            ear.lock().unwrap().push((meant.clone(), soft));
        });
        let tier = Tier::start(config, before, ear).expect("a valid configuration");
        Self { tier, heard }
    }

    async fn at(cluster: &RedisCluster) -> Self {
        let cache = Self::start(config(cluster)).await;
        cache.is_ready("the cluster is found");
        cache
    }

    fn is_ready(&self, what: &str) {
        tokio::task::block_in_place(|| until(what, || self.tier.parts().1 == 0));
    }

    async fn keep(
        &self,
        target: &str,
        asked: &HeaderMap,
        fields: &[(&'static str, &str)],
        body: &str,
    ) {
        let (stored, body) = (stored(asked, fields), Body::copy_of(body.as_bytes()));
        self.tier
            .store(&key(target), &stored, &body, self.tier.purge_version());
        self.tier.flushed().await;
    }

    async fn find_for(&self, target: &str, asked: &HeaderMap) -> Option<String> {
        let (_, body) = self
            .tier
            .lookup(&key(target), asked, &Policy::site())
            .await?;
        let bytes: Vec<u8> = body.chunks().flatten().copied().collect();
        Some(String::from_utf8(bytes).expect("text"))
    }

    async fn find(&self, target: &str) -> Option<String> {
        self.find_for(target, &HeaderMap::new()).await
    }

    async fn purge(&self, meant: PurgeTarget) {
        self.tier.purge(meant, false);
        assert!(self.tier.flush_purges().await, "the log is there");
    }

    /// Waits until it knows what `other` knows.
    fn catches_up_with(&self, other: &Self) {
        let has = || self.tier.log_position() == other.tier.purge_version();
        tokio::task::block_in_place(|| until("it has heard all of it", has));
    }

    fn hears(&self, what: &str, meant: &PurgeTarget) {
        let has = || {
            self.heard
                .lock()
                .unwrap()
                .iter()
                .any(|(heard, _)| heard == meant)
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
    let (one, other) = (Cache::at(&cluster).await, Cache::at(&cluster).await);
    let none = HeaderMap::new();
    assert_eq!(other.find("/a").await, None);
    one.keep("/a", &none, &[], "the first").await;
    assert_eq!(other.find("/a").await.as_deref(), Some("the first"));
    one.keep("/a", &none, &[], "the second").await;
    assert_eq!(other.find("/a").await.as_deref(), Some("the second"));

    // Each variant for its own requests.
    for name in ["de", "en"] {
        one.keep("/v", &language(name), &[("vary", "accept-language")], name)
            .await;
    }
    assert_eq!(
        other.find_for("/v", &language("de")).await.as_deref(),
        Some("de")
    );
    assert_eq!(
        other.find_for("/v", &language("en")).await.as_deref(),
        Some("en")
    );
    assert_eq!(other.find_for("/v", &language("fr")).await, None);

    // Many chunks.
    let long = "0123456789".repeat(20_000);
    one.keep("/long", &none, &[], &long).await;
    assert_eq!(other.find("/long").await, Some(long));

    // Too large, or of an unknown time: not stored.
    let limit = usize::try_from(Config::default().max_object_bytes).expect("it fits");
    one.keep("/at-limit", &none, &[], &"x".repeat(limit)).await;
    assert!(other.find("/at-limit").await.is_some());
    one.keep("/past-limit", &none, &[], &"x".repeat(limit + 1))
        .await;
    assert_eq!(other.find("/past-limit").await, None);
    let unwritten = count(&one.tier.counters().unwritten);
    let body = Body::copy_of(b"x");
    one.tier.store(
        &key("/unknown"),
        &stored(&none, &[]),
        &body,
        PurgeVersion::default(),
    );
    one.tier.flushed().await;
    assert_eq!(count(&one.tier.counters().unwritten), unwritten + 1);
    assert_eq!(other.find("/unknown").await, None);

    // A head past its limit, and more variants than there may be of a URL.
    let field = "x".repeat(33 << 10);
    one.keep("/head", &none, &[("x-long", &field)], "x").await;
    assert_eq!(other.find("/head").await, None);
    let languages: Vec<String> = (0..=32).map(|number| format!("x-{number}")).collect();
    let vary = [("vary", "accept-language")];
    for name in &languages[..32] {
        one.keep("/many", &language(name), &vary, name).await;
    }
    assert!(other.find_for("/many", &language("x-0")).await.is_some());
    one.keep("/many", &language("x-32"), &vary, "x-32").await;
    one.tier.flushed().await;
    assert_eq!(other.find_for("/many", &language("x-0")).await, None);

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
        let answer = cluster.query(node, "CONFIG SET maxmemory 1");
        assert!(answer.starts_with("+OK"), "{answer}");
    }
    for number in 0..20 {
        one.keep(&format!("/full/{number}"), &none, &[], "x").await;
        assert_eq!(other.find(&format!("/full/{number}")).await, None);
    }
    assert!(other.find("/a").await.is_some());
    assert_eq!(one.tier.parts().1, 0);
    for node in 0..NODES {
        let answer = cluster.query(node, "CONFIG SET maxmemory 0");
        assert!(answer.starts_with("+OK"), "{answer}");
    }

    // A byte that is another is no answer, and does not stay.
    let objects = keys.iter().filter(|(_, key)| key.contains("}:"));
    for (node, key) in objects.clone() {
        let answer = cluster.query(*node, &format!("SETRANGE {key} 500 \"?\""));
        assert!(answer.starts_with(':'), "{answer}");
    }
    for target in ["/a", "/long", "/at-limit"] {
        assert_eq!(other.find(target).await, None, "{target}");
    }
    assert_eq!(count(&other.tier.counters().broken), 3);
    other.tier.flushed().await;
    assert_eq!(one.find("/a").await, None);
    assert_eq!(count(&one.tier.counters().broken), 0, "it is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_holds_everywhere_despite_writes_in_flight() {
    if !peers_enabled() {
        return;
    }
    let cluster = RedisCluster::start();
    let (one, other) = (Cache::at(&cluster).await, Cache::at(&cluster).await);
    let none = HeaderMap::new();
    let targets = ["/url", "/dir/a", "/dir/b", "/tagged", "/rest"];
    let fill = async |cache: &Cache| {
        for target in targets {
            cache
                .keep(target, &none, &[("cache-tag", &target[1..])], target)
                .await;
        }
    };
    let found = async |cache: &Cache| {
        let mut found = Vec::new();
        for target in targets {
            found.extend(cache.find(target).await.map(|_| target));
        }
        found
    };
    fill(&one).await;
    assert_eq!(found(&other).await, targets);
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
    for (meant, left) in cases {
        let before = other.tier.purge_version();
        one.purge(meant.clone()).await;
        assert_eq!(found(&one).await, left, "{meant:?}");
        other.hears("the other hears of it", &meant);
        other.catches_up_with(&one);
        assert_eq!(found(&other).await, left, "{meant:?}");
        // The other's fetch had begun before.
        let unwritten = count(&other.tier.counters().unwritten);
        for target in targets {
            let late = stored(&none, &[("cache-tag", &target[1..])]);
            let body = Body::copy_of(b"late");
            other.tier.store(&key(target), &late, &body, before);
        }
        other.tier.flushed().await;
        let left_out = count(&other.tier.counters().unwritten) - unwritten;
        assert_eq!(left_out as usize, targets.len() - left.len(), "{meant:?}");
        for target in targets {
            let is_late = one.find(target).await.is_some_and(|found| found == "late");
            assert_eq!(is_late, left.contains(&target), "{meant:?} {target}");
        }
        fill(&other).await;
        assert_eq!(found(&one).await, targets, "{meant:?}: fetched since");
    }
    assert!(
        one.heard.lock().unwrap().is_empty(),
        "a machine ignores its own purges"
    );
    // A cache that starts now knows all purges.
    let third = Cache::at(&cluster).await;
    third.catches_up_with(&one);
    assert_eq!(third.heard.lock().unwrap().len(), 5);
    assert_eq!(found(&third).await, targets);
    // A cache that restarts knows the purges in between.
    let before = third.tier.log_position();
    assert_eq!(before, one.tier.purge_version());
    drop(third);
    let meant = scope(&Scope::Url(parts("/url")));
    one.purge(meant.clone()).await;
    let third = Cache::start_again(config(&cluster), before).await;
    third.catches_up_with(&one);
    assert_eq!(*third.heard.lock().unwrap(), [(meant, false)]);
    other.catches_up_with(&one);
    fill(&other).await;

    // A cache that read a log that is lost since, or is far behind, may have missed any purge.
    let lost = Cache::start_again(config(&cluster), PurgeVersion(1)).await;
    lost.catches_up_with(&one);
    let first = lost.heard.lock().unwrap().first().cloned();
    assert_eq!(first, Some((PurgeTarget::all(), true)));

    // An object that a client invalidated is gone for all caches, without an event: only later events arrive.
    other.heard.lock().unwrap().clear();
    one.tier.remove(key("/url").url());
    assert_eq!(one.find("/url").await, None, "at once");
    one.tier.flushed().await;
    assert_eq!(other.find("/url").await, None);
    // So is what waited to be written then.
    let forgotten: Vec<String> = (0..20).map(|number| format!("/gone/{number}")).collect();
    for target in &forgotten {
        let (stored, body) = (stored(&none, &[]), Body::copy_of(b"old"));
        let (key, mark) = (key(target), one.tier.purge_version());
        one.tier.store(&key, &stored, &body, mark);
        one.tier.remove(key.url());
    }
    one.tier.flushed().await;
    for target in &forgotten {
        assert_eq!(other.find(target).await, None, "{target}");
        assert_eq!(one.find(target).await, None, "{target}");
    }
    let later = scope(&Scope::Url(parts("/later")));
    one.purge(later.clone()).await;
    other.catches_up_with(&one);
    assert_eq!(*other.heard.lock().unwrap(), [(later, false)]);
    one.keep("/url", &none, &[], "anew").await;
    assert_eq!(other.find("/url").await.as_deref(), Some("anew"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_node_only_causes_misses_until_it_returns() {
    if !peers_enabled() {
        return;
    }
    let mut cluster = RedisCluster::start();
    let (one, other) = (Cache::at(&cluster).await, Cache::at(&cluster).await);
    let none = HeaderMap::new();
    let targets: Vec<String> = (0..30).map(|number| format!("/{number}")).collect();
    for target in &targets {
        one.keep(target, &none, &[], target).await;
    }
    let found = async |cache: &Cache| {
        let mut found = Vec::new();
        for target in &targets {
            found.extend(cache.find(target).await);
        }
        found
    };
    assert_eq!(found(&other).await, targets);

    // One that has no purges: without those nothing would be believed.
    let node = (cluster.node_of("spdy:{purges}") + 1) % NODES;
    cluster.kill(node);
    let gone = |cache: &Cache| {
        tokio::task::block_in_place(|| until("it is missed", || cache.tier.parts().1 >= 5));
    };
    gone(&other);
    gone(&one);
    let left = found(&other).await;
    assert!(left.len() < targets.len(), "{left:?}");
    assert!(left.iter().all(|body| targets.contains(body)), "{left:?}");
    // Requested while impossible: done once it is possible.
    let lost = targets.iter().filter(|target| !left.contains(target));
    let lost: Vec<_> = lost.cloned().collect();
    one.tier.remove(key(&lost[0]).url());
    cluster.restart(&[node]);
    one.is_ready("one finds it again");
    other.is_ready("the other finds it again");
    // What the node had is gone with it; what the others have is there, also in parts that are of two nodes.
    let there = found(&other).await;
    assert!(
        left.iter().all(|body| there.contains(body)),
        "{left:?}, {there:?}"
    );
    assert!(
        there.len() < targets.len() && !there.contains(&lost[0]),
        "{there:?}"
    );
    for target in &lost {
        one.keep(target, &none, &[], target).await;
    }
    assert_eq!(found(&other).await, targets);

    // All of them, and the log with them.
    (0..NODES).for_each(|node| cluster.kill(node));
    tokio::task::block_in_place(|| until("all is gone", || one.tier.parts().0 == 0));
    assert_eq!(found(&one).await, Vec::<String>::new());
    let meant = scope(&Scope::Prefix(parts("/2")));
    one.tier.purge(meant.clone(), true);
    other.heard.lock().unwrap().clear();
    cluster.restart(&[0, 1, 2]);
    one.is_ready("one finds them again");
    other.is_ready("the other finds them again");
    other.hears("it was told when it could be", &meant);
    one.keep("/5", &none, &[], "after all").await;
    assert_eq!(other.find("/5").await.as_deref(), Some("after all"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_stalls_holds_up_no_more_than_may_wait() {
    if !peers_enabled() {
        return;
    }
    let cluster = RedisCluster::start();
    let none = HeaderMap::new();
    let patient = Cache::start(Config {
        // The cause is not detected in the meantime.
        poll: Duration::from_secs(3600),
        timeout: Duration::from_secs(600),
        ..config(&cluster)
    });
    let patient = patient.await;
    patient.is_ready("the cluster is found");
    let hasty = Cache::start(Config {
        timeout: Duration::from_millis(300),
        ..config(&cluster)
    });
    let hasty = hasty.await;
    tokio::task::block_in_place(|| until("it is found", || hasty.tier.parts().0 > 0));
    (0..NODES).for_each(|node| cluster.pause(node));

    // Requests: as many as may wait do, and one more is a miss.
    let (key, policy) = (key("/a"), Policy::site());
    let mut context = Context::from_waker(Waker::noop());
    let mut waiting: Vec<_> = (0..256)
        .map(|_| patient.tier.lookup(&key, &none, &policy))
        .collect();
    for find in &mut waiting {
        assert!(find.as_mut().poll(&mut context).is_pending());
    }
    let mut more = patient.tier.lookup(&key, &none, &policy);
    assert!(matches!(
        more.as_mut().poll(&mut context),
        Poll::Ready(None)
    ));

    // Writes: so many bytes wait, and no byte more.
    let (stored, body) = (stored(&none, &[]), Body::copy_of(&vec![0; 1 << 20]));
    let keep = |target: usize, body: &Body| {
        let key = self::key(&format!("/{target}"));
        patient
            .tier
            .store(&key, &stored, body, patient.tier.purge_version());
        count(&patient.tier.counters().unwritten)
    };
    for target in 0..64 {
        assert_eq!(keep(target, &body), 0);
    }
    assert_eq!(keep(64, &Body::copy_of(b"x")), 1);

    // A caller with a short timeout tries a few times, and then no more.
    let unanswered = &hasty.tier.counters().unanswered;
    for _ in 0..10 {
        assert_eq!(hasty.find("/a").await, None);
    }
    assert!(count(unanswered) <= 3, "{unanswered:?}");

    // Waiting requests are answered when the nodes resume, and callers that had given up retry.
    (0..NODES).for_each(|node| cluster.resume(node));
    for find in waiting {
        assert!(find.await.is_none(), "the object does not exist");
    }
    patient.tier.flushed().await;
    assert_eq!(count(&patient.tier.counters().written), 64);
    patient.keep("/small", &none, &[], "small").await;
    let found = async {
        while hasty.find("/small").await.is_none() {
            tokio::task::yield_now().await;
        }
    };
    let found = tokio::time::timeout(Duration::from_secs(60), found).await;
    found.expect("a second request arrives");
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
    let known = |authority: &str| Config {
        authorities: Some(authority.as_bytes().to_vec()),
        ..config(&cluster)
    };
    let one = Cache::start(known(&authority)).await;
    one.is_ready("the cluster is found");
    one.keep("/a", &HeaderMap::new(), &[], "a").await;
    assert_eq!(one.find("/a").await.as_deref(), Some("a"));
    let (another, ..) = nodes(Ipv4Addr::LOCALHOST.into());
    let stranger = Cache::start(known(&another)).await;
    stranger.tier.started().await;
    assert_eq!(stranger.tier.parts().0, 0, "signed by an unknown key");
}
