//! The cells of a comparison: a link, and a download over it.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use spdy_netem::loss::{LossModel, Probability};
use spdy_netem::path::PathConfig;

/// How objects are requested.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ConnectionMode {
    /// One connection, one object.
    Single,
    /// Six connections, each with one request at a time: HTTP/1.1.
    Six,
    /// One connection, all requests at once: SPDY.
    One,
}

impl ConnectionMode {
    /// Connections that are opened at the start.
    #[must_use]
    pub const fn connections(self) -> usize {
        match self {
            Self::Single | Self::One => 1,
            Self::Six => 6,
        }
    }
}

impl fmt::Display for ConnectionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Single => "single",
            Self::Six => "six",
            Self::One => "one",
        })
    }
}

/// One cell. Rates are the same in both directions, and the queue is the default.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DownloadCell {
    /// Rate of each direction, bits per second.
    pub bps: u64,
    /// Round-trip propagation delay, milliseconds.
    pub rtt_ms: u64,
    /// Loss in each direction, parts per thousand.
    pub loss_permille: u32,
    /// Connections and requests.
    pub manner: ConnectionMode,
    /// Number of objects.
    pub objects: u32,
    /// Bytes of each object.
    pub bytes: u64,
}

impl DownloadCell {
    /// The link.
    #[must_use]
    pub fn path(&self) -> PathConfig {
        let loss = Probability::from_ppb(self.loss_permille * 1_000_000);
        let loss = LossModel::bernoulli(loss.expect("at most 1000 per mille"));
        PathConfig {
            loss_up: loss,
            loss_down: loss,
            ..PathConfig::new(self.bps, self.bps, Duration::from_millis(self.rtt_ms))
        }
    }

    const fn single(bps: u64, rtt_ms: u64, loss_permille: u32, bytes: u64) -> Self {
        Self {
            bps,
            rtt_ms,
            loss_permille,
            manner: ConnectionMode::Single,
            objects: 1,
            bytes,
        }
    }
}

impl fmt::Display for DownloadCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kbps, percent) = (self.bps / 1_000, f64::from(self.loss_permille) / 10.0);
        write!(f, "{kbps} kbps, {} ms, {percent} %, ", self.rtt_ms)?;
        write!(f, "{} {} x {} B", self.manner, self.objects, self.bytes)
    }
}

const KBPS: u64 = 1_000;
const MBPS: u64 = 1_000_000;

/// The 150 loss-free single downloads: 250 kbps to 10 Mbps, 10 to 500 ms, 1 kB to 1 MB.
#[must_use]
pub fn loss_free() -> Vec<DownloadCell> {
    let mut cells = Vec::with_capacity(150);
    for bps in [250 * KBPS, MBPS, 2 * MBPS, 5 * MBPS, 10 * MBPS] {
        for rtt_ms in [10, 50, 100, 200, 500] {
            for bytes in [1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000] {
                cells.push(DownloadCell::single(bps, rtt_ms, 0, bytes));
            }
        }
    }
    cells
}

/// The 72 single downloads with 1 and 2 % loss each way: 1 to 10 Mbps, 20 to 200 ms, 10 kB to 1 MB.
#[must_use]
pub fn lossy() -> Vec<DownloadCell> {
    let mut cells = Vec::with_capacity(72);
    for loss_permille in [10, 20] {
        for bps in [MBPS, 2 * MBPS, 10 * MBPS] {
            for rtt_ms in [20, 100, 200] {
                for bytes in [10_000, 100_000, 300_000, 1_000_000] {
                    cells.push(DownloadCell::single(bps, rtt_ms, loss_permille, bytes));
                }
            }
        }
    }
    cells
}

/// Six connections against one, 16 pairs: each six is followed by its one.
#[must_use]
pub fn pairs() -> Vec<DownloadCell> {
    let mut cells = Vec::with_capacity(32);
    for loss_permille in [0, 10] {
        for bps in [MBPS, 5 * MBPS] {
            for rtt_ms in [50, 200] {
                for (objects, bytes) in [(24, 12_000), (60, 4_000)] {
                    for manner in [ConnectionMode::Six, ConnectionMode::One] {
                        cells.push(DownloadCell {
                            bps,
                            rtt_ms,
                            loss_permille,
                            manner,
                            objects,
                            bytes,
                        });
                    }
                }
            }
        }
    }
    cells
}

/// A small set that takes some seconds: eight single downloads without loss, two with loss, and a pair.
#[must_use]
pub fn small() -> Vec<DownloadCell> {
    let mut cells = Vec::with_capacity(12);
    for bps in [MBPS, 10 * MBPS] {
        for rtt_ms in [50, 200] {
            for bytes in [10_000, 100_000] {
                cells.push(DownloadCell::single(bps, rtt_ms, 0, bytes));
            }
        }
    }
    for loss_permille in [10, 20] {
        cells.push(DownloadCell::single(2 * MBPS, 50, loss_permille, 100_000));
    }
    for manner in [ConnectionMode::Six, ConnectionMode::One] {
        cells.push(DownloadCell {
            bps: 2 * MBPS,
            rtt_ms: 100,
            loss_permille: 0,
            manner,
            objects: 24,
            bytes: 5_000,
        });
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cell_set_has_its_documented_size() {
        assert_eq!(loss_free().len(), 150);
        assert_eq!(lossy().len(), 72);
        assert_eq!(pairs().len(), 32);
        assert_eq!(small().len(), 12);
    }
}
