//! Laws of the push plan, for any candidates.

use http::Uri;
use proptest::prelude::*;
use spdy_frame::priority::Priority;
use spdy_page::replica::Kind;
use spdy_server::associated_content::parse_associated_content;
use spdy_server::link_header::parse_links;
use spdy_server::push_plan::{Budget, CandidateState, Hints, PushCandidate, plan};

/// Pieces of which odd URLs and headers are made.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-d]{1,2}",
        Just("/".to_owned()),
        Just("//b.test".to_owned()),
        Just("http:".to_owned()),
        Just("https://a.test".to_owned()),
        Just(":443".to_owned()),
        Just("..".to_owned()),
        Just("@".to_owned()),
        Just("\\".to_owned()),
        Just("#".to_owned()),
        Just("?".to_owned()),
        "\\PC{1,3}",
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..5).prop_map(|pieces| pieces.concat())
}

prop_compose! {
    fn wish()(url in text(), level in prop::option::of(0..8_u8), may_push: bool, is_in_response: bool) -> PushCandidate {
        PushCandidate { url, priority: level.map(Priority::new), may_push, is_in_response, ..PushCandidate::default() }
    }
}

proptest! {
    /// Only what is of the page's origin, was not had, and is there is pushed; none twice, none as urgent as the
    /// page, and never more than the budget.
    #[test]
    fn a_plan_stays_within_its_origin_and_its_budget(
        wishes in prop::collection::vec(wish(), 0..40),
        streams in 0..6_usize,
        // Exactly what some bodies come to, or a byte less.
        bytes in (0..11_usize, 0..2_usize).prop_map(|(n, less)| (n * 300).saturating_sub(less)),
        hints in prop_oneof![Just(Hints::Off), Just(Hints::Remaining), Just(Hints::Instead)],
        level in 0..8_u8,
    ) {
        let page: Uri = "https://a.test/dir/page?q".parse().unwrap();
        let budget = Budget { streams, bytes, hints: 9, candidates: 30 };
        let state = |uri: &Uri| match uri.to_string().len() % 5 {
            0 => CandidateState::AlreadyReceived,
            1 => CandidateState::Unavailable,
            n => CandidateState::Available { bytes: n * 300, kind: Kind::ALL[n] },
        };
        let result = plan(&page, Priority::new(level), &budget, hints, wishes.clone(), |uri, _| state(uri));
        prop_assert!(result.pushes.len() <= streams);
        prop_assert!(result.pushes.iter().map(|push| push.bytes).sum::<usize>() <= bytes);
        prop_assert!(result.hints.len() <= budget.hints);
        prop_assert!(result.pushes.len() + result.hints.len() <= budget.candidates);
        for (nth, push) in result.pushes.iter().enumerate() {
            prop_assert!(spdy_http::push::is_same_origin(&page, &push.uri), "{}", push.uri);
            prop_assert!(push.uri != page);
            prop_assert!(matches!(state(&push.uri), CandidateState::Available { .. }), "{}", push.uri);
            prop_assert!(push.priority.level() == 7 || push.priority.level() > level);
            prop_assert!(result.pushes[..nth].iter().all(|other| other.uri != push.uri));
        }
        if hints == Hints::Off {
            prop_assert!(result.hints.is_empty());
        }
        if hints == Hints::Instead {
            prop_assert!(result.pushes.is_empty());
        }
        let again = plan(&page, Priority::new(level), &budget, hints, wishes, |uri, _| state(uri));
        prop_assert_eq!(result, again);
    }

    /// What is read of a header lies in it; and whatever stands behind cannot change what stood before.
    #[test]
    fn the_end_of_a_header_does_not_change_its_first_entry(
        before in prop_oneof![Just("</a>; rel=preload, "), Just("\"/a\":1, "), Just("")],
        behind in "[<>;,=\" a:0-9\\\\]{0,40}",
    ) {
        let header = format!("{before}{behind}");
        for link in parse_links(&header) {
            prop_assert!(header.contains(link.target) && header.contains(link.rel));
        }
        let first = parse_links(before).next();
        prop_assert!(first.is_none() || parse_links(&header).next() == first);
        let first = parse_associated_content(before).next();
        prop_assert!(first.is_none() || parse_associated_content(&header).next() == first);
    }
}
