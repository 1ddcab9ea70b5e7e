//! A store in memory, and objects for it.

use spdy_cache::body::Body;
use spdy_cache::freshness::Times;
use spdy_cache::key::{Key, KeyParts};
use spdy_cache::memory_store::{Object, Store, StoreConfig};
use spdy_cache::policy::Policy;
use spdy_cache::storable::may_store;
use spdy_cache::stored::Stored;

use crate::support::{answer, get, now};

pub(crate) fn parts<'a>(site: &'a str, target: &'a str) -> KeyParts<'a> {
    KeyParts {
        site,
        scheme: "https",
        host: "origin.test",
        port: 443,
        target,
        rules: "r1",
    }
}

pub(crate) fn key(target: &str) -> Key {
    Key::new(&parts("site.test", target)).unwrap()
}

pub(crate) fn stored_for(request: &str, fields: &str) -> Stored {
    let fields = format!("cache-control: max-age=600\n{fields}");
    may_store(
        &Policy::site(),
        &get(request),
        &answer(200, &fields),
        Times::at(now()),
    )
    .unwrap()
}

pub(crate) fn put(store: &mut Store, key: &Key, fields: &str, len: usize) -> Object {
    store
        .insert(key, stored_for("", fields), Body::copy_of(&vec![7; len]))
        .unwrap()
}

pub(crate) fn small(max_bytes: u64) -> Store {
    Store::new(StoreConfig {
        max_bytes,
        max_object_bytes: max_bytes,
        ..StoreConfig::default()
    })
}

pub(crate) fn is_in(store: &Store, target: &str) -> bool {
    store.get(&key(target)).is_some()
}
