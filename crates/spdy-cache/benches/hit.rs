//! The cost of the cache itself for one answer, in answers a second: a hit, without and with `Vary`, a 304, and the
//! work before a first answer is stored.

use std::hint::black_box;
use std::time::{Duration, SystemTime};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use http::{Request, Response, request, response};
use spdy_cache::body::Body;
use spdy_cache::freshness::Times;
use spdy_cache::key::{Key, KeyParts};
use spdy_cache::lookup::{Lookup, lookup};
use spdy_cache::memory_store::{Store, StoreConfig};
use spdy_cache::policy::Policy;
use spdy_cache::response::answer;
use spdy_cache::storable::may_store;

const KEYS: usize = 10_000;

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_262_400)
}

/// A request with the header of a browser.
fn request_parts(more: &[(&str, &str)]) -> request::Parts {
    let fields = [
        ("accept", "image/avif,image/webp,*/*;q=0.8"),
        ("accept-encoding", "gzip, deflate, br, zstd"),
        ("accept-language", "en-GB,en;q=0.9,de;q=0.8"),
        (
            "user-agent",
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)",
        ),
        ("referer", "https://site.test/"),
    ];
    let request = fields
        .iter()
        .chain(more)
        .fold(Request::builder(), |request, (name, value)| {
            request.header(*name, *value)
        });
    request
        .uri("https://site.test/image.png")
        .body(())
        .expect("the request is valid")
        .into_parts()
        .0
}

/// As a server of files answers.
fn answered(more: &[(&str, &str)]) -> response::Parts {
    let fields = [
        ("server", "origin"),
        ("date", "Sat, 21 Nov 2026 12:00:00 GMT"),
        ("content-type", "image/png"),
        ("last-modified", "Wed, 01 Jan 2020 00:00:00 GMT"),
        ("etag", "\"5e0be100-400\""),
        ("cache-control", "public, max-age=31536000"),
        ("accept-ranges", "bytes"),
    ];
    let response = fields
        .iter()
        .chain(more)
        .fold(Response::builder(), |response, (name, value)| {
            response.header(*name, *value)
        });
    response
        .body(())
        .expect("the response is valid")
        .into_parts()
        .0
}

fn key(at: usize) -> Key {
    let target = format!("/images/{at}.png?v=3");
    let parts = KeyParts {
        site: "site.test",
        scheme: "https",
        host: "site.test",
        port: 443,
        target: &target,
        rules: "8f3a",
    };
    Key::new(&parts).expect("the parts of the key have no zero bytes")
}

fn hits(criterion: &mut Criterion) {
    let policy = Policy::site();
    let cases = [
        ("1 KiB", request_parts(&[]), answered(&[])),
        (
            "1 KiB, Vary: Accept-Encoding",
            request_parts(&[]),
            answered(&[("vary", "accept-encoding")]),
        ),
        (
            "304",
            request_parts(&[("if-none-match", "\"5e0be100-400\"")]),
            answered(&[]),
        ),
    ];
    let mut group = criterion.benchmark_group("cache/hit");
    group.throughput(Throughput::Elements(1));
    for (name, request, response) in cases {
        let mut store = Store::new(StoreConfig::default());
        let stored = may_store(&policy, &request, &response, Times::at(now()))
            .expect("the response is storable");
        let body = Body::copy_of(&[7; 1024]);
        let keys: Vec<Key> = (0..KEYS).map(key).collect();
        for key in &keys {
            store
                .insert(key, stored.clone(), body.clone())
                .expect("the object fits into the store");
        }
        let mut next = 0;
        group.bench_function(name, |b| {
            b.iter(|| {
                // Keys that are far apart, as those of real requests.
                next = (next + 7919) % KEYS;
                let variants = store
                    .get(black_box(&keys[next]))
                    .expect("the object is stored");
                let Lookup::Fresh { index, .. } = lookup(&policy, &request, &variants, now())
                else {
                    panic!("no hit");
                };
                let object = &variants[index];
                object.count_use();
                black_box(answer(
                    &policy,
                    object.stored(),
                    &request,
                    object.body().len(),
                    now(),
                ))
            });
        });
    }
    group.finish();
}

fn misses(criterion: &mut Criterion) {
    let (policy, request, response) = (
        Policy::site(),
        request_parts(&[]),
        answered(&[("vary", "accept-encoding")]),
    );
    let body = Body::copy_of(&[7; 1024]);
    let mut group = criterion.benchmark_group("cache/miss");
    group.throughput(Throughput::Elements(1));
    group.bench_function("may_store", |b| {
        b.iter(|| may_store(&policy, black_box(&request), &response, Times::at(now())));
    });
    let mut store = Store::new(StoreConfig {
        max_bytes: 10 << 20,
        ..StoreConfig::default()
    });
    let stored = may_store(&policy, &request, &response, Times::at(now()))
        .expect("the response is storable");
    let keys: Vec<Key> = (0..KEYS).map(key).collect();
    let mut next = 0;
    group.bench_function("insert and evict", |b| {
        b.iter(|| {
            next = (next + 1) % KEYS;
            store
                .insert(&keys[next], stored.clone(), body.clone())
                .expect("the object fits into the store")
        });
    });
    group.finish();
}

criterion_group!(benches, hits, misses);
criterion_main!(benches);
