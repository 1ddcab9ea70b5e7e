//! Laws of the store in memory after any sequence of steps.

use std::collections::BTreeMap;

use proptest::prelude::*;
use spdy_cache::body::Body;
use spdy_cache::key::{Key, Scope};
use spdy_cache::memory_store::{Object, PurgeMode, Store, StoreConfig};
use spdy_cache::purge_tags::PurgeTag;

use crate::support::memory_store::{parts, stored_for};

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
