//! Which objects the store in memory evicts, and when: use, readers and quotas.

use std::collections::{BTreeMap, VecDeque};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use spdy_cache::body::Body;
use spdy_cache::key::{Key, Scope};
use spdy_cache::memory_store::{PurgeMode, Store, StoreConfig};

use crate::support::memory_store::{is_in, key, parts, put, small, stored_for};

#[test]
fn used_objects_outlive_one_hit_objects() {
    let mut store = small(100 * 4096);
    put(&mut store, &key("/used"), "", 2000);
    for round in 0..1000 {
        let objects = store
            .get(&key("/used"))
            .unwrap_or_else(|| panic!("gone in round {round}"));
        objects[0].count_use();
        put(&mut store, &key(&format!("/once/{round}")), "", 2000);
    }
    assert!(store.counters().evicted > 800);
}

#[test]
fn single_use_or_ghost_hit_survives_a_scan() {
    let mut store = small(100 * 4096);
    let flood = |store: &mut Store, name: &str, count: usize| {
        (0..count).for_each(|each| drop(put(store, &key(&format!("/{name}/{each}")), "", 2000)));
    };
    put(&mut store, &key("/used"), "", 2000).count_use();
    put(&mut store, &key("/unused"), "", 2000);
    flood(&mut store, "first", 200);
    assert_eq!(
        ["/used", "/unused"].map(|target| is_in(&store, target)),
        [true, false]
    );
    // It left the small queue lately enough to be known again.
    put(&mut store, &key("/unused"), "", 2000);
    flood(&mut store, "second", 150);
    assert!(is_in(&store, "/unused"));
}

/// Requests of which a few names have most: Zipf, with weight `1 / rank`.
fn zipf(names: usize, requests: usize, seed: u64) -> Vec<usize> {
    let mut sums: Vec<f64> = (1..=names).map(|rank| 1.0 / rank as f64).collect();
    (1..names).for_each(|at| sums[at] += sums[at - 1]);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let all = sums[names - 1];
    (0..requests)
        .map(|_| sums.partition_point(|sum| *sum < random.random::<f64>() * all))
        .collect()
}

#[test]
fn s3_fifo_beats_lru_on_skewed_requests() {
    let (names, requests, room, seed) = (5000, 30_000, 250, 7);
    let trace = zipf(names, requests, seed);
    let mut probe = small(1 << 20);
    put(&mut probe, &key("/0000"), "", 100);
    let mut store = small(probe.bytes() * room as u64);
    let mut recent: VecDeque<usize> = VecDeque::new();
    let (mut hits, mut lru_hits) = (0, 0);
    for name in trace {
        let key = key(&format!("/{name:04}"));
        match store.get(&key) {
            Some(variants) => {
                variants[0].count_use();
                hits += 1;
            }
            None => drop(put(&mut store, &key, "", 100)),
        }
        match recent.iter().position(|other| *other == name) {
            Some(at) => {
                recent.remove(at);
                lru_hits += 1;
            }
            None if recent.len() == room => drop(recent.pop_front()),
            None => {}
        }
        recent.push_back(name);
    }
    assert_eq!(store.len(), room);
    let percent = |hits: usize| 100.0 * hits as f64 / requests as f64;
    let (s3_fifo, lru) = (percent(hits), percent(lru_hits));
    assert!(
        s3_fifo > lru + 6.0,
        "{s3_fifo:.1} % and {lru:.1} % of {requests}, seed {seed}"
    );
}

/// Bodies of so many bytes, which weigh a little more.
const READ: usize = 10_000;

#[test]
fn body_in_use_counts_until_last_reader() {
    let mut store = small(100_000);
    let readers: Vec<Body> = (0..4)
        .map(|nth| {
            let object = put(&mut store, &key(&format!("/read/{nth}")), "", READ);
            object.body().clone()
        })
        .collect();
    let first = readers[0].clone();
    assert_eq!(store.bytes_in_use(), store.bytes());
    assert_eq!(
        store.purge(
            &Scope::Prefix(parts("site.test", "/read/")),
            PurgeMode::Hard
        ),
        Ok(4)
    );
    assert_eq!(store.bytes(), 0);
    let bytes_in_use = store.bytes_in_use();
    assert!(
        (40_000..41_000).contains(&bytes_in_use),
        "{bytes_in_use} bytes are read yet"
    );
    for nth in 0..100 {
        put(&mut store, &key(&format!("/{nth}")), "", 2000);
        assert!(store.bytes_in_use() <= 100_000, "{}", store.bytes_in_use());
        assert!(store.bytes() <= 60_000, "{}", store.bytes());
    }
    drop(readers);
    let object_bytes = first.weight();
    assert_eq!(
        store.bytes_in_use(),
        store.bytes() + object_bytes,
        "one has a reader yet"
    );
    drop(first);
    assert_eq!(store.bytes_in_use(), store.bytes());
}

