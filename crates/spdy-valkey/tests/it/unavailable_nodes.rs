//! Nodes of a cluster that are lost or that stall cause misses only.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use http::HeaderMap;
use spdy_cache::body::Body;
use spdy_cache::key::Scope;
use spdy_cache::policy::Policy;
use spdy_cache::shared_tier::SharedTier;
use spdy_testkit::redis_cluster::{NODES, RedisCluster, peers_enabled};
use spdy_testkit::wait::until;
use spdy_valkey::config::Config;

use crate::support::{Cache, config, count, key, parts, scope, stored};

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
