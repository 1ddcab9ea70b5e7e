//! Loads of one page by a browser over one network by one protocol, and loads of the same by our own client.
//!
//! A load is averaged with others only if its link was as configured, no request failed, and it fetched the same as most of them. Our
//! client then loads in virtual time the *recording* of each such run: the resources, their order and the computation between them
//! are the browser's own, so only the network, the connections and the protocol differ.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use spdy_page::replica::Replica;
use spdy_sim::load;
use spdy_sim::load::Page;
use spdy_sim::options::{Options, RaceProtocol};
use spdy_sim::race::RaceNetwork;

use crate::live::browser_load::BrowserLoad;
use crate::stats::{Bootstrap, Estimate, MIN_RUNS, median};

/// One protocol over one network.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BrowserCell {
    /// Name of the network.
    pub network: String,
    /// The protocol.
    #[serde(serialize_with = "by_name")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub protocol: RaceProtocol,
    /// Every load, valid or not.
    pub loads: Vec<BrowserLoad>,
    /// Load times of our client in virtual time for the recording of each valid load, in their order, milliseconds.
    pub virtual_ms: Vec<f64>,
    /// First contentful paints of the same loads.
    pub virtual_fcp_ms: Vec<Option<f64>>,
    /// Largest contentful paints of the same loads.
    pub virtual_lcp_ms: Vec<Option<f64>>,
    /// The first failure of the loads in virtual time, if any failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub virtual_failure: Option<String>,
}

pub(super) fn by_name<S: Serializer>(
    protocol: &RaceProtocol,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(protocol.name())
}

impl BrowserCell {
    /// Evaluates `loads`, with our own loads of the same with `options`. Drops their recordings, which are as large as the page.
    #[must_use]
    pub fn new(
        network: &RaceNetwork,
        protocol: RaceProtocol,
        mut loads: Vec<BrowserLoad>,
        options: &Options,
        seed: u64,
    ) -> Self {
        let (mut virtual_ms, mut virtual_failure) = (Vec::new(), None);
        let (mut virtual_fcp_ms, mut virtual_lcp_ms) = (Vec::new(), Vec::new());
        let config = network.config(options);
        let common = common(&loads).map(str::to_owned);
        for loaded in &mut loads {
            let recording = loaded.recording.take();
            let Some(recording) = recording.filter(|_| does_count(loaded, common.as_deref()))
            else {
                continue;
            };
            let page = Page::new(recording);
            let load = load::load(&page, protocol, &network.name, &config, options, seed);
            virtual_ms.push(load.load_ms);
            virtual_fcp_ms.push(load.fcp_ms);
            virtual_lcp_ms.push(load.lcp_ms);
            virtual_failure = virtual_failure.or(load.failures.into_iter().next());
        }
        Self {
            network: network.name.clone(),
            protocol,
            loads,
            virtual_ms,
            virtual_fcp_ms,
            virtual_lcp_ms,
            virtual_failure,
        }
    }

    /// The valid loads.
    pub fn valid_loads(&self) -> impl Iterator<Item = &BrowserLoad> {
        let common = common(&self.loads);
        let loads = self.loads.iter();
        loads.filter(move |loaded| does_count(loaded, common))
    }

    /// The other loads, each with the reason.
    #[must_use]
    pub fn excluded(&self) -> Vec<String> {
        let common = common(&self.loads);
        let reason = |loaded: &BrowserLoad| {
            let other = Some(&*loaded.fingerprint) != common;
            let other = || other.then(|| "its requests differ from those of most runs".to_owned());
            loaded.exclusion_reason().or_else(other)
        };
        self.loads.iter().filter_map(reason).collect()
    }

    /// Median of one figure of the valid loads.
    #[must_use]
    pub fn median(&self, figure: impl Fn(&BrowserLoad) -> Option<f64>) -> Option<f64> {
        median(self.valid_loads().filter_map(figure))
    }

