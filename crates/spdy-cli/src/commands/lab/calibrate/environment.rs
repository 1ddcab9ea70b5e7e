//! The machine that a calibration ran on: kernel, cores, load.

use std::fmt;
use std::fs;
use std::num::NonZeroUsize;

use serde::Serialize;

use super::args::Args;

/// Processes that were ready to run, on average of the last minute.
pub(crate) fn load_average() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_owned()
}

/// The machine that a calibration ran on, and its options.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Environment {
    /// The release of the Linux kernel.
    kernel: String,
    /// Number of cores; 0 if it is unknown.
    cores: usize,
    /// Links that were used at the same time.
    lanes: usize,
    /// The seed of the first run.
    seed: u64,
    /// The system's load average over the last minute, before the runs.
    load_before: Option<f64>,
    /// The system's load average over the last minute, after the runs.
    load_after: Option<f64>,
}

impl Environment {
    /// Of a calibration that ends now.
    pub(crate) fn since(load_before: Option<f64>, args: &Args) -> Self {
        Self {
            kernel: kernel(),
            cores: std::thread::available_parallelism().map_or(0, NonZeroUsize::get),
            lanes: args.lanes.get(),
            seed: args.seed,
            load_before,
            load_after: load_average(),
        }
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let load = |load: &Option<f64>| load.map_or("?".to_owned(), |load| format!("{load:.1}"));
        let (kernel, cores, lanes) = (&self.kernel, self.cores, self.lanes);
        let (before, after) = (load(&self.load_before), load(&self.load_after));
        write!(
            f,
            "Linux {kernel}, {cores} cores, {lanes} lanes, system load {before} to {after}"
        )
    }
}
