//! Experiments on several machines: parts of the cells, merged stores, and engines that start cells.

use std::fs;
use std::io::{BufRead, BufReader};
#[cfg(unix)]
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::SystemTime;

use rusqlite::Connection;
use serde_json::Value;
use spdy_testkit::wait::ended;

use crate::lab::runs::{next_random, without_counters};
#[cfg(unix)]
use crate::support::lab::dask::{self, Dask};
use crate::support::lab::experiment_folder::{Lab, SMALL, text};
use crate::support::lab::postgres::{PASSWORD, PostgresServer};
use crate::support::peers::peers_enabled;
use crate::support::program::run_expecting;

#[test]
fn single_cells_print_as_table_or_json() {
    let lab = Lab::new(SMALL);
    let table = lab.stdout(&["cell", "small.toml", "2", "1"]);
    assert!(
        table.starts_with("small: 2 of 12 cells, 2 loads each, by spdy"),
        "{table}"
    );
    let json = lab.stdout(&["cell", "small.toml", "2", "1", "--json"]);
    let ids: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["id"].clone())
        .collect();
    assert_eq!(ids, [3, 4, 1, 2]);
}

#[test]
fn merged_parts_make_one_store_in_any_order() {
    let lab = Lab::new(SMALL);
    let whole = lab.run("single.db", &["--json"]);
    assert_eq!(text(&whole.stdout).lines().count(), 12);
    let part = |part: &str, store: &str| {
        let words = [
            "cell",
            "small.toml",
            "--part",
            part,
            "--store",
            store,
            "--json",
        ];
        let stdout = text(&run_expecting(0, &mut lab.command(&words)).stdout);
        let report: Value = serde_json::from_str(&stdout).expect("JSON");
        assert_eq!(report["store"], *store);
        (
            report["added"].clone(),
            report["before"].clone(),
            report["failed"].clone(),
        )
    };
    let counts = |added: u64, earlier: u64| (added.into(), earlier.into(), 0.into());
    // One file for each task: 12 cells in five parts, one of which is loaded by two tasks.
    for (name, of, cells) in [
        ("1", "1/5", 3),
        ("2", "2/5", 3),
        ("3", "3/5", 2),
        ("4", "4/5", 2),
        ("5", "5/5", 2),
    ] {
        assert_eq!(
            part(of, &format!("part-{name}.db")),
            counts(cells, 0),
            "{of}"
        );
    }
    assert_eq!(part("1/5", "part-6.db"), counts(3, 0));
    // A task that is started again finds its cells already loaded.
    assert_eq!(part("1/5", "part-6.db"), counts(0, 3));
    let stdout = lab.stdout(&[
        "merge",
        "part-1.db",
        "part-6.db",
        "part-5.db",
        "part-3.db",
        "part-4.db",
        "--store",
        "all.db",
    ]);
    let ends: Vec<_> = stdout
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(_, end)| end)
        .collect();
    assert_eq!(
        ends[..2],
        [
            "3 cells added, 0 already present",
            "0 cells added, 3 already present"
        ]
    );
    assert_eq!(
        lab.stdout(&["cells", "small.toml", "--store", "all.db"])
            .lines()
            .count(),
        3
    );
    lab.stdout(&["merge", "part-2.db", "--store", "all.db"]);
    assert_eq!(lab.csv("all.db"), lab.csv("single.db"));
    assert!(
        without_counters(lab.bytes("all.db")) == without_counters(lab.bytes("single.db")),
        "the files differ"
    );
    // A store cannot be merged into itself, nor a part of another plan into it.
    run_expecting(
        2,
        &mut lab.command(&["merge", "all.db", "--store", "./all.db"]),
    );
    fs::write(
        lab.path("small.toml"),
        SMALL.replace("seed = 7", "seed = 8"),
    )
    .expect("write the file");
    lab.stdout(&["cell", "small.toml", "1", "--store", "other.db"]);
    let output = run_expecting(
        1,
        &mut lab.command(&["merge", "other.db", "--store", "all.db"]),
    );
    assert!(
        text(&output.stderr).contains("has results of the plan small ("),
        "{}",
        text(&output.stderr)
    );
    run_expecting(
        2,
        &mut lab.command(&["cell", "small.toml", "--part", "6/5"]),
    );
    run_expecting(
        2,
        &mut lab.command(&["cell", "small.toml", "1", "--part", "1/5"]),
    );
    run_expecting(2, &mut lab.command(&["cell", "small.toml"]));
}

