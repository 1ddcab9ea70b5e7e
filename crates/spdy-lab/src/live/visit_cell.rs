//! Visits of several pages by a browser over one network by one protocol, and the same visits by our own client.
//!
//! The browser loads each page also alone, in a fresh profile. Our client loads those recordings alone and as a visit, both in virtual
//! time: what a page requests, its order and its computation are the browser's own. What it finds in its cache, and which connections
//! it reuses, is our own.

use std::time::Duration;

use serde::Serialize;
use spdy_page::replica::Replica;
use spdy_sim::load::{self, Load, Page};
use spdy_sim::options::{Options, RaceProtocol};
use spdy_sim::race::RaceNetwork;

use crate::live::browser_cell::{self, BrowserCell, by_name};
use crate::live::browser_load::BrowserLoad;
use crate::live::browser_visit::{BrowserVisit, VisitedPage};
use crate::stats::median;

/// One protocol over one network.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VisitCell {
    /// Name of the network.
    pub network: String,
    /// The protocol.
    #[serde(serialize_with = "by_name")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub protocol: RaceProtocol,
    /// The pages, in their order.
    pub pages: Vec<PageOfVisit>,
    /// Every visit by the browser, valid or not.
    pub visits: Vec<BrowserVisit>,
    /// The first failure of our own visits, if any failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_failure: Option<String>,
}

/// One page of the visits.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageOfVisit {
    /// Name of the replica.
    pub replica: String,
    /// Loads of the page alone.
    pub alone: BrowserCell,
    /// Our loads of the page in the visit, in virtual time: one for each set of valid recordings of all pages.
    pub virtual_loads: Vec<VirtualLoad>,
}

/// A load of a page in a visit in virtual time.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VirtualLoad {
    /// Time of DOMContentLoaded.
    pub dom_content_loaded_ms: f64,
    /// Time of the load event.
    pub load_ms: f64,
    /// Time of the first contentful paint, if the page has painted.
    pub fcp_ms: Option<f64>,
    /// Time of the largest contentful paint.
    pub lcp_ms: Option<f64>,
    /// Number of sent requests.
    pub requests: u64,
    /// Number of started connections.
    pub connections: u64,
}

impl From<&Load> for VirtualLoad {
    fn from(load: &Load) -> Self {
        Self {
            dom_content_loaded_ms: load.dom_content_loaded_ms,
            load_ms: load.load_ms,
            fcp_ms: load.fcp_ms,
            lcp_ms: load.lcp_ms,
            requests: load.requests,
            connections: load.connections,
        }
    }
}

/// The loads of a browser that a [`VisitCell`] evaluates.
#[derive(Clone, Debug, Default)]
pub struct BrowserVisits {
    /// Name of each page, and its loads alone.
    pub alone: Vec<(String, Vec<BrowserLoad>)>,
    /// Loads of all pages, one after the other.
    pub visits: Vec<BrowserVisit>,
}

impl VisitCell {
    /// Evaluates `browser`, with our own loads of the same with `options`, and `pause` between two pages. Drops the recordings.
    #[must_use]
    pub fn new(
        network: &RaceNetwork,
        protocol: RaceProtocol,
        browser: BrowserVisits,
        pause: Duration,
        options: &Options,
        seed: u64,
    ) -> Self {
        let config = network.config(options);
        let alone = browser.alone.iter();
        let recordings: Vec<Vec<Replica>> = alone
            .map(|(_, loads)| browser_cell::recordings(loads))
            .collect();
        let count = recordings.iter().map(Vec::len).min().unwrap_or(0);
        let mut virtual_loads = vec![Vec::with_capacity(count); recordings.len()];
        let mut virtual_failure = None;
        for run in 0..count {
            let pages = recordings.iter();
            let pages = pages.map(|of_page| Page::new(of_page[run].clone()));
            let visit = load::visit(pages.collect(), pause);
            for (page, loads) in visit.iter().zip(&mut virtual_loads) {
                let load = load::load(page, protocol, &network.name, &config, options, seed);
                loads.push(VirtualLoad::from(&load));
                virtual_failure = virtual_failure.or(load.failures.into_iter().next());
            }
        }
        let pages = browser.alone.into_iter().zip(virtual_loads);
        let pages = pages.map(|((replica, loads), virtual_loads)| PageOfVisit {
            replica,
            alone: BrowserCell::new(network, protocol, loads, options, seed),
            virtual_loads,
        });
        Self {
            network: network.name.clone(),
            protocol,
            pages: pages.collect(),
            visits: browser.visits,
            virtual_failure,
        }
    }

    /// The valid visits.
    pub fn valid_visits(&self) -> impl Iterator<Item = &BrowserVisit> {
        let visits = self.visits.iter();
        visits.filter(|visit| visit.exclusion_reason().is_none())
    }

    /// The reasons why loads and visits do not count.
    #[must_use]
    pub fn excluded(&self) -> Vec<String> {
        let alone = self.pages.iter().flat_map(|page| {
            let excluded = page.alone.excluded().into_iter();
            excluded.map(|reason| format!("{} alone: {reason}", page.replica))
        });
        let visits = self.visits.iter();
        let visits = visits.filter_map(BrowserVisit::exclusion_reason);
        let visits = visits.map(|reason| format!("a visit: {reason}"));
        alone.chain(visits).collect()
    }

