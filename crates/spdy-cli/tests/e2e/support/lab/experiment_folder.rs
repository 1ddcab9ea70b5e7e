//! A folder with an experiment, and `spdy lab` in it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use rusqlite::Connection;

use crate::support::lab::postgres::PASSWORD;
use crate::support::program::{run_expecting, spdy};

/// 2 x 3 x 2 = 12 cells of 2 loads; two thirds of them have randomness.
pub(crate) const SMALL: &str = r#"
name = "small"
seed = 7
runs = 2
pages = ["portal"]
protocols = ["http", "spdy"]
[factors]
network = "cable"
loss = ["0", "1%", "2%"]
connections = [2, 6]
"#;

/// A folder with an experiment.
pub(crate) struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    pub(crate) fn new(experiment: &str) -> Self {
        let folder = tempfile::tempdir().expect("create a folder");
        fs::write(folder.path().join("small.toml"), experiment).expect("write the file");
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `spdy lab` with `arguments`, in the folder.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = spdy(&["lab"]);
        command.args(arguments).current_dir(self.folder.path());
        command
    }

    /// Like [`command`](Self::command), with the password of the test databases.
    pub(crate) fn command_with_password(&self, arguments: &[&str]) -> Command {
        let mut command = self.command(arguments);
        command.env("PGPASSWORD", PASSWORD);
        command
    }

    /// The stdout of a command with the password; it must succeed.
    pub(crate) fn stdout(&self, arguments: &[&str]) -> String {
        text(&run_expecting(0, &mut self.command_with_password(arguments)).stdout)
    }

    pub(crate) fn run(&self, store: &str, options: &[&str]) -> Output {
        let run = ["run", "small.toml", "--store", store];
        run_expecting(0, self.command(&run).args(options))
    }

    pub(crate) fn bytes(&self, store: &str) -> Vec<u8> {
        fs::read(self.path(store)).expect("a store")
    }

    pub(crate) fn csv(&self, store: &str) -> String {
        let export = ["export", store, "--csv", "-"];
        text(&run_expecting(0, &mut self.command(&export)).stdout)
    }

    pub(crate) fn has_plan(&self, store: &str) -> bool {
        let connection = Connection::open(self.path(store)).expect("the folder can be read");
        let plan = connection.query_row("SELECT name FROM plan", [], |row| row.get::<_, String>(0));
        plan.is_ok()
    }

    pub(crate) fn cells_in(&self, store: &str) -> usize {
        let Ok(connection) = Connection::open(self.path(store)) else {
            return 0;
        };
        let count = connection.query_row("SELECT count(DISTINCT cell) FROM results", [], |row| {
            row.get(0)
        });
        count.map_or(0, |count: i64| count as usize)
    }
}

/// `bytes` as text; invalid UTF-8 is replaced.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
