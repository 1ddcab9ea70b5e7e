//! Experiments that outgrow one machine: PostgreSQL as the common store, parts to merge, engines that start cells.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, SystemTime};

use rusqlite::Connection;
use serde_json::Value;

use crate::lab::{chance, content};
use crate::support::certificate::CERTIFICATE;
use crate::support::lab::{Lab, SMALL, text};
use crate::support::peers::{require, wanted};
use crate::support::postgres::{PASSWORD, PostgresServer};
use crate::support::program::{From, Running, ended_with, spdy};

/// `spdy lab` in the folder of `lab`, who knows the password.
fn command(lab: &Lab, arguments: &[&str]) -> Command {
    let mut command = lab.command(arguments);
    command.env("PGPASSWORD", PASSWORD);
    command
}

/// What `spdy lab` printed; it must have ended well.
fn said(lab: &Lab, arguments: &[&str]) -> String {
    text(&ended_with(0, &mut command(lab, arguments)).stdout)
}

/// Starts all of `commands`, and waits until each has ended well.
fn all_at_once(commands: Vec<Command>) -> Vec<Output> {
    let start = |mut command: Command| {
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        child.expect("the program can be started")
    };
    let children: Vec<_> = commands.into_iter().map(start).collect();
    let end = |output: Output| {
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        output
    };
    children
        .into_iter()
        .map(|child| end(child.wait_with_output().expect("it was ours")))
        .collect()
}

#[test]
fn a_store_in_postgresql_is_the_same_as_one_in_a_file_to_whoever_reads_it() {
    if !wanted() {
        return;
    }
    let server = PostgresServer::start();
    let lab = Lab::new(SMALL);
    lab.run("a.db", &[]);
    let url = server.database("sweep");
    assert_eq!(
        said(&lab, &["cells", "small.toml", "--store", &url])
            .lines()
            .count(),
        12
    );
    // Two at once: both make the tables, and load the same cells in the same order.
    let run = ["run", "small.toml", "--store", &url, "--jobs", "1"];
    let ran = all_at_once(vec![command(&lab, &run), command(&lab, &run)]);
    let shown = said(&lab, &["show", "a.db"]);
    for output in ran {
        assert_eq!(text(&output.stdout), shown);
    }
    for words in [
        &["show", "STORE"][..],
        &["show", "STORE", "--json"],
        &["export", "STORE", "--csv", "-"],
        &["report", "STORE", "--output", "-"],
        &["compare", "STORE", "a.db", "--budget", "0%", "--json"],
        &["compare", "a.db", "STORE", "--budget", "0%"],
        &["cells", "small.toml", "--store", "STORE"],
        &["cell", "small.toml", "1", "2", "--store", "STORE", "--json"],
    ] {
        let of = |store: &str| {
            let words: Vec<_> = words
                .iter()
                .map(|word| if *word == "STORE" { store } else { word })
                .collect();
            // How a store is called is all that differs.
            said(&lab, &words).replace(&shown_as(&server, "sweep"), "a.db")
        };
        assert_eq!(of(&url), of("a.db"), "{words:?}");
    }
    said(&lab, &["report", &url]);
    assert!(
        lab.path("small.html").is_file(),
        "a report is named after the experiment"
    );
    // Carried to a file it is that file.
    said(&lab, &["merge", &url, "--store", "copy.db"]);
    assert!(
        content(lab.bytes("copy.db")) == content(lab.bytes("a.db")),
        "the files differ"
    );
    // And back.
    let back = server.database("back");
    said(&lab, &["merge", "copy.db", "--store", &back]);
    assert_eq!(
        said(&lab, &["export", &back, "--csv", "-"]),
        lab.csv("a.db")
    );

    // Lulic's own table has no half milliseconds, and empty columns.
    let his = Connection::open(lab.path("results.db")).expect("a file can be made");
    his.execute_batch(
        "CREATE TABLE results (id INTEGER PRIMARY KEY, bw text, delay text, method text, site text,
                               onContentLoad INT, onLoad INT, tow FLOAT, run INT);
         INSERT INTO results VALUES (1, '100', '10', 'http', 'a', 300, 30000, 31, 0), (2, '100', '10', 'spdy', 'a', 400, 10000, 11.5, 0);",
    )
    .expect("it is SQL");
    let imported = server.database("imported");
    for store in [&imported[..], "his.db"] {
        said(&lab, &["import", "results.db", "--store", store]);
        let again = ended_with(
            1,
            &mut command(&lab, &["import", "results.db", "--store", store]),
        );
        assert!(
            text(&again.stderr).contains("there already"),
            "{}",
            text(&again.stderr)
        );
    }
    assert_eq!(
        said(&lab, &["export", &imported, "--csv", "-"]),
        lab.csv("his.db")
    );
    assert_eq!(
        said(&lab, &["show", &imported]),
        said(&lab, &["show", "his.db"])
    );
}

