//! `spdy lab calibrate --link`: measures the rates and round trips of the link alone.

use std::time::Duration;

use serde::Serialize;
use spdy_lab::calibrate::link_probe::{MAX_RATE_ERROR, MAX_RTT_ERROR_MS, Probe, Rate, RoundTrip};
use spdy_tun::limits::ValidityLimits;

use crate::outcome::Outcome;
use crate::output::{BAD, Cell, GOOD, Printer, Table};

/// The measured properties of a link.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Link {
    /// Rates of 100 kbps to 100 Mbps and round trips of 0 to 500 ms; takes a minute
    All,
    /// Two rates and two round trips; takes ten seconds
    Short,
}

impl Link {
    const fn rates_kbps(self) -> &'static [u64] {
        match self {
            Self::All => &[100, 256, 1_000, 2_000, 10_000, 50_000, 100_000],
            Self::Short => &[1_000, 10_000],
        }
    }

    const fn round_trips_ms(self) -> &'static [u64] {
        match self {
            Self::All => &[0, 10, 50, 100, 200, 500],
            Self::Short => &[10, 100],
        }
    }

    /// How long the echoes of a round trip take about.
    const fn echoing(self) -> Duration {
        match self {
            Self::All => Duration::from_secs(5),
            Self::Short => Duration::from_secs(2),
        }
    }
}

/// How many packets a rate is measured with, within these times.
const PACKETS: u64 = 100;
const SHORTEST: Duration = Duration::from_secs(3);
/// How many echoes there are at least and at most.
const ECHOES: (u64, u64) = (20, 400);

/// The measured properties of the link.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct LinkReport {
    /// The measured rates.
    rates: Vec<Rate>,
    /// The measured round trips.
    round_trips: Vec<RoundTrip>,
    /// Exceeded limits, in words.
    exceeded_limits: Vec<String>,
}

pub(crate) fn run(link: Link, json: bool, printer: &Printer) -> anyhow::Result<Outcome> {
    // A tail moves neither a median nor a rate over seconds.
    let limits = ValidityLimits {
        late_mean_ms: 1.0,
        late_p99_ms: 20.0,
        late_max_ms: 100.0,
        ..ValidityLimits::default()
    };
    let mut probe = Probe::start(limits)?;
    let steps = link.rates_kbps().len() + link.round_trips_ms().len();
    let bar = printer.progress(steps as u64, "measuring the link");
    let mut probed = LinkReport {
        rates: Vec::new(),
        round_trips: Vec::new(),
        exceeded_limits: Vec::new(),
    };
    for &kbps in link.rates_kbps() {
        let packet = Duration::from_micros(1_500 * 8 * 1_000 / kbps);
        let time = SHORTEST.max(packet * PACKETS as u32);
        probed.rates.push(probe.rate(kbps * 1_000, time)?);
        bar.inc(1);
    }
    for &ms in link.round_trips_ms() {
        let echoes = (link.echoing().as_millis() as u64 / ms.max(1)).clamp(ECHOES.0, ECHOES.1);
        let rtt = Duration::from_millis(ms);
        probed
            .round_trips
            .push(probe.round_trip(rtt, echoes as usize)?);
        bar.inc(1);
    }
    bar.finish_and_clear();
    probed.check_limits();
    if json {
        printer.json(&probed)?;
    } else {
        probed.print(printer)?;
    }
    Ok(Outcome::done_if(probed.exceeded_limits.is_empty()))
}

impl LinkReport {
    fn check_limits(&mut self) {
        for rate in &self.rates {
            let kbps = rate.configured_bps / 1_000;
            if rate.error.abs() > MAX_RATE_ERROR {
                let (error, bar) = (rate.error * 100.0, MAX_RATE_ERROR * 100.0);
                let past = format!("{kbps} kbps: error {error:+.2} %, limit {bar} %");
                self.exceeded_limits.push(past);
            }
            if let Some(fault) = rate.faults.first() {
                self.exceeded_limits.push(format!("{kbps} kbps: {fault}"));
            }
        }
        for trip in &self.round_trips {
            let configured_ms = trip.configured_ms;
            if trip.error_ms.abs() > MAX_RTT_ERROR_MS {
                let error = trip.error_ms;
                let past = format!(
                    "{configured_ms} ms: error of the median {error:+.2} ms, limit {MAX_RTT_ERROR_MS} ms"
                );
                self.exceeded_limits.push(past);
            }
            if let Some(fault) = trip.faults.first() {
                self.exceeded_limits
                    .push(format!("{configured_ms} ms: {fault}"));
            }
        }
    }

    fn print(&self, printer: &Printer) -> anyhow::Result<()> {
        let head = ["kbps set", "measured", "error", "seconds", "repeated"];
        let mut rates = Table::new(head.map(Cell::number));
        for rate in &self.rates {
            rates.row([
                Cell::number(rate.configured_bps / 1_000),
                Cell::number(format_args!("{:.2}", rate.measured_bps / 1e3)),
                Cell::number(format_args!("{:+.3} %", rate.error * 100.0)),
                Cell::number(format_args!("{:.1}", rate.seconds)),
                Cell::number(rate.repeated),
            ]);
        }
        printer.line(rates)?;
        printer.line("")?;
        let head = [
            "ms set",
            "p50",
            "p95",
            "max",
            "error of p50",
            "echoes",
            "repeated",
        ];
        let mut trips = Table::new(head.map(Cell::number));
        for trip in &self.round_trips {
            trips.row([
                Cell::number(trip.configured_ms),
                Cell::number(format_args!("{:.3}", trip.p50_ms)),
                Cell::number(format_args!("{:.3}", trip.p95_ms)),
                Cell::number(format_args!("{:.3}", trip.max_ms)),
                Cell::number(format_args!("{:+.3} ms", trip.error_ms)),
                Cell::number(trip.echoes),
                Cell::number(trip.repeated),
            ]);
        }
        printer.line(trips)?;
        for past in &self.exceeded_limits {
            printer.line(format_args!("{BAD}above the limit{BAD:#}: {past}"))?;
        }
        if self.exceeded_limits.is_empty() {
            printer.line(format_args!("{GOOD}within all limits{GOOD:#}"))?;
        }
        Ok(())
    }
}
