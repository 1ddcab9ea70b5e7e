//! The tier in memory: what is in, what goes, what a purge takes.

use std::collections::{BTreeMap, VecDeque};

use http::HeaderMap;
use proptest::prelude::*;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use spdy_cache::body::{Body, BodyBuilder, CHUNK_BYTES, TooLong};
use spdy_cache::freshness::Times;
use spdy_cache::key::{Key, KeyParts, Scope};
use spdy_cache::lookup::{Lookup, MissReason, lookup};
use spdy_cache::memory_store::{Object, PurgeMode, Store, StoreConfig};
use spdy_cache::policy::Policy;
use spdy_cache::purge_tags::{PurgeTag, invalidated_groups};
use spdy_cache::storable::may_store;
use spdy_cache::stored::Stored;

use crate::support::{answer, at, get, now};

fn parts<'a>(site: &'a str, target: &'a str) -> KeyParts<'a> {
    KeyParts {
        site,
        scheme: "https",
        host: "origin.test",
        port: 443,
        target,
        rules: "r1",
    }
}

fn key(target: &str) -> Key {
    Key::new(&parts("site.test", target)).unwrap()
}

fn stored_for(request: &str, fields: &str) -> Stored {
    let fields = format!("cache-control: max-age=600\n{fields}");
    may_store(
        &Policy::site(),
        &get(request),
        &answer(200, &fields),
        Times::at(now()),
    )
    .unwrap()
}

fn put(store: &mut Store, key: &Key, fields: &str, len: usize) -> Object {
    store
        .insert(key, stored_for("", fields), Body::copy_of(&vec![7; len]))
        .unwrap()
}

fn small(max_bytes: u64) -> Store {
    Store::new(StoreConfig {
        max_bytes,
        max_object_bytes: max_bytes,
        ..StoreConfig::default()
    })
}

fn is_in(store: &Store, target: &str) -> bool {
    store.get(&key(target)).is_some()
}

#[test]
fn inserted_object_is_found() {
    let mut store = small(1 << 20);
    put(&mut store, &key("/a"), "", 1000);
    let variants = store.get(&key("/a")).unwrap();
    let Lookup::Fresh { index: 0, .. } = lookup(&Policy::site(), &get(""), &variants, now()) else {
        panic!("{variants:?}");
    };
    assert_eq!(variants[0].body().len(), 1000);
    assert!(!is_in(&store, "/b"));
}

#[test]
fn newer_response_replaces_same_variant() {
    let mut store = small(1 << 20);
    let old = put(&mut store, &key("/a"), "x: 1", 10);
    let new = put(&mut store, &key("/a"), "x: 2", 20);
    let variants = store.get(&key("/a")).unwrap();
    assert!(variants.len() == 1 && variants[0].is(&new));
    assert!(!store.remove(&old), "it has left already");
    assert_eq!(
        (store.counters().inserted, store.counters().replaced),
        (2, 1)
    );
    assert!(store.remove(&new) && store.is_empty() && store.bytes() == 0);
}

#[test]
fn variants_per_key_are_limited() {
    let mut store = Store::new(StoreConfig {
        max_variants: 3,
        ..StoreConfig::default()
    });
    for (seconds, language) in ["a", "b", "c", "d"].iter().enumerate() {
        let fields = answer(200, "cache-control: max-age=600\nvary: accept-language");
        let request = get(&format!("accept-language: {language}"));
        let times = Times::at(at(seconds as i64));
        let stored = may_store(&Policy::site(), &request, &fields, times).unwrap();
        store.insert(&key("/a"), stored, Body::default()).unwrap();
    }
    let variants = store.get(&key("/a")).unwrap();
    let is_found = |language: &str| {
        let request = get(&format!("accept-language: {language}"));
        lookup(&Policy::site(), &request, &variants, at(4)) != Lookup::Miss(MissReason::Vary)
    };
    assert_eq!(
        ["a", "b", "c", "d"].map(is_found),
        [false, true, true, true]
    );
    assert_eq!(store.counters().variant_limit, 1);
}

#[test]
fn oversized_object_is_refused_and_removes_the_old_one() {
    let mut probe = small(1 << 20);
    put(&mut probe, &key("/a"), "", 1000);
    let weight = probe.bytes();

    let mut store = small(weight);
    put(&mut store, &key("/a"), "", 1000);
    assert_eq!(store.bytes(), weight);
    let larger = store.insert(&key("/a"), stored_for("", ""), Body::copy_of(&[7; 1001]));
    assert_eq!(larger.unwrap_err().weight, weight + 1);
    assert!(store.is_empty() && store.counters().refused == 1);
}

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

