//! Lulic 2013's flags page and what he measured on it: the anchor that loads in virtual time are held to.
//!
//! His laboratory has 42 settings of a dummynet gateway, named by a bandwidth and a delay that are not what they
//! say: every packet of both directions passes one pipe twice, so the true round trip is four times the
//! delay label, and the capacity half of the bandwidth label. As a network such a setting is
//! `lulic:BANDWIDTH:DELAY`, as choices it is [`Options::lulic`](crate::options::Options::lulic).

use std::time::Duration;

use spdy_netem::profile::ProfileError;
use spdy_page::replica::{Kind, Replica};
use spdy_page::{builtin, head};

use crate::race::RaceNetwork;

/// Bytes of an image of his page. He does not say; a fit of his load times does.
pub const IMAGE_BYTES: usize = 590;

/// Time of the browser itself in each load, milliseconds, from the same fit. Ours takes none.
pub const BROWSER_MS: f64 = 305.0;

/// One cell of his grid: the medians of seven runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
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

impl Cell {
    /// The true round trip of an idle link.
    #[must_use]
    pub fn round_trip(&self) -> Duration {
        Duration::from_millis(u64::from(self.delay_label_ms) * 4)
    }

    /// The network it was measured on.
    ///
    /// # Errors
    ///
    /// If that is no network any more.
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
/// If the data that this program carries is broken.
#[must_use]
pub fn cells() -> Vec<Cell> {
    let lines = include_str!("../data/lulic-2013-flags.csv").lines().skip(1);
    lines
        .map(|line| cell(line).unwrap_or_else(|| panic!("no cell: {line:?}")))
        .collect()
}

fn cell(line: &'static str) -> Option<Cell> {
    let mut fields = line.split(',');
    Some(Cell {
        bandwidth_kbps: fields.next()?.parse().ok()?,
        delay_label_ms: fields.next()?.parse().ok()?,
        protocol: fields.next()?,
        dom_content_loaded_ms: fields.next()?.parse().ok()?,
        load_ms: fields.next()?.parse().ok()?,
    })
}

/// The shipped flags page with every image cut or filled up to [`IMAGE_BYTES`].
#[must_use]
pub fn flags() -> Replica {
    let mut replica = builtin::flags();
    let images = replica
        .exchanges
        .iter_mut()
        .filter(|exchange| exchange.kind == Kind::Image);
    for image in images {
        let mut body = image.body.to_vec();
        body.resize(IMAGE_BYTES, 0);
        let length = body.len().to_string();
        image.response_head =
            head::with_field(&image.response_head, "Content-Length", Some(&length));
        image.body = body.into();
    }
    replica
}
