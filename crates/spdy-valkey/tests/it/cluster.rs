//! Two caches and a cluster of three real servers: one finds what the other stores, and receives what the other purges.

use std::net::{IpAddr, Ipv4Addr};

use http::HeaderMap;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use spdy_cache::body::Body;
use spdy_cache::key::Scope;
use spdy_cache::purge_tags::PurgeTag;
use spdy_cache::shared_tier::{PurgeTarget, PurgeVersion, SharedTier};
use spdy_testkit::redis_cluster::{NODES, RedisCluster, Tls, peers_enabled};
use spdy_valkey::config::Config;

use crate::support::{Cache, SITE, config, count, key, language, parts, scope, stored};

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

    // Everything is deleted, and all keys of a URL are on one node.
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
    cache_a.store_flushed("/url", &none, &[], "renewed").await;
    assert_eq!(cache_b.find("/url").await.as_deref(), Some("renewed"));
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
