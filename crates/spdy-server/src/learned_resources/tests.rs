//! Tests that access the private state of [`LearnedResources`].

use std::net::IpAddr;
use std::time::Duration;

use http::{HeaderMap, Method};
use spdy_clock::Instant;
use spdy_page::replica::Kind;

use super::limits::MAX_RESOURCES;
use super::{LearnedResources, LearningLimits, ResourceLoad};

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

/// A client of the `network`th network.
fn client(network: u16) -> Option<IpAddr> {
    let [high, low] = network.to_be_bytes();
    Some(IpAddr::from([198, high, low, 7]))
}

fn plain(url: &str) -> ResourceLoad<'_> {
    ResourceLoad {
        url,
        kind: None,
        by_cors: None,
    }
}

fn urls(learned: &LearnedResources, now: Instant, page: &str) -> Vec<String> {
    let candidates = learned.resources_of(now, page);
    candidates
        .into_iter()
        .map(|candidate| candidate.url)
        .collect()
}

/// A client of the `network`th network views `/` at second `network`, and requests `urls`.
fn view(learned: &mut LearnedResources, network: u16, urls: &[&str]) {
    learned.record_view(at(network.into()), client(network), "/", []);
    for thing in urls {
        learned.record_request(at(network.into()), client(network), "/", &plain(thing));
    }
}

#[test]
fn a_resource_is_learned_after_enough_networks() {
    let mut learned = LearnedResources::new(LearningLimits::default());
    for network in 0..5 {
        let expected = usize::from(network >= 3);
        assert_eq!(
            urls(&learned, at(network.into()), "/").len(),
            expected,
            "{network}"
        );
        match network == 1 || network == 3 {
            true => view(&mut learned, network, &["/always"]),
            false => view(&mut learned, network, &["/always", "/at-times"]),
        }
    }
    assert_eq!(urls(&learned, at(5), "/"), ["/always"]);
    assert_eq!(urls(&learned, at(5), "/other"), [""; 0]);
}

#[test]
fn one_network_has_one_vote_however_often_it_views_a_page() {
    let mut learned = LearnedResources::new(LearningLimits::default());
    for view in 0..81 {
        // Addresses of one /24, then of one /32.
        for from in [
            IpAddr::from([203, 0, 113, view]),
            IpAddr::from([0x2001, 0xdb8, 1, view.into(), 0, 0, 0, 1]),
        ] {
            let now = at(u64::from(view) * 20);
            learned.record_view(now, Some(from), "/", []);
            learned.record_request(now, Some(from), "/", &plain("/planted"));
        }
        // All clients without an address count as one network.
        learned.record_view(at(u64::from(view) * 20), None, "/", []);
    }
    assert_eq!(learned.pages["/"].votes.len(), 3);
    assert_eq!(urls(&learned, at(81 * 20), "/"), [""; 0]);
    for network in 0..21 {
        let now = at(81 * 20);
        learned.record_view(now, client(network), "/", []);
        learned.record_request(now, client(network), "/", &plain("/needed"));
    }
    assert_eq!(urls(&learned, at(81 * 20), "/"), ["/needed"]);
}

#[test]
fn the_last_views_are_bounded_by_network() {
    let limits = LearningLimits {
        networks: 2,
        ..LearningLimits::default()
    };
    let mut learned = LearnedResources::new(limits);
    for (network, page) in [(0, "/a"), (1, "/a"), (0, "/b"), (2, "/a")] {
        learned.record_view(at(0), client(network), page, []);
    }
    let last = |learned: &LearnedResources, now, network| {
        learned
            .last_view(at(now), client(network))
            .map(str::to_owned)
    };
    assert_eq!(last(&learned, 10, 0).as_deref(), Some("/b"));
    assert_eq!(last(&learned, 11, 0), None, "too long ago");
    assert_eq!(last(&learned, 0, 2), None, "one past the limit");
    learned.record_view(at(11), client(2), "/a", []);
    assert_eq!(last(&learned, 11, 2).as_deref(), Some("/a"));
    assert_eq!(learned.latest.len(), 1);
}

#[test]
fn an_accepted_push_is_no_vote_and_a_refused_one_is_a_no() {
    for (accepted, expected) in [(true, 1), (false, 0)] {
        let mut learned = LearnedResources::new(LearningLimits::default());
        for network in 0..10 {
            view(
                &mut learned,
                network,
                if network < 4 { &["/a"] } else { &[] },
            );
            if network >= 4 && accepted {
                learned.record_push(client(network), "/", "/a");
            }
        }
        assert_eq!(
            urls(&learned, at(10), "/").len(),
            expected,
            "taken: {accepted}"
        );
    }
}

