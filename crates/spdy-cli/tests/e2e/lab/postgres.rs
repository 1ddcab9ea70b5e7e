//! Stores in PostgreSQL: readers see the same as in files, many tasks share one, and errors are clear.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rusqlite::Connection;
use spdy_testkit::wait::until;

use crate::lab::runs::without_counters;
use crate::support::certificate::CERTIFICATE;
use crate::support::lab::experiment_folder::{Lab, SMALL, text};
use crate::support::lab::postgres::{PASSWORD, PostgresServer};
use crate::support::peers::peers_enabled;
use crate::support::program::{output_of, run_expecting, spdy};

/// Starts all of `commands`, and waits until each has exited successfully.
fn run_concurrently(commands: Vec<Command>) -> Vec<Output> {
    let start = |mut command: Command| {
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        child.expect("start the program")
    };
    let children: Vec<_> = commands.into_iter().map(start).collect();
    let end = |output: Output| {
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        output
    };
    children
        .into_iter()
        .map(|child| end(output_of(child)))
        .collect()
}

#[test]
fn a_postgres_store_reads_the_same_as_a_file() {
    if !peers_enabled() {
        return;
    }
    let server = PostgresServer::start();
    let lab = Lab::new(SMALL);
    lab.run("a.db", &[]);
    let url = server.database("sweep");
    assert_eq!(
        lab.stdout(&["cells", "small.toml", "--store", &url])
            .lines()
            .count(),
        12
    );
    // Two at once: both create the tables, and load the same cells in the same order.
    let run = ["run", "small.toml", "--store", &url, "--jobs", "1"];
    let outputs = run_concurrently(vec![
        lab.command_with_password(&run),
        lab.command_with_password(&run),
    ]);
    let table = lab.stdout(&["show", "a.db"]);
    for output in outputs {
        assert_eq!(text(&output.stdout), table);
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
            // Only the name of the store differs.
            lab.stdout(&words)
                .replace(&display_url(&server, "sweep"), "a.db")
        };
        assert_eq!(of(&url), of("a.db"), "{words:?}");
    }
    lab.stdout(&["report", &url]);
    assert!(
        lab.path("small.html").is_file(),
        "a report is named after the experiment"
    );
    // Merged into a file, it equals the file of the run.
    lab.stdout(&["merge", &url, "--store", "copy.db"]);
    assert!(
        without_counters(lab.bytes("copy.db")) == without_counters(lab.bytes("a.db")),
        "the files differ"
    );
    // And merged from the file into another database.
    let back = server.database("back");
    lab.stdout(&["merge", "copy.db", "--store", &back]);
    assert_eq!(
        lab.stdout(&["export", &back, "--csv", "-"]),
        lab.csv("a.db")
    );

    // Lulic's table, with empty columns and no fractions of milliseconds.
    let connection = Connection::open(lab.path("results.db")).expect("create the file");
    connection.execute_batch(
        "CREATE TABLE results (id INTEGER PRIMARY KEY, bw text, delay text, method text, site text,
                               onContentLoad INT, onLoad INT, tow FLOAT, run INT);
         INSERT INTO results VALUES (1, '100', '10', 'http', 'a', 300, 30000, 31, 0), (2, '100', '10', 'spdy', 'a', 400, 10000, 11.5, 0);",
    )
    .expect("valid SQL");
    let imported = server.database("imported");
    for store in [&imported[..], "lulic.db"] {
        lab.stdout(&["import", "results.db", "--store", store]);
        let output = run_expecting(
            1,
            &mut lab.command_with_password(&["import", "results.db", "--store", store]),
        );
        assert!(
            text(&output.stderr).contains("already exists"),
            "{}",
            text(&output.stderr)
        );
    }
    assert_eq!(
        lab.stdout(&["export", &imported, "--csv", "-"]),
        lab.csv("lulic.db")
    );
    assert_eq!(
        lab.stdout(&["show", &imported]),
        lab.stdout(&["show", "lulic.db"])
    );
}

/// The URL of `database` as the program prints it.
fn display_url(server: &PostgresServer, database: &str) -> String {
    let url = server.url(database);
    let (_, query) = url.split_once("?host=").expect("a socket");
    let (socket, port) = query.split_once("&port=").expect("a port");
    format!("postgres://lab@{socket}:{port}/{database}")
}