    /// The browser's load time, milliseconds.
    #[must_use]
    pub fn load_ms(&self) -> Option<f64> {
        self.median(|loaded| loaded.load_ms)
    }

    /// The load time of our client in virtual time.
    #[must_use]
    pub fn virtual_load_ms(&self) -> Option<f64> {
        median(self.virtual_ms.iter().copied())
    }

    /// Our time over the browser's, less 1.
    #[must_use]
    pub fn error(&self) -> Option<f64> {
        Some(self.virtual_load_ms()? / self.load_ms()? - 1.0)
    }
}

/// Copies of the recordings of the valid loads among `loads`.
pub(super) fn recordings(loads: &[BrowserLoad]) -> Vec<Replica> {
    let common = common(loads);
    let valid = loads.iter().filter(|loaded| does_count(loaded, common));
    valid
        .filter_map(|loaded| loaded.recording.clone())
        .collect()
}

/// True if `loaded` is averaged with others, most of which fetched `common`.
fn does_count(loaded: &BrowserLoad, common: Option<&str>) -> bool {
    loaded.exclusion_reason().is_none() && Some(&*loaded.fingerprint) == common
}

/// The fingerprint of most complete loads; if several are as frequent, the first alphabetically.
fn common(loads: &[BrowserLoad]) -> Option<&str> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for loaded in loads
        .iter()
        .filter(|loaded| loaded.exclusion_reason().is_none())
    {
        *counts.entry(&loaded.fingerprint).or_default() += 1;
    }
    let most = counts.values().copied().max()?;
    counts
        .into_iter()
        .find(|(_, count)| *count == most)
        .map(|(fingerprint, _)| fingerprint)
}

/// Two protocols over one network: load time of the second over that of the first.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProtocolRatio {
    /// Name of the network.
    pub network: String,
    /// The first protocol.
    #[serde(serialize_with = "by_name")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub base: RaceProtocol,
    /// The second protocol; its load time is divided by that of the first.
    #[serde(serialize_with = "by_name")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub protocol: RaceProtocol,
    /// The ratio in the browser: of medians, with a 95 % interval by resampling the loads of both. Below 6 loads ([`MIN_RUNS`]) of
    /// each it is too narrow.
    pub browser: Estimate,
    /// The ratio of our client in virtual time.
    pub ours: f64,
    /// Valid loads of the browser by the protocol that has fewer.
    pub loads: usize,
}

impl ProtocolRatio {
    /// Ratios for every network in `cells`: each further protocol against the first.
    #[must_use]
    pub fn all(cells: &[BrowserCell]) -> Vec<Self> {
        let ratio = |cell: &BrowserCell| {
            let base = cells.iter().find(|base| base.network == cell.network)?;
            let other = base.protocol != cell.protocol;
            other.then_some(())?;
            Some(Self {
                network: cell.network.clone(),
                base: base.protocol,
                protocol: cell.protocol,
                browser: browser_ratio(base, cell)?,
                ours: cell.virtual_load_ms()? / base.virtual_load_ms()?,
                loads: base.valid_loads().count().min(cell.valid_loads().count()),
            })
        };
        cells.iter().filter_map(ratio).collect()
    }

    /// True if both protocols have enough loads for an interval.
    #[must_use]
    pub fn has_interval(&self) -> bool {
        self.loads >= MIN_RUNS
    }

    /// True if the same protocol is faster in both.
    #[must_use]
    pub fn agrees(&self) -> bool {
        (self.browser.value < 1.0) == (self.ours < 1.0)
    }
}