/// A browser requests every hinted resource. Without this rule, a resource that three networks invented would stay for ever.
#[test]
fn junk_of_few_networks_expires_despite_hints() {
    let mut learned = LearnedResources::new(LearningLimits::default());
    let mut hinted = [0, 0];
    for network in 0..200 {
        let hints = urls(&learned, at(network.into()), "/");
        learned.record_view(
            at(network.into()),
            client(network),
            "/",
            hints.iter().map(String::as_str),
        );
        for (index, url) in ["/needed", "/made-up"].into_iter().enumerate() {
            let is_hinted = hints.iter().any(|hints| hints == url);
            hinted[index] += usize::from(is_hinted);
            if is_hinted || index == 0 || network < 3 {
                learned.record_request(at(network.into()), client(network), "/", &plain(url));
            }
        }
    }
    assert!(hinted[0] > 150, "{hinted:?}");
    assert_eq!(hinted[1], 4, "until the first control view");
}

#[test]
fn only_the_latest_networks_count_and_a_page_without_views_is_forgotten() {
    let mut learned = LearnedResources::new(LearningLimits::default());
    for n in 0..1000 {
        view(
            &mut learned,
            n,
            &[if n < 900 { "/before" } else { "/since" }],
        );
    }
    assert_eq!(learned.pages["/"].votes.len(), 64);
    assert_eq!(urls(&learned, at(1000), "/"), ["/since"]);
    assert_eq!(urls(&learned, at(999 + 3601), "/"), [""; 0]);
    learned.record_view(at(6000), client(0), "/", []);
    assert_eq!(learned.pages["/"].votes.len(), 1);
}

#[test]
fn only_loads_of_subresources_of_the_own_origin_are_learned() {
    let fields = |pairs: &[(&'static str, &'static str)]| {
        let pairs = pairs.iter().map(|&(name, word)| {
            let name = http::HeaderName::from_static(name);
            (name, http::HeaderValue::from_static(word))
        });
        HeaderMap::from_iter(pairs)
    };
    let of = |method: &Method, pairs: &[_]| {
        let loaded = ResourceLoad::of("/a", method, &fields(pairs))?;
        Some((loaded.kind, loaded.by_cors))
    };
    let get = &Method::GET;
    let (dest, mode, site) = ("sec-fetch-dest", "sec-fetch-mode", "sec-fetch-site");
    assert_eq!(of(get, &[]), Some((None, None)), "a browser of SPDY's time");
    let own = |kind: &'static str| [(dest, kind), (mode, "no-cors"), (site, "same-origin")];
    assert_eq!(of(get, &own("font")), Some((Some(Kind::Font), Some(false))));
    let module = [(dest, "script"), (mode, "cors")];
    assert_eq!(of(get, &module), Some((Some(Kind::Script), Some(true))));
    for kind in [
        "empty", "document", "iframe", "frame", "object", "embed", "worker", "report",
    ] {
        assert_eq!(of(get, &own(kind)), None, "{kind}");
    }
    for from in ["cross-site", "same-site", "none", ""] {
        assert_eq!(of(get, &[(dest, "image"), (site, from)]), None, "{from}");
    }
    assert_eq!(of(get, &[(mode, "navigate")]), None);
    for method in [Method::POST, Method::HEAD, Method::OPTIONS, Method::PUT] {
        assert_eq!(of(&method, &[]), None, "{method}");
    }
}

/// The learned properties of `/a` after one network loaded it in each of these ways: its kind, mode, and whether it is hinted.
fn loaded_as(loads: &[(Option<Kind>, Option<bool>)]) -> (Option<Kind>, bool, bool) {
    let mut learned = LearnedResources::new(LearningLimits::default());
    for (n, &(kind, by_cors)) in (0..).zip(loads) {
        let url = "/a";
        learned.record_view(at(0), client(n), "/", []);
        learned.record_request(at(0), client(n), "/", &ResourceLoad { url, kind, by_cors });
    }
    let wish = learned.resources_of(at(0), "/").remove(0);
    (wish.kind, wish.by_cors, !wish.is_unhintable)
}