/// How the program calls `database`.
fn shown_as(server: &PostgresServer, database: &str) -> String {
    let url = server.url(database);
    let (_, query) = url.split_once("?host=").expect("a socket");
    let (socket, port) = query.split_once("&port=").expect("a port");
    format!("postgres://lab@{socket}:{port}/{database}")
}

#[test]
fn parts_that_tasks_have_loaded_make_one_store_whoever_was_first() {
    let lab = Lab::new(SMALL);
    lab.run("alone.db", &[]);
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
        let kept = text(&ended_with(0, &mut lab.command(&words)).stdout);
        let kept: Value = serde_json::from_str(&kept).expect("JSON");
        assert_eq!(kept["store"], *store);
        (
            kept["added"].clone(),
            kept["before"].clone(),
            kept["failed"].clone(),
        )
    };
    let counts = |added: u64, before: u64| (added.into(), before.into(), 0.into());
    // Files that nobody shares: 12 cells in five parts, one of them loaded by two tasks.
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
    // A task that is started again finds its work done.
    assert_eq!(part("1/5", "part-6.db"), counts(0, 3));
    let told = said(
        &lab,
        &[
            "merge",
            "part-1.db",
            "part-6.db",
            "part-5.db",
            "part-3.db",
            "part-4.db",
            "--store",
            "all.db",
        ],
    );
    let ends: Vec<_> = told
        .lines()
        .filter_map(|line| line.split_once(": "))
        .map(|(_, end)| end)
        .collect();
    assert_eq!(
        ends[..2],
        [
            "3 cells added, 0 there already",
            "0 cells added, 3 there already"
        ]
    );
    assert_eq!(
        said(&lab, &["cells", "small.toml", "--store", "all.db"])
            .lines()
            .count(),
        3
    );
    said(&lab, &["merge", "part-2.db", "--store", "all.db"]);
    assert_eq!(lab.csv("all.db"), lab.csv("alone.db"));
    assert!(
        content(lab.bytes("all.db")) == content(lab.bytes("alone.db")),
        "the files differ"
    );
    // A store is no part of itself, and parts of another plan are none.
    ended_with(
        2,
        &mut lab.command(&["merge", "all.db", "--store", "./all.db"]),
    );
    fs::write(
        lab.path("small.toml"),
        SMALL.replace("seed = 7", "seed = 8"),
    )
    .expect("the folder can be written to");
    said(&lab, &["cell", "small.toml", "1", "--store", "other.db"]);
    let other = ended_with(
        1,
        &mut lab.command(&["merge", "other.db", "--store", "all.db"]),
    );
    assert!(
        text(&other.stderr).contains("holds results of the plan small ("),
        "{}",
        text(&other.stderr)
    );
    ended_with(
        2,
        &mut lab.command(&["cell", "small.toml", "--part", "6/5"]),
    );
    ended_with(
        2,
        &mut lab.command(&["cell", "small.toml", "1", "--part", "1/5"]),
    );
    ended_with(2, &mut lab.command(&["cell", "small.toml"]));
}

