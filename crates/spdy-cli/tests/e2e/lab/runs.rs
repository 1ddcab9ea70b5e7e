//! `spdy lab run`: results are deterministic, also after interruptions.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rusqlite::Connection;
use serde_json::Value;
use spdy_testkit::wait::{ended, until};

use crate::support::lab::experiment_folder::{Lab, SMALL, text};
use crate::support::program::{output_of, run_expecting};

/// The bytes of a store without three counters in its header (SQLite's file format §1.3): two count writes, one counts schema
/// changes, and rebuilding the file changes them.
pub(crate) fn without_counters(mut bytes: Vec<u8>) -> Vec<u8> {
    for counter in [24..28, 40..44, 92..96] {
        bytes[counter].fill(0);
    }
    bytes
}

#[test]
fn a_run_writes_the_same_file_for_any_number_of_jobs() {
    let lab = Lab::new(SMALL);
    let first = lab.run("a.db", &["--jobs", "1"]);
    let second = lab.run("b.db", &["--jobs", "5"]);
    assert_eq!(text(&first.stdout), text(&second.stdout));
    assert!(
        text(&first.stdout).contains("12 of 12 cells, 2 loads each"),
        "{}",
        text(&first.stdout)
    );
    assert!(lab.bytes("a.db") == lab.bytes("b.db"), "the files differ");

    let output = lab.run("a.db", &[]);
    assert!(
        text(&output.stderr).contains("12 of 12 cells are already present"),
        "{}",
        text(&output.stderr)
    );
    assert!(
        lab.bytes("a.db") == lab.bytes("b.db"),
        "a run without remaining cells changed the store"
    );

    let csv = lab.csv("a.db");
    let mut lines = csv.lines();
    let head = lines.next().expect("a head");
    assert!(
        head.starts_with("id,bw,delay,method,site,onContentLoad,onLoad,tow,run,cell,"),
        "{head}"
    );
    let lines: Vec<_> = lines.collect();
    assert_eq!(lines.len(), 24);
    for (number, line) in (1..).zip(lines) {
        assert!(line.starts_with(&format!("{number},5mbit,14ms,")), "{line}");
    }
}

/// SplitMix64.
pub(crate) fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[test]
fn a_run_killed_ten_times_has_the_same_result() {
    let lab = Lab::new(SMALL);
    let start = Instant::now();
    lab.run("single.db", &[]);
    let duration = start.elapsed();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let seed = now.expect("a time after 1970").as_nanos() as u64;
    let mut state = seed;
    let mut cell_counts = Vec::new();
    for _ in 0..10 {
        // Up to a third of a full run each: some kills come early, most in the middle, and the last may find all cells loaded.
        let delay = duration.mul_f64((next_random(&mut state) % 1_000) as f64 / 3_000.0);
        run_and_kill_after(&lab, delay);
        cell_counts.push(lab.cells_in("killed.db"));
    }
    assert!(
        cell_counts.is_sorted(),
        "seed {seed}: cells were lost: {cell_counts:?}"
    );
    lab.run("killed.db", &[]);
    assert_eq!(
        lab.csv("killed.db"),
        lab.csv("single.db"),
        "seed {seed}, cells after each kill {cell_counts:?}"
    );
    assert!(
        without_counters(lab.bytes("killed.db")) == without_counters(lab.bytes("single.db")),
        "seed {seed}, cells after each kill {cell_counts:?}: the files differ"
    );
}

