//! Round trips of the flags page over Lulic's link, and which choices they hang on.
//!
//! ```text
//! cargo run --release -p spdy-lab --example textbook
//! ```
//!
//! Each line: the slopes of DOMContentLoaded and of load over the true round trip, for the shipped page and for
//! the one with images as large as Lulic's; then how far load is from what he measured, over his 42 cells.

use std::io::Write;

use spdy_lab::lulic;
use spdy_lab::measure::Load;
use spdy_lab::options::{Options, RaceProtocol};
use spdy_lab::race::Race;
use spdy_lab::stats::Line;
use spdy_net::tls::TlsVersion;
use spdy_netem::profile::Era;
use spdy_page::builtin;
use spdy_page::replica::Replica;

/// The cells that slopes are fitted to: the fastest link, where round trips are everything.
fn is_in_slope(cell: &lulic::Cell) -> bool {
    cell.bandwidth_kbps == 10_240 && (50..=250).contains(&cell.delay_label_ms)
}

fn loads(
    replica: Replica,
    cells: &[lulic::Cell],
    protocol: RaceProtocol,
    options: &Options,
) -> Vec<Load> {
    let networks = cells
        .iter()
        .map(|cell| cell.network().expect("Lulic's link"))
        .collect();
    let (protocols, options) = (vec![protocol], options.clone());
    Race {
        protocols,
        options,
        ..Race::new(vec![replica], networks)
    }
    .run(|_| ())
}

fn slope(cells: &[lulic::Cell], loads: &[Load], time: fn(&Load) -> f64) -> f64 {
    let both = cells
        .iter()
        .zip(loads)
        .filter(|(cell, _)| is_in_slope(cell));
    let points: Vec<_> = both
        .map(|(cell, load)| (cell.round_trip().as_secs_f64() * 1e3, time(load)))
        .collect();
    Line::fit(&points).map_or(f64::NAN, |line| line.slope)
}

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    let lulic = Options::lulic;
    let cases = [
        ("lulic", lulic()),
        (
            "no TLS resumption",
            Options {
                tls_resumption: false,
                ..lulic()
            },
        ),
        (
            "47 streams, window 8",
            Options {
                max_concurrent_streams: 47,
                initial_window: Some(8),
                ..lulic()
            },
        ),
        (
            "100 streams (mod_spdy)",
            Options {
                max_concurrent_streams: 100,
                ..lulic()
            },
        ),
        (
            "initial window 3",
            Options {
                initial_window: Some(3),
                ..lulic()
            },
        ),
        (
            "TCP of 2009",
            Options {
                tcp_era: Some(Era::Y2009),
                ..lulic()
            },
        ),
        (
            "TCP of today",
            Options {
                tcp_era: Some(Era::Today),
                ..lulic()
            },
        ),
        (
            "TLS 1.3",
            Options {
                tls: TlsVersion::Tls13,
                ..lulic()
            },
        ),
        (
            "masked headers",
            Options {
                spdy_compression: Options::default().spdy_compression,
                ..lulic()
            },
        ),
        (
            "headers not compressed",
            Options {
                spdy_compression: spdy_frame::compress::Compression::Zlib(0),
                ..lulic()
            },
        ),
        (
            "today, names known",
            Options {
                name_lookups: lulic().name_lookups,
                tcp_era: Some(Era::Today),
                ..Options::default()
            },
        ),
    ];
    writeln!(
        out,
        "{:<24} {:<6} {:>14} {:>14} {:>10} {:>7}",
        "", "", "shipped page", "590 B images", "|error|", "bias"
    )?;
    for (name, options) in cases {
        for protocol in RaceProtocol::ALL {
            let mut cells = lulic::cells();
            // He had no h2: its slopes are told on the cells of SPDY, and nothing to compare them with.
            let measured_as = if protocol == RaceProtocol::H2 {
                "spdy"
            } else {
                protocol.name()
            };
            cells.retain(|cell| cell.protocol == measured_as);
            write!(out, "{name:<24} {protocol:<6}")?;
            let mut last = Vec::new();
            for replica in [builtin::flags(), lulic::flags()] {
                last = loads(replica, &cells, protocol, &options);
                let ready = slope(&cells, &last, |load| load.dom_content_loaded_ms);
                let done = slope(&cells, &last, |load| load.load_ms);
                write!(out, " {ready:>6.2} {done:>7.2}")?;
            }
            if protocol != RaceProtocol::H2 {
                let both = cells.iter().zip(&last);
                let errors: Vec<f64> = both
                    .map(|(cell, load)| (load.load_ms + lulic::BROWSER_MS) / cell.load_ms - 1.0)
                    .collect();
                let mean = |sum: f64| sum * 100.0 / errors.len() as f64;
                let (size, bias) = (
                    mean(errors.iter().map(|error| error.abs()).sum()),
                    mean(errors.iter().sum()),
                );
                write!(out, " {size:>8.1} % {bias:>+5.1} %")?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}
