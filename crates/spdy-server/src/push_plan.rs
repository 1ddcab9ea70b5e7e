//! Plans the pushes and hints of a page: which of its resources are pushed, and which are hinted.
//!
//! ```text
//! wishes, in order                 for each                                     plan
//!   Link, X-Associated-Content       this origin? not had yet? fits? ---------->  push
//!   what the site is known to need   else, if the client has not read of it ---->  hint
//! ```
//!
//! A plan is a function of what it is given: no clock, no chance, no order of a hash. It never pushes what
//! is of another origin, what the client asked for or was sent in this session, a thing twice, or more than
//! the [`Budget`].

use std::collections::BTreeSet;

use http::Uri;
use spdy_frame::priority::Priority;
use spdy_page::replica::Kind;
use url::Url;

/// Who is asked what a page needs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sources {
    /// The response: `Link: <url>; rel=preload` without `nopush`, and `X-Associated-Content`.
    pub link: bool,
    /// The site: what its recording, or the text of its files, says that a page needs.
    pub graph: bool,
    /// The past: what other clients asked for after this page.
    pub learned: bool,
}

/// When a client is told by `Link` what it will need (SPDY's server hint).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Hints {
    /// Never.
    #[default]
    Off,
    /// Of what cannot be pushed: of another origin, over the budget, or to a client that takes no pushes.
    Remaining,
    /// Of everything; nothing is pushed.
    Instead,
}

/// How much goes along with one page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Budget {
    /// Pushes. Default 32.
    pub streams: usize,
    /// Bytes of their bodies. Default 512 KiB.
    pub bytes: usize,
    /// Hints: they are bytes in the head of the page, which clients bound. Default 16.
    pub hints: usize,
    /// Wishes that are looked at, in order; a header can hold thousands. Default 128.
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
    /// Its URL, perhaps relative to the page.
    pub url: String,
    /// What it is, if that is known.
    pub kind: Option<Kind>,
    /// The page loads it so that it may read it (CORS): modules, and elements with `crossorigin`.
    pub by_cors: bool,
    /// The page loads it in a way that no hint can express: it may be pushed, and is not hinted at.
    pub is_unhintable: bool,
    /// How urgent it is, if that is known.
    pub priority: Option<Priority>,
    /// It may be pushed.
    pub may_push: bool,
    /// The client learns of it from the response itself.
    pub is_in_response: bool,
}

/// What is known here of a URL of the page's origin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CandidateState {
    /// The client requested or received it in this session.
    AlreadyReceived,
    /// It cannot be pushed: not served here, or not as a plain 200.
    Unavailable,
    /// It can.
    Available {
        /// Bytes of its body.
        bytes: usize,
        /// What it is.
        kind: Kind,
    },
}

/// One push.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PlannedPush {
    /// What is pushed.
    pub uri: Uri,
    /// Less urgent than the page.
    pub priority: Priority,
    /// Bytes of its body.
    pub bytes: usize,
    /// What it is.
    pub kind: Kind,
    /// The page loads it by CORS.
    pub by_cors: bool,
    /// It is not hinted at instead: the client reads of it in the very response, or no hint says how the page loads it.
    pub no_hint: bool,
}

/// One hint.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Hint {
    /// The URL: a path where it is of the page's origin.
    pub url: String,
    /// What it is.
    pub kind: Kind,
    /// The page loads it by CORS.
    pub by_cors: bool,
}

/// What goes along with one page.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Plan {
    /// In the order in which they are to be announced.
    pub pushes: Vec<PlannedPush>,
    /// In the order in which they are to be announced.
    pub hints: Vec<Hint>,
}

/// Plans for the page at `page`, which is requested with `priority`. `known` is called once for each URL of the page's
/// origin, with the wish for it.
#[must_use]
pub fn plan(
    page: &Uri,
    priority: Priority,
    budget: &Budget,
    hints: Hints,
    wishes: impl IntoIterator<Item = PushCandidate>,
    mut known: impl FnMut(&Uri, &PushCandidate) -> CandidateState,
) -> Plan {
    let mut plan = Plan::default();
    let Ok(base) = Url::parse(&page.to_string()) else {
        return plan;
    };
    let mut seen = BTreeSet::from([base.to_string()]);
    let mut bytes_left = budget.bytes;
    for wish in wishes.into_iter().take(budget.candidates) {
        let Ok(mut url) = base.join(&wish.url) else {
            continue;
        };
        url.set_fragment(None);
        let is_web = matches!(url.scheme(), "http" | "https");
        let names_user = !url.username().is_empty() || url.password().is_some();
        if !is_web || names_user || !seen.insert(url.to_string()) {
            continue;
        }
        let here = url.origin() == base.origin();
        let guess = wish.kind.unwrap_or_else(|| Kind::of(None, &url, None));
        let uri = url.as_str().parse::<Uri>().ok();
        let of_page = uri.as_ref().filter(|_| here);
        let known = of_page.map(|uri| known(uri, &wish));
        if known == Some(CandidateState::AlreadyReceived) {
            continue;
        }
        if let (Some(uri), Some(CandidateState::Available { bytes, kind })) = (uri, known)
            && wish.may_push
            && hints != Hints::Instead
            && plan.pushes.len() < budget.streams
            && bytes <= bytes_left
        {
            bytes_left -= bytes;
            let kind = wish.kind.unwrap_or(kind);
            plan.pushes.push(PlannedPush {
                uri,
                priority: push_priority(priority, wish.priority, kind),
                bytes,
                kind,
                by_cors: wish.by_cors,
                no_hint: wish.is_in_response || wish.is_unhintable,
            });
        } else if hints != Hints::Off
            && !(wish.is_in_response || wish.is_unhintable)
            && known != Some(CandidateState::Unavailable)
            && plan.hints.len() < budget.hints
        {
            plan.hints.push(Hint {
                url: written(&url, here),
                kind: guess,
                by_cors: wish.by_cors,
            });
        }
    }
    plan
}