#[test]
fn a_cell_that_came_out_as_two_things_is_told_and_the_first_is_kept() {
    let lab = Lab::new(SMALL);
    for store in ["a.db", "b.db"] {
        said(&lab, &["cell", "small.toml", "1", "2", "--store", store]);
    }
    let before = lab.csv("a.db");
    let connection = Connection::open(lab.path("b.db")).expect("a store");
    connection
        .execute("UPDATE results SET load_ms = load_ms + 1 WHERE id = 4", [])
        .expect("rows");
    drop(connection);
    let told = text(&ended_with(1, &mut lab.command(&["merge", "b.db", "--store", "a.db"])).stderr);
    for word in [
        "a.db holds other results of the cell page=portal,protocol=spdy",
        "load_ms is",
        "of run 2",
        "same build",
    ] {
        assert!(told.contains(word), "no {word:?} in {told}");
    }
    assert_eq!(lab.csv("a.db"), before);
}

#[test]
fn single_cells_are_told_as_a_table_or_as_json() {
    let lab = Lab::new(SMALL);
    let table = said(&lab, &["cell", "small.toml", "2", "1"]);
    assert!(
        table.starts_with("small: 2 of 12 cells, 2 loads each, by spdy"),
        "{table}"
    );
    let json = said(&lab, &["cell", "small.toml", "2", "1", "--json"]);
    let ids: Vec<Value> = json
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["id"].clone())
        .collect();
    assert_eq!(ids, [3, 4, 1, 2]);
}

#[test]
fn tasks_that_share_a_database_and_load_the_same_cells_at_once_end_as_one_alone() {
    if !wanted() {
        return;
    }
    let server = PostgresServer::start();
    let lab = Lab::new(SMALL);
    lab.run("alone.db", &[]);
    let url = server.database("shared");
    let tasks = ["1/2", "2/2", "1/2", "1/1"].map(|part| {
        command(
            &lab,
            &[
                "cell",
                "small.toml",
                "--part",
                part,
                "--store",
                &url,
                "--jobs",
                "1",
            ],
        )
    });
    all_at_once(tasks.into());
    assert_eq!(
        said(&lab, &["export", &url, "--csv", "-"]),
        lab.csv("alone.db")
    );
    assert_eq!(server.sql("shared", "SELECT done FROM plan"), "1\n");
    // Rows that a dead one left in a transaction of its own are nobody's.
    server.sql(
        "shared",
        "DELETE FROM results WHERE id > 20; UPDATE plan SET done = 0",
    );
    assert_eq!(
        said(&lab, &["cells", "small.toml", "--store", &url])
            .lines()
            .count(),
        2
    );
    let resumed = text(
        &ended_with(
            0,
            &mut command(&lab, &["run", "small.toml", "--store", &url]),
        )
        .stderr,
    );
    assert!(
        resumed.contains("10 of 12 cells are there already"),
        "{resumed}"
    );
    assert_eq!(
        said(&lab, &["export", &url, "--csv", "-"]),
        lab.csv("alone.db")
    );
}

