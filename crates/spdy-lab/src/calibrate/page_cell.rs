//! A whole page load in both clocks: one page over one network by one protocol.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};
use spdy_netem::path::PathConfig;
use spdy_sim::load;
use spdy_sim::load::{Load, Page};
use spdy_sim::options::{Options, RaceProtocol};
use spdy_sim::race::RaceNetwork;
use spdy_tun::network::RealNetwork;

use crate::calibrate::compare::{CellResult, ErrorStats, MAX_LOSSY_ERROR};
use crate::calibrate::error::CalibrateError;
use crate::calibrate::workload::{Attempt, Workload};
use crate::live::load::{self as live, LoadSpec};

/// Maximum error of a load without loss and jitter. With randomness, as with downloads, only the mean of many loads has a limit:
/// [`MAX_LOSSY_ERROR`].
pub const MAX_PAGE_ERROR: f64 = 0.03;

/// One load.
#[derive(Clone)]
pub struct PageCell {
    /// The page.
    pub page: Arc<Page>,
    /// The network; its TCP era is ignored, because real time uses the kernel's current TCP.
    pub network: Arc<RaceNetwork>,
    /// The protocol.
    pub protocol: RaceProtocol,
    /// All other options.
    pub options: Arc<Options>,
}

impl PageCell {
    /// Every page over every network by every protocol, in this order.
    #[must_use]
    pub fn all(
        pages: &[Arc<Page>],
        networks: &[RaceNetwork],
        protocols: &[RaceProtocol],
        options: &Options,
    ) -> Vec<Self> {
        let options = Arc::new(options.clone());
        let networks: Vec<_> = networks.iter().cloned().map(Arc::new).collect();
        let mut cells = Vec::with_capacity(pages.len() * networks.len() * protocols.len());
        for page in pages {
            for network in &networks {
                for &protocol in protocols {
                    cells.push(Self {
                        page: page.clone(),
                        network: network.clone(),
                        protocol,
                        options: options.clone(),
                    });
                }
            }
        }
        cells
    }

    /// Name of the page.
    #[must_use]
    pub fn replica(&self) -> &str {
        &self.page.replica().name
    }

    /// The load time of `load` if it is complete; else its first failure.
    fn took(load: &Load) -> Result<Duration, String> {
        match load.failures.first() {
            None => Ok(Duration::from_secs_f64(load.load_ms / 1e3)),
            Some(failure) => Err(format!("it is incomplete: {failure}")),
        }
    }
}

impl fmt::Display for PageCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (network, protocol) = (&self.network.name, self.protocol);
        write!(f, "{} over {network} by {protocol}", self.replica())
    }
}

impl fmt::Debug for PageCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The fields of a [`PageCell`] in JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct CellFields<'a> {
    /// Name of the page.
    replica: &'a str,
    /// Name of the network.
    network: &'a str,
    /// Name of the protocol.
    protocol: &'static str,
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for PageCell {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PageCell".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        CellFields::json_schema(generator)
    }
}

impl Serialize for PageCell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fields = CellFields {
            replica: self.replica(),
            network: &self.network.name,
            protocol: self.protocol.name(),
        };
        fields.serialize(serializer)
    }
}

impl Workload for PageCell {
    fn path(&self) -> PathConfig {
        self.network.profile.path.clone()
    }

    fn run_virtual(&self, seed: u64) -> io::Result<Duration> {
        let (network, options) = (&self.network, &*self.options);
        let config = network.config(options);
        let load = load::load(
            &self.page,
            self.protocol,
            &network.name,
            &config,
            options,
            seed,
        );
        Self::took(&load).map_err(io::Error::other)
    }

    fn run_real(
        &self,
        network: &mut RealNetwork,
        seed: u64,
        patience: Duration,
    ) -> Result<Attempt, CalibrateError> {
        let which = LoadSpec {
            protocol: self.protocol,
            network: self.network.name.clone(),
            seed,
            options: (*self.options).clone(),
            initial_window: None,
            timeout: patience,
        };
        let loaded = live::load(network, &self.page, &which, None)?;
        Ok(Attempt {
            took: if loaded.was_given_up {
                Err("it did not end".to_owned())
            } else {
                Self::took(&loaded.load)
            },
            measured: loaded.measured,
            hosts: loaded.hosts,
        })
    }
}

/// Summary of page loads.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageLoadSummary {
    /// Loads without loss and jitter.
    pub loss_free: Option<ErrorStats>,
    /// Loads with loss or jitter.
    pub lossy: Option<ErrorStats>,
    /// Cells without a valid run.
    pub unmeasured: usize,
    /// Number of invalid runs.
    pub repeated: u32,
    /// Exceeded limits.
    pub exceeded_limits: Vec<String>,
}