/// A URL as a hint says it. A path that begins with two slashes would name a host.
fn written(url: &Url, here: bool) -> String {
    match (here && !url.path().starts_with("//"), url.query()) {
        (false, _) => url.to_string(),
        (true, None) => url.path().to_owned(),
        (true, Some(query)) => format!("{}?{query}", url.path()),
    }
}

impl PlannedPush {
    /// The hint that a push becomes when the client takes none; `None` if there is to be none.
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

/// How urgent a push is: what was said, or what its kind deserves, and always less than its page.
fn push_priority(page: Priority, said: Option<Priority>, kind: Kind) -> Priority {
    let lowest = Priority::LOWEST.level();
    let step = match kind {
        Kind::Stylesheet => 1,
        Kind::Script | Kind::Font | Kind::Fetch => 2,
        Kind::Document | Kind::Media | Kind::Other => 3,
        Kind::Image => 4,
    };
    let deserved = page.level() + step;
    let said = said.map_or(deserved, |said| said.level().max(page.level() + 1));
    Priority::new(said.min(lowest))
}

/// The value of a `Link` header that hints at `hint`: `subresource` is SPDY's word for it, `preload` today's.
#[must_use]
pub fn link_value(hint: &Hint) -> String {
    match preload(hint) {
        Some(as_what) => format!("<{}>; rel=\"subresource preload\"; {as_what}", hint.url),
        None => format!("<{}>; rel=subresource", hint.url),
    }
}

/// The same for 103 (RFC 8297), where Chromium looks for `preload` alone; `None` if it would not be loaded.
#[must_use]
pub fn early_link_value(hint: &Hint) -> Option<String> {
    Some(format!("<{}>; rel=preload; {}", hint.url, preload(hint)?))
}

/// As what, and in which mode, a thing is loaded before the page is there.
///
/// What a preload brought is used for what is loaded as it was, in the same mode (HTML, *consume a preloaded resource*), and for nothing
/// else: a module is a script that is loaded by CORS. A preload that does not say what it is for is not used.
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
        let known = |uri: &Uri, _: &PushCandidate| match uri.path() {
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
        let plan = plan(&page, Priority::new(1), &budget, hints, wishes, known);
        let push = |push: &PlannedPush| format!("{} {}", push.uri, push.priority);
        let hint = |hint: &Hint| hint.url.clone();
        (
            plan.pushes.iter().map(push).collect(),
            plan.hints.iter().map(hint).collect(),
        )
    }

    #[test]
    fn the_page_s_own_origin_is_pushed_and_the_rest_hinted_at() {
        let told = PushCandidate {
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
            told,
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
        for (uri, want) in [
            ("https://a.test/x?y", "/x?y"),
            ("https://a.test//b.test/x", "https://a.test//b.test/x"),
        ] {
            assert_eq!(push(uri).as_hint().expect("a hint").url, want);
        }
    }

    #[test]
    fn the_budget_holds_for_streams_bytes_and_wishes() {
        let names = |names: &[&str]| names.iter().map(|name| wish(name)).collect();
        let (pushes, hints) = planned(Hints::Remaining, names(&["/a", "/b", "/c", "/d"]));
        assert_eq!((pushes.len(), hints), (3, vec!["/d".to_owned()]));
        // 12 kB, then one of 9 kB that does not fit, then one of 8 kB that just does.
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
        for (page, said, kind, want) in [
            (0, None, Kind::Stylesheet, 1),
            (0, Some(0), Kind::Stylesheet, 1),
            (2, Some(5), Kind::Stylesheet, 5),
            (6, None, Kind::Image, 7),
            (7, Some(0), Kind::Script, 7),
        ] {
            let priority = push_priority(Priority::new(page), said.map(Priority::new), kind);
            assert_eq!(priority.level(), want, "{page} {said:?} {kind}");
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
        for (kind, by_cors, want) in [
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
            assert_eq!(value, format!("</a>; rel={want}"));
            let url = "/a".to_owned();
            let early = early_link_value(&Hint { url, kind, by_cors });
            let as_what = want.strip_prefix("\"subresource preload\"; ");
            let want = as_what.map(|as_what| format!("</a>; rel=preload; {as_what}"));
            assert_eq!(early, want);
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
        let made = |hints| {
            let here = |uri: &Uri, wish: &PushCandidate| {
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
                here,
            )
        };
        let hints = made(Hints::Instead).hints;
        let pushes = made(Hints::Remaining).pushes;
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
