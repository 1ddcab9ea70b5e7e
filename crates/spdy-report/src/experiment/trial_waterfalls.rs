//! Loads the median runs of a trial again, in virtual time. A store has no waterfalls, and needs none: the same conditions and seed
//! give the same result to the nanosecond.
//!
//! Each load is compared with the store; a waterfall of a different load is not shown.

use std::collections::BTreeMap;

use spdy_lab::experiment::runner::Runner;
use spdy_lab::store::row::Row;
use spdy_sim::load::Load;
use spdy_sim::race::typical_run;

use super::data::{ReportData, Trial};

/// The waterfalls of one trial of a page.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialWaterfalls {
    /// The page.
    pub page: String,
    /// The trial's levels, as a caption.
    pub over: String,
    /// The median run of each protocol, with its waterfall; of an even number the faster of the two in the middle.
    pub loads: Vec<Load>,
    /// Notes for the reader: the chosen loads, and why others are missing.
    pub notes: Vec<String>,
}

impl TrialWaterfalls {
    /// No waterfalls, for this reason.
    #[must_use]
    pub fn none(reason: &str) -> Vec<Self> {
        vec![Self {
            page: "not drawn".to_owned(),
            over: String::new(),
            loads: Vec::new(),
            notes: vec![reason.to_owned()],
        }]
    }
}

/// Loads the median runs of one trial of each page again: the trial with the cell `chosen` (a key), else the one in the middle of all
/// factors. Never call it inside a runtime of tokio: see [`Executor`](spdy_sim::runtime::Executor).
#[must_use]
pub fn again(runner: &Runner, rows: &[Row], chosen: Option<&str>) -> Vec<TrialWaterfalls> {
    let data = ReportData::of(rows);
    let cells: Vec<&[Row]> = rows
        .chunk_by(|a, b| a.value("cell") == b.value("cell"))
        .collect();
    let key = |rows: &&[Row]| {
        rows[0]
            .value("cell")
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    let by_key: BTreeMap<String, &[Row]> = cells.iter().map(|rows| (key(rows), *rows)).collect();
    let trial = |page: &String| match chosen {
        Some(key) => data
            .trials
            .iter()
            .find(|trial| trial.page == *page && trial.cells.iter().any(|cell| cell.key == key)),
        None => middle_trial(&data, page),
    };
    let trials = data.pages.iter().filter_map(trial);
    trials
        .map(|trial| of_trial(runner, &data, trial, &by_key))
        .collect()
}

/// The trial of `page` at the middle level of each factor; if there is none, the trial in the middle of those that exist.
fn middle_trial<'a>(data: &'a ReportData, page: &str) -> Option<&'a Trial> {
    let trials: Vec<&Trial> = data
        .trials
        .iter()
        .filter(|trial| trial.page == page)
        .collect();
    let is_there = |trial: &&&Trial| {
        data.factors.iter().all(|factor| {
            let (level, _) = &factor.levels[factor.levels.len() / 2];
            trial.level(&factor.name) == Some(level)
        })
    };
    trials
        .iter()
        .find(is_there)
        .or(trials.get(trials.len() / 2))
        .copied()
}

fn of_trial(
    runner: &Runner,
    data: &ReportData,
    trial: &Trial,
    rows: &BTreeMap<String, &[Row]>,
) -> TrialWaterfalls {
    let factors: Vec<_> = data.factors.iter().collect();
    let mut again = TrialWaterfalls {
        page: trial.page.clone(),
        over: trial.caption(&factors),
        loads: Vec::new(),
        notes: Vec::new(),
    };
    for cell in &trial.cells {
        match typical(runner, &cell.key, rows[&cell.key]) {
            Ok(load) => again.loads.push(load),
            Err(reason) => again.notes.push(format!("{}: {reason}", cell.protocol)),
        }
    }
    if !again.loads.is_empty() {
        let mut seeds: Vec<String> = again
            .loads
            .iter()
            .map(|load| format!("{} {}", load.protocol, load.seed))
            .collect();
        let first = again.loads[0].seed;
        if again.loads.iter().all(|load| load.seed == first) {
            seeds = vec![first.to_string()];
        }
        again.notes.push(format!(
            "The median run of each protocol, loaded again; its times are those of the store, to the nanosecond. Seed: {}.",
            seeds.join(", ")
        ));
    }
    again
}

/// Loads the median run of `rows` again.
fn typical(runner: &Runner, key: &str, rows: &[Row]) -> Result<Load, String> {
    let cell = runner
        .plan()
        .cell(key)
        .ok_or("the plan does not have this cell")?;
    if rows.iter().any(Row::is_real) {
        return Err("a load in real time cannot be repeated from its seed".to_owned());
    }
    let fingerprint = runner.fingerprint(&cell).as_str();
    if rows[0].value("page").as_str() != Some(fingerprint) {
        return Err(format!(
            "the page {} differs from the one that was loaded",
            cell.page()
        ));
    }
    let time = |row: &Row| row.value("load_ms").as_f64().unwrap_or(f64::INFINITY);
    let mut by_time: Vec<&Row> = rows.iter().collect();
    by_time.sort_by(|a, b| time(a).total_cmp(&time(b)));
    let row = by_time[typical_run(rows.len())];
    let run = row.value("run").as_f64().map_or(0, |run| run as u32);
    let load = runner
        .load_run(&cell, run)
        .map_err(|error| error.to_string())?;
    let stored = ["load_ms", "dom_content_loaded_ms", "time_on_wire_ms"]
        .map(|name| row.value(name).as_f64());
    let now = [
        load.load_ms,
        load.dom_content_loaded_ms,
        load.time_on_wire_ms,
    ];
    if stored != now.map(Some) {
        return Err(format!(
            "run {run} takes {} ms now, but {} ms in the store: the program or the store has changed",
            load.load_ms,
            time(row)
        ));
    }
    Ok(load)
}
