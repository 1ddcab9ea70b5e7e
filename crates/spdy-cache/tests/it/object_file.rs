//! A file of one object: what was written is read, and nothing else is.

use http::HeaderMap;
use proptest::prelude::*;
use spdy_cache::body::{Body, CHUNK_BYTES};
use spdy_cache::freshness::Times;
use spdy_cache::key::{Key, KeyParts};
use spdy_cache::object_file::{
    Encoder, FileError, Layout, MAX_HEAD_BYTES, OpenObject, PREFIX_BYTES, file_name,
};
use spdy_cache::policy::Policy;
use spdy_cache::storable::may_store;
use spdy_cache::stored::Stored;

use crate::support::{answer, at, get, now};

fn key() -> Key {
    let parts = KeyParts {
        site: "site.test",
        scheme: "https",
        host: "site.test",
        port: 443,
        target: "/a?b",
        rules: "r",
    };
    Key::new(&parts).unwrap()
}

fn stored() -> Stored {
    let fields = "cache-control: max-age=60\nvary: accept-language, x\nx: 1\nx: \u{fc}\nset: ";
    let mut client_headers = HeaderMap::new();
    client_headers.insert("etag", "\"rewritten\"".parse().unwrap());
    let request = get("accept-language: en, de\nother: 1");
    let times = Times {
        requested: at(-3),
        received: now(),
    };
    may_store(&Policy::site(), &request, &answer(200, fields), times)
        .unwrap()
        .with_client_headers(client_headers)
        .with_note(*b"of the body")
}

fn file(len: usize) -> Vec<u8> {
    let bytes: Vec<u8> = (0..len).map(|at| (at * 7 + at / 251) as u8).collect();
    Encoder::whole(&key(), &stored(), &Body::copy_of(&bytes)).unwrap()
}

fn read(file: &[u8]) -> Result<(OpenObject, Body), FileError> {
    let object = OpenObject::decode(&Policy::site(), file)?;
    let body = object.body(file)?;
    Ok((object, body))
}

#[test]
fn object_file_round_trips() {
    for len in [
        0,
        1,
        CHUNK_BYTES - 1,
        CHUNK_BYTES,
        CHUNK_BYTES + 1,
        3 * CHUNK_BYTES,
    ] {
        let file = file(len);
        let layout = Layout::decode(&file[..PREFIX_BYTES]).unwrap();
        assert_eq!(
            (layout.file_len(), layout.body_len()),
            (file.len() as u64, len as u64)
        );
        let (object, body) = read(&file).unwrap();
        let (was, is) = (stored(), &object.stored);
        assert_eq!(
            (object.key.clone(), is.status(), is.times()),
            (key(), was.status(), was.times())
        );
        assert_eq!((is.headers(), is.served()), (was.headers(), was.served()));
        assert_eq!(is.note(), b"of the body");
        assert_eq!(
            (is.age(at(5)), is.ttl(at(5))),
            (was.age(at(5)), was.ttl(at(5)))
        );
        assert!(is.replaces(&was) && is.matches(&get("accept-language: de, en").headers));
        assert!(!is.matches(&get("accept-language: fr").headers));
        assert_eq!(Encoder::whole(&key(), is, &body).unwrap(), file);
    }
}

#[test]
fn soft_purge_survives_reload() {
    let purged = stored();
    purged.expire(at(10));
    let file = Encoder::whole(&key(), &purged, &Body::default()).unwrap();
    let (object, _) = read(&file).unwrap();
    assert_eq!(object.stored.staleness(at(12)), purged.staleness(at(12)));
    assert!(object.stored.staleness(at(12)).is_some());
}

#[test]
fn chunk_verifies_only_at_its_index() {
    let file = file(3 * CHUNK_BYTES);
    let object = OpenObject::decode(&Policy::site(), &file).unwrap();
    let chunk = |index| {
        let range = object.layout.chunk(index);
        &file[range.start as usize..range.end as usize]
    };
    assert_eq!(object.check_chunk(1, chunk(1)).unwrap().len(), CHUNK_BYTES);
    assert_eq!(
        object.check_chunk(1, chunk(2)),
        Err(FileError::Chunk { index: 1 })
    );
    let shorter_file = self::file(3 * CHUNK_BYTES - 1);
    let shorter_object = OpenObject::decode(&Policy::site(), &shorter_file).unwrap();
    assert_eq!(
        shorter_object.check_chunk(1, chunk(1)),
        Err(FileError::Chunk { index: 1 })
    );
}

#[test]
fn head_size_is_limited_for_read_and_write() {
    let policy = Policy {
        max_head_bytes: usize::MAX,
        ..Policy::site()
    };
    let of_len = |len: usize| {
        let fields = format!("cache-control: max-age=60\nlong: {}", "x".repeat(len));
        let stored = may_store(&policy, &get(""), &answer(200, &fields), Times::at(now())).unwrap();
        Encoder::new(&key(), &stored, 0)
    };
    let overhead = of_len(0).unwrap().1.len() - PREFIX_BYTES - 32;
    assert!(of_len(MAX_HEAD_BYTES - overhead).is_some());
    assert!(of_len(MAX_HEAD_BYTES - overhead + 1).is_none());
    let mut prefix = file(0)[..PREFIX_BYTES].to_vec();
    prefix[8..12].copy_from_slice(&(MAX_HEAD_BYTES as u32 + 1).to_be_bytes());
    assert!(matches!(
        Layout::decode(&prefix),
        Err(FileError::HeadLength { .. })
    ));
}

#[test]
fn file_name_is_shared_only_by_replacements() {
    let named = |request: &str, vary: &str| {
        let fields = format!("cache-control: max-age=60\n{vary}");
        let stored = may_store(
            &Policy::site(),
            &get(request),
            &answer(200, &fields),
            Times::at(now()),
        )
        .unwrap();
        file_name(&key(), &stored)
    };
    let vary = "vary: foo, bar";
    assert_eq!(named("foo: 1, 2", vary), named("foo: 1,2\nx: 1", vary));
    assert_eq!(named("foo: 1", vary).len(), 64);
    let names = [
        named("foo: 1", vary),
        named("foo: 2", vary),
        named("bar: 1", vary),
        named("foo:", vary),
        named("", vary),
        named("", ""),
    ];
    let different: std::collections::BTreeSet<&String> = names.iter().collect();
    assert_eq!(different.len(), names.len(), "{names:?}");
    assert!(
        names.iter().all(|name| name[..32] == names[0][..32]),
        "{names:?}"
    );
}

#[test]
fn every_truncated_file_is_detected() {
    let file = file(CHUNK_BYTES + 100);
    for len in (0..400).chain([CHUNK_BYTES, file.len() - 33, file.len() - 1]) {
        assert!(read(&file[..len]).is_err(), "the first {len} bytes");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// No bit can be another without being seen.
    #[test]
    fn every_flipped_bit_is_detected(at in any::<prop::sample::Index>(), bit in 0..8u8, len in 0..300usize) {
        let mut file = file(len);
        let at = at.index(file.len());
        file[at] ^= 1 << bit;
        prop_assert!(read(&file).is_err(), "byte {at} of {}", file.len());
    }

    /// Random bytes are refused, and nothing panics.
    #[test]
    fn foreign_bytes_are_rejected(mut bytes in prop::collection::vec(any::<u8>(), 0..300), magic in any::<bool>()) {
        if magic && bytes.len() >= PREFIX_BYTES {
            bytes[..8].copy_from_slice(b"spdyobj\x02");
            bytes[8..20].copy_from_slice(&[0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0, 50]);
        }
        prop_assert!(read(&bytes).is_err());
    }
}
