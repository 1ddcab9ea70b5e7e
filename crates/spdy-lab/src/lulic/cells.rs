//! Lulic 2013's flags page and its measured results: the reference for loads in virtual time.
//!
//! Lulic's laboratory has 42 settings of a dummynet gateway, named by a bandwidth and a delay. These labels are not the true values:
//! every packet in both directions passes one pipe twice, so the true round trip is four times the delay label, and the capacity half
//! of the bandwidth label. The network of such a setting is `lulic:BANDWIDTH:DELAY`, and its options are [`Options::lulic`].
//!
//! The paper does not state three properties that affect load times: [`Parameters`]. There are three sets of them. Each states how
//! much of Lulic's results it uses:
//!
//! ```text
//!                       image bytes     concurrent streams         browser         uses of the results
//! Parameters::UNSEEN    as shipped      mod_spdy's default, 100    takes no time   none
//! Parameters::BY_HAND   the rest of     as above                   the rest of     a load and a DOMContentLoaded, by
//!                       one load time                              one DCL         arithmetic
//! Parameters::FITTED    the smallest error of load, by `examples/lulic_fit`        all of them
//! ```

use std::time::Duration;

use spdy_netem::profile::ProfileError;
use spdy_page::replica::{Kind, Replica};
use spdy_page::{builtin, head};
use spdy_sim::load::Load;
use spdy_sim::options::{LULIC_STREAMS, Options, RaceProtocol};
use spdy_sim::race::{Race, RaceNetwork};

/// Unrecorded properties of Lulic's page, server and browser.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Bytes of each image; `None`: those of the shipped page, 418 on average.
    pub image_bytes: Option<usize>,
    /// Maximum concurrent streams of the server.
    pub streams: u32,
    /// Time of the browser itself in each load, milliseconds. Our client takes none.
    pub browser_ms: f64,
}

impl Parameters {
    /// Values that use none of Lulic's results: the shipped flags, the 100 streams that `mod_spdy` allows by default (its
    /// ConfigOptions), and a browser that takes no time.
    pub const UNSEEN: Self = Self {
        image_bytes: None,
        streams: 100,
        browser_ms: 0.0,
    };

    /// Computed by hand from two of Lulic's 252 values.
    ///
    /// - Images: at 100 kbit/s and a delay of 10 ms, bytes dominate. Lulic's load over HTTP takes 41,642 ms there, 260 kB at 50
    ///   kbit/s; that of [`UNSEEN`](Self::UNSEEN) takes 33,590 ms. The rest is 257 bytes for each image, in addition to 418.
    /// - Streams: `mod_spdy`'s default. (Arithmetic has another result: Lulic's slope over SPDY is 12.0 round trips. The page needs 4
    ///   of them, and 196 images in the other 8 come 25 at a time. That differs by a fifth; `docs/measurements/lulic.md`.)
    /// - Browser: over HTTP at 10,240 kbit/s and 10 ms Lulic's DOMContentLoaded is at 365 ms, and two round trips take 160 ms: 40 ms
    ///   of delay each, and 40 ms of the gateway's timer.
    pub const BY_HAND: Self = Self {
        image_bytes: Some(675),
        streams: 100,
        browser_ms: 205.0,
    };

    /// Values with the smallest mean error of load over all 126 of Lulic's cells, found by `examples/lulic_fit`. They are scored on
    /// the cells that they were fitted to.
    pub const FITTED: Self = Self {
        image_bytes: Some(640),
        streams: LULIC_STREAMS,
        browser_ms: 305.0,
    };

    /// The flags page with images of this size.
    #[must_use]
    pub fn page(&self) -> Replica {
        let mut replica = builtin::flags();
        if let Some(len) = self.image_bytes {
            resize_images(&mut replica, len);
        }
        replica
    }

    /// Lulic's laboratory with this many streams.
    #[must_use]
    pub fn options(&self) -> Options {
        Options {
            max_concurrent_streams: self.streams,
            ..Options::lulic()
        }
    }
}

/// One cell of Lulic's grid: the medians of seven runs.
#[derive(Clone, Debug, PartialEq)]
pub struct LulicCell {
    /// Bandwidth label.
    pub bandwidth_kbps: u32,
    /// Delay label, milliseconds.
    pub delay_label_ms: u32,
    /// `http`, `https`, `spdy`.
    pub protocol: &'static str,
    /// DOMContentLoaded.
    pub dom_content_loaded_ms: f64,
    /// Load.
    pub load_ms: f64,
}

impl LulicCell {
    /// The true round trip of an idle link.
    #[must_use]
    pub fn round_trip(&self) -> Duration {
        Duration::from_millis(u64::from(self.delay_label_ms) * 4)
    }

    /// The network of the measurement.
    ///
    /// # Errors
    ///
    /// If the network can no longer be parsed.
    pub fn network(&self) -> Result<RaceNetwork, ProfileError> {
        RaceNetwork::parse(&format!(
            "lulic:{}kbit:{}ms",
            self.bandwidth_kbps, self.delay_label_ms
        ))
    }
}

