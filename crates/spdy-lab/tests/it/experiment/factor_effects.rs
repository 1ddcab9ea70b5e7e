//! Effects of factors on protocols: every row of the table in `docs/reference/experiment-file.md`, by loading.

use std::cell::LazyCell;
use std::sync::OnceLock;

use spdy_lab::experiment::conditions::Conditions;
use spdy_lab::experiment::factor::Factor;
use spdy_lab::experiment::plan::Plan;
use spdy_page::builtin;
use spdy_sim::load::Load;
use spdy_sim::load::{self, Page};
use spdy_sim::options::RaceProtocol;

/// Factors without an effect on some loads, each with a level that is not the default.
const CASES: [(&str, &str); 11] = [
    ("reorder", "yes"),
    ("tls", "1.2"),
    ("resumption", "no"),
    ("connections", "2"),
    ("streams", "3"),
    ("compression", "0"),
    ("ip_pooling", "yes"),
    ("push", "all"),
    ("deploy", "first-party"),
    ("frame", "256"),
    ("prefetch", "no"),
];

/// Other levels that are combined with them.
const BASES: [&str; 3] = ["", "deploy = 'first-party'", "accelerator = 'cold'"];

/// A page of seven hosts, two of them at one address.
fn page() -> &'static Page {
    static PAGE: OnceLock<Page> = OnceLock::new();
    PAGE.get_or_init(|| {
        let mut portal = builtin::portal();
        let own = portal.document().address;
        for exchange in &mut portal.exchanges {
            if exchange.url.host_str() == Some("img.portal.test") {
                exchange.address = own;
            }
        }
        Page::new(portal)
    })
}

/// The conditions of the first cell of a plan with `factors`.
fn conditions(protocol: RaceProtocol, factors: &str) -> Conditions {
    let text = format!(
        "name = 'a'\npages = ['page']\nprotocols = ['{protocol}']\n[factors]\nnetwork = 'cable'\n{factors}\n"
    );
    let plan = Plan::parse(&text).unwrap_or_else(|error| panic!("{factors}: {error}"));
    let cell = plan.cells().next().expect("it has one");
    Conditions::of(&cell).expect("it was read")
}

/// One load under `conditions`, always with the same seed: over QUIC another seed changes a load.
fn load(protocol: RaceProtocol, conditions: &Conditions) -> Load {
    let (network, options) = (&conditions.network, &conditions.options);
    let config = network.config(options);
    let load = load::load(page(), protocol, "", &config, options, 1);
    assert!(load.failures.is_empty(), "{protocol}: {:?}", load.failures);
    load
}

/// True if each level in [`TRIED`], of the factors that `is_tried` selects, has another load than `ground` alone.
fn load_each(
    ground: &str,
    is_tried: impl Fn(Factor, RaceProtocol, &Conditions) -> bool,
) -> Vec<(String, bool)> {
    let mut tried = Vec::new();
    for protocol in RaceProtocol::ALL {
        let before = LazyCell::new(|| load(protocol, &conditions(protocol, ground)));
        for (name, level) in CASES {
            if ground.starts_with(name) {
                continue;
            }
            let factor = Factor::named(name).expect("it has a name");
            let conditions = conditions(protocol, &format!("{ground}\n{name} = '{level}'"));
            if is_tried(factor, protocol, &conditions) {
                let differs = load(protocol, &conditions) != *before;
                tried.push((format!("{name}={level} by {protocol}, {ground}"), differs));
            }
        }
    }
    tried
}

#[test]
fn an_ineffective_factor_changes_no_load() {
    for ground in BASES {
        let idle = |factor: Factor, protocol, conditions: &Conditions| {
            !factor.has_effect_on(protocol, conditions)
        };
        let tried = load_each(ground, idle);
        assert!(tried.len() > 15, "{ground}: {}", tried.len());
        for (what, differs) in tried {
            assert!(!differs, "{what}");
        }
    }
}

#[test]
fn an_effective_factor_changes_a_load() {
    let acts = |factor: Factor, protocol, conditions: &Conditions| {
        factor.has_effect_on(protocol, conditions)
    };
    let all = load_each("", acts);
    assert_eq!(all.len(), 43);
    for (what, differs) in all {
        assert!(differs, "{what}");
    }
    // Factors whose effect depends on another level.
    for (ground, name, protocols) in [
        (
            "deploy = 'first-party'",
            "connections",
            &RaceProtocol::ALL[..],
        ),
        ("deploy = 'first-party'", "tls", &[RaceProtocol::H3]),
        (
            "accelerator = 'cold'",
            "prefetch",
            &[RaceProtocol::Http, RaceProtocol::H2],
        ),
        (
            "jitter = '3ms'",
            "reorder",
            &[RaceProtocol::Http, RaceProtocol::H3],
        ),
    ] {
        let only = |factor: Factor, protocol, conditions: &Conditions| {
            factor.name() == name
                && protocols.contains(&protocol)
                && factor.has_effect_on(protocol, conditions)
        };
        let tried = load_each(ground, only);
        assert_eq!(tried.len(), protocols.len(), "{ground}: {name}");
        for (what, differs) in tried {
            assert!(differs, "{what}");
        }
    }
}

/// Its servers have the same initial window, and recover losses by the same algorithm. QUIC takes nothing else of an era.
#[test]
fn over_quic_an_era_of_tcp_is_its_algorithm_and_its_window() {
    let [first, then, today] = ["2009", "2013", "today"].map(|era| {
        load(
            RaceProtocol::H3,
            &conditions(RaceProtocol::H3, &format!("tcp = '{era}'")),
        )
    });
    assert!(
        first.load_ms > then.load_ms,
        "{} {}",
        first.load_ms,
        then.load_ms
    );
    assert_eq!(then, today);
}

#[test]
fn an_accelerator_before_a_folded_page_is_refused() {
    let text = "name = 'a'\npages = ['page']\n[factors]\nnetwork = 'cable'\naccelerator = ['off', 'warm']\nfold = ['no', 'yes']\n";
    let message = Plan::parse(text).expect_err("a folded page").to_string();
    assert!(
        message.contains("accelerator=warm") && message.contains("/.spdy/1/"),
        "{message}"
    );
}
