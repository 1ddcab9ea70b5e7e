//! The columns of the table `results`: name, type, and value of a load.
//!
//! The first nine are those of Lulic 2013, with the same names, order and types. Lulic stored dummynet's settings, and so do we: `bw`
//! is the rate of the pipe to the client, and `delay` the delay of one pass through a pipe.

use spdy_frame::compress::Compression;
use spdy_netem::loss::{LossModel, Probability};
use spdy_netem::rate::Bitrate;
use spdy_sim::load::{HostLayout, Load};
use spdy_sim::model::MODEL_VERSION;
use spdy_sim::network::dns::NameLookups;

use crate::experiment::cell::Cell;
use crate::experiment::clock::{Clock, RealRun};
use crate::experiment::conditions::Conditions;
use crate::store::value::Value;

/// One column.
#[derive(Clone, Copy)]
pub struct Column {
    /// Its name in SQL, CSV and JSON.
    pub name: &'static str,
    /// Its declared type.
    pub declared: &'static str,
    /// Its value, as SQL, in stores that were created before the column existed.
    pub(crate) default_sql: Option<&'static str>,
    /// Its value for a load.
    pub(crate) of: fn(&Source<'_>) -> Value,
}

/// A load with its context.
pub(crate) struct Source<'a> {
    pub(crate) plan_hash: &'a str,
    pub(crate) program: &'a str,
    pub(crate) page_fingerprint: &'a str,
    pub(crate) cell: &'a Cell<'a>,
    pub(crate) conditions: &'a Conditions,
    /// From 1.
    pub(crate) run: u32,
    pub(crate) load: &'a Load,
    /// Its measurements in real time.
    pub(crate) real: Option<&'a RealRun>,
}