#[test]
fn differing_results_of_a_cell_are_reported_and_the_first_stays() {
    let lab = Lab::new(SMALL);
    for store in ["a.db", "b.db"] {
        lab.stdout(&["cell", "small.toml", "1", "2", "--store", store]);
    }
    let csv_before = lab.csv("a.db");
    let connection = Connection::open(lab.path("b.db")).expect("a store");
    connection
        .execute("UPDATE results SET load_ms = load_ms + 1 WHERE id = 4", [])
        .expect("rows");
    drop(connection);
    let stderr =
        text(&run_expecting(1, &mut lab.command(&["merge", "b.db", "--store", "a.db"])).stderr);
    for word in [
        "a.db has other results of the cell page=portal,protocol=spdy",
        "load_ms is",
        "of run 2",
        "same build",
    ] {
        assert!(stderr.contains(word), "no {word:?} in {stderr}");
    }
    assert_eq!(lab.csv("a.db"), csv_before);
}

#[test]
fn a_store_is_exported_as_parquet_if_the_program_was_built_with_it() {
    let lab = Lab::new(SMALL);
    lab.stdout(&["cell", "small.toml", "1", "2", "--store", "a.db"]);
    let export = ["export", "a.db", "--parquet", "a.parquet"];
    if cfg!(feature = "parquet") {
        assert_eq!(lab.stdout(&export), "a.parquet: 4 loads\n");
        let bytes = lab.bytes("a.parquet");
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        let export = ["export", "a.db", "--parquet", "-"];
        let stdout = run_expecting(0, &mut lab.command(&export)).stdout;
        assert!(stdout == bytes, "stdout and the file differ");
    } else {
        let stderr = text(&run_expecting(2, &mut lab.command(&export)).stderr);
        assert!(stderr.contains("--features parquet"), "{stderr}");
        assert!(!lab.path("a.parquet").exists(), "an empty file was created");
    }
    for words in [
        &["export", "a.db"][..],
        &["export", "a.db", "--csv", "-", "--parquet", "-"],
    ] {
        run_expecting(2, &mut lab.command(words));
    }
}

/// The path of an engine, a script that starts tasks on a cluster.
#[cfg(unix)]
fn engine(name: &str) -> PathBuf {
    let engines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../engines");
    engines.join(name)
}

/// URLs that may contain a password, and URLs without one.
#[cfg(unix)]
const WITH_PASSWORDS: [&str; 4] = [
    "postgres://lab:hush@127.0.0.1/sweep",
    "postgresql://lab@corp:hu/sh@127.0.0.1/sweep",
    "postgres://127.0.0.1/sweep?user=lab&password=hush",
    "postgres://lab:hu\nsh@127.0.0.1/sweep",
];
#[cfg(unix)]
const WITHOUT_PASSWORDS: [&str; 3] = [
    "postgres://lab@127.0.0.1:1/sweep",
    "postgres://[::1]:1,127.0.0.1:1/sweep?connect_timeout=3",
    "postgres:///sweep?host=/nowhere&user=lab",
];

#[cfg(unix)]
#[test]
fn an_array_task_rejects_urls_with_a_password() {
    let array = |store: &str| {
        let mut task = Command::new("bash");
        task.arg(engine("slurm_sweep.sh"))
            .args(["small.toml", store]);
        for name in ["MIN", "MAX", "COUNT", "ID"] {
            task.env(format!("SLURM_ARRAY_TASK_{name}"), "1");
        }
        task.env("SPDY", "echo");
        task
    };
    for url in WITH_PASSWORDS {
        let output = run_expecting(2, &mut array(url));
        let stderr = text(&output.stderr);
        assert!(
            stderr.contains("use PGPASSWORD") && !stderr.contains("hu"),
            "{stderr}"
        );
        assert_eq!(text(&output.stdout), "", "{url}");
    }
    for store in WITHOUT_PASSWORDS.into_iter().chain(["part:of@mine.db"]) {
        let command = text(&run_expecting(0, &mut array(store)).stdout);
        assert!(command.contains(&format!("--store {store} ")), "{command}");
    }
}