#[test]
fn purge_scope_covers_all_rules() {
    let filled = || {
        let mut store = small(1 << 20);
        for target in ["/a", "/a?x", "/a/b", "/ab", "/b"] {
            for rules in ["r1", "r2"] {
                let key = Key::new(&KeyParts {
                    rules,
                    ..parts("site.test", target)
                })
                .unwrap();
                put(&mut store, &key, "", 10);
            }
        }
        put(
            &mut store,
            &Key::new(&KeyParts {
                port: 4430,
                ..parts("site.test", "/a")
            })
            .unwrap(),
            "",
            10,
        );
        put(
            &mut store,
            &Key::new(&parts("site.test2", "/a")).unwrap(),
            "",
            10,
        );
        store
    };
    for (scope, expected) in [
        (Scope::Url(parts("site.test", "/a")), 2),
        (Scope::Prefix(parts("site.test", "/a/")), 2),
        (Scope::Prefix(parts("site.test", "/a")), 8),
        (Scope::Origin(parts("site.test", "")), 10),
        (Scope::Site("site.test"), 11),
        (Scope::Site("site"), 0),
    ] {
        let mut store = filled();
        let all = store.len();
        assert_eq!(
            store.purge(&scope, PurgeMode::Hard),
            Ok(expected),
            "{scope:?}"
        );
        assert_eq!(store.len(), all - expected, "{scope:?}");
    }
}

#[test]
fn soft_purge_expires_and_revalidation_refreshes() {
    let mut store = small(1 << 20);
    put(
        &mut store,
        &key("/a"),
        "etag: \"1\"\ncache-control: stale-while-revalidate=5",
        10,
    );
    assert_eq!(
        store.purge(&Scope::Site("site.test"), PurgeMode::Soft(at(10))),
        Ok(1)
    );
    let variants = store.get(&key("/a")).unwrap();
    let lookup_at = |seconds| lookup(&Policy::site(), &get(""), &variants, at(seconds));
    assert!(
        matches!(lookup_at(12), Lookup::Stale { .. }),
        "{:?}",
        lookup_at(12)
    );
    assert!(
        matches!(lookup_at(16), Lookup::Revalidate { .. }),
        "{:?}",
        lookup_at(16)
    );
    store
        .purge(&Scope::Site("site.test"), PurgeMode::Soft(at(14)))
        .unwrap();
    assert!(
        matches!(lookup_at(16), Lookup::Revalidate { .. }),
        "a second purge makes nothing younger"
    );
}

#[test]
fn tags_are_per_site_and_groups_per_origin() {
    let mut store = small(1 << 20);
    put(
        &mut store,
        &key("/a"),
        "surrogate-key: one two\ncache-groups: \"g\", \"h\"",
        10,
    );
    put(
        &mut store,
        &key("/b"),
        "cache-tag: two, three\ncache-groups: \"g\"",
        10,
    );
    let other_key = Key::new(&KeyParts {
        host: "other.test",
        ..parts("site.test", "/c")
    })
    .unwrap();
    put(&mut store, &other_key, "cache-groups: \"g\"", 10);
    assert_eq!(
        store.purge_tag(&PurgeTag::of_site("elsewhere.test", "two"), PurgeMode::Hard),
        0
    );
    assert_eq!(
        store.purge_tag(
            &PurgeTag::of_site("site.test", "three"),
            PurgeMode::Soft(now())
        ),
        1
    );
    assert_eq!(
        store.purge_tag(&PurgeTag::of_site("site.test", "two"), PurgeMode::Hard),
        2
    );
    assert_eq!(
        store.purge_tag(&PurgeTag::of_site("site.test", "one"), PurgeMode::Hard),
        0,
        "it left with two"
    );

    put(&mut store, &key("/c"), "cache-groups: \"of all\"", 10);
    assert_eq!(
        store.purge_tag(&PurgeTag::of_site("site.test", "of all"), PurgeMode::Hard),
        1,
        "the operator's tags are groups, too"
    );

    put(&mut store, &key("/a"), "cache-groups: \"g\", \"h\"", 10);
    let mut ends = HeaderMap::new();
    ends.insert("cache-group-invalidation", "\"g\"".parse().unwrap());
    let groups = invalidated_groups(&key("/form"), &ends);
    assert_eq!(
        groups
            .iter()
            .map(|group| store.purge_tag(group, PurgeMode::Hard))
            .sum::<usize>(),
        1
    );
    assert!(
        store.get(&other_key).is_some(),
        "another origin's group of that name"
    );
}

