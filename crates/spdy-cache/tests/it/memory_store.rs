//! The store in memory: objects, variants and bodies.

use spdy_cache::body::{Body, BodyBuilder, CHUNK_BYTES, TooLong};
use spdy_cache::freshness::Times;
use spdy_cache::key::{Key, KeyParts};
use spdy_cache::lookup::{Lookup, MissReason, lookup};
use spdy_cache::memory_store::{Store, StoreConfig};
use spdy_cache::policy::Policy;
use spdy_cache::storable::may_store;

use crate::support::memory_store::{is_in, key, parts, put, small, stored_for};
use crate::support::{answer, at, get, now};

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