#[cfg(unix)]
#[test]
fn sweep_errors_never_show_a_password() {
    if !peers_enabled() {
        return;
    }
    let lab = Lab::new(SMALL);
    let sweep = |options: &[&str]| {
        let mut sweep = Command::new(dask::programs().join("python"));
        sweep
            .arg(engine("dask_sweep.py"))
            .arg(lab.path("small.toml"))
            .args(["--scheduler", "tcp://127.0.0.1:1"])
            .args(["--spdy", env!("CARGO_BIN_EXE_spdy")])
            .args(options);
        sweep
    };
    let sweep_stderr = |code, options: &[&str]| {
        let stderr = text(&run_expecting(code, &mut sweep(options)).stderr);
        assert!(!stderr.contains("Traceback"), "{options:?}: {stderr}");
        assert!(!stderr.contains("hu"), "{options:?}: {stderr}");
        stderr
    };
    for url in WITH_PASSWORDS {
        let stderr = sweep_stderr(2, &["--store", url]);
        assert!(stderr.contains("use PGPASSWORD"), "{stderr}");
    }
    // There is no server, which the program itself reports.
    for url in WITHOUT_PASSWORDS {
        let stderr = sweep_stderr(1, &["--store", url]);
        assert!(stderr.contains("postgres://"), "{stderr}");
    }
    for (option, count, expected) in [
        ("--cells", "0", "expected 1 or more"),
        ("--cells", "-1", "expected 1 or more"),
        ("--cells", "some", "invalid"),
        ("--retries", "-1", "expected 0 or more"),
    ] {
        let stderr = sweep_stderr(2, &["--store", WITHOUT_PASSWORDS[0], option, count]);
        assert!(stderr.contains(expected), "{option} {count}: {stderr}");
    }
}

#[cfg(unix)]
#[test]
fn a_dask_sweep_that_loses_a_worker_equals_a_single_run() {
    if !peers_enabled() {
        return;
    }
    let lab = Lab::new(&SMALL.replace("[2, 6]", "[1, 2, 3, 6]"));
    lab.run("single.db", &[]);
    let (server, dask) = (PostgresServer::start(), Dask::start());
    let url = server.database("swept");
    let mut workers = [dask.worker(), dask.worker()];
    let mut sweep = Command::new(dask.bin.join("python"));
    sweep
        .arg(engine("dask_sweep.py"))
        .arg(lab.path("small.toml"))
        .args(["--store", &url, "--scheduler", &dask.address])
        .args(["--spdy", env!("CARGO_BIN_EXE_spdy")])
        .env("PGPASSWORD", PASSWORD)
        .env("DASK_CONFIG", dask.folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = sweep.spawn().expect("start the driver");

    // Random: when a worker is lost, which one, and whether its child processes are killed or continue with their cell.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let seed = now.expect("a time after 1970").as_nanos() as u64;
    let mut state = seed;
    let at = format!("{} of 24 tasks", 2 + next_random(&mut state) % 15);
    let (which, with_children) = (
        next_random(&mut state) % 2,
        next_random(&mut state).is_multiple_of(2),
    );
    let case = format!(
        "seed {seed}: worker {which} lost at {at}, with its child processes: {with_children}"
    );
    let mut lines = Vec::new();
    for line in BufReader::new(child.stderr.take().expect("a pipe")).lines() {
        let line = line.expect("text");
        if line == at {
            workers[which as usize].kill(with_children);
        }
        lines.push(line);
    }
    let status = ended(&mut child);
    assert!(status.success(), "{case}: {lines:#?}");
    assert!(
        lines.contains(&at) && lines.iter().any(|line| line == "24 of 24 tasks"),
        "{case}: {lines:#?}"
    );
    assert_eq!(
        lab.stdout(&["export", &url, "--csv", "-"]),
        lab.csv("single.db"),
        "{case}"
    );
    lab.stdout(&["merge", &url, "--store", "swept.db"]);
    assert!(
        without_counters(lab.bytes("swept.db")) == without_counters(lab.bytes("single.db")),
        "{case}: the files differ"
    );
}