#[test]
fn how_a_resource_is_loaded_is_learned_from_votes_that_agree() {
    let module = (Some(Kind::Script), Some(true));
    let image = (Some(Kind::Image), Some(false));
    let silent = (None, None);
    for (loads, expected) in [
        (&[module; 3][..], (Some(Kind::Script), true, true)),
        (&[image; 3], (Some(Kind::Image), false, true)),
        (&[silent; 3], (None, false, true)),
        (&[module, module, image], (None, false, false)),
        (&[silent, silent, module], (None, false, false)),
    ] {
        assert_eq!(loaded_as(loads), expected, "{loads:?}");
    }
}

#[test]
fn one_network_does_not_decide_how_a_resource_is_loaded() {
    for (honest, wrong) in [
        (
            (Some(Kind::Script), Some(true)),
            (Some(Kind::Image), Some(false)),
        ),
        (
            (Some(Kind::Script), Some(false)),
            (Some(Kind::Image), Some(true)),
        ),
    ] {
        for (count, place) in [(2, 0), (2, 2), (4, 0), (4, 2), (4, 4), (10, 0), (10, 10)] {
            let mut loads = vec![honest; count];
            loads.insert(place, wrong);
            let (kind, by_cors, is_hinted) = loaded_as(&loads);
            // Of five votes, four must agree; with fewer, nothing is stated instead of something wrong.
            let agreed = (kind, is_hinted.then_some(by_cors));
            let expected = if count < 4 { (None, None) } else { honest };
            assert_eq!(agreed, expected, "{count} networks, the other at {place}");
        }
        let silent = loaded_as(&[
            (None, None),
            (None, None),
            (None, None),
            (None, None),
            wrong,
        ]);
        assert_eq!(silent, (None, false, true));
    }
}

/// A browser loads a preload in the mode that the hint states.
#[test]
fn a_hinted_client_does_not_vote_on_the_mode() {
    let mut learned = LearnedResources::new(LearningLimits::default());
    let load = |learned: &mut LearnedResources, network, hinted: &[&str], by_cors| {
        let url = "/a";
        let loaded = ResourceLoad {
            url,
            kind: Some(Kind::Script),
            by_cors: Some(by_cors),
        };
        learned.record_view(at(0), client(network), "/", hinted.iter().copied());
        learned.record_request(at(0), client(network), "/", &loaded);
    };
    for network in 0..4 {
        load(&mut learned, network, &[], true);
    }
    for network in 4..30 {
        load(&mut learned, network, &["/a"], false);
    }
    assert!(learned.resources_of(at(0), "/").remove(0).by_cors);
}

#[test]
fn pages_resources_and_bytes_have_limits_and_the_fewest_votes_go_first() {
    let limits = LearningLimits {
        pages: 2,
        resources_per_page: 2,
        bytes: 12,
        ..LearningLimits::default()
    };
    let mut learned = LearnedResources::new(limits);
    let pages = |learned: &LearnedResources| learned.pages.keys().cloned().collect::<Vec<_>>();
    learned.record_view(at(0), client(0), "/a", []);
    learned.record_view(at(0), client(1), "/a", []);
    learned.record_view(at(1), client(0), "/b", []);
    learned.record_view(at(2), client(0), "/c", []);
    assert_eq!(pages(&learned), ["/a", "/c"], "one network viewed /b");
    for url in ["/1", "/2", "/3"] {
        learned.record_request(at(3), client(0), "/c", &plain(url));
    }
    let needs: Vec<_> = learned.pages["/c"]
        .resources
        .iter()
        .map(|need| &need.url[..])
        .collect();
    assert_eq!(needs, ["/2", "/3"], "one past the limit");
    assert_eq!(learned.bytes, 8);
    learned.record_request(at(3), client(0), "/a", &plain("/four"));
    assert_eq!((learned.bytes, pages(&learned)), (7, vec!["/a".to_owned()]));
    learned.record_request(at(3), client(0), "/a", &plain("/seventeen bytes"));
    learned.record_view(at(4), client(0), "/a url of more than all bytes", []);
    assert_eq!((learned.bytes, learned.pages.len()), (7, 1));
}

#[test]
fn a_url_is_learned_up_to_its_limit() {
    let mut learned = LearnedResources::new(LearningLimits::default());
    let most = LearningLimits::default().url_bytes;
    let [good, long] = [most, most + 1].map(|bytes| format!("/{}", "a".repeat(bytes - 1)));
    view(&mut learned, 0, &[&long, &good]);
    learned.record_view(at(0), client(0), &long, []);
    assert_eq!(learned.pages.len(), 1);
    assert_eq!(learned.pages["/"].resources.len(), 1);
    assert_eq!(learned.bytes, 1 + most);
}