#[test]
fn body_is_chunked_and_any_range_is_sliced() {
    let bytes: Vec<u8> = (0..3 * CHUNK_BYTES + 5)
        .map(|at| at as u8 ^ (at >> 8) as u8)
        .collect();
    let mut gathering = BodyBuilder::new(bytes.len() as u64);
    for piece in bytes.chunks(1000) {
        gathering.push(piece).unwrap();
    }
    let body = gathering.finish();
    assert_eq!(body.chunks().len(), 4);
    let chunk = CHUNK_BYTES;
    for (from, to) in [
        (0, 0),
        (0, 1),
        (5, chunk),
        (chunk - 1, chunk + 1),
        (chunk, 3 * chunk),
        (7, bytes.len()),
    ] {
        let lent: Vec<u8> = body.slice(from as u64..to as u64).flatten().collect();
        assert!(lent == bytes[from..to], "{from}..{to}");
    }
    let mut gathering = BodyBuilder::new(10);
    gathering.push(&[0; 10]).unwrap();
    assert_eq!(gathering.push(&[0]), Err(TooLong { limit: 10 }));
}

#[test]
fn different_parts_make_different_keys() {
    let base = KeyParts {
        target: "/a",
        rules: "",
        ..parts("s", "")
    };
    assert!(
        Key::new(&KeyParts {
            target: "/a\0b",
            ..base
        })
        .is_err()
    );
    let key = Key::new(&base).unwrap();
    assert_eq!(
        (key.site(), key.origin()),
        (&b"s"[..], &b"s\0https\0origin.test\x00443"[..])
    );
    assert_eq!(Key::from_bytes(key.as_bytes().to_vec().into()), Some(key));
    assert_eq!(Key::from_bytes(b"s\0https"[..].into()), None);
}

#[derive(Clone, Debug)]
enum Step {
    Put {
        target: u8,
        site: u8,
        len: u16,
        tag: u8,
        language: u8,
    },
    Use {
        target: u8,
    },
    Purge {
        target: u8,
    },
    PurgeTag {
        tag: u8,
    },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..40u8, 0..3u8, 0..9000u16, 0..5u8, 0..6u8)
            .prop_map(|(target, site, len, tag, language)| Step::Put { target, site, len, tag, language }),
        3 => (0..40u8).prop_map(|target| Step::Use { target }),
        1 => (0..40u8).prop_map(|target| Step::Purge { target }),
        1 => (0..5u8).prop_map(|tag| Step::PurgeTag { tag }),
    ]
}

fn run(steps: &[Step]) -> Store {
    let limit = 60_000;
    let mut store = Store::new(StoreConfig {
        max_bytes: limit,
        max_object_bytes: 8_000,
        max_variants: 3,
        site_bytes: BTreeMap::from([(String::from("s1"), 20_000)]),
    });
    let name = |target: &u8, site: &u8| {
        Key::new(&parts(&format!("s{site}"), &format!("/{target}"))).unwrap()
    };
    for step in steps {
        match step {
            Step::Put {
                target,
                site,
                len,
                tag,
                language,
            } => {
                let request = format!("accept-language: l{language}");
                let stored = stored_for(
                    &request,
                    &format!("vary: accept-language\ncache-tag: t{tag}"),
                );
                let _ = store.insert(
                    &name(target, site),
                    stored,
                    Body::copy_of(&vec![0; usize::from(*len)]),
                );
            }
            Step::Use { target } => {
                let objects = store.get(&name(target, &0));
                objects
                    .iter()
                    .flat_map(|variants| variants.iter())
                    .for_each(Object::count_use);
            }
            Step::Purge { target } => {
                let target = format!("/{target}");
                let scope = Scope::Url(parts("s0", &target));
                let purged_count = store.purge(&scope, PurgeMode::Hard).unwrap();
                assert_eq!(
                    store.purge(&scope, PurgeMode::Hard),
                    Ok(0),
                    "{purged_count} went before"
                );
            }
            Step::PurgeTag { tag } => {
                store.purge_tag(
                    &PurgeTag::of_site("s0", &format!("t{tag}")),
                    PurgeMode::Hard,
                );
            }
        }
        assert!(store.bytes() <= limit && store.site_bytes("s1") <= 20_000);
        let sum: u64 = ["s0", "s1", "s2"]
            .iter()
            .map(|site| store.site_bytes(site))
            .sum();
        assert_eq!(sum, store.bytes());
    }
    store
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is done, its bytes stay within every limit, sums agree, and the same is done twice alike.
    #[test]
    fn store_never_exceeds_its_limit(steps in prop::collection::vec(step(), 0..200)) {
        let (mut store, second_store) = (run(&steps), run(&steps));
        prop_assert_eq!(store.counters(), second_store.counters());
        prop_assert_eq!((store.bytes(), store.len()), (second_store.bytes(), second_store.len()));
        for site in ["s0", "s1", "s2"] {
            store.purge(&Scope::Site(site), PurgeMode::Hard).unwrap();
        }
        prop_assert!(store.is_empty());
        prop_assert_eq!(store.bytes(), 0);
    }
}
