//! Plans the pushes and hints of a page: which of its resources are pushed, and which are hinted.
//!
//! ```text
//! candidates, in order              for each                                     plan
//!   Link, X-Associated-Content       this origin? not received yet? fits? ------->  push
//!   the known needs of the site      else, if the response does not name it ----->  hint
//! ```
//!
//! A plan is a pure function: no clock, no randomness, no hash order. It never pushes a resource of another origin, one that the
//! client requested or received in this session, a resource twice, or more than the [`Budget`].

use std::collections::BTreeSet;

use http::Uri;
use spdy_frame::priority::Priority;
use spdy_page::replica::Kind;
use url::Url;

/// The sources of a page's resources.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sources {
    /// The response: `Link: <url>; rel=preload` without `nopush`, and `X-Associated-Content`.
    pub link: bool,
    /// The site: the resources of a page in its recording, or in the text of its files.
    pub graph: bool,
    /// What other clients requested after this page.
    pub learned: bool,
}

/// When a client gets `Link` headers for resources that it will need (SPDY's server hint).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Hints {
    /// Never.
    #[default]
    Off,
    /// For resources that cannot be pushed: of another origin, over the budget, or for a client that accepts no pushes.
    Remaining,
    /// For all resources; nothing is pushed.
    Instead,
}

/// Limits of pushes and hints per page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Budget {
    /// Limit of pushes. Default 32.
    pub streams: usize,
    /// Limit of the bodies of pushes, bytes. Default 512 KiB.
    pub bytes: usize,
    /// Limit of hints: they are in the head of the page, whose size clients limit. Default 16.
    pub hints: usize,
    /// Limit of candidates that are considered, in order; a header can contain thousands. Default 128.
    pub candidates: usize,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            streams: 32,
            bytes: 512 * 1024,
            hints: 16,
            candidates: 128,
        }
    }
}

/// A resource that a page may need.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PushCandidate {
    /// Its URL, possibly relative to the page.
    pub url: String,
    /// The kind of resource, if known.
    pub kind: Option<Kind>,
    /// True if the page loads it by CORS: modules, and elements with `crossorigin`.
    pub by_cors: bool,
    /// True if no hint can express how the page loads it: it may be pushed, but is not hinted.
    pub is_unhintable: bool,
    /// Its priority, if known.
    pub priority: Option<Priority>,
    /// True if it may be pushed.
    pub may_push: bool,
    /// True if the response itself contains it, so that the client finds it there.
    pub is_in_response: bool,
}

/// The state of a URL of the page's origin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CandidateState {
    /// The client requested or received it in this session.
    AlreadyReceived,
    /// It cannot be pushed: it is not served, or not as a normal 200.
    Unavailable,
    /// It can be pushed.
    Available {
        /// Length of its body, bytes.
        bytes: usize,
        /// The kind of resource.
        kind: Kind,
    },
}

/// One push.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlannedPush {
    /// The URI of the pushed resource.
    pub uri: Uri,
    /// Its priority, lower than that of the page.
    pub priority: Priority,
    /// Length of its body, bytes.
    pub bytes: usize,
    /// The kind of resource.
    pub kind: Kind,
    /// True if the page loads it by CORS.
    pub by_cors: bool,
    /// True if it must not be hinted instead: the response itself contains it, or no hint can express how the page loads it.
    pub no_hint: bool,
}

/// One hint.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hint {
    /// The URL: a path if it is of the page's origin.
    pub url: String,
    /// The kind of resource.
    pub kind: Kind,
    /// True if the page loads it by CORS.
    pub by_cors: bool,
}

/// The pushes and hints for one page.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Plan {
    /// In the order in which they are to be announced.
    pub pushes: Vec<PlannedPush>,
    /// In the order in which they are to be announced.
    pub hints: Vec<Hint>,
}