#[test]
fn one_network_is_the_first_to_name_so_many_resources_of_a_page() {
    let mut learned = LearnedResources::new(LearningLimits::default());
    let most = LearningLimits::default().resources_per_network;
    let names: Vec<_> = (0..=most)
        .map(|network| format!("/planted/{network}"))
        .collect();
    let planted: Vec<_> = names.iter().map(String::as_str).collect();
    view(&mut learned, 0, &planted);
    assert_eq!(
        learned.pages["/"].resources.len(),
        most,
        "one past the limit"
    );
    view(&mut learned, 1, &["/needed"]);
    assert_eq!(learned.pages["/"].resources.len(), most + 1);
    // Resources that only one network names make room for those of other networks.
    for network in 2..5 {
        let names: Vec<_> = (0..most).map(|at| format!("/{network}/{at}")).collect();
        let more = names.iter().map(String::as_str).chain(["/needed"]);
        view(&mut learned, network, &more.collect::<Vec<_>>());
    }
    assert_eq!(learned.pages["/"].resources.len(), MAX_RESOURCES);
    assert_eq!(urls(&learned, at(5), "/"), ["/needed"]);
}

/// These networks view `/` again, and name as many of `junk` as they can.
fn attack(learned: &mut LearnedResources, now: Instant, networks: &[u16], junk: &[String]) {
    for &network in networks {
        learned.record_view(now, client(network), "/", []);
        for url in junk {
            learned.record_request(now, client(network), "/", &plain(url));
        }
    }
}

#[test]
fn junk_of_two_or_three_networks_does_not_lock_a_page() {
    let junk: Vec<_> = (0..MAX_RESOURCES)
        .map(|number| format!("/x{number}"))
        .collect();
    let honest: Vec<_> = (0..12).map(|number| format!("/needed/{number}")).collect();
    for attackers in [&[1000, 1001][..], &[1000, 1001, 1002]] {
        for is_long in [false, true] {
            let long = "x".repeat(1000);
            let junk: Vec<_> = match is_long {
                true => junk.iter().map(|url| format!("{url}{long}")).collect(),
                false => junk.clone(),
            };
            let mut learned = LearnedResources::new(LearningLimits::default());
            // Before and after each client that loads the page, they name all of it again.
            for number in 0..40 {
                let now = at(u64::from(number) * 20);
                attack(&mut learned, now, attackers, &junk);
                learned.record_view(now, client(number), "/", []);
                for url in &honest {
                    learned.record_request(now, client(number), "/", &plain(url));
                }
                attack(&mut learned, now, attackers, &junk);
            }
            let mut learned_urls = urls(&learned, at(40 * 20), "/");
            learned_urls.sort();
            let mut expected = honest.clone();
            expected.sort();
            assert_eq!(
                learned_urls,
                expected,
                "{} networks, long: {is_long}",
                attackers.len()
            );
        }
    }
}

#[test]
fn one_network_evicts_nothing_that_half_of_the_others_name() {
    let urls: Vec<_> = (0..MAX_RESOURCES)
        .map(|number| format!("/needed/{number}"))
        .collect();
    let mut learned = LearnedResources::new(LearningLimits::default());
    let attack_once = |learned: &mut LearnedResources, now| {
        let junk: Vec<_> = (0..200).map(|number| format!("/x{number}")).collect();
        attack(learned, now, &[1000], &junk);
    };
    let resource_urls = |learned: &LearnedResources| {
        let resource_urls = learned.pages["/"].resources.iter();
        resource_urls
            .map(|resource| resource.url.clone())
            .collect::<Vec<_>>()
    };
    // Two networks name all at first: one is the first to name half of them.
    for number in 0..6 {
        learned.record_view(at(0), client(number), "/", []);
        let (first, second) = urls.split_at(MAX_RESOURCES / 2);
        let order = if number == 0 {
            [first, second]
        } else {
            [second, first]
        };
        for url in order.concat() {
            learned.record_request(at(0), client(number), "/", &plain(&url));
        }
    }
    assert_eq!(resource_urls(&learned).len(), MAX_RESOURCES);
    for round in 0..20 {
        attack_once(&mut learned, at(round * 20));
        assert_eq!(resource_urls(&learned), urls, "round {round}");
    }
    // Nor later, when nearly all clients are sent what was learned, and so do not name it.
    for number in 10..60 {
        let hinted = urls.iter().map(String::as_str);
        learned.record_view(at(500), client(number), "/", hinted);
    }
    attack_once(&mut learned, at(500));
    assert_eq!(resource_urls(&learned), urls);
}

