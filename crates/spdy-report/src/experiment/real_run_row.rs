//! One run in real time, as stored.

use spdy_lab::store::row::Row;

/// One run, as stored.
pub(super) struct RealRunRow {
    pub(super) key: String,
    pub(super) protocol: String,
    pub(super) run: u64,
    pub(super) load_ms: f64,
    pub(super) attempts: u64,
    /// Bits a second to the client: configured, and achieved.
    pub(super) configured_bps: f64,
    pub(super) achieved_bps: Option<f64>,
    /// Propagation to the client.
    pub(super) delay_ms: Option<f64>,
    /// Packets lost by random loss, in both directions.
    pub(super) lost: f64,
    /// Mean, 99th percentile and maximum.
    pub(super) late_ms: [Option<f64>; 3],
    /// Of the link's thread, and of the programs at its ends.
    pub(super) cpu_wait_ms: Option<f64>,
    /// Why it is invalid.
    pub(super) invalid: Option<String>,
    /// Why earlier attempts were invalid.
    pub(super) rejected: Option<String>,
}

impl RealRunRow {
    /// The run of a row; `None` if the run is in virtual time.
    pub(super) fn of(row: &Row) -> Option<Self> {
        let number = |name: &str| row.value(name).as_f64();
        let text = |name: &str| row.value(name).as_str().map(str::to_owned);
        row.is_real().then(|| Self {
            key: text("cell").unwrap_or_default(),
            protocol: text("method").unwrap_or_default(),
            run: number("run").map_or(0, |run| run as u64),
            load_ms: number("load_ms").unwrap_or_default(),
            attempts: number("attempts").map_or(0, |attempts| attempts as u64),
            configured_bps: number("down_bps").unwrap_or_default(),
            achieved_bps: number("achieved_down_bps"),
            delay_ms: number("achieved_delay_down_ms"),
            lost: number("lost_up").unwrap_or_default() + number("lost_down").unwrap_or_default(),
            late_ms: ["late_mean_ms", "late_p99_ms", "late_max_ms"].map(number),
            cpu_wait_ms: number("link_waited_ms")
                .zip(number("hosts_waited_ms"))
                .map(|(link, hosts)| link + hosts),
            invalid: text("invalid"),
            rejected: text("rejected"),
        })
    }
}
