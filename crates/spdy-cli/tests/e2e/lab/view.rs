//! `spdy lab view`: which requests it allows, how it handles a store that is missing or replaced, and how a browser
//! follows a run with it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

use rusqlite::Connection;
use serde_json::Value;
use spdy_testkit::wait::{ended, until, with_read_timeout};

use crate::lab::reports::FIND_FAULTS;
use crate::support::clients::chromium::{Chromium, Viewport};
use crate::support::lab::experiment_folder::{Lab, text};
use crate::support::peers::{is_installed, peers_enabled, require};
use crate::support::program::{ReadyOn, RunningProgram, run_expecting, spdy};

/// Four cells with one load each.
const EXPERIMENT: &str = "name = 'one'\npages = ['lulic-bing']\n[factors]\nnetwork = 'dsl'\n";

/// Starts `spdy lab view` with these arguments in `folder`. Returns its address.
fn view(folder: &Path, arguments: &[&str]) -> (RunningProgram, String) {
    let mut command = spdy(&["lab", "view"]);
    command.args(arguments).current_dir(folder);
    RunningProgram::start(command, ReadyOn::Stderr, |line| {
        let (_, rest) = line.split_once("http://")?;
        rest.split('/').next().map(str::to_owned)
    })
}

/// The response to a GET with the view's own address as the host.
fn get(address: &str, path: &str) -> String {
    exchange(address, &format!("GET {path} HTTP/1.1\r\nhost: {address}"))
}

/// The state that the page's script requests.
fn state(address: &str) -> Value {
    let response = get(address, "/state");
    let (_, body) = response.split_once("\r\n\r\n").expect("a body");
    serde_json::from_str(body).expect("JSON")
}

