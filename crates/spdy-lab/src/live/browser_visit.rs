//! A visit by a foreign browser: it loads several pages in one tab behind a link, from the servers of a `Replay`.
//!
//! Only times and counts come from it. The resources and the order of each page are those of its [load alone](super::browser_load).

use std::time::Duration;

use serde::Serialize;
use spdy_record::visit::{PageTimes, visit};
use spdy_tun::error::RealTimeError;
use spdy_tun::limits::Fault;
use spdy_tun::network::RealNetwork;
use spdy_tun::stats::LinkStats;

use crate::live::browser_load::{
    BrowserLoadError, BrowserLoader, QUIET_FOR, QUIET_TIMEOUT, limits, ms, not_recorded, unexpected,
};
use crate::live::clock::block_on;
use crate::live::replay::Replay;

/// One load of a visit. Its times count from its own navigation.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VisitedPage {
    /// Time of DOMContentLoaded, if it occurred.
    pub dom_content_loaded_ms: Option<f64>,
    /// Time of the load event, if it occurred.
    pub load_ms: Option<f64>,
    /// Time of the first contentful paint, if the page has painted.
    pub fcp_ms: Option<f64>,
    /// Time of the largest contentful paint.
    pub lcp_ms: Option<f64>,
    /// Requests that servers received from its navigation to the next.
    pub requests: usize,
    /// Connections of TCP and QUIC that servers accepted in this time, including speculative ones of the browser.
    pub connections: u64,
    /// From the last activity of the page before it to its navigation; `None` for the first page.
    pub pause_ms: Option<f64>,
}

/// One visit.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BrowserVisit {
    /// Its pages, in their order.
    pub pages: Vec<VisitedPage>,
    /// Requests for resources that were not recorded, and requests without a response, except for the failures in the replicas.
    pub failed_requests: Vec<String>,
    /// Requests that got the response of a recorded request with another query.
    pub similar_requests: Vec<String>,
    /// Names that are unknown here, including those of the browser's own requests.
    pub unknown_names: Vec<String>,
    /// Faults of the link, by the [`limits`] of the shortest load.
    pub faults: Vec<Fault>,
    /// Measurements of the link, from the start of the browser until the last page was quiet.
    pub link: LinkStats,
}

/// Requests and connections of the servers so far.
type Counts = (usize, u64);

impl BrowserVisit {
    /// Why it is not averaged with others; `None` if it may be.
    #[must_use]
    pub fn exclusion_reason(&self) -> Option<String> {
        if let Some(fault) = self.faults.first() {
            return Some(fault.to_string());
        }
        let unloaded = self.pages.iter().position(|page| page.load_ms.is_none());
        if let Some(index) = unloaded {
            return Some(format!(
                "the load event of page {} did not occur",
                index + 1
            ));
        }
        not_recorded(&self.failed_requests)
    }
}

impl BrowserLoader {
    /// Loads the pages on `stage` one after the other over `network`, whose link the caller has [begun](RealNetwork::begin). `pause` is
    /// from the last activity of each page to the next navigation. Keeps no files.
    ///
    /// # Errors
    ///
    /// The link or the browser failed.
    pub fn visit(
        &self,
        network: &mut RealNetwork,
        stage: &Replay,
        pause: Duration,
    ) -> Result<BrowserVisit, BrowserLoadError> {
        let start = |what| move |source| RealTimeError::Start { what, source };
        let serving = stage.serve(&network.server).map_err(start("the servers"))?;
        let (options, urls) = (self.options(stage), stage.starts().to_vec());
        let (requests, connections) = (stage.request_count(), serving.connection_count());
        let work = move || {
            let mut before: Vec<Counts> = Vec::new();
            let before_page = || before.push((requests(), connections()));
            let visited = block_on(async { Ok(visit(&urls, pause, &options, before_page).await) });
            visited.map(|visited| (visited, before))
        };
        let (visited, mut counts) = network.client.run(work).map_err(start("the client"))?;
        network.wait_until_quiet(QUIET_FOR, QUIET_TIMEOUT)?;
        let link = network.measure()?;
        let all_requests = stage.request_count()();
        let servers = serving.stop().map_err(start("the servers"))?;
        counts.push((all_requests, servers.connections));
        let visited = visited?;
        let unrecorded = stage.unrecorded_requests();
        let failures = visited.iter().flat_map(|page| &page.failures);
        let failed = unexpected(failures, stage);
        let shortest = visited.iter().filter_map(|page| page.load).min();
        Ok(BrowserVisit {
            failed_requests: unrecorded.unknown.into_iter().chain(failed).collect(),
            similar_requests: unrecorded.similar.into_iter().collect(),
            unknown_names: stage.unknown_names(),
            faults: limits(shortest.unwrap_or_default()).faults(&link),
            link,
            pages: visited_pages(&visited, &counts),
        })
    }
}