const fn column(
    name: &'static str,
    declared: &'static str,
    of: fn(&Source<'_>) -> Value,
) -> Column {
    Column {
        name,
        declared,
        default_sql: None,
        of,
    }
}

/// A column that was added later; for loads stored before it, the value is `where_absent`.
const fn added_column(
    name: &'static str,
    declared: &'static str,
    where_absent: &'static str,
    of: fn(&Source<'_>) -> Value,
) -> Column {
    Column {
        name,
        declared,
        default_sql: Some(where_absent),
        of,
    }
}

/// Number of columns that Lulic's table also has.
pub const LULIC: usize = 9;

/// All columns, in their order.
pub const COLUMNS: [Column; 84] = [
    column("id", "INTEGER PRIMARY KEY", |it| {
        let before = (it.cell.number() as u64 - 1) * u64::from(it.cell.plan().runs());
        (before + u64::from(it.run)).into()
    }),
    column("bw", "TEXT", |it| {
        rate(it.conditions.network.profile.path.down.mean_bps())
    }),
    column("delay", "TEXT", |it| {
        Value::text(format_args!(
            "{}ms",
            it.conditions.delay().as_nanos() as f64 / 1e6
        ))
    }),
    column("method", "TEXT", |it| Value::text(it.cell.protocol())),
    column("site", "TEXT", |it| Value::text(it.cell.page())),
    column("onContentLoad", "INT", |it| {
        whole(it.load.dom_content_loaded_ms)
    }),
    column("onLoad", "INT", |it| whole(it.load.load_ms)),
    column("tow", "FLOAT", |it| {
        Value::Real(it.load.time_on_wire_ms / 1e3)
    }),
    column("run", "INT", |it| it.run.into()),
    // Ours: the identity of the load,
    column("cell", "TEXT", |it| Value::text(it.cell.key())),
    column("plan", "TEXT", |it| Value::text(it.plan_hash)),
    column("program", "TEXT", |it| Value::text(it.program)),
    column("page", "TEXT", |it| Value::text(it.page_fingerprint)),
    column("seed", "INT", |it| it.load.seed.into()),
    added_column("model", "INT", "0", |_| MODEL_VERSION.into()),
    // the network,
    column("network", "TEXT", |it| Value::text(&it.load.network)),
    column("down_bps", "INT", |it| {
        it.conditions.network.profile.path.down.mean_bps().into()
    }),
    column("up_bps", "INT", |it| {
        it.conditions.network.profile.path.up.mean_bps().into()
    }),
    column("rtt_ms", "REAL", |it| {
        Value::Real(it.conditions.network.profile.path.rtt.as_nanos() as f64 / 1e6)
    }),
    column("loss_down", "REAL", |it| {
        loss(it.conditions.network.profile.path.loss_down)
    }),
    column("loss_up", "REAL", |it| {
        loss(it.conditions.network.profile.path.loss_up)
    }),
    column("passes", "INT", |it| {
        it.conditions.network.profile.path.topology.passes().into()
    }),
    column("queue", "TEXT", |it| {
        Value::text(it.conditions.network.profile.path.queue)
    }),
    // the options,
    column("tcp", "TEXT", |it| match it.conditions.clock {
        Clock::Virtual => Value::text(it.conditions.tcp()),
        Clock::Real => Value::Null,
    }),
    column("initial_window", "INT", |it| {
        let window = it.conditions.initial_window();
        window.map_or(Value::Null, Value::from)
    }),
    column("tls", "TEXT", |it| match it.cell.protocol().is_secure() {
        true => Value::text(it.conditions.options.tls),
        false => Value::Null,
    }),
    column("tls_resumption", "INT", |it| {
        it.conditions.options.tls_resumption.into()
    }),
    column("dns", "TEXT", |it| {
        match it.conditions.options.name_lookups {
            NameLookups::RoundTrip => Value::text("round-trip"),
            NameLookups::HostsFile => Value::text("hosts-file"),
        }
    }),
    column("connections_per_host", "INT", |it| {
        (it.conditions.options.http1_connections as u64).into()
    }),
    column("streams", "INT", |it| {
        it.conditions.options.max_concurrent_streams.into()
    }),
    column("compression", "TEXT", |it| {
        match it.conditions.options.spdy_compression {
            Compression::CrimeSafe => Value::text("masked"),
            Compression::Zlib(level) => Value::text(level),
        }
    }),
    column("ip_pooling", "INT", |it| {
        it.conditions.options.ip_pooling.into()
    }),
    column("push", "INT", |it| {
        it.conditions.options.push.number().into()
    }),
    column("fold", "INT", |it| {
        (it.conditions.hosts == HostLayout::Folded).into()
    }),
    added_column("deploy", "TEXT", "'all'", |it| {
        Value::text(it.conditions.options.deployment)
    }),
    added_column("priorities", "INT", "1", |it| {
        it.conditions.options.priorities.into()
    }),
    added_column("hints", "INT", "0", |it| it.conditions.options.hints.into()),
    added_column("shard", "INT", "1", |it| {
        it.conditions.hosts.shards().into()
    }),
    added_column("cache", "TEXT", "'cold'", |it| {
        Value::text(it.conditions.options.cache)
    }),
    added_column("frame", "INT", "16384", |it| {
        it.conditions.options.data_frame_bytes.into()
    }),
    added_column("accelerator", "TEXT", "'off'", |it| {
        Value::text(it.conditions.options.accelerator)
    }),
    added_column("backhaul_ms", "REAL", "CAST(0 AS DOUBLE PRECISION)", |it| {
        Value::Real(it.conditions.options.backhaul.as_nanos() as f64 / 1e6)
    }),
    added_column("prefetch", "INT", "1", |it| {
        it.conditions.options.prefetch.into()
    }),
    added_column("scheduler", "TEXT", "'none'", |it| {
        Value::text(it.conditions.options.scheduler)
    }),
    added_column("ml_kem", "INT", "0", |it| {
        it.conditions.options.ml_kem.into()
    }),
    added_column("think", "REAL", "CAST(0 AS DOUBLE PRECISION)", |it| {
        Value::Real(it.conditions.options.think_time_scale)
    }),
    added_column("visit_ms", "REAL", NO_FIGURE, |it| {
        let pause = it.conditions.visit;
        figure(pause.map(|pause| pause.as_nanos() as f64 / 1e6))
    }),
    // and the results of the load.
    column("dom_content_loaded_ms", "REAL", |it| {
        Value::Real(it.load.dom_content_loaded_ms)
    }),
    column("load_ms", "REAL", |it| Value::Real(it.load.load_ms)),
    added_column("fcp_ms", "REAL", NO_FIGURE, |it| figure(it.load.fcp_ms)),
    added_column("lcp_ms", "REAL", NO_FIGURE, |it| figure(it.load.lcp_ms)),
    column("time_on_wire_ms", "REAL", |it| {
        Value::Real(it.load.time_on_wire_ms)
    }),
    column("connections", "INT", |it| it.load.connections.into()),
    column("requests", "INT", |it| it.load.requests.into()),
    column("packets_up", "INT", |it| it.load.packets_up.into()),
    column("packets_down", "INT", |it| it.load.packets_down.into()),
    column("bytes_up", "INT", |it| it.load.bytes_up.into()),
    column("bytes_down", "INT", |it| it.load.bytes_down.into()),
    column("request_header_bytes", "INT", |it| {
        it.load.request_header_bytes.into()
    }),
    column("request_header_bytes_wire", "INT", |it| {
        it.load.request_header_bytes_wire.into()
    }),
    column("response_header_bytes", "INT", |it| {
        it.load.response_header_bytes.into()
    }),
    column("response_header_bytes_wire", "INT", |it| {
        it.load.response_header_bytes_wire.into()
    }),
    column("failures", "TEXT", |it| lines(&it.load.failures)),
    // In real time: validity, and measurements of the link.
    added_column("clock", "TEXT", "'virtual'", |it| {
        Value::text(it.conditions.clock)
    }),
    added_column("congestion", "TEXT", NO_TEXT, |it| {
        real(it, |run| Value::text(&run.congestion))
    }),
    added_column("attempts", "INT", NO_COUNT, |it| {
        real(it, |run| run.attempts.into())
    }),
    added_column("invalid", "TEXT", NO_TEXT, |it| {
        real(it, |run| lines(&run.invalid))
    }),
    added_column("rejected", "TEXT", NO_TEXT, |it| {
        real(it, |run| lines(&run.rejected))
    }),
    added_column("achieved_up_bps", "REAL", NO_FIGURE, |it| {
        real(it, |run| figure(run.up.bps))
    }),
    added_column("achieved_down_bps", "REAL", NO_FIGURE, |it| {
        real(it, |run| figure(run.down.bps))
    }),
    added_column("achieved_delay_up_ms", "REAL", NO_FIGURE, |it| {
        real(it, |run| Value::Real(run.up.delay_ms))
    }),
    added_column("achieved_delay_down_ms", "REAL", NO_FIGURE, |it| {
        real(it, |run| Value::Real(run.down.delay_ms))
    }),
    added_column("lost_up", "INT", NO_COUNT, |it| {
        real(it, |run| run.up.lost.into())
    }),
    added_column("lost_down", "INT", NO_COUNT, |it| {
        real(it, |run| run.down.lost.into())
    }),
    added_column("queue_drops_up", "INT", NO_COUNT, |it| {
        real(it, |run| run.up.queue_drops.into())
    }),
    added_column("queue_drops_down", "INT", NO_COUNT, |it| {
        real(it, |run| run.down.queue_drops.into())
    }),
    added_column("device_drops_up", "INT", NO_COUNT, |it| {
        real(it, |run| run.up.device_drops.into())
    }),
    added_column("device_drops_down", "INT", NO_COUNT, |it| {
        real(it, |run| run.down.device_drops.into())
    }),
    added_column("late_mean_ms", "REAL", NO_FIGURE, |it| {
        real(it, |run| Value::Real(run.late_mean_ms))
    }),
    added_column("late_p99_ms", "REAL", NO_FIGURE, |it| {
        real(it, |run| Value::Real(run.late_p99_ms))
    }),
    added_column("late_max_ms", "REAL", NO_FIGURE, |it| {
        real(it, |run| Value::Real(run.late_max_ms))
    }),
    added_column("link_waited_ms", "REAL", NO_FIGURE, |it| {
        real(it, |run| figure(run.link_waited_ms))
    }),
    added_column("hosts_waited_ms", "REAL", NO_FIGURE, |it| {
        real(it, |run| figure(run.hosts_waited_ms))
    }),
    added_column("computed_ms", "REAL", NO_FIGURE, |it| {
        real(it, |run| figure(run.computed_ms))
    }),
];

/// NULL in a query, by the type of its column, which a database requires.
const NO_TEXT: &str = "CAST(NULL AS TEXT)";
const NO_COUNT: &str = "CAST(NULL AS BIGINT)";
const NO_FIGURE: &str = "CAST(NULL AS DOUBLE PRECISION)";

/// A value of runs in real time only.
fn real(it: &Source<'_>, of: fn(&RealRun) -> Value) -> Value {
    it.real.map_or(Value::Null, of)
}

fn figure(number: Option<f64>) -> Value {
    number.map_or(Value::Null, Value::Real)
}

/// A text with one item per line; NULL if there is none.
fn lines(lines: &[String]) -> Value {
    match lines {
        [] => Value::Null,
        lines => Value::text(lines.join("\n")),
    }
}

fn whole(ms: f64) -> Value {
    Value::Integer(ms.round() as i64)
}

fn rate(bps: u64) -> Value {
    Bitrate::from_bps(bps).map_or(Value::Null, Value::text)
}

/// Long-term loss rate.
fn loss(model: LossModel) -> Value {
    let share = |probability: Probability| Value::Real(f64::from(probability.as_ppb()) / 1e9);
    match model {
        LossModel::None => Value::Real(0.0),
        LossModel::Bernoulli(loss) => share(loss),
        LossModel::Bursts { average, .. } => share(average),
        // No text of a network has this model.
        LossModel::GilbertElliott(_) => Value::Null,
    }
}

/// The index of the column `name`.
///
/// # Panics
///
/// If it does not exist.
pub(crate) fn position(name: &str) -> usize {
    let found = COLUMNS.iter().position(|column| column.name == name);
    found.unwrap_or_else(|| panic!("no column {name}"))
}