#[test]
fn concurrent_tasks_on_one_database_equal_one_run() {
    if !peers_enabled() {
        return;
    }
    let server = PostgresServer::start();
    let lab = Lab::new(SMALL);
    lab.run("single.db", &[]);
    let url = server.database("shared");
    let tasks = ["1/2", "2/2", "1/2", "1/1"].map(|part| {
        lab.command_with_password(&[
            "cell",
            "small.toml",
            "--part",
            part,
            "--store",
            &url,
            "--jobs",
            "1",
        ])
    });
    run_concurrently(tasks.into());
    assert_eq!(
        lab.stdout(&["export", &url, "--csv", "-"]),
        lab.csv("single.db")
    );
    assert_eq!(server.sql("shared", "SELECT done FROM plan"), "1\n");
    // Cells of a task that ended before its commit are missing, and the next run loads them.
    server.sql(
        "shared",
        "DELETE FROM results WHERE id > 20; UPDATE plan SET done = 0",
    );
    assert_eq!(
        lab.stdout(&["cells", "small.toml", "--store", &url])
            .lines()
            .count(),
        2
    );
    let resumed = text(
        &run_expecting(
            0,
            &mut lab.command_with_password(&["run", "small.toml", "--store", &url]),
        )
        .stderr,
    );
    assert!(
        resumed.contains("10 of 12 cells are already present"),
        "{resumed}"
    );
    assert_eq!(
        lab.stdout(&["export", &url, "--csv", "-"]),
        lab.csv("single.db")
    );
}

#[test]
fn waiting_for_a_stalled_transaction_times_out() {
    if !peers_enabled() {
        return;
    }
    let server = PostgresServer::start();
    let lab = Lab::new(SMALL);
    let url = server.database("stopped");
    lab.stdout(&["cell", "small.toml", "1", "--store", &url]);
    // This transaction has added the next cell, and is neither committed nor ended.
    let transaction = server.hold(
        "stopped",
        "INSERT INTO results (id, plan, cell, run) SELECT 3, plan, replace(cell, 'http', 'spdy'), 1 FROM results WHERE id = 1",
    );
    let url_with_timeout = format!("{url}&options=-clock_timeout%3D100ms");
    let cell = ["cell", "small.toml", "2", "--store", &url_with_timeout];
    let stderr = text(&run_expecting(1, &mut lab.command_with_password(&cell)).stderr);
    assert!(stderr.contains("due to lock timeout"), "{stderr}");
    // Its end rolls the insert back.
    drop(transaction);
    let cell = ["cell", "small.toml", "2", "--store", &url];
    let added = lab.stdout(&cell);
    assert!(
        added.ends_with(": 1 cells added, 0 already present\n"),
        "{added}"
    );

    // Two tasks do not create the tables at once: the first holds an advisory lock, whose number is SQLite's application ID.
    let empty = server.database("empty_tables");
    let transaction = server.hold(
        "empty_tables",
        "DO $$ BEGIN PERFORM pg_advisory_xact_lock(x'53504459'::int); END $$",
    );
    let url_with_timeout = format!("{empty}&options=-clock_timeout%3D100ms");
    let cell = ["cell", "small.toml", "1", "--store", &url_with_timeout];
    let stderr = text(&run_expecting(1, &mut lab.command_with_password(&cell)).stderr);
    assert!(stderr.contains("due to lock timeout"), "{stderr}");
    drop(transaction);
    lab.stdout(&["cell", "small.toml", "1", "--store", &empty]);
}

#[test]
fn a_store_of_an_earlier_version_in_postgresql_is_read_and_not_added_to() {
    if !peers_enabled() {
        return;
    }
    let server = PostgresServer::start();
    // Loads of earlier versions had no think times.
    let lab = Lab::new(&format!("{SMALL}think = 0\n"));
    let url = server.database("earlier");
    lab.stdout(&["run", "small.toml", "--store", &url]);
    let original = lab.stdout(&["export", &url, "--csv", "-"]);
    let names = server.sql(
        "earlier",
        "SELECT column_name FROM information_schema.columns \
         WHERE table_schema = 'public' AND table_name = 'results' ORDER BY ordinal_position",
    );
    server.sql("earlier", "ALTER TABLE results DROP COLUMN frame");
    assert_eq!(lab.stdout(&["export", &url, "--csv", "-"]), original);
    let run = ["run", "small.toml", "--store", &url];
    let stderr = text(&run_expecting(1, &mut lab.command_with_password(&run)).stderr);
    assert!(stderr.contains("without the columns frame;"), "{stderr}");
    let later = names.lines().skip_while(|name| *name != "fold").skip(1);
    for name in later.take_while(|name| *name != "dom_content_loaded_ms") {
        server.sql(
            "earlier",
            &format!("ALTER TABLE results DROP COLUMN IF EXISTS {name}"),
        );
    }
    server.sql("earlier", "UPDATE spdy_store SET version = 1");
    assert_eq!(lab.stdout(&["export", &url, "--csv", "-"]), original);
    let stderr = text(&run_expecting(1, &mut lab.command_with_password(&run)).stderr);
    assert!(
        stderr.contains("is a store of version 1, expected "),
        "{stderr}"
    );
    // Merged into a new store, it has the current version.
    lab.stdout(&["merge", &url, "--store", "merged.db"]);
    assert_eq!(lab.csv("merged.db"), original);
}