/// All 126 cells of the flags page, in the order of the file.
///
/// # Panics
///
/// If the data in this program is invalid.
#[must_use]
pub fn cells() -> Vec<LulicCell> {
    let lines = include_str!("../../data/lulic-2013-flags.csv")
        .lines()
        .skip(1);
    lines
        .map(|line| cell(line).unwrap_or_else(|| panic!("invalid cell: {line:?}")))
        .collect()
}

fn cell(line: &'static str) -> Option<LulicCell> {
    let mut fields = line.split(',');
    Some(LulicCell {
        bandwidth_kbps: fields.next()?.parse().ok()?,
        delay_label_ms: fields.next()?.parse().ok()?,
        protocol: fields.next()?,
        dom_content_loaded_ms: fields.next()?.parse().ok()?,
        load_ms: fields.next()?.parse().ok()?,
    })
}

/// Gives every image `len` bytes: longer ones are cut, shorter ones padded.
fn resize_images(replica: &mut Replica, len: usize) {
    let images = replica
        .exchanges
        .iter_mut()
        .filter(|exchange| exchange.kind == Kind::Image);
    for image in images {
        let mut body = image.body.to_vec();
        body.resize(len, 0);
        let length = len.to_string();
        image.response_head =
            head::with_field(&image.response_head, "Content-Length", Some(&length));
        image.body = body.into();
    }
}

/// Lulic's cells of one protocol, and our loads in each.
#[derive(Clone, Debug)]
pub struct LulicComparison {
    /// Lulic's cells.
    pub cells: Vec<LulicCell>,
    /// Our loads, in the same order.
    pub loads: Vec<Load>,
}

/// Difference of our loads from Lulic's, as fractions of Lulic's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LulicError {
    /// Mean magnitude.
    pub mean: f64,
    /// Mean with signs: below 0 if ours are too fast.
    pub bias: f64,
}

impl LulicComparison {
    /// Loads `page` by `protocol` in each of Lulic's cells of the protocol `measured_as`.
    ///
    /// # Panics
    ///
    /// If a load panics, which is a fault of this program.
    #[must_use]
    pub fn of(page: Replica, protocol: RaceProtocol, measured_as: &str, options: &Options) -> Self {
        let mut cells = cells();
        cells.retain(|cell| cell.protocol == measured_as);
        let networks = cells.iter().map(|cell| {
            let network = cell.network();
            network.unwrap_or_else(|error| panic!("Lulic's link in {cell:?}: {error}"))
        });
        let race = Race {
            protocols: vec![protocol],
            options: options.clone(),
            ..Race::new(vec![page], networks.collect())
        };
        let loads = race.run(|_| ());
        Self { cells, loads }
    }

    /// Loads the flags page of `parameters`; its browser time is for [`load_error`](Self::load_error).
    ///
    /// # Panics
    ///
    /// Like [`of`](Self::of).
    #[must_use]
    pub fn with(parameters: &Parameters, protocol: RaceProtocol) -> Self {
        let (page, options) = (parameters.page(), parameters.options());
        Self::of(page, protocol, protocol.name(), &options)
    }

    /// The error of load, with this time for the browser.
    #[must_use]
    pub fn load_error(&self, browser_ms: f64) -> LulicError {
        let pairs = self.cells.iter().zip(&self.loads);
        LulicError::of(
            pairs.map(|(published, ours)| (ours.load_ms + browser_ms) / published.load_ms - 1.0),
        )
    }

    /// The error of DOMContentLoaded.
    #[must_use]
    pub fn dom_content_loaded_error(&self, browser_ms: f64) -> LulicError {
        let pairs = self.cells.iter().zip(&self.loads);
        LulicError::of(pairs.map(|(published, ours)| {
            (ours.dom_content_loaded_ms + browser_ms) / published.dom_content_loaded_ms - 1.0
        }))
    }
}

impl LulicError {
    /// Summarises `errors`, which are fractions.
    fn of(errors: impl Iterator<Item = f64>) -> Self {
        let errors: Vec<f64> = errors.collect();
        let mean = |sum: f64| sum / errors.len() as f64;
        Self {
            mean: mean(errors.iter().map(|error| error.abs()).sum()),
            bias: mean(errors.iter().sum()),
        }
    }

    /// Summarises several comparisons of equally many cells.
    #[must_use]
    pub fn over(errors: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| errors.iter().map(of).sum::<f64>() / errors.len() as f64;
        Self {
            mean: mean(|error| error.mean),
            bias: mean(|error| error.bias),
        }
    }
}

/// The browser time, at least 0, with the smallest mean error of load over all of `comparisons`.
///
/// A cell's error is the difference between `browser_ms` and the time that is missing there, divided by Lulic's load. The sum of
/// these errors is smallest at the median of the missing times, weighted with one over Lulic's load.
#[must_use]
pub fn best_browser_ms(comparisons: &[LulicComparison]) -> f64 {
    let pairs = comparisons
        .iter()
        .flat_map(|it| it.cells.iter().zip(&it.loads));
    let mut missing: Vec<(f64, f64)> = pairs
        .map(|(published, ours)| (published.load_ms - ours.load_ms, 1.0 / published.load_ms))
        .collect();
    missing.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = missing.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut below = 0.0;
    let median = missing.iter().find(|(_, weight)| {
        below += weight;
        below >= half
    });
    median.map_or(0.0, |(missing_ms, _)| missing_ms.max(0.0))
}
