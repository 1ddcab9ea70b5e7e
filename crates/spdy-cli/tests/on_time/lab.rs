//! A folder with an experiment, `spdy lab` in it, and the loads in its stores.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use rusqlite::Connection;
use spdy_testkit::wait::output_within;

use crate::json_output::check_json_output;

use super::MAX_CALIBRATION_TIME;

/// A folder with an experiment, and `spdy lab` in it.
pub(crate) struct Lab(tempfile::TempDir);

impl Lab {
    pub(crate) fn new(experiment: &str) -> Self {
        let folder = tempfile::tempdir().expect("create a folder");
        std::fs::write(folder.path().join("small.toml"), experiment).expect("write the file");
        Self(folder)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `spdy lab` with these arguments. Its temporary files are in the folder too.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spdy"));
        command
            .arg("lab")
            .args(arguments)
            .current_dir(self.0.path())
            .env("TMPDIR", self.0.path())
            .env_remove("SPDY_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        let child = command.spawn().expect("start `spdy`");
        let output = output_within(MAX_CALIBRATION_TIME, child);
        check_json_output(&command, &output);
        output
    }

    /// Runs a command that must exit with `code`.
    pub(crate) fn run_expecting(&self, code: i32, arguments: &[&str]) -> Output {
        let output = self.run(arguments);
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
        output
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The columns of each load in a store, by its cell key and run.
pub(crate) fn rows(
    lab: &Lab,
    store: &str,
) -> BTreeMap<(String, i64), BTreeMap<String, rusqlite::types::Value>> {
    let store = Connection::open(lab.path(store)).expect("a store");
    let mut query = store.prepare("SELECT * FROM results").expect("a table");
    let names: Vec<String> = query.column_names().map(str::to_owned).collect();
    let mut selected = query.query([]).expect("rows");
    let mut rows = BTreeMap::new();
    while let Some(row) = selected.next().expect("a row") {
        let values = names
            .iter()
            .map(|name| (name.clone(), row.get(&name[..]).expect("a value")));
        let values: BTreeMap<_, _> = values.collect();
        let key = (
            row.get("cell").expect("a key"),
            row.get("run").expect("a number"),
        );
        rows.insert(key, values);
    }
    rows
}

pub(crate) fn number(value: &rusqlite::types::Value) -> f64 {
    match value {
        rusqlite::types::Value::Integer(number) => *number as f64,
        rusqlite::types::Value::Real(number) => *number,
        other => panic!("expected a number, found {other:?}"),
    }
}
