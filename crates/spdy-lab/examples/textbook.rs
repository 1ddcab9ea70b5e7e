//! Round trips of the flags page over Lulic's link, and the options that they depend on.
//!
//! ```text
//! cargo run --release -p spdy-lab --example textbook
//! ```
//!
//! Each line has the slopes of DOMContentLoaded and of load over the true round trip, for the shipped page and for that of
//! `Parameters::FITTED`. For the latter, with its browser time, the line also has the errors of load and DOMContentLoaded against
//! Lulic's measurements in 42 cells. The first table lists the sets of parameters.

use std::io::Write;

use spdy_lab::lulic::{self, LulicComparison, LulicError, Parameters};
use spdy_lab::stats::Line;
use spdy_net::tls::TlsVersion;
use spdy_netem::profile::Era;
use spdy_sim::load::Load;
use spdy_sim::options::{Options, RaceProtocol};

/// The cells for slopes: those of the fastest link, where the round trip dominates.
fn is_in_slope(cell: &lulic::LulicCell) -> bool {
    cell.bandwidth_kbps == 10_240 && (50..=250).contains(&cell.delay_label_ms)
}

fn slope(of: &LulicComparison, time: fn(&Load) -> f64) -> f64 {
    let both = of.cells.iter().zip(&of.loads);
    let points: Vec<_> = both
        .filter(|(cell, _)| is_in_slope(cell))
        .map(|(cell, load)| (cell.round_trip().as_secs_f64() * 1e3, time(load)))
        .collect();
    Line::fit(&points).map_or(f64::NAN, |line| line.slope)
}

fn format_error(error: LulicError) -> String {
    format!(
        "{:>5.1} % {:>+6.1} %",
        error.mean * 100.0,
        error.bias * 100.0
    )
}

/// Prints the sets of parameters and their errors against Lulic's cells.
fn parameters(out: &mut impl Write) -> std::io::Result<()> {
    writeln!(
        out,
        "{:<24} {:<6} {:>16} {:>16}",
        "parameters", "", "load:    mean, bias", "DOMContentLoaded"
    )?;
    for (name, set) in [
        ("no published results", Parameters::UNSEEN),
        ("by hand", Parameters::BY_HAND),
        ("fitted to these cells", Parameters::FITTED),
    ] {
        let mut errors = Vec::new();
        for protocol in [RaceProtocol::Http, RaceProtocol::Https, RaceProtocol::Spdy] {
            let both = LulicComparison::with(&set, protocol);
            let load = both.load_error(set.browser_ms);
            let ready = both.dom_content_loaded_error(set.browser_ms);
            writeln!(
                out,
                "{name:<24} {protocol:<6} {} {}",
                format_error(load),
                format_error(ready)
            )?;
            errors.push((load, ready));
        }
        let (load, ready): (Vec<_>, Vec<_>) = errors.into_iter().unzip();
        let (load, ready) = (
            format_error(LulicError::over(&load)),
            format_error(LulicError::over(&ready)),
        );
        writeln!(out, "{name:<24} {:<6} {load} {ready}", "all")?;
    }
    writeln!(out)
}

fn main() -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    parameters(&mut out)?;
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
            "today, names resolved",
            Options {
                name_lookups: lulic().name_lookups,
                tcp_era: Some(Era::Today),
                ..Options::default()
            },
        ),
    ];
    writeln!(
        out,
        "{:<24} {:<6} {:>14} {:>14} {:>16} {:>16}",
        "round trips with",
        "",
        "by hand's page",
        "fitted page",
        "load: mean, bias",
        "DOMContentLoaded"
    )?;
    for (name, options) in cases {
        for protocol in RaceProtocol::DEFAULTS {
            // Lulic did not measure h2: its slopes use the cells of SPDY, without a comparison.
            let measured_as = match protocol {
                RaceProtocol::H2 => "spdy",
                other => other.name(),
            };
            write!(out, "{name:<24} {protocol:<6}")?;
            let pages = [Parameters::UNSEEN, Parameters::FITTED];
            let both =
                pages.map(|it| LulicComparison::of(it.page(), protocol, measured_as, &options));
            for it in &both {
                let ready = slope(it, |load| load.dom_content_loaded_ms);
                let done = slope(it, |load| load.load_ms);
                write!(out, " {ready:>6.2} {done:>7.2}")?;
            }
            if protocol != RaceProtocol::H2 {
                let browser_ms = Parameters::FITTED.browser_ms;
                let load = format_error(both[1].load_error(browser_ms));
                let ready = format_error(both[1].dom_content_loaded_error(browser_ms));
                write!(out, " {load} {ready}")?;
            }
            writeln!(out)?;
        }
    }
    Ok(())
}
