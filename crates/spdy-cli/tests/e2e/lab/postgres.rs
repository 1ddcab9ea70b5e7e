//! Stores in PostgreSQL: readers see the same as in files, many tasks share one, and errors are clear.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use rusqlite::Connection;
use spdy_testkit::wait::until;

use crate::lab::runs::content;
use crate::support::certificate::CERTIFICATE;
use crate::support::lab::experiment_folder::{Lab, SMALL, text};
use crate::support::lab::postgres::{PASSWORD, PostgresServer};
use crate::support::peers::peers_enabled;
use crate::support::program::{output_of, run_expecting, spdy};

/// Starts all of `commands`, and waits until each has ended well.
fn all_at_once(commands: Vec<Command>) -> Vec<Output> {
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
    // Two at once: both make the tables, and load the same cells in the same order.
    let run = ["run", "small.toml", "--store", &url, "--jobs", "1"];
    let outputs = all_at_once(vec![
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
            // How a store is called is all that differs.
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
    // Carried to a file it is that file.
    lab.stdout(&["merge", &url, "--store", "copy.db"]);
    assert!(
        content(lab.bytes("copy.db")) == content(lab.bytes("a.db")),
        "the files differ"
    );
    // And back.
    let back = server.database("back");
    lab.stdout(&["merge", "copy.db", "--store", &back]);
    assert_eq!(
        lab.stdout(&["export", &back, "--csv", "-"]),
        lab.csv("a.db")
    );

    // Lulic's own table has no half milliseconds, and empty columns.
    let connection = Connection::open(lab.path("results.db")).expect("create the file");
    connection.execute_batch(
        "CREATE TABLE results (id INTEGER PRIMARY KEY, bw text, delay text, method text, site text,
                               onContentLoad INT, onLoad INT, tow FLOAT, run INT);
         INSERT INTO results VALUES (1, '100', '10', 'http', 'a', 300, 30000, 31, 0), (2, '100', '10', 'spdy', 'a', 400, 10000, 11.5, 0);",
    )
    .expect("valid SQL");
    let imported = server.database("imported");
    for store in [&imported[..], "his.db"] {
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
        lab.csv("his.db")
    );
    assert_eq!(
        lab.stdout(&["show", &imported]),
        lab.stdout(&["show", "his.db"])
    );
}

/// How the program calls `database`.
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
    lab.run("alone.db", &[]);
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
    all_at_once(tasks.into());
    assert_eq!(
        lab.stdout(&["export", &url, "--csv", "-"]),
        lab.csv("alone.db")
    );
    assert_eq!(server.sql("shared", "SELECT done FROM plan"), "1\n");
    // Cells of a task that died before it committed are missing, and the next run loads them.
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
        lab.csv("alone.db")
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
    // It has added the next cell, and neither commits nor goes away.
    let transaction = server.hold(
        "stopped",
        "INSERT INTO results (id, plan, cell, run) SELECT 3, plan, replace(cell, 'http', 'spdy'), 1 FROM results WHERE id = 1",
    );
    let url_with_timeout = format!("{url}&options=-clock_timeout%3D100ms");
    let cell = ["cell", "small.toml", "2", "--store", &url_with_timeout];
    let stderr = text(&run_expecting(1, &mut lab.command_with_password(&cell)).stderr);
    assert!(stderr.contains("due to lock timeout"), "{stderr}");
    // Its end takes its part back.
    drop(transaction);
    let cell = ["cell", "small.toml", "2", "--store", &url];
    let added = lab.stdout(&cell);
    assert!(
        added.ends_with(": 1 cells added, 0 already present\n"),
        "{added}"
    );

    // Two tasks do not create the tables at once: the first holds an advisory lock, with the number of SQLite's application id.
    let empty = server.database("made");
    let transaction = server.hold(
        "made",
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
    let lab = Lab::new(SMALL);
    let url = server.database("earlier");
    lab.stdout(&["run", "small.toml", "--store", &url]);
    let today = lab.stdout(&["export", &url, "--csv", "-"]);
    let names = server.sql(
        "earlier",
        "SELECT column_name FROM information_schema.columns \
         WHERE table_schema = 'public' AND table_name = 'results' ORDER BY ordinal_position",
    );
    server.sql("earlier", "ALTER TABLE results DROP COLUMN frame");
    assert_eq!(lab.stdout(&["export", &url, "--csv", "-"]), today);
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
    assert_eq!(lab.stdout(&["export", &url, "--csv", "-"]), today);
    let stderr = text(&run_expecting(1, &mut lab.command_with_password(&run)).stderr);
    assert!(
        stderr.contains("is a store of version 1, expected "),
        "{stderr}"
    );
    // Merged into another it is one of today.
    lab.stdout(&["merge", &url, "--store", "today.db"]);
    assert_eq!(lab.csv("today.db"), today);
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
        server.url_by_tcp("sweep", user, password) + parameters
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
    assert_refused(&(url.clone() + "&sslmode=require"), &["TLS"]); // a socket has none

    // With the right roots, without any, and unencrypted: each finds what the one before has done.
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
    let lab_of_more = Lab::new(SMALL);
    let run = ["run", "small.toml", "--store", &url];
    let stderr = text(&run_expecting(1, &mut lab_of_more.command_with_password(&run)).stderr);
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
    let nothing = run_expecting(1, &mut lab.command_with_password(&["show", &empty]));
    assert!(
        text(&nothing.stderr).contains("store postgres://lab@"),
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
    run_expecting(0, &mut lab.command_with_password(&run));

    // A command line that cannot be understood is told without what stands in it.
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