#[test]
fn the_urls_of_one_page_have_a_limit_in_bytes() {
    let limits = LearningLimits {
        bytes_per_page: 40,
        ..LearningLimits::default()
    };
    let mut learned = LearnedResources::new(limits);
    let bytes = |learned: &LearnedResources| learned.pages["/"].bytes();
    let all = ["/1234", "/2345", "/3456", "/4567", "/5"];
    view(&mut learned, 0, &all);
    assert_eq!(bytes(&learned), 20, "one network has half of them");
    view(&mut learned, 1, &["/a234", "/b345", "/c456", "/d567"]);
    assert_eq!(bytes(&learned), 40);
    view(&mut learned, 2, &["/e"]);
    assert_eq!(bytes(&learned), 37, "one past the limit");
    assert_eq!(learned.bytes, 1 + 37);
    view(&mut learned, 3, &[&format!("/{}", "f".repeat(20))]);
    assert_eq!(bytes(&learned), 37, "more than one network may have");
    // By default a page has a small part of all bytes.
    let limits = LearningLimits::default();
    let mut learned = LearnedResources::new(limits);
    for n in 0..20 {
        let names: Vec<_> = (0..MAX_RESOURCES)
            .map(|at| format!("/{n}/{at}/{}", "x".repeat(limits.url_bytes - 20)))
            .collect();
        view(
            &mut learned,
            n,
            &names.iter().map(String::as_str).collect::<Vec<_>>(),
        );
        assert!(bytes(&learned) <= 16 * 1024);
    }
    assert!(bytes(&learned) > 12 * 1024);
}

#[test]
fn a_provider_of_ipv6_has_one_vote_and_6to4_adds_none() {
    let mut learned = LearnedResources::new(LearningLimits::default());
    for n in 0..200 {
        for from in [
            IpAddr::from([0x2001, 0xdb8, n, 0, 0, 0, 0, 1]),
            IpAddr::from([0x2002, 0xc633, n, 0, 0, 0, 0, 1]),
        ] {
            learned.record_view(at(0), Some(from), "/", []);
            learned.record_request(at(0), Some(from), "/", &plain("/planted"));
        }
    }
    // 198.51.0.0/24, the network of these 6to4 addresses.
    let neighbour = Some(IpAddr::from([198, 51, 0, 250]));
    learned.record_view(at(0), neighbour, "/", []);
    learned.record_request(at(0), neighbour, "/", &plain("/planted"));
    assert_eq!(learned.pages["/"].votes.len(), 2);
    assert_eq!(urls(&learned, at(0), "/"), [""; 0]);
}

/// A hint must not end with the next view of the network that it was learned from.
#[test]
fn earlier_free_vote_of_a_prompted_network_counts_until_the_next_free_one() {
    let mut learned = LearnedResources::new(LearningLimits {
        min_networks: 1,
        ..LearningLimits::default()
    });
    let minute = |n: u64| Instant::ZERO + Duration::from_secs(60 * n);
    let mut see = |at: u64, prompted: &[&str], requested: &[&str]| {
        learned.record_view(minute(at), client(1), "/", prompted.iter().copied());
        for url in requested {
            learned.record_request(minute(at), client(1), "/", &plain(url));
        }
        urls(&learned, minute(at), "/")
    };
    assert_eq!(see(0, &[], &["/a"]), ["/a"]);
    // A browser requests what it was prompted for.
    assert_eq!(see(1, &["/a"], &["/a", "/b"]), ["/a", "/b"]);
    assert_eq!(see(2, &["/a", "/b"], &["/a", "/b"]), ["/a", "/b"]);
    assert_eq!(see(3, &["/b"], &["/b"]), ["/b"], "it does without /a now");
    assert_eq!(see(4, &["/a", "/b"], &["/a"]), ["/b"], "the last free view");
    let hour_later = minute(4) + LearningLimits::default().max_age * 2;
    assert_eq!(urls(&learned, hour_later, "/"), [""; 0], "too old");
}