#[test]
fn a_run_fails_with_the_url_when_the_server_stops() {
    if !peers_enabled() {
        return;
    }
    let server = PostgresServer::start();
    let lab = Lab::new(&SMALL.replace("runs = 2", "runs = 200"));
    let url = server.database("lost");
    let run = ["run", "small.toml", "--store", &url, "--jobs", "1"];
    let child = lab
        .command_with_password(&run)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = child.expect("start the program");
    until("the tables exist", || {
        let table = server.sql("lost", "SELECT to_regclass('spdy_store')");
        !table.trim().is_empty()
    });
    drop(server);
    let output = output_of(child);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("postgres://lab@") && stderr.contains("/lost: "),
        "{stderr}"
    );
}

#[test]
fn database_errors_never_show_a_password() {
    if !peers_enabled() {
        return;
    }
    let server = PostgresServer::start();
    let lab = Lab::new(&SMALL.replace("[2, 6]", "6").replace("\"1%\", ", ""));
    let run_output = |code: i32, url: &str, environment: &[(&str, &str)]| {
        let run = ["run", "small.toml", "--store", url];
        let output = run_expecting(code, lab.command(&run).envs(environment.iter().copied()));
        let all = text(&output.stdout) + &text(&output.stderr);
        for secret in [PASSWORD, "sesame", "guess"] {
            assert!(!all.contains(secret), "{all}");
        }
        all
    };
    let assert_refused = |url: &str, words: &[&str]| {
        let all = run_output(1, url, &[("PGPASSWORD", PASSWORD)]);
        assert_eq!(all.lines().count(), 1, "{all}");
        for word in words {
            assert!(all.contains(word), "no {word:?} in {all}");
        }
    };
    let url = server.database("sweep");
    let tcp = |user: &str, password: &str, parameters: &str| {
        server.tcp_url("sweep", user, password) + parameters
    };
    // Wrong passwords, databases, options, hosts and TLS settings.
    let failed = "password authentication failed for user \"lab\"";
    assert_refused(
        &tcp("lab", "guess", ""),
        &["postgres://lab@localhost:", "/sweep: ", failed],
    );
    assert!(run_output(1, &url, &[]).contains("password missing"));
    assert_refused(
        &server.url("nowhere"),
        &["database \"nowhere\" does not exist"],
    );
    assert_refused(
        &tcp("lab", PASSWORD, "?connect_timeout=no"),
        &["postgres://..."],
    );
    assert_refused("postgres:///sweep", &["it has no host"]);
    assert_refused(
        "postgres://127.0.0.1:1/sweep?user=lab",
        &["postgres://lab@127.0.0.1:1/sweep: ", "refused"],
    );
    let roots = |path: &Path| format!("?sslmode=verify-full&sslrootcert={}", path.display());
    let other_ca = spdy_net::tls::certificates::LocalCa::generate(
        spdy_net::tls::certificates::KeyKind::EcdsaP256,
    );
    fs::write(lab.path("else.pem"), other_ca.expect("create a CA").pem()).expect("write the file");
    assert_refused(
        &tcp("lab", PASSWORD, &roots(&lab.path("else.pem"))),
        &["TLS", "invalid peer certificate"],
    );
    assert_refused(&(url.clone() + "&sslmode=require"), &["TLS"]); // a Unix socket has no TLS

    // With the right roots, without any, and unencrypted: each run finds the cells of the previous one.
    let done = run_output(
        0,
        &tcp("lab", PASSWORD, &roots(&CERTIFICATE.authority)),
        &[],
    );
    assert!(done.contains("4 of 4 cells, 2 loads each"), "{done}");
    for mode in ["?sslmode=require", "?sslmode=disable", ""] {
        let output = run_output(0, &tcp("lab", PASSWORD, mode), &[]);
        assert!(
            output.contains("4 of 4 cells are already present"),
            "{output}"
        );
    }

    // Another plan, another version, the tables of another program.
    let larger_lab = Lab::new(SMALL);
    let run = ["run", "small.toml", "--store", &url];
    let stderr = text(&run_expecting(1, &mut larger_lab.command_with_password(&run)).stderr);
    assert!(
        stderr.contains("has results of the plan small ("),
        "{stderr}"
    );
    server.sql("sweep", "UPDATE spdy_store SET version = 0");
    assert_refused(&url, &["is a store of version 0, expected "]);
    let bookmarks = server.database("bookmarks");
    server.sql("bookmarks", "CREATE TABLE bookmarks (url TEXT)");
    assert_refused(&bookmarks, &["not an experiment store", "spdy_store"]);
    let empty = server.database("empty");
    let output = run_expecting(2, &mut lab.command_with_password(&["show", &empty]));
    assert!(
        text(&output.stderr).contains("store postgres://lab@"),
        "{}",
        text(&output.stderr)
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
    run_expecting(0, &mut lab.command_with_password(&run));

    // The error of an invalid command line does not repeat its arguments.
    let output = run_expecting(
        2,
        &mut spdy(&["lab", "run", "lulic", "--stor", &tcp("lab", PASSWORD, "")]),
    );
    assert!(
        !text(&output.stderr).contains("sesame"),
        "{}",
        text(&output.stderr)
    );
}