/// Starts the experiment and kills it after `delay`, unless it has ended before.
fn run_and_kill_after(lab: &Lab, delay: Duration) {
    let mut child = lab
        .command(&["run", "small.toml", "--store", "killed.db"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("start the program");
    let mut stdout = child.stdout.take().expect("a pipe");
    let (sender, finished) = mpsc::channel();
    let reader = thread::spawn(move || {
        let _ = stdout.read_to_end(&mut Vec::new());
        let _ = sender.send(());
    });
    let _ = finished.recv_timeout(delay);
    let _ = child.kill();
    child.wait().expect("wait for the process");
    reader.join().expect("the reader thread panicked");
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_a_run_and_the_same_command_resumes_it() {
    let lab = Lab::new(&SMALL.replace("[2, 6]", "[1, 2, 3, 4, 5, 6, 7, 8]"));
    let child = lab
        .command(&["run", "small.toml", "--store", "a.db", "--jobs", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start the program");
    until("a cell is stored", || lab.cells_in("a.db") > 0);
    interrupt(&child);
    let output = output_of(child);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("stopped early") && stderr.contains("run the same command to continue"),
        "{stderr}"
    );
    assert!(
        (1..48).contains(&lab.cells_in("a.db")),
        "{} cells",
        lab.cells_in("a.db")
    );
    lab.run("a.db", &[]);
    lab.run("b.db", &[]);
    assert!(
        without_counters(lab.bytes("a.db")) == without_counters(lab.bytes("b.db")),
        "the files differ"
    );
}

#[cfg(unix)]
fn interrupt(child: &Child) {
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.expect("run `kill`").success());
}

#[cfg(unix)]
#[test]
fn ctrl_c_drops_incomplete_cells() {
    let lab = Lab::new(
        "name = 'long'\nruns = 2000\npages = ['portal']\nprotocols = ['spdy']\n[factors]\nnetwork = 'cable'\n",
    );
    let child = lab
        .command(&["run", "small.toml", "--store", "a.db"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start the program");
    until("the plan is stored", || lab.has_plan("a.db"));
    interrupt(&child);
    let output = output_of(child);
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("stopping"), "{stderr}");
    assert!(stderr.contains("0 of 1 cells of 2000 loads"), "{stderr}");
    assert_eq!(lab.cells_in("a.db"), 0);
}

/// Whether a thread of `child` is loading pages.
#[cfg(target_os = "linux")]
fn is_loading(child: &Child) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).expect("a running process");
    let mut names = tasks.map(|task| fs::read_to_string(task.expect("a task").path().join("comm")));
    names.any(|name| name.is_ok_and(|name| name == "load\n"))
}

#[cfg(target_os = "linux")]
#[test]
fn a_second_ctrl_c_ends_a_run_at_once() {
    let lab = Lab::new(&SMALL.replace("[2, 6]", "[1, 2, 3]"));
    let mut child = lab
        .command(&["run", "small.toml", "--store", "a.db", "--jobs", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start the program");
    until("a cell is stored", || lab.cells_in("a.db") > 0);
    // Loads continue, but no cell can be written: after the last load the process waits for this lock, and cannot exit normally.
    let locked_store = Connection::open(lab.path("a.db")).expect("a store");
    let timeout_result = locked_store.busy_timeout(Duration::from_secs(10));
    timeout_result.expect("set the option");
    locked_store
        .execute_batch("BEGIN EXCLUSIVE")
        .expect("a lock");
    until("the last is loaded", || !is_loading(&child));
    interrupt(&child);
    // Before the second signal, the process has reported the first one.
    let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut text = String::new();
    while !text.contains("stopping") {
        let len = stderr.read_line(&mut text).expect("text");
        assert!(len > 0, "the process ended: {text}");
    }
    interrupt(&child);
    let status = ended(&mut child);
    assert_eq!(status.code(), Some(130), "{status}");
    drop(locked_store);
    assert!((1..18).contains(&lab.cells_in("a.db")));
}

#[test]
fn two_concurrent_runs_into_one_store_equal_one_run() {
    let lab = Lab::new(SMALL);
    let run = ["run", "small.toml", "--store", "both.db", "--jobs", "1"];
    let start = || {
        let mut command = lab.command(&run);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        child.expect("start the program")
    };
    for child in [start(), start()] {
        let output = output_of(child);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    lab.run("single.db", &[]);
    assert!(
        without_counters(lab.bytes("both.db")) == without_counters(lab.bytes("single.db")),
        "the files differ"
    );
}

#[test]
fn incomplete_loads_are_stored_marked_and_reported() {
    let lab = Lab::new(
        "name = 'lossy'\npages = ['portal']\nprotocols = ['http', 'spdy']\n\
         [factors]\nrate = '10kbit'\nrtt = '100ms'\nloss = ['0', '50%']\n",
    );
    let output = run_expecting(1, &mut lab.command(&["run", "small.toml"]));
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let [.., lossless, lossy] = stdout.lines().collect::<Vec<_>>()[..] else {
        panic!("no table: {stdout}");
    };
    assert!(
        lossless.starts_with("0 ") && !lossless.contains('!'),
        "{stdout}"
    );
    assert!(lossy.starts_with("50% ") && lossy.contains('!'), "{stdout}");
    assert!(stderr.ends_with(" of 4 loads are incomplete\n"), "{stderr}");
    let csv = lab.csv("lossy.db");
    assert!(csv.contains("http://www.portal.test/"), "no cause in {csv}");
    // They are results like others, so nothing is loaded again.
    let output = run_expecting(1, &mut lab.command(&["run", "small.toml"]));
    assert!(text(&output.stderr).contains("4 of 4 cells are already present"));
}

#[test]
fn a_folded_page_takes_its_connections_to_one_host() {
    let lab = Lab::new(
        "name = 'fold'\npages = ['portal']\nprotocols = ['spdy']\n[factors]\nnetwork = 'cable'\nfold = [false, true]\n",
    );
    let cells = ["cell", "small.toml", "1", "2", "--json"];
    let stdout = text(&run_expecting(0, &mut lab.command(&cells)).stdout);
    let rows: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let connections: Vec<_> = rows
        .iter()
        .map(|row| (row["fold"].clone(), row["connections"].clone()))
        .collect();
    assert_eq!(connections, [(0.into(), 7.into()), (1.into(), 1.into())]);
    assert_eq!(rows[0]["requests"], rows[1]["requests"]);
    assert_eq!(rows[0]["page"], rows[1]["page"], "the same page");
}

#[test]
fn single_cells_are_listed_and_load_the_same_as_in_a_run() {
    let lab = Lab::new(SMALL);
    let listed = text(&run_expecting(0, &mut lab.command(&["cells", "small.toml"])).stdout);
    let keys: Vec<_> = listed.lines().collect();
    assert_eq!(keys.len(), 12);
    assert_eq!(
        keys[3],
        "page=portal,protocol=spdy,network=cable,loss=0,connections=6"
    );
    assert_eq!(
        keys[11],
        "page=portal,protocol=spdy,network=cable,loss=2%25,connections=6"
    );

    let cell = ["cell", "small.toml", keys[11], "1", "--json"];
    let stdout = text(&run_expecting(0, &mut lab.command(&cell)).stdout);
    let rows: Vec<Value> = stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let ids: Vec<_> = rows
        .iter()
        .map(|row| row["id"].as_u64().expect("a number"))
        .collect();
    assert_eq!(ids, [23, 24, 1, 2]);
    lab.run("a.db", &[]);
    let csv = lab.csv("a.db");
    let mut lines = csv.lines();
    let names: Vec<_> = lines.next().expect("a head").split(',').collect();
    let lines: Vec<_> = lines.collect();
    for (id, row) in ids.iter().zip(&rows) {
        let field = |name: &str| match &row[name] {
            Value::Null => String::new(),
            Value::String(text) if text.contains(',') => format!("\"{text}\""),
            Value::String(text) => text.clone(),
            value => value.as_f64().expect("a number").to_string(),
        };
        let line: Vec<_> = names.iter().map(|name| field(name)).collect();
        assert_eq!(lines[*id as usize - 1], line.join(","));
    }

    let unknown = run_expecting(2, &mut lab.command(&["cell", "small.toml", "13"]));
    assert!(
        text(&unknown.stderr).contains("lists its 12"),
        "{}",
        text(&unknown.stderr)
    );
}

#[test]
fn adding_levels_keeps_keys_and_seeds_of_cells() {
    let cells = |experiment: &str| -> Vec<(String, Value)> {
        let lab = Lab::new(experiment);
        let listed =
            text(&run_expecting(0, &mut lab.command(&["cells", "small.toml", "--json"])).stdout);
        let cells = listed
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        cells
            .map(|cell| {
                (
                    cell["cell"].as_str().expect("a key").to_owned(),
                    cell["seeds"].clone(),
                )
            })
            .collect()
    };
    let small = cells(SMALL);
    let larger = cells(
        &SMALL
            .replace("[\"0\", ", "[\"0.5%\", \"0\", ")
            .replace("[\"http\", ", "[\"h2\", \"http\", "),
    );
    assert_eq!((small.len(), larger.len()), (12, 24));
    for cell in &small {
        assert!(larger.contains(cell), "{cell:?} changed");
    }
    let mut seeds: Vec<_> = small.iter().map(|(_, seeds)| seeds.to_string()).collect();
    assert_eq!(seeds[0], seeds[1], "http and spdy");
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(
        seeds.len(),
        6,
        "one for each combination of the other levels"
    );
}

#[test]
fn ineffective_levels_are_reported() {
    let lab = Lab::new(
        "name = 'a'\npages = ['portal']\nprotocols = ['http', 'spdy', 'h2']\n[factors]\nnetwork = 'dsl'\ncompression = ['masked', 0]\n",
    );
    let cells = run_expecting(0, &mut lab.command(&["cells", "small.toml"]));
    assert_eq!(text(&cells.stdout).lines().count(), 6, "all cells");
    let stderr = text(&cells.stderr);
    for line in [
        "compression has no effect on 4 of 6 cells (http, h2): only SPDY has this header compression",
        "2 cells differ from other cells only in their seeds",
    ] {
        assert!(stderr.contains(line), "{stderr}");
    }
}

#[test]
fn an_invalid_experiment_is_reported_with_its_line() {
    let lab = Lab::new(&SMALL.replace("loss", "los"));
    let stderr = text(&run_expecting(1, &mut lab.command(&["run", "small.toml"])).stderr);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    for word in ["small.toml", "line 9, column 1", "\"los\"", "loss_up"] {
        assert!(stderr.contains(word), "no {word} in {stderr}");
    }
    assert!(!lab.path("small.db").exists(), "a store of nothing");
    let bare = Lab::new("name = 'bare'\npages = ['portal']\n[factors]\nconnections = 6\n");
    let stderr = text(&run_expecting(1, &mut bare.command(&["run", "small.toml"])).stderr);
    assert!(stderr.contains("no network: give a name"), "{stderr}");
    let stderr = text(&run_expecting(2, &mut lab.command(&["run", "nowhere.toml"])).stderr);
    assert!(
        stderr.contains("nowhere.toml") && stderr.contains("lulic"),
        "{stderr}"
    );
    let lab = Lab::new(&SMALL.replace("\"portal\"", "\"gone.har\""));
    let stderr = text(&run_expecting(2, &mut lab.command(&["run", "small.toml"])).stderr);
    assert!(stderr.contains("gone.har"), "{stderr}");
}