/// Median load time in `cell` over that in `base`.
fn browser_ratio(base: &BrowserCell, cell: &BrowserCell) -> Option<Estimate> {
    let times = |cell: &BrowserCell| -> Vec<f64> {
        cell.valid_loads()
            .filter_map(|loaded| loaded.load_ms)
            .collect()
    };
    let middle = |times: &[f64]| median(times.iter().copied()).unwrap_or(f64::NAN);
    let both = (&times(base)[..], &times(cell)[..]);
    Bootstrap::default().of_two(both, |base, cell| middle(cell) / middle(base))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use spdy_netem::path::PathConfig;
    use spdy_page::builtin;
    use spdy_tun::emulator::Emulator;

    use super::*;
    use crate::live::visual_metrics::VisualMetrics;

    fn loaded(load_ms: f64, fingerprint: &str, failed: &[&str]) -> BrowserLoad {
        let path = PathConfig::new(1_000_000, 1_000_000, Duration::ZERO);
        let origin = spdy_clock::Instant::ZERO;
        BrowserLoad {
            dom_content_loaded_ms: None,
            load_ms: Some(load_ms),
            metrics: VisualMetrics::default(),
            exchanges: 44,
            connections: 7,
            fingerprint: fingerprint.to_owned(),
            failed_requests: failed.iter().map(|&what| what.to_owned()).collect(),
            omitted: BTreeMap::new(),
            similar_requests: Vec::new(),
            unknown_names: Vec::new(),
            faults: Vec::new(),
            link: Emulator::new(&path, 1, origin).stats(origin),
            recording: Some(builtin::portal()),
            run_files: None,
        }
    }

    fn browsed(protocol: RaceProtocol, loads: Vec<BrowserLoad>) -> BrowserCell {
        let network = RaceNetwork::parse("cable").expect("it has a name");
        BrowserCell::new(&network, protocol, loads, &Options::default(), 1)
    }

    #[test]
    fn loads_with_other_or_missing_content_are_excluded_with_a_reason() {
        let loads = vec![
            loaded(900.0, "a", &[]),
            loaded(100.0, "b", &["GET /x (404)", "GET /y (404)"]),
            loaded(200.0, "b", &["GET /x (404)"]),
            loaded(300.0, "b", &[]),
            loaded(1_100.0, "a", &[]),
        ];
        let browsed = browsed(RaceProtocol::Https, loads);
        assert_eq!(browsed.load_ms(), Some(1_000.0));
        assert_eq!(browsed.virtual_ms.len(), 2);
        assert!(
            browsed
                .loads
                .iter()
                .all(|loaded| loaded.recording.is_none())
        );
        assert_eq!(
            browsed.excluded(),
            [
                "not recorded: GET /x (404) (and 1 more)",
                "not recorded: GET /x (404)",
                "its requests differ from those of most runs"
            ]
        );
    }

    #[test]
    fn simulated_loads_have_the_think_times_of_the_servers_and_not_of_the_recording() {
        let simulated = |think_ms: u64| {
            let mut loaded = loaded(1_000.0, "a", &[]);
            if let Some(recording) = &mut loaded.recording {
                // A wait in the recording contains queues of the link.
                recording.exchanges[0].wait = Some(Duration::from_secs(9));
                recording.state_think_times(&[Duration::from_millis(think_ms)]);
            }
            browsed(RaceProtocol::H2, vec![loaded]).virtual_ms[0]
        };
        let added = simulated(500) - simulated(0);
        assert!((added - 500.0).abs() < 25.0, "{added} ms");
    }

    #[test]
    fn protocols_are_compared_with_the_first_per_network() {
        let https = browsed(RaceProtocol::Https, vec![loaded(1_000.0, "a", &[])]);
        let h2 = browsed(RaceProtocol::H2, vec![loaded(800.0, "a", &[])]);
        let none = browsed(RaceProtocol::Http, Vec::new());
        let [ratio] =
            <[ProtocolRatio; 1]>::try_from(ProtocolRatio::all(&[https, h2, none])).expect("one");
        assert_eq!(ratio.protocol, RaceProtocol::H2);
        assert_eq!(ratio.browser, Estimate::exact(0.8));
        assert!(ratio.agrees(), "{ratio:?}");
    }
}