    /// Median of one figure of page `number` in the valid visits.
    #[must_use]
    pub fn median(
        &self,
        number: usize,
        figure: impl Fn(&VisitedPage) -> Option<f64>,
    ) -> Option<f64> {
        let pages = self.valid_visits().map(|visit| visit.pages.get(number));
        median(pages.flatten().filter_map(figure))
    }

    /// Load time of page `number` in our visits over that in the browser's, less 1.
    #[must_use]
    pub fn error(&self, number: usize) -> Option<f64> {
        let ours = self.pages.get(number)?.median(|load| load.load_ms)?;
        Some(ours / self.median(number, |page| page.load_ms)? - 1.0)
    }
}

impl PageOfVisit {
    /// Median of one figure of our visits.
    #[must_use]
    pub fn median(&self, figure: impl Fn(&VirtualLoad) -> f64) -> Option<f64> {
        median(self.virtual_loads.iter().map(figure))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use spdy_netem::path::PathConfig;
    use spdy_page::builtin;
    use spdy_tun::emulator::Emulator;
    use spdy_tun::stats::LinkStats;

    use super::*;
    use crate::live::visual_metrics::VisualMetrics;

    fn link() -> LinkStats {
        let path = PathConfig::new(1_000_000, 1_000_000, Duration::ZERO);
        let origin = spdy_clock::Instant::ZERO;
        Emulator::new(&path, 1, origin).stats(origin)
    }

    fn load_alone(page: &Replica, load_ms: Option<f64>) -> BrowserLoad {
        BrowserLoad {
            dom_content_loaded_ms: None,
            load_ms,
            metrics: VisualMetrics::default(),
            exchanges: page.exchanges.len(),
            connections: 7,
            fingerprint: page.name.clone(),
            failed_requests: Vec::new(),
            omitted: BTreeMap::new(),
            similar_requests: Vec::new(),
            unknown_names: Vec::new(),
            faults: Vec::new(),
            link: link(),
            recording: Some(page.clone()),
            run_files: None,
        }
    }

    fn visit(load_ms: &[Option<f64>]) -> BrowserVisit {
        let page = |load_ms: &Option<f64>| VisitedPage {
            dom_content_loaded_ms: None,
            load_ms: *load_ms,
            fcp_ms: None,
            lcp_ms: None,
            requests: 5,
            connections: 0,
            pause_ms: None,
        };
        BrowserVisit {
            pages: load_ms.iter().map(page).collect(),
            failed_requests: Vec::new(),
            similar_requests: Vec::new(),
            unknown_names: Vec::new(),
            faults: Vec::new(),
            link: link(),
        }
    }

    fn cell(browser: BrowserVisits) -> VisitCell {
        let network = RaceNetwork::parse("cable").expect("it has a name");
        let (pause, options) = (Duration::from_secs(1), Options::default());
        VisitCell::new(&network, RaceProtocol::H2, browser, pause, &options, 1)
    }

    #[test]
    fn our_visit_is_that_of_the_recordings_and_is_compared_by_page() {
        let page = builtin::portal();
        let alone = || (page.name.clone(), vec![load_alone(&page, Some(900.0))]);
        let cell = cell(BrowserVisits {
            alone: vec![alone(), alone()],
            visits: vec![
                visit(&[Some(900.0), Some(100.0)]),
                visit(&[Some(900.0), None]),
                visit(&[Some(900.0), Some(300.0)]),
            ],
        });
        assert_eq!(cell.median(1, |page| page.load_ms), Some(200.0));
        let reason = "a visit: the load event of page 2 did not occur";
        assert_eq!(cell.excluded(), [reason]);
        let [first, second] = [0, 1].map(|number| &cell.pages[number].virtual_loads);
        assert_eq!((first.len(), second.len()), (1, 1));
        let alone_ms = cell.pages[0].alone.virtual_load_ms();
        assert_eq!(Some(first[0].load_ms), alone_ms);
        assert_eq!(second[0].connections, 0);
        assert!(second[0].requests <= first[0].requests);
        assert!(Some(second[0].load_ms) < alone_ms);
        let error = second[0].load_ms / 200.0 - 1.0;
        assert_eq!(cell.error(1), Some(error));
        assert_eq!(cell.virtual_failure, None);
    }

    #[test]
    fn a_page_without_a_valid_load_alone_leaves_no_visit_of_ours() {
        let [flags, portal] = [builtin::flags(), builtin::portal()];
        let cell = cell(BrowserVisits {
            alone: vec![
                (flags.name.clone(), vec![load_alone(&flags, Some(900.0))]),
                (portal.name.clone(), vec![load_alone(&portal, None)]),
            ],
            visits: vec![visit(&[Some(900.0), Some(100.0)])],
        });
        assert!(cell.pages.iter().all(|page| page.virtual_loads.is_empty()));
        assert_eq!(cell.error(0), None);
        let reason = format!("{} alone: the load event did not occur", portal.name);
        assert_eq!(cell.excluded(), [reason]);
    }
}