/// Sends a request head and returns the whole response.
fn exchange(address: &str, head: &str) -> String {
    let mut stream = with_read_timeout(TcpStream::connect(address).expect("connect"));
    let request = format!("{head}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("write");
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("text");
    response
}

#[test]
fn a_view_serves_only_its_own_host_and_reports_progress() {
    let folder = tempfile::tempdir().expect("create a folder");
    fs::write(folder.path().join("one.toml"), EXPERIMENT).expect("write the file");
    let (_process, address) = view(folder.path(), &["one.toml"]);
    let get = |path: &str, host: &str| {
        exchange(&address, &format!("GET {path} HTTP/1.1\r\nhost: {host}"))
    };

    let early = get("/state", &address);
    assert!(
        early.starts_with("HTTP/1.1 200 ") && early.contains("store one.db does not exist"),
        "{early}"
    );
    let mut run = spdy(&["lab", "run", "one.toml"]);
    run_expecting(0, run.current_dir(folder.path()));
    let state = get("/state", &address);
    assert!(
        state.contains(r#"{"name":"one","done":4,"cells":4,"runs":1,"left_s":null,"edition":""#),
        "{state}"
    );
    let report = get("/report", &address);
    assert!(
        report.contains("Experiment: one") && report.contains("to the nanosecond"),
        "{report}"
    );
    for head in [
        "content-security-policy: default-src 'none'",
        "nosniff",
        "same-origin",
        "no-store",
    ] {
        assert!(report.contains(head), "no {head} in {report}");
    }

    let port = address.split(':').nth(1).expect("a port");
    assert!(get("/", &format!("localhost:{port}")).starts_with("HTTP/1.1 200 "));
    for foreign in [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        "127.0.0.1:1".to_owned(),
    ] {
        let response = get("/report", &foreign);
        assert!(
            response.starts_with("HTTP/1.1 421 ") && !response.contains("Experiment"),
            "{response}"
        );
    }
    assert!(get("/unknown", &address).starts_with("HTTP/1.1 404 "));
    let posted = exchange(
        &address,
        &format!("POST /report HTTP/1.1\r\nhost: {address}\r\ncontent-length: 0"),
    );
    assert!(
        posted.starts_with("HTTP/1.1 405 ") && posted.contains("allow: GET, HEAD"),
        "{posted}"
    );
}

#[test]
fn a_replaced_store_with_as_many_cells_is_detected() {
    let lab = Lab::new(EXPERIMENT);
    lab.run("one.db", &[]);
    lab.run("other.db", &[]);
    let connection = Connection::open(lab.path("other.db")).expect("a store");
    let change = "UPDATE plan SET name = 'other', hash = 'other'";
    connection.execute(change, []).expect("a row");
    drop(connection);
    let (_process, address) = view(&lab.path(""), &["one.db"]);
    let first = state(&address);
    assert_eq!(state(&address), first, "nothing has changed");
    assert!(get(&address, "/report").contains("Experiment: one"));

    fs::rename(lab.path("other.db"), lab.path("one.db")).expect("replace the file");
    let second = state(&address);
    assert_eq!(
        (&second["name"], &second["done"]),
        (&"other".into(), &first["done"])
    );
    assert_ne!(second["edition"], first["edition"]);
    assert!(get(&address, "/report").contains("Experiment: other"));

    // The same plan, page and cells, with changed times.
    let changed = Connection::open(lab.path("one.db")).expect("a store");
    let change = "UPDATE results SET load_ms = 12345678";
    assert_eq!(changed.execute(change, []).expect("rows"), 4);
    drop(changed);
    let third = state(&address);
    assert_eq!(third["name"], second["name"]);
    assert_ne!(third["edition"], second["edition"]);
    assert!(get(&address, "/report").contains("12345678 ms in the store"));
}

#[test]
fn an_empty_file_is_accepted_as_a_future_store() {
    let lab = Lab::new(EXPERIMENT);
    fs::write(lab.path("a.db"), "").expect("write the file");
    let (_process, address) = view(&lab.path(""), &["a.db"]);
    let problem = state(&address)["problem"].to_string();
    assert!(problem.contains("store a.db does not exist"), "{problem}");
    lab.run("a.db", &[]);
    assert_eq!(state(&address)["done"], 4);

    // A store that exists, one that does not exist yet, and a file that is no store.
    for store in ["a.db", "later.db"] {
        let mut both = lab.command(&["view", store, "--store", "b.db"]);
        let stderr = text(&run_expecting(2, &mut both).stderr);
        assert!(stderr.contains(&format!("{store} is a store")), "{stderr}");
    }
    fs::write(lab.path("text.db"), "no results").expect("write the file");
    let stderr = text(&run_expecting(1, &mut lab.command(&["view", "text.db"])).stderr);
    assert!(stderr.contains("invalid experiment text.db"), "{stderr}");
}

#[test]
fn an_unknown_cell_only_disables_waterfalls() {
    let lab = Lab::new(EXPERIMENT);
    let mistyped = "page=lulic-bing,protocol=spyd,network=dsl";
    let assert_refused = |what: &str| {
        let mut view = lab.command(&["view", what, "--cell", mistyped]);
        let stderr = text(&run_expecting(2, &mut view).stderr);
        assert!(
            stderr.contains("has no cell") && stderr.contains("lists its 4"),
            "{stderr}"
        );
    };
    assert_refused("small.toml");
    // The cells of a missing store are unknown: the report is shown without the waterfall.
    let (_process, address) = view(&lab.path(""), &["late.db", "--cell", mistyped]);
    lab.run("late.db", &[]);
    let report = get(&address, "/report");
    assert!(report.starts_with("HTTP/1.1 200 "), "{report}");
    assert!(report.contains("late.db has no cell") && report.contains("Experiment: one"));
    assert!(!report.contains("to the nanosecond"));
    assert_refused("late.db");

    let cell_name = mistyped.replace("spyd", "spdy");
    let (_process, address) = view(&lab.path(""), &["late.db", "--cell", &cell_name]);
    assert!(get(&address, "/report").contains("to the nanosecond"));
}

#[test]
fn quiet_view_prints_its_address_as_json() {
    let folder = tempfile::tempdir().expect("create a folder");
    let mut command = spdy(&["lab", "view", "none.db", "--json", "--quiet"]);
    command.current_dir(folder.path());
    let (_process, ready) = RunningProgram::start(command, ReadyOn::Stdout, |line| {
        serde_json::from_str::<Value>(line).ok()
    });
    assert_eq!(ready["store"], "none.db");
    let url = ready["url"].as_str().expect("text");
    let address = url
        .strip_prefix("http://")
        .and_then(|url| url.strip_suffix('/'));
    let page = get(address.expect(url), "/");
    assert!(page.contains("<title>spdy lab view</title>"), "{page}");
}

#[test]
fn cross_site_requests_are_refused() {
    let folder = tempfile::tempdir().expect("create a folder");
    let (_process, address) = view(folder.path(), &["none.db"]);
    let from = |path: &str, site: &str| {
        let head = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\nsec-fetch-site: {site}");
        exchange(&address, &head)
    };
    for site in ["cross-site", "same-site"] {
        for path in ["/report", "/state", "/view.js"] {
            let response = from(path, site);
            assert!(
                response.starts_with("HTTP/1.1 403 "),
                "{path} {site}: {response}"
            );
        }
        let followed = from("/", site);
        assert!(
            followed.starts_with("HTTP/1.1 200 "),
            "a link may lead here: {followed}"
        );
    }
    for site in ["same-origin", "none"] {
        let state = from("/state", site);
        assert!(state.starts_with("HTTP/1.1 200 "), "{site}: {state}");
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_view() {
    let folder = tempfile::tempdir().expect("create a folder");
    let mut command = spdy(&["lab", "view", "lulic"]);
    let child = command
        .current_dir(folder.path())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.expect("start the program");
    let mut byte = [0; 1];
    let mut stderr = child.stderr.take().expect("a pipe");
    stderr
        .read_exact(&mut byte)
        .expect("a line with its address");
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.expect("run `kill`").success());
    assert_eq!(ended(&mut child).code(), Some(0));
}

#[test]
fn a_view_follows_a_run_and_keeps_the_scroll_position() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let folder = tempfile::tempdir().expect("create a folder");
    let experiment = "name = 'live'\nruns = 2\npages = ['lulic-bing', 'portal']\n[factors]\nrate = ['1mbit', '4mbit']\n\
                      rtt = ['20ms', '50ms', '100ms']\n";
    fs::write(folder.path().join("live.toml"), experiment).expect("write the file");
    run_until(folder.path(), 4);
    let (_process, address) = view(folder.path(), &["live.toml"]);
    let mut chromium = Chromium::start();
    chromium.open(
        &format!("http://{address}/"),
        Viewport {
            width: 1400,
            dark: false,
        },
    );
    let until = |chromium: &mut Chromium, what: &str| {
        let wait = format!(
            "new Promise(done => {{ const look = () => ({what}) ? done(true) : setTimeout(look, 20); look(); }})"
        );
        chromium.evaluate(&wait)
    };
    until(&mut chromium, "document.querySelector('main svg')");
    let progress = chromium.evaluate("document.querySelector('#progress').textContent");
    let progress = progress.as_str().expect("text").to_owned();
    assert!(progress.contains("of 48 cells of live"), "{progress}");
    // The scroll position and the open sections, by name, because the page grows later.
    let page_position = "(() => { \
        const open = name => [...document.querySelectorAll('details')].find(it => it.textContent.startsWith(name)).open; \
        const heading = [...document.querySelectorAll('h2')].find(it => it.textContent === 'Distribution'); \
        return [open('Distribution of load'), open('Distribution of the ratios'), Math.round(heading.getBoundingClientRect().top)]; \
        })()";
    chromium.evaluate(
        "for (const it of document.querySelectorAll('details')) if (it.textContent.startsWith('Distribution')) it.open = !it.open; \
         [...document.querySelectorAll('h2')].find(it => it.textContent === 'Distribution').scrollIntoView(); \
         scrollBy(0, -120); window.previousMain = document.querySelector('main'); 0",
    );
    let before_update = chromium.evaluate(page_position);
    assert_eq!(before_update, serde_json::json!([false, true, 120]));

    let mut run = spdy(&["lab", "run", "live.toml"]);
    run_expecting(0, run.current_dir(folder.path()));
    // The text changes first; the figures are fetched after it.
    until(
        &mut chromium,
        "document.querySelector('#progress').textContent.includes('complete') && document.querySelector('.waterfall') \
         && window.previousMain !== document.querySelector('main')",
    );
    let after_update = chromium.evaluate(page_position);
    assert_eq!(
        (&after_update[0], &after_update[1]),
        (&before_update[0], &before_update[1]),
        "open sections"
    );
    // Positions are rounded to whole pixels, and each update may round.
    let scrolled = after_update[2].as_f64().expect("pixels") - 120.0;
    assert!(
        scrolled.abs() <= 3.0,
        "the page scrolled by {scrolled} pixels"
    );
    // Replaces the store by another one with as many cells.
    fs::copy(folder.path().join("live.db"), folder.path().join("next.db")).expect("read the file");
    let next = Connection::open(folder.path().join("next.db")).expect("a store");
    let rename = "UPDATE plan SET name = 'next'";
    next.execute(rename, []).expect("a row");
    drop(next);
    fs::rename(folder.path().join("next.db"), folder.path().join("live.db")).expect("a new name");
    until(
        &mut chromium,
        "document.querySelector('header').textContent.includes('next')",
    );

    let faults = chromium.evaluate(FIND_FAULTS);
    chromium.save_screenshot("view");
    assert_eq!(faults, Value::Array(Vec::new()), "{faults:#}");
    let own_url = format!("http://{address}/");
    let foreign_urls: Vec<_> = chromium
        .requests()
        .into_iter()
        .filter(|url| !url.starts_with(&own_url) && *url != "data:,")
        .collect();
    assert!(foreign_urls.is_empty(), "{foreign_urls:?}");
    let messages = chromium.console_messages();
    assert!(messages.is_empty(), "{messages:?}");
}

#[test]
fn a_view_keeps_the_selected_levels_when_more_cells_are_stored() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let folder = tempfile::tempdir().expect("create a folder");
    let experiment = "name = 'live'\npages = ['lulic-bing']\nprotocols = ['http', 'spdy']\n[factors]\nrate = ['1mbit', '4mbit']\n\
                      rtt = ['20ms', '50ms']\nloss = ['0', '1%']\nconnections = [2, 6]\n";
    fs::write(folder.path().join("live.toml"), experiment).expect("write the file");
    let run = || {
        let mut run = spdy(&["lab", "run", "live.toml"]);
        run_expecting(0, run.current_dir(folder.path()));
    };
    run();
    // The store without the cells of one level.
    let full = folder.path().join("full.db");
    fs::rename(folder.path().join("live.db"), &full).expect("a new name");
    fs::copy(&full, folder.path().join("live.db")).expect("copy the file");
    let part = Connection::open(folder.path().join("live.db")).expect("a store");
    let delete = "DELETE FROM results WHERE cell LIKE '%rtt=20ms%' AND cell LIKE '%loss=0%'";
    assert_eq!(part.execute(delete, []).expect("rows"), 8);
    drop(part);
    let (_process, address) = view(folder.path(), &["live.toml"]);
    let mut chromium = Chromium::start();
    let screen = Viewport {
        width: 1280,
        dark: false,
    };
    chromium.open(&format!("http://{address}/"), screen);
    let until_loads = |chromium: &mut Chromium, count: usize| {
        let wait = format!(
            "new Promise(done => {{ const look = () => document.querySelector('header')?.textContent.includes('{count} page loads') \
             ? done(true) : setTimeout(look, 20); look(); }})"
        );
        chromium.evaluate(&wait)
    };
    until_loads(&mut chromium, 24);
    let option = "document.querySelector('.filter input[value=\"rtt=20ms\"]')";
    chromium.evaluate(&format!("{option}.focus(); {option}.click()"));
    fs::rename(&full, folder.path().join("live.db")).expect("a new name");
    until_loads(&mut chromium, 32);
    assert_eq!(chromium.evaluate(&format!("{option}.checked")), false);
    assert_eq!(
        chromium.evaluate(&format!("document.activeElement === {option}")),
        true
    );
    let shown = "[...document.querySelectorAll('[data-figure^=load-over-rate] figure')].filter(it => it.checkVisibility()).length";
    chromium.evaluate("document.querySelectorAll('details').forEach(it => it.open = true)");
    assert_eq!(chromium.evaluate(shown), 4);
}

/// Runs the experiment `live` until its store has `cells` cells, and kills it then.
fn run_until(folder: &Path, cells: usize) {
    let mut command = spdy(&["lab", "run", "live.toml", "--jobs", "1"]);
    command
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().expect("start the program");
    until("the cells are stored", || {
        stored_cells(folder) >= cells || child.try_wait().expect("wait for the process").is_some()
    });
    let _ = child.kill();
    child.wait().expect("wait for the process");
}

/// Number of cells in the store of `live`.
fn stored_cells(folder: &Path) -> usize {
    let Ok(connection) = Connection::open(folder.join("live.db")) else {
        return 0;
    };
    let count = "SELECT count(DISTINCT cell) FROM results";
    let count = connection.query_row(count, [], |row| row.get::<_, i64>(0));
    count.map_or(0, |count| count as usize)
}
