//! Purges of the store in memory: scopes, tags and groups.

use http::HeaderMap;
use spdy_cache::key::{Key, KeyParts, Scope};
use spdy_cache::lookup::{Lookup, lookup};
use spdy_cache::memory_store::PurgeMode;
use spdy_cache::policy::Policy;
use spdy_cache::purge_tags::{PurgeTag, invalidated_groups};

use crate::support::memory_store::{key, parts, put, small};
use crate::support::{at, get, now};

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
