//! Imports Lulic's results as a store: the table `results` there has only nine of our columns.
//!
//! `onContentLoad` and `onLoad` are milliseconds, `tow` is seconds: so the medians have a resolution of 1 ms and of 10 ms. Values
//! that Lulic did not record stay empty. The labels are not converted to a round trip and a rate here.

use std::path::Path;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use sha2::{Digest, Sha256};

use crate::experiment::cell;
use crate::experiment::plan::hex;
use crate::store::column::{COLUMNS, LULIC, position};
use crate::store::error::StoreError;
use crate::store::location::Location;
use crate::store::manifest::Manifest;
use crate::store::open::Store;
use crate::store::row::Row;
use crate::store::schema;
use crate::store::sqlite::Sqlite;
use crate::store::value::Value;

/// Maximum rows of a table to import: they are in memory until the last is read.
pub const MAX_ROWS: usize = 100_000;

/// Creates a store at `into` from the table `results` in the SQLite file `from`. Returns the number of rows.
///
/// A cell consists of rows with the same method, site, bandwidth and delay. Its runs are numbered from 1, in the order of Lulic's
/// numbers, and of the ids if those are equal.
///
/// # Errors
///
/// A store instead of Lulic's database, a missing table, missing columns, values that are not numbers, more than [`MAX_ROWS`], or an
/// existing store.
pub fn import(from: &Path, into: &Location) -> Result<usize, StoreError> {
    if !from.exists() {
        return Err(StoreError::Missing {
            store: Location::File(from.to_owned()),
        });
    }
    // Checked before anything is read; `create` checks again.
    if into.file().is_some_and(Path::exists) {
        return Err(StoreError::Exists {
            store: into.clone(),
        });
    }
    let fault = |cause: rusqlite::Error| StoreError::Database {
        store: Location::File(from.to_owned()),
        cause: cause.into(),
    };
    let source = Sqlite::open(from, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(fault)?;
    // A store has the nine columns too, but more columns than those identify its cells.
    if source.head("application_id").map_err(fault)? == schema::APPLICATION {
        return Err(StoreError::OwnStore {
            path: from.to_owned(),
        });
    }
    if let Some(what) = source.fault_of(&["results"]).map_err(fault)? {
        return Err(StoreError::Import {
            path: from.to_owned(),
            what,
        });
    }
    let measured = read(&source.connection, from)?;
    let hash = hash(&measured);
    let rows = rows(&measured, &hash);
    let cells = rows.chunk_by(|a, b| a.value("cell") == b.value("cell"));
    let (cells, runs) = cells.fold((0_u64, 0), |(cells, runs), rows| {
        (cells + 1, rows.len().max(runs))
    });
    let name = from.file_stem().unwrap_or_default().to_string_lossy();
    let contents = Manifest {
        name: name.into_owned(),
        hash,
        program: String::new(),
        model: None,
        runs: runs as u64,
        cells,
        plan: String::new(),
        pages: Vec::new(),
    };
    Store::create(into, &contents, &rows)?.finish()?;
    Ok(rows.len())
}

/// One row of Lulic's.
struct LulicRow {
    bw: String,
    delay: String,
    method: String,
    site: String,
    on_content_load: Value,
    on_load: Value,
    tow: Value,
    run: i64,
}

fn read(source: &Connection, path: &Path) -> Result<Vec<LulicRow>, StoreError> {
    let wrong = |what: String| StoreError::Import {
        path: path.to_owned(),
        what,
    };
    let fault = |cause: rusqlite::Error| StoreError::Database {
        store: Location::File(path.to_owned()),
        cause: cause.into(),
    };
    let names = COLUMNS[..LULIC].iter().map(|column| column.name);
    let names: Vec<_> = names.collect();
    let query = format!(
        "SELECT {} FROM results ORDER BY id LIMIT ?",
        names.join(", ")
    );
    let mut query = source.prepare(&query).map_err(|cause| {
        wrong(format!(
            "expected the columns {}: {cause}",
            names.join(", ")
        ))
    })?;
    let mut found = query
        .query([Value::from(MAX_ROWS as u64 + 1)])
        .map_err(fault)?;
    let mut all = Vec::new();
    while let Some(row) = found.next().map_err(fault)? {
        if all.len() == MAX_ROWS {
            return Err(wrong(format!("more than {MAX_ROWS} rows")));
        }
        let value = |at: usize| Value::of_sql(row.get_ref(at).unwrap_or(ValueRef::Null));
        let number = |at: usize| match value(at) {
            Value::Text(text) => Err(wrong(format!(
                "row {}, {}: {text:?}, expected a number",
                all.len() + 1,
                names[at]
            ))),
            number => Ok(number),
        };
        let (on_content_load, on_load, tow) = (number(5)?, number(6)?, number(7)?);
        let run = match number(8)? {
            Value::Integer(run) => run,
            _ => 0,
        };
        all.push(LulicRow {
            bw: value(1).to_string(),
            delay: value(2).to_string(),
            method: value(3).to_string(),
            site: value(4).to_string(),
            on_content_load,
            on_load,
            tow,
            run,
        });
    }
    if all.is_empty() {
        return Err(wrong("no rows, expected at least one".to_owned()));
    }
    Ok(all)
}

/// SHA-256 of the read rows.
fn hash(measured: &[LulicRow]) -> String {
    let mut digest = Sha256::new();
    for it in measured {
        let line = format!(
            "{:?},{:?},{:?},{:?},{},{},{},{}\n",
            it.bw, it.delay, it.method, it.site, it.on_content_load, it.on_load, it.tow, it.run
        );
        digest.update(line);
    }
    hex(&digest.finalize())
}

/// Our rows by cell; cells are in the order of their first row.
fn rows(measured: &[LulicRow], hash: &str) -> Vec<Row> {
    let mut cells: Vec<(String, Vec<&LulicRow>)> = Vec::new();
    // Lookups only, no iteration.
    let mut place = std::collections::HashMap::new();
    for it in measured {
        let mut key = String::new();
        for (name, level) in [
            ("page", &it.site),
            ("protocol", &it.method),
            ("bw", &it.bw),
            ("delay", &it.delay),
        ] {
            cell::push(&mut key, name, level);
        }
        let at = *place.entry(key.clone()).or_insert(cells.len());
        if at == cells.len() {
            cells.push((key, Vec::new()));
        }
        cells[at].1.push(it);
    }
    let mut rows = Vec::with_capacity(measured.len());
    for (key, mut runs) in cells {
        runs.sort_by_key(|it| it.run); // stable: equal numbers stay in the order of their ids
        for (run, it) in (1_u64..).zip(runs) {
            let mut values = vec![Value::Null; COLUMNS.len()];
            let mut set = |name: &str, value: Value| values[position(name)] = value;
            set("id", (rows.len() as u64 + 1).into());
            set("bw", Value::text(&it.bw));
            set("delay", Value::text(&it.delay));
            set("method", Value::text(&it.method));
            set("site", Value::text(&it.site));
            set("onContentLoad", it.on_content_load.clone());
            set("onLoad", it.on_load.clone());
            set("tow", it.tow.clone());
            set("run", run.into());
            set("cell", Value::text(&key));
            set("plan", Value::text(hash));
            let real = |value: &Value, factor: f64| {
                value
                    .as_f64()
                    .map_or(Value::Null, |it| Value::Real(it * factor))
            };
            set("dom_content_loaded_ms", real(&it.on_content_load, 1.0));
            set("load_ms", real(&it.on_load, 1.0));
            set("time_on_wire_ms", real(&it.tow, 1e3));
            rows.push(Row { values });
        }
    }
    rows
}