#[test]
fn what_is_wrong_with_a_database_is_told_and_a_password_never() {
    if !wanted() {
        return;
    }
    let server = PostgresServer::start();
    let lab = Lab::new(&SMALL.replace("[2, 6]", "6").replace("\"1%\", ", ""));
    let told = |code: i32, url: &str, environment: &[(&str, &str)]| {
        let run = ["run", "small.toml", "--store", url];
        let output = ended_with(code, lab.command(&run).envs(environment.iter().copied()));
        let all = text(&output.stdout) + &text(&output.stderr);
        for secret in [PASSWORD, "sesame", "guess"] {
            assert!(!all.contains(secret), "{all}");
        }
        all
    };
    let refused = |url: &str, words: &[&str]| {
        let all = told(1, url, &[("PGPASSWORD", PASSWORD)]);
        assert_eq!(all.lines().count(), 1, "{all}");
        for word in words {
            assert!(all.contains(word), "no {word:?} in {all}");
        }
    };
    let url = server.database("sweep");
    let tcp =
        |user: &str, password: &str, more: &str| server.url_by_tcp("sweep", user, password) + more;
    // Who, where, and how.
    let failed = "password authentication failed for user \"lab\"";
    refused(
        &tcp("lab", "guess", ""),
        &["postgres://lab@localhost:", "/sweep: ", failed],
    );
    assert!(told(1, &url, &[]).contains("password missing"));
    refused(
        &server.url("nowhere"),
        &["database \"nowhere\" does not exist"],
    );
    refused(
        &tcp("lab", PASSWORD, "?connect_timeout=no"),
        &["postgres://..."],
    );
    refused("postgres:///sweep", &["it names no host"]);
    refused(
        "postgres://127.0.0.1:1/sweep?user=lab",
        &["postgres://lab@127.0.0.1:1/sweep: ", "refused"],
    );
    let roots = |path: &Path| format!("?sslmode=verify-full&sslrootcert={}", path.display());
    let elsewhere =
        spdy_net::certificates::LocalCa::generate(spdy_net::certificates::KeyKind::EcdsaP256);
    fs::write(
        lab.path("else.pem"),
        elsewhere.expect("an authority can be made").pem(),
    )
    .expect("the folder can be written to");
    refused(
        &tcp("lab", PASSWORD, &roots(&lab.path("else.pem"))),
        &["TLS", "invalid peer certificate"],
    );
    refused(&(url.clone() + "&sslmode=require"), &["TLS"]); // a socket has none

    // With the right roots, without any, and unencrypted: each finds what the one before has done.
    let done = told(
        0,
        &tcp("lab", PASSWORD, &roots(&CERTIFICATE.authority)),
        &[],
    );
    assert!(done.contains("4 of 4 cells, 2 loads each"), "{done}");
    for mode in ["?sslmode=require", "?sslmode=disable", ""] {
        let again = told(0, &tcp("lab", PASSWORD, mode), &[]);
        assert!(again.contains("4 of 4 cells are there already"), "{again}");
    }

    // Another plan, another version, somebody else's tables.
    let lab_of_more = Lab::new(SMALL);
    let other = ["run", "small.toml", "--store", &url];
    let other = text(&ended_with(1, &mut command(&lab_of_more, &other)).stderr);
    assert!(
        other.contains("holds results of the plan small ("),
        "{other}"
    );
    server.sql("sweep", "UPDATE spdy_store SET version = 0");
    refused(&url, &["is a store of version 0, want "]);
    let bookmarks = server.database("bookmarks");
    server.sql("bookmarks", "CREATE TABLE bookmarks (url TEXT)");
    refused(&bookmarks, &["no store of experiments", "spdy_store"]);
    let empty = server.database("empty");
    let nothing = ended_with(1, &mut command(&lab, &["show", &empty]));
    assert!(
        text(&nothing.stderr).contains("there is no store postgres://lab@"),
        "{}",
        text(&nothing.stderr)
    );
    assert_eq!(
        server.sql(
            "empty",
            "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        ),
        "0\n"
    );

    // One schema of a database holds one store.
    server.sql("bookmarks", "CREATE SCHEMA sweep");
    let run = [
        "run",
        "small.toml",
        "--store",
        &format!("{bookmarks}&options=-csearch_path%3Dsweep"),
    ];
    ended_with(0, &mut command(&lab, &run));

    // A command line that cannot be understood is told without what stands in it.
    let wrong = ended_with(
        2,
        &mut spdy(&["lab", "run", "lulic", "--stor", &tcp("lab", PASSWORD, "")]),
    );
    assert!(
        !text(&wrong.stderr).contains("sesame"),
        "{}",
        text(&wrong.stderr)
    );
}

/// A Dask cluster of a scheduler and workers, started by the test.
#[cfg(unix)]
struct Dask {
    bin: std::path::PathBuf,
    folder: tempfile::TempDir,
    address: String,
    _scheduler: Running,
}

#[cfg(unix)]
impl Dask {
    fn start() -> Self {
        let bin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/dask/bin");
        require("Dask", bin.join("dask").is_file());
        let folder = tempfile::tempdir().expect("a folder can be made");
        let mut scheduler = Command::new(bin.join("dask"));
        scheduler
            .args([
                "scheduler",
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                "--no-dashboard",
            ])
            .env("DASK_CONFIG", folder.path())
            .current_dir(folder.path());
        let (scheduler, address) = Running::start(scheduler, From::Stderr, |line| {
            let (_, address) = line.split_once("Scheduler at:")?;
            Some(address.trim().to_owned())
        });
        Self {
            bin,
            folder,
            address,
            _scheduler: scheduler,
        }
    }

    /// A worker that does one task at a time, in a process group of its own.
    fn worker(&self) -> Worker {
        use std::os::unix::process::CommandExt;
        let mut worker = Command::new(self.bin.join("dask"));
        worker
            .args([
                "worker",
                &self.address,
                "--no-nanny",
                "--nthreads",
                "1",
                "--no-dashboard",
            ])
            .arg("--local-directory")
            .arg(self.folder.path())
            .env("DASK_CONFIG", self.folder.path())
            .env("PGPASSWORD", PASSWORD)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = worker.spawn().expect("the worker can be started");
        let mut lines = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let joined = lines
            .by_ref()
            .map_while(Result::ok)
            .any(|line| line.contains("Registered to"));
        assert!(joined, "the worker has not joined");
        thread::spawn(move || lines.for_each(drop));
        Worker { child }
    }
}

/// A worker, which dies with the test at the latest.
#[cfg(unix)]
struct Worker {
    child: Child,
}

#[cfg(unix)]
impl Worker {
    /// Kills it, alone or with what it has started.
    fn kill(&mut self, with_its_task: bool) {
        use nix::sys::signal::{Signal, kill, killpg};
        let process = nix::unistd::Pid::from_raw(self.child.id().cast_signed());
        let killed = match with_its_task {
            true => killpg(process, Signal::SIGKILL),
            false => kill(process, Signal::SIGKILL),
        };
        killed.expect("it runs");
        self.child.wait().expect("it was ours");
    }
}

#[cfg(unix)]
impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(unix)]
#[test]
fn a_dask_cluster_that_loses_a_worker_ends_with_the_rows_of_one_machine() {
    if !wanted() {
        return;
    }
    let lab = Lab::new(&SMALL.replace("[2, 6]", "[1, 2, 3, 6]"));
    lab.run("alone.db", &[]);
    let (server, dask) = (PostgresServer::start(), Dask::start());
    let url = server.database("swept");
    let mut workers = [dask.worker(), dask.worker()];
    let mut sweep = Command::new(dask.bin.join("python"));
    let engines = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../engines");
    sweep
        .arg(engines.join("dask_sweep.py"))
        .arg(lab.path("small.toml"))
        .args(["--store", &url, "--scheduler", &dask.address])
        .args(["--spdy", env!("CARGO_BIN_EXE_spdy")])
        .env("PGPASSWORD", PASSWORD)
        .env("DASK_CONFIG", dask.folder.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut child = sweep.spawn().expect("the driver can be started");

    // When one of them is lost, which, and whether its machine with it or its process alone, whose cell then goes on.
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let seed = now.expect("it is after 1970").as_nanos() as u64;
    let mut state = seed;
    let at = format!("{} of 24 tasks", 2 + chance(&mut state) % 15);
    let (which, with_its_task) = (chance(&mut state) % 2, chance(&mut state).is_multiple_of(2));
    let case = format!("seed {seed}: worker {which} lost at {at}, with its task: {with_its_task}");
    let mut told = Vec::new();
    for line in BufReader::new(child.stderr.take().expect("it is piped")).lines() {
        let line = line.expect("text");
        if line == at {
            workers[which as usize].kill(with_its_task);
        }
        told.push(line);
    }
    let status = child.wait().expect("it was ours");
    assert!(status.success(), "{case}: {told:#?}");
    assert!(
        told.contains(&at) && told.iter().any(|line| line == "24 of 24 tasks"),
        "{case}: {told:#?}"
    );
    assert_eq!(
        said(&lab, &["export", &url, "--csv", "-"]),
        lab.csv("alone.db"),
        "{case}"
    );
    said(&lab, &["merge", &url, "--store", "swept.db"]);
    assert!(
        content(lab.bytes("swept.db")) == content(lab.bytes("alone.db")),
        "{case}: the files differ"
    );
}

#[test]
fn whoever_waits_for_a_task_that_has_stopped_gives_up_and_says_so() {
    if !wanted() {
        return;
    }
    let server = PostgresServer::start();
    let lab = Lab::new(SMALL);
    let url = server.database("stopped");
    said(&lab, &["cell", "small.toml", "1", "--store", &url]);
    // It has added the next cell, and neither commits nor goes away.
    let held = server.hold(
        "stopped",
        "INSERT INTO results (id, plan, cell, run) SELECT 3, plan, replace(cell, 'http', 'spdy'), 1 FROM results WHERE id = 1",
    );
    let impatient = format!("{url}&options=-clock_timeout%3D100ms");
    let cell = ["cell", "small.toml", "2", "--store", &impatient];
    let told = text(&ended_with(1, &mut command(&lab, &cell)).stderr);
    assert!(told.contains("due to lock timeout"), "{told}");
    // Its end takes its part back.
    drop(held);
    let cell = ["cell", "small.toml", "2", "--store", &url];
    let added = said(&lab, &cell);
    assert!(
        added.ends_with(": 1 cells added, 0 there already\n"),
        "{added}"
    );
}

#[test]
fn a_run_whose_server_goes_away_fails_and_says_which() {
    if !wanted() {
        return;
    }
    let server = PostgresServer::start();
    let lab = Lab::new(&SMALL.replace("runs = 2", "runs = 200"));
    let url = server.database("lost");
    let run = ["run", "small.toml", "--store", &url, "--jobs", "1"];
    let child = command(&lab, &run)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = child.expect("the program can be started");
    let (_never, tick) = mpsc::channel::<()>();
    while server
        .sql("lost", "SELECT to_regclass('spdy_store')")
        .trim()
        .is_empty()
    {
        let _ = tick.recv_timeout(Duration::from_millis(5));
    }
    drop(server);
    let output = child.wait_with_output().expect("it was ours");
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains("postgres://lab@") && told.contains("/lost: "),
        "{told}"
    );
}