/// Plans for the page at `page`, which is requested with `priority`. `state_of` is called once for each URL of the page's
/// origin, with its candidate.
#[must_use]
pub fn plan(
    page: &Uri,
    priority: Priority,
    budget: &Budget,
    hints: Hints,
    candidates: impl IntoIterator<Item = PushCandidate>,
    mut state_of: impl FnMut(&Uri, &PushCandidate) -> CandidateState,
) -> Plan {
    let mut plan = Plan::default();
    let Ok(base) = Url::parse(&page.to_string()) else {
        return plan;
    };
    let mut planned = BTreeSet::from([base.to_string()]);
    let mut remaining_bytes = budget.bytes;
    for candidate in candidates.into_iter().take(budget.candidates) {
        let Ok(mut url) = base.join(&candidate.url) else {
            continue;
        };
        url.set_fragment(None);
        let is_web = matches!(url.scheme(), "http" | "https");
        let names_user = !url.username().is_empty() || url.password().is_some();
        if !is_web || names_user || !planned.insert(url.to_string()) {
            continue;
        }
        let is_same_origin = url.origin() == base.origin();
        let guess = candidate.kind.unwrap_or_else(|| Kind::of(None, &url, None));
        let uri = url.as_str().parse::<Uri>().ok();
        let page_uri = uri.as_ref().filter(|_| is_same_origin);
        let state_of = page_uri.map(|uri| state_of(uri, &candidate));
        if state_of == Some(CandidateState::AlreadyReceived) {
            continue;
        }
        if let (Some(uri), Some(CandidateState::Available { bytes, kind })) = (uri, state_of)
            && candidate.may_push
            && hints != Hints::Instead
            && plan.pushes.len() < budget.streams
            && bytes <= remaining_bytes
        {
            remaining_bytes -= bytes;
            let kind = candidate.kind.unwrap_or(kind);
            plan.pushes.push(PlannedPush {
                uri,
                priority: push_priority(priority, candidate.priority, kind),
                bytes,
                kind,
                by_cors: candidate.by_cors,
                no_hint: candidate.is_in_response || candidate.is_unhintable,
            });
        } else if hints != Hints::Off
            && !(candidate.is_in_response || candidate.is_unhintable)
            && state_of != Some(CandidateState::Unavailable)
            && plan.hints.len() < budget.hints
        {
            plan.hints.push(Hint {
                url: hint_url(&url, is_same_origin),
                kind: guess,
                by_cors: candidate.by_cors,
            });
        }
    }
    plan
}

/// The URL of a hint. A path that begins with two slashes would be read as a host.
fn hint_url(url: &Url, is_same_origin: bool) -> String {
    match (is_same_origin && !url.path().starts_with("//"), url.query()) {
        (false, _) => url.to_string(),
        (true, None) => url.path().to_owned(),
        (true, Some(query)) => format!("{}?{query}", url.path()),
    }
}

impl PlannedPush {
    /// The hint that replaces the push if the client accepts no pushes; `None` if there is none.
    #[must_use]
    pub fn as_hint(&self) -> Option<Hint> {
        let url = match self.uri.path_and_query()?.as_str() {
            path if path.starts_with("//") => self.uri.to_string(),
            path => path.to_owned(),
        };
        let (kind, by_cors) = (self.kind, self.by_cors);
        (!self.no_hint).then_some(Hint { url, kind, by_cors })
    }
}

/// The priority of a push: the stated one, or that of its kind, and always lower than the page's.
fn push_priority(page: Priority, stated: Option<Priority>, kind: Kind) -> Priority {
    let lowest = Priority::LOWEST.level();
    let step = match kind {
        Kind::Stylesheet => 1,
        Kind::Script | Kind::Font | Kind::Fetch => 2,
        Kind::Document | Kind::Media | Kind::Other => 3,
        Kind::Image => 4,
    };
    let by_kind = page.level() + step;
    let stated = stated.map_or(by_kind, |stated| stated.level().max(page.level() + 1));
    Priority::new(stated.min(lowest))
}

/// The value of a `Link` header for `hint`: `subresource` is SPDY's relation, `preload` the current one.
#[must_use]
pub fn link_value(hint: &Hint) -> String {
    match preload(hint) {
        Some(destination) => format!("<{}>; rel=\"subresource preload\"; {destination}", hint.url),
        None => format!("<{}>; rel=subresource", hint.url),
    }
}

/// The same for 103 (RFC 8297), in which Chromium only reads `preload`; `None` if it would not be loaded.
#[must_use]
pub fn early_link_value(hint: &Hint) -> Option<String> {
    Some(format!("<{}>; rel=preload; {}", hint.url, preload(hint)?))
}