/// The pages with `times`. `counts` are those at each navigation, and at the end.
fn visited_pages(times: &[PageTimes], counts: &[Counts]) -> Vec<VisitedPage> {
    let pages = times.iter().zip(counts.windows(2));
    let page = |(times, counts): (&PageTimes, &[Counts])| {
        let [(requests, connections), (later_requests, later_connections)] = [counts[0], counts[1]];
        let largest = times.paints.largest_contentful.as_ref();
        VisitedPage {
            dom_content_loaded_ms: ms(times.dom_content_loaded),
            load_ms: ms(times.load),
            fcp_ms: ms(times.paints.first_contentful),
            lcp_ms: ms(largest.map(|largest| largest.at)),
            requests: later_requests - requests,
            connections: later_connections - connections,
            pause_ms: ms(times.pause),
        }
    };
    pages.map(page).collect()
}

#[cfg(test)]
mod tests {
    use spdy_netem::path::PathConfig;
    use spdy_page::observation::Paints;
    use spdy_tun::emulator::Emulator;

    use super::*;

    fn times(load_ms: Option<u64>) -> PageTimes {
        PageTimes {
            dom_content_loaded: None,
            load: load_ms.map(Duration::from_millis),
            paints: Paints::default(),
            failures: Vec::new(),
            pause: None,
        }
    }

    fn visit_of(times: &[PageTimes]) -> BrowserVisit {
        let path = PathConfig::new(1_000_000, 1_000_000, Duration::ZERO);
        let origin = spdy_clock::Instant::ZERO;
        BrowserVisit {
            pages: visited_pages(times, &[(0, 2), (45, 9), (50, 9)]),
            failed_requests: Vec::new(),
            similar_requests: Vec::new(),
            unknown_names: Vec::new(),
            faults: Vec::new(),
            link: Emulator::new(&path, 1, origin).stats(origin),
        }
    }

    #[test]
    fn each_page_has_the_requests_and_connections_until_the_next() {
        let visit = visit_of(&[times(Some(900)), times(Some(200))]);
        let facts = visit.pages.iter();
        let facts = facts.map(|page| (page.load_ms, page.requests, page.connections));
        let expected = [(Some(900.0), 45, 7), (Some(200.0), 5, 0)];
        assert_eq!(facts.collect::<Vec<_>>(), expected);
        assert_eq!(visit.exclusion_reason(), None);
    }

    #[test]
    fn a_visit_with_an_incomplete_page_or_a_failed_request_is_excluded() {
        let mut visit = visit_of(&[times(Some(900)), times(None)]);
        let reason = "the load event of page 2 did not occur";
        assert_eq!(visit.exclusion_reason().as_deref(), Some(reason));
        visit.pages.pop();
        visit.failed_requests.push("GET /x (404)".to_owned());
        let reason = "not recorded: GET /x (404)";
        assert_eq!(visit.exclusion_reason().as_deref(), Some(reason));
        visit.faults.push(Fault::Devices { packets: 1 });
        let reason = "a device, not the link, dropped 1 packets";
        assert_eq!(visit.exclusion_reason().as_deref(), Some(reason));
    }
}