#[test]
fn a_store_of_an_earlier_version_in_postgresql_is_read_and_not_added_to() {
    if !wanted() {
        return;
    }
    let server = PostgresServer::start();
    let lab = Lab::new(SMALL);
    let url = server.database("earlier");
    said(&lab, &["run", "small.toml", "--store", &url]);
    let today = said(&lab, &["export", &url, "--csv", "-"]);
    let names = server.sql(
        "earlier",
        "SELECT column_name FROM information_schema.columns \
         WHERE table_schema = 'public' AND table_name = 'results' ORDER BY ordinal_position",
    );
    let later = names.lines().skip_while(|name| *name != "fold").skip(1);
    for name in later.take_while(|name| *name != "dom_content_loaded_ms") {
        server.sql(
            "earlier",
            &format!("ALTER TABLE results DROP COLUMN {name}"),
        );
    }
    server.sql("earlier", "UPDATE spdy_store SET version = 1");
    assert_eq!(said(&lab, &["export", &url, "--csv", "-"]), today);
    let run = ["run", "small.toml", "--store", &url];
    let refused = text(&ended_with(1, &mut command(&lab, &run)).stderr);
    assert!(
        refused.contains("is a store of version 1, want "),
        "{refused}"
    );
    // Merged into another it is one of today.
    said(&lab, &["merge", &url, "--store", "today.db"]);
    assert_eq!(lab.csv("today.db"), today);
}

#[test]
fn a_store_is_exported_as_parquet_if_the_program_was_built_with_it() {
    let lab = Lab::new(SMALL);
    said(&lab, &["cell", "small.toml", "1", "2", "--store", "a.db"]);
    let export = ["export", "a.db", "--parquet", "a.parquet"];
    if cfg!(feature = "parquet") {
        assert_eq!(said(&lab, &export), "a.parquet: 4 loads\n");
        let bytes = lab.bytes("a.parquet");
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        let export = ["export", "a.db", "--parquet", "-"];
        let written = ended_with(0, &mut lab.command(&export)).stdout;
        assert!(written == bytes, "stdout is another file");
    } else {
        let told = text(&ended_with(2, &mut lab.command(&export)).stderr);
        assert!(told.contains("--features parquet"), "{told}");
        assert!(!lab.path("a.parquet").exists(), "a file of nothing");
    }
    for words in [
        &["export", "a.db"][..],
        &["export", "a.db", "--csv", "-", "--parquet", "-"],
    ] {
        ended_with(2, &mut lab.command(words));
    }
}