/// The destination and mode of a preload.
///
/// A preload is only used for a load with the same destination and mode (HTML, *consume a preloaded resource*): a module is a
/// script that is loaded by CORS. A preload without a destination is never used.
fn preload(hint: &Hint) -> Option<String> {
    let destination = match hint.kind {
        Kind::Stylesheet => "style",
        Kind::Script => "script",
        Kind::Font => "font",
        Kind::Image => "image",
        Kind::Fetch => "fetch",
        Kind::Document | Kind::Media | Kind::Other => return None,
    };
    // Fonts are fetched without credentials, from every origin.
    let mode = match hint.by_cors || hint.kind == Kind::Font {
        true => "; crossorigin",
        false => "",
    };
    Some(format!("as={destination}{mode}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "https://a.test/dir/page?x";

    fn wish(url: &str) -> PushCandidate {
        PushCandidate {
            url: url.to_owned(),
            may_push: true,
            ..PushCandidate::default()
        }
    }

    fn planned(hints: Hints, wishes: Vec<PushCandidate>) -> (Vec<String>, Vec<String>) {
        let state = |uri: &Uri, _: &PushCandidate| match uri.path() {
            "/had" => CandidateState::AlreadyReceived,
            "/absent" => CandidateState::Unavailable,
            path => CandidateState::Available {
                bytes: path.len() * 1000,
                kind: Kind::Image,
            },
        };
        let budget = Budget {
            streams: 3,
            bytes: 20_000,
            hints: 5,
            candidates: 8,
        };
        let page = PAGE.parse().unwrap();
        let plan = plan(&page, Priority::new(1), &budget, hints, wishes, state);
        let push = |push: &PlannedPush| format!("{} {}", push.uri, push.priority);
        let hint = |hint: &Hint| hint.url.clone();
        (
            plan.pushes.iter().map(push).collect(),
            plan.hints.iter().map(hint).collect(),
        )
    }

    #[test]
    fn the_page_s_own_origin_is_pushed_and_the_rest_hinted_at() {
        let in_response = PushCandidate {
            is_in_response: true,
            ..wish("https://b.test/told")
        };
        let never = PushCandidate {
            may_push: false,
            ..wish("/not")
        };
        let wishes = vec![
            wish("a.css#top"),
            wish("https://b.test/far"),
            wish("http://a.test/x"),
            in_response,
            never,
            wish("//a.test:443/dir/a.css"),
            wish("/had"),
            wish("/absent"),
        ];
        let (pushes, hints) = planned(Hints::Remaining, wishes.clone());
        assert_eq!(pushes, ["https://a.test/dir/a.css 5"]);
        assert_eq!(hints, ["https://b.test/far", "http://a.test/x", "/not"]);
        assert_eq!(planned(Hints::Off, wishes.clone()).1, [""; 0]);
        let (pushes, hints) = planned(Hints::Instead, wishes);
        assert_eq!(pushes, [""; 0]);
        assert_eq!(hints[0], "/dir/a.css");
    }

    #[test]
    fn a_hint_at_two_slashes_is_no_hint_at_a_host() {
        let (_, hints) = planned(Hints::Instead, vec![wish("https://a.test//b.test/x")]);
        assert_eq!(hints, ["https://a.test//b.test/x"]);
        let push = |uri: &'static str| PlannedPush {
            uri: Uri::from_static(uri),
            priority: Priority::LOWEST,
            bytes: 0,
            kind: Kind::Other,
            by_cors: false,
            no_hint: false,
        };
        for (uri, expected) in [
            ("https://a.test/x?y", "/x?y"),
            ("https://a.test//b.test/x", "https://a.test//b.test/x"),
        ] {
            assert_eq!(push(uri).as_hint().expect("a hint").url, expected);
        }
    }

    #[test]
    fn the_budget_holds_for_streams_bytes_and_wishes() {
        let names = |names: &[&str]| names.iter().map(|name| wish(name)).collect();
        let (pushes, hints) = planned(Hints::Remaining, names(&["/a", "/b", "/c", "/d"]));
        assert_eq!((pushes.len(), hints), (3, vec!["/d".to_owned()]));
        // 12 kB, then one of 9 kB that does not fit, then one of 8 kB that does.
        let (pushes, hints) = planned(
            Hints::Remaining,
            names(&["/twelve-long", "/nine-lng", "/eight-l"]),
        );
        assert_eq!(pushes.len(), 2, "{pushes:?}");
        assert_eq!(hints, ["/nine-lng"]);
        let (_, hints) = planned(
            Hints::Instead,
            (0..20).map(|n| wish(&n.to_string())).collect(),
        );
        assert_eq!(hints.len(), 5, "one past the limit of hints");
        let mut far: Vec<_> = (0..8).map(|n| wish(&format!("//b.test/{n}"))).collect();
        far.push(wish("/a"));
        assert_eq!(
            planned(Hints::Off, far).0.len(),
            0,
            "one past the limit of wishes"
        );
    }

    #[test]
    fn no_push_is_as_urgent_as_its_page() {
        for (page, stated, kind, expected) in [
            (0, None, Kind::Stylesheet, 1),
            (0, Some(0), Kind::Stylesheet, 1),
            (2, Some(5), Kind::Stylesheet, 5),
            (6, None, Kind::Image, 7),
            (7, Some(0), Kind::Script, 7),
        ] {
            let priority = push_priority(Priority::new(page), stated.map(Priority::new), kind);
            assert_eq!(priority.level(), expected, "{page} {stated:?} {kind}");
        }
    }

    #[test]
    fn non_http_urls_are_neither_pushed_nor_hinted() {
        let odd = [
            "data:text/css,a",
            "javascript:1",
            "http://[",
            "https://u:p@a.test/x",
            "https://:p@a.test/x",
            "?x",
            "#y",
            "\u{0}",
        ];
        let wishes = odd.iter().map(|url| wish(url)).collect();
        let (pushes, hints) = planned(Hints::Remaining, wishes);
        assert_eq!((pushes.len(), hints.len()), (0, 0), "{pushes:?} {hints:?}");
    }

    #[test]
    fn a_hint_carries_destination_and_mode() {
        for (kind, by_cors, expected) in [
            (Kind::Stylesheet, false, "\"subresource preload\"; as=style"),
            (Kind::Script, false, "\"subresource preload\"; as=script"),
            (
                Kind::Script,
                true,
                "\"subresource preload\"; as=script; crossorigin",
            ),
            (
                Kind::Font,
                false,
                "\"subresource preload\"; as=font; crossorigin",
            ),
            (Kind::Other, true, "subresource"),
        ] {
            let url = "/a".to_owned();
            let value = link_value(&Hint { url, kind, by_cors });
            assert_eq!(value, format!("</a>; rel={expected}"));
            let url = "/a".to_owned();
            let early = early_link_value(&Hint { url, kind, by_cors });
            let destination = expected.strip_prefix("\"subresource preload\"; ");
            let expected =
                destination.map(|destination| format!("</a>; rel=preload; {destination}"));
            assert_eq!(early, expected);
        }
    }

    #[test]
    fn the_load_mode_is_kept_in_push_and_hint() {
        let wish = |url, by_cors, unhintable| PushCandidate {
            by_cors,
            is_unhintable: unhintable,
            ..wish(url)
        };
        let wishes = [
            wish("/a.js", true, false),
            wish("/pinned.js", true, true),
            wish("/b.js", false, false),
        ];
        let page = PAGE.parse().unwrap();
        let plan_with = |hints| {
            let state = |uri: &Uri, wish: &PushCandidate| {
                assert_eq!(wish.by_cors, uri.path() != "/b.js");
                CandidateState::Available {
                    bytes: 1,
                    kind: Kind::Script,
                }
            };
            let budget = Budget::default();
            plan(
                &page,
                Priority::HIGHEST,
                &budget,
                hints,
                wishes.clone(),
                state,
            )
        };
        let hints = plan_with(Hints::Instead).hints;
        let pushes = plan_with(Hints::Remaining).pushes;
        assert_eq!(
            pushes.len(),
            3,
            "what is pushed is used however it is loaded"
        );
        let refused: Vec<_> = pushes.iter().filter_map(PlannedPush::as_hint).collect();
        assert_eq!(hints, refused);
        let modes: Vec<_> = hints.iter().map(|hint| hint.by_cors).collect();
        assert_eq!(modes, [true, false]);
    }
}