impl PageLoadSummary {
    /// Summarises `results`.
    #[must_use]
    pub fn of(results: &[CellResult<PageCell>]) -> Self {
        let errors = |lossy: bool| {
            ErrorStats::of(results.iter().filter(|it| it.subject.is_lossy() == lossy))
        };
        let past = |result: &CellResult<PageCell>| {
            if result.subject.is_lossy() {
                return None;
            }
            let error = result
                .error()
                .filter(|error| error.abs() > MAX_PAGE_ERROR)?;
            let (error, bar) = (error * 100.0, MAX_PAGE_ERROR * 100.0);
            Some(format!(
                "{}: error {error:+.2} %, limit {bar} %",
                result.subject
            ))
        };
        let mut exceeded_limits: Vec<String> = results.iter().filter_map(past).collect();
        let lossy = errors(true);
        exceeded_limits.extend(lossy.filter(|it| it.mean > MAX_LOSSY_ERROR).map(|it| {
            let (mean, bar) = (it.mean * 100.0, MAX_LOSSY_ERROR * 100.0);
            format!("loads with loss or jitter: mean error {mean:.2} %, limit {bar} %")
        }));
        exceeded_limits.extend(results.iter().filter_map(CellResult::missing_runs));
        Self {
            loss_free: errors(false),
            lossy,
            unmeasured: results.iter().filter(|it| it.real_ms.is_empty()).count(),
            repeated: results.iter().map(|it| it.repeated).sum(),
            exceeded_limits,
        }
    }
}

#[cfg(test)]
mod tests {
    use spdy_page::builtin;

    use super::*;

    fn cells() -> Vec<PageCell> {
        let page = Arc::new(Page::new(builtin::portal()));
        let networks = ["dsl", "3g"].map(|name| RaceNetwork::parse(name).expect("it has a name"));
        let protocols = [RaceProtocol::Http, RaceProtocol::H2];
        PageCell::all(&[page], &networks, &protocols, &Options::default())
    }

    fn result(subject: PageCell, virtual_ms: f64, real_ms: &[f64]) -> CellResult<PageCell> {
        CellResult {
            subject,
            virtual_ms: vec![virtual_ms],
            real_ms: real_ms.to_vec(),
            computed_ms: Vec::new(),
            requested_runs: 1,
            repeated: 2,
            incomplete_reason: real_ms.is_empty().then(|| "it did not end".to_owned()),
        }
    }

    #[test]
    fn a_load_error_is_reported_only_above_its_limit() {
        let [first, second] = cells().first_chunk().cloned().expect("there are four");
        let at = [
            result(first.clone(), 1_029.0, &[1_000.0]),
            result(second.clone(), 971.0, &[1_000.0]),
        ];
        assert_eq!(
            PageLoadSummary::of(&at).exceeded_limits,
            Vec::<String>::new()
        );
        let past = [
            result(first, 1_031.0, &[1_000.0]),
            result(second, 971.0, &[]),
        ];
        let summary = PageLoadSummary::of(&past);
        assert_eq!(
            summary.exceeded_limits,
            [
                "portal over dsl by http: error +3.10 %, limit 3 %",
                "portal over dsl by h2: only 0 of 1 runs are valid: it did not end"
            ]
        );
        assert_eq!((summary.unmeasured, summary.repeated), (1, 4));
    }

    #[test]
    fn random_loads_are_limited_by_their_mean_error() {
        let lossy = |spec: &str| {
            let network = RaceNetwork::parse(spec).expect("the network is valid");
            let network = Arc::new(network);
            let cell = cells().remove(0);
            PageCell { network, ..cell }
        };
        let (loss, jitter) = (lossy("dsl,loss=1%"), lossy("dsl,jitter=5ms"));
        assert!(loss.is_lossy() && jitter.is_lossy());
        let at = |error: f64| {
            let off = result(loss.clone(), 1_000.0 * (1.0 + error), &[1_000.0]);
            PageLoadSummary::of(&[off, result(jitter.clone(), 1_000.0, &[1_000.0])])
        };
        let summary = at(0.159);
        assert_eq!(summary.exceeded_limits, Vec::<String>::new());
        let lossy = summary.lossy.map(|errors| errors.cells);
        assert_eq!((summary.loss_free, lossy), (None, Some(2)));
        assert_eq!(
            at(-0.17).exceeded_limits,
            ["loads with loss or jitter: mean error 8.50 %, limit 8 %"]
        );
    }

    #[test]
    fn only_a_complete_load_has_a_time() {
        let cell = cells().remove(0);
        let (network, options) = (&cell.network, &*cell.options);
        let config = network.config(options);
        let mut load = load::load(
            &cell.page,
            cell.protocol,
            &network.name,
            &config,
            options,
            1,
        );
        let took = Duration::from_secs_f64(load.load_ms / 1e3);
        assert_eq!(PageCell::took(&load), Ok(took));
        load.failures.push("503 for /".to_owned());
        let reason = "it is incomplete: 503 for /".to_owned();
        assert_eq!(PageCell::took(&load), Err(reason));
    }
}
