//! The hints of a page: which of them a client gets, and how: in a 103, or in the head of the response.

use std::collections::BTreeSet;

use http::{HeaderMap, HeaderName, HeaderValue, header, request};
use spdy_net::handler::RequestInfo;
use spdy_net::interim::early_hints::EarlyHints;
use spdy_net::protocol::Protocol;
use spdy_page::replica::Kind;
use spdy_server::push_plan::{Hint, early_link_value, link_value};
use url::Url;

use crate::proxy::Proxy;
use crate::request::origin_hints::HintedUrls;
use crate::telemetry::counters::CounterFamily;

/// What a browser uses the response for (W3C Fetch Metadata).
pub(super) const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
/// How a browser makes the request.
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");

/// The hints of a page, and how they are sent.
pub(super) struct PageHints {
    /// The most important first.
    pub(super) hints: Vec<Hint>,
    /// Targets of the resources that only a sheet or a module of the page names. A browser would find them late.
    pub(super) deep: BTreeSet<String>,
    /// The page has a style sheet that no hint can express.
    pub(super) has_unhintable_sheet: bool,
    /// When they are sent.
    pub(super) timing: HintTiming,
}

/// When something is sent with a page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum HintTiming {
    /// At the request: the client may have the page.
    BeforeResponse,
    /// With the head of the response, which the origin has decided.
    WithResponse,
}

impl PageHints {
    /// Sends them for the page at `page`, which was requested with `head`, in a 103 if that is possible and useful. Returns the targets that
    /// the client gets hints for, and the `Link` values that go into the response.
    pub(super) fn send(
        self,
        proxy: &Proxy,
        head: &request::Parts,
        page: &str,
    ) -> (Vec<String>, Vec<HeaderValue>) {
        let Self {
            mut hints,
            deep,
            has_unhintable_sheet,
            timing,
        } = self;
        if has_unhintable_sheet {
            // A browser would request the fonts first, and draw the page later.
            hints.retain(|hint| hint.kind != Kind::Font);
        }
        let arrival: Option<&RequestInfo> = head.extensions.get();
        let is_spdy = arrival.is_some_and(|arrival| matches!(arrival.protocol, Protocol::Spdy(_)));
        let early = EarlyHints::of(&head.extensions);
        let is_early = timing == HintTiming::BeforeResponse && !is_spdy;
        let early = early.filter(|_| is_early && supports_early_hints(head));
        if !is_spdy && !proxy.push_config.early_hints {
            return (Vec::new(), Vec::new());
        }
        if !is_spdy && early.is_none() {
            // The browser finds the others in the page as fast. But it requests what is hinted before it has read the page, so the style
            // sheets, which block rendering, must come first.
            let has_deep = hints.iter().any(|hint| deep.contains(&hint.url));
            let is_sheet = |hint: &Hint| hint.kind == Kind::Stylesheet;
            hints.retain(|hint| has_deep && (is_sheet(hint) || deep.contains(&hint.url)));
        }
        let value_of = |hint: &Hint| match is_spdy {
            true => Some(link_value(hint)),
            false => early_link_value(hint),
        };
        let links = hints.into_iter().filter_map(|hint| {
            let value = HeaderValue::try_from(value_of(&hint)?).ok()?;
            Some((hint.url, value))
        });
        let (hinted, links): (Vec<_>, Vec<_>) = links.unzip();
        if hinted.is_empty() {
            return (hinted, links);
        }
        let is_sent = early.is_some_and(|early| {
            let fields = links.iter().map(|link| (header::LINK, link.clone()));
            early.send(fields.collect::<HeaderMap>())
        });
        if is_sent
            && let Some(already) = head.extensions.get::<HintedUrls>()
            && let Ok(page) = Url::parse(page)
        {
            // Absolute URLs, as for the links of the origin.
            for url in hinted.iter().filter_map(|target| page.join(target).ok()) {
                already.insert(url.as_str());
            }
        }
        let counters = &proxy.telemetry.counters;
        counters.add(CounterFamily::Preloads, "hinted", hinted.len() as u64);
        (hinted, if is_sent { Vec::new() } else { links })
    }
}

/// The order of hints: style sheets block rendering, and a font is needed when sheets and scripts have arrived.
pub(super) fn hint_rank(kind: Kind) -> u8 {
    match kind {
        Kind::Stylesheet => 0,
        Kind::Script => 1,
        Kind::Font => 2,
        _ => 3,
    }
}

/// Whether the client is known to support a 103: browsers that announce a navigation by Fetch Metadata do. With a 103, some browsers of
/// 2016 fail the page.
pub(super) fn supports_early_hints(head: &request::Parts) -> bool {
    let has_value = |name, word| head.headers.get(name).is_some_and(|value| value == word);
    has_value(SEC_FETCH_DEST, "document") && has_value(SEC_FETCH_MODE, "navigate")
}