#[test]
fn objects_in_use_are_evicted_last_and_new_ones_refused() {
    let mut probe = small(1 << 20);
    put(&mut probe, &key("/read/0"), "", READ);
    let limit = probe.bytes() * 19 / 2;
    let mut store = small(limit);
    let targets = (0..9).map(|nth| format!("/read/{nth}"));
    let mut readers: Vec<Body> = targets
        .clone()
        .map(|target| put(&mut store, &key(&target), "", READ).body().clone())
        .collect();
    for nth in 0..100 {
        put(&mut store, &key(&format!("/small/{nth}")), "", 500);
    }
    for target in targets {
        assert!(is_in(&store, &target), "{target} has a reader");
    }
    let body = || Body::copy_of(&[7; READ]);
    let count_before = store.len();
    let result = store.insert(&key("/new"), stored_for("", ""), body());
    let error = result.expect_err("all that could go is less than that");
    assert!(error.room < error.weight, "{error}");
    assert!(store.bytes_in_use() <= limit);
    assert_eq!(store.len(), count_before, "nothing went in vain");

    readers.pop();
    store
        .insert(&key("/new"), stored_for("", ""), body())
        .expect("a body has no reader");
    assert!(is_in(&store, "/new") && !is_in(&store, "/read/8"));
    assert!(store.bytes_in_use() <= limit);
}

#[test]
fn reinserted_body_is_counted_once() {
    let mut store = small(25_000);
    let object = put(&mut store, &key("/a"), "x: 1", READ);
    let reader = object.body().clone();
    drop(object);
    for round in 2..20 {
        let fields = format!("x: {round}");
        let result = store.insert(&key("/a"), stored_for("", &fields), reader.clone());
        result.expect("the object is already stored");
        assert_eq!(store.bytes_in_use(), store.bytes());
    }
}

#[test]
fn site_over_quota_evicts_its_own() {
    let mut store = Store::new(StoreConfig {
        site_bytes: BTreeMap::from([(String::from("greedy.test"), 50_000)]),
        ..StoreConfig::default()
    });
    put(&mut store, &key("/a"), "", 2000);
    for count in 0..100 {
        let target = format!("/{count}");
        let key = Key::new(&parts("greedy.test", &target)).unwrap();
        put(&mut store, &key, "", 2000);
        assert!(store.site_bytes("greedy.test") <= 50_000);
    }
    assert!(is_in(&store, "/a"));
    let too_large = store.insert(
        &Key::new(&parts("greedy.test", "/large")).unwrap(),
        stored_for("", ""),
        Body::copy_of(&[7; 50_000]),
    );
    assert_eq!(too_large.unwrap_err().room, 50_000);
}

#[test]
fn lowered_quota_evicts_at_once() {
    let mut store = Store::new(StoreConfig::default());
    for count in 0..10 {
        for site in ["greedy.test", "other.test"] {
            let target = format!("/{count}");
            let key = Key::new(&parts(site, &target)).unwrap();
            put(&mut store, &key, "", 2000);
        }
    }
    let bytes_before = store.site_bytes("other.test");
    let quotas = BTreeMap::from([(String::from("greedy.test"), bytes_before / 2)]);
    store.set_site_bytes(quotas);
    assert!((1..=bytes_before / 2).contains(&store.site_bytes("greedy.test")));
    assert_eq!(store.site_bytes("other.test"), bytes_before);
    // None any more: as much as before, and more.
    store.set_site_bytes(BTreeMap::new());
    for count in 10..30 {
        let target = format!("/{count}");
        let key = Key::new(&parts("greedy.test", &target)).unwrap();
        put(&mut store, &key, "", 2000);
    }
    assert!(store.site_bytes("greedy.test") > bytes_before);
}

#[test]
fn full_store_evicts_from_largest_site() {
    let mut store = small(100_000);
    put(&mut store, &key("/a"), "", 2000);
    for count in 0..100 {
        let target = format!("/{count}");
        put(
            &mut store,
            &Key::new(&parts("large.test", &target)).unwrap(),
            "",
            2000,
        );
    }
    assert!(is_in(&store, "/a") && store.counters().evicted > 50);
}
