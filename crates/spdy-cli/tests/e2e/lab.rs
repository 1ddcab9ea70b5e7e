//! `spdy lab`: experiments that end the same whatever befell them, and stores that say what they are.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use rusqlite::Connection;
use serde_json::Value;

use crate::support::lab::{Lab, SMALL, text};
use crate::support::program::{ended_with, spdy};

/// A store but for the places of its head (SQLite's file format §1.3) that count how often it was written, twice over,
/// and how often its tables changed, which being laid out anew counts as.
pub(crate) fn content(mut bytes: Vec<u8>) -> Vec<u8> {
    for counter in [24..28, 40..44, 92..96] {
        bytes[counter].fill(0);
    }
    bytes
}

#[test]
fn a_run_is_the_same_file_twice_whatever_the_number_of_jobs() {
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

    let again = lab.run("a.db", &[]);
    assert!(
        text(&again.stderr).contains("12 of 12 cells are there already"),
        "{}",
        text(&again.stderr)
    );
    assert!(
        lab.bytes("a.db") == lab.bytes("b.db"),
        "a run with nothing to do wrote something"
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
pub(crate) fn chance(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[test]
fn a_run_that_is_killed_ten_times_ends_as_one_that_was_left_alone() {
    let lab = Lab::new(SMALL);
    let begun = Instant::now();
    lab.run("alone.db", &[]);
    let whole = begun.elapsed();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let seed = now.expect("it is after 1970").as_nanos() as u64;
    let mut state = seed;
    let mut seen = Vec::new();
    for _ in 0..10 {
        // Ten times up to a third of the whole: some strike early, most on the way, the last may find all done.
        let moment = whole.mul_f64((chance(&mut state) % 1_000) as f64 / 3_000.0);
        run_and_kill_after(&lab, moment);
        seen.push(lab.cells_in("killed.db"));
    }
    assert!(seen.is_sorted(), "seed {seed}: cells were lost: {seen:?}");
    lab.run("killed.db", &[]);
    assert_eq!(
        lab.csv("killed.db"),
        lab.csv("alone.db"),
        "seed {seed}, cells after each kill {seen:?}"
    );
    assert!(
        content(lab.bytes("killed.db")) == content(lab.bytes("alone.db")),
        "seed {seed}, cells after each kill {seen:?}: the files differ"
    );
}

/// Starts the experiment and kills it at that moment, if it is not over by then.
fn run_and_kill_after(lab: &Lab, moment: Duration) {
    let mut child = lab
        .command(&["run", "small.toml", "--store", "killed.db"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program can be started");
    let mut stdout = child.stdout.take().expect("it is piped");
    let (sender, over) = mpsc::channel();
    let reader = thread::spawn(move || {
        let _ = stdout.read_to_end(&mut Vec::new());
        let _ = sender.send(());
    });
    let _ = over.recv_timeout(moment);
    let _ = child.kill();
    child.wait().expect("it was ours");
    reader.join().expect("reading does not panic");
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_run_in_order_and_the_same_command_goes_on() {
    let lab = Lab::new(&SMALL.replace("[2, 6]", "[1, 2, 3, 4, 5, 6, 7, 8]"));
    let child = lab
        .command(&["run", "small.toml", "--store", "a.db", "--jobs", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let (_never, tick) = mpsc::channel::<()>();
    while lab.cells_in("a.db") == 0 {
        let _ = tick.recv_timeout(Duration::from_millis(5));
    }
    interrupt(&child);
    let output = child.wait_with_output().expect("it was ours");
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(
        told.contains("ended early") && told.contains("the same command goes on"),
        "{told}"
    );
    assert!(
        (1..48).contains(&lab.cells_in("a.db")),
        "{} cells",
        lab.cells_in("a.db")
    );
    lab.run("a.db", &[]);
    lab.run("b.db", &[]);
    assert!(
        content(lab.bytes("a.db")) == content(lab.bytes("b.db")),
        "the files differ"
    );
}

#[cfg(unix)]
fn interrupt(child: &Child) {
    let kill = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.expect("there is a kill").success());
}

#[cfg(unix)]
#[test]
fn ctrl_c_waits_for_no_cell_and_drops_what_is_not_whole() {
    let lab = Lab::new(
        "name = 'long'\nruns = 2000\npages = ['portal']\nprotocols = ['spdy']\n[factors]\nnetwork = 'cable'\n",
    );
    let child = lab
        .command(&["run", "small.toml", "--store", "a.db"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let (_never, tick) = mpsc::channel::<()>();
    while !lab.has_plan("a.db") {
        let _ = tick.recv_timeout(Duration::from_millis(5));
    }
    interrupt(&child);
    let output = child.wait_with_output().expect("it was ours");
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("stopping"), "{told}");
    assert!(told.contains("0 of 1 cells of 2000 loads"), "{told}");
    assert_eq!(lab.cells_in("a.db"), 0);
}

/// Whether a thread of `child` loads pages.
#[cfg(target_os = "linux")]
fn loads(child: &Child) -> bool {
    let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).expect("it runs");
    let mut names = tasks.map(|task| fs::read_to_string(task.expect("a task").path().join("comm")));
    names.any(|name| name.is_ok_and(|name| name == "load\n"))
}

#[cfg(target_os = "linux")]
#[test]
fn a_second_ctrl_c_ends_a_run_at_once() {
    let lab = Lab::new(&SMALL.replace("[2, 6]", "[1, 2, 3, 4]"));
    let mut child = lab
        .command(&["run", "small.toml", "--store", "a.db", "--jobs", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let (_never, tick) = mpsc::channel::<()>();
    while lab.cells_in("a.db") == 0 {
        let _ = tick.recv_timeout(Duration::from_millis(5));
    }
    // Loads go on, but no cell can be written: once the last is loaded it waits for us, and cannot end in order.
    let holder = Connection::open(lab.path("a.db")).expect("a store");
    let patience = holder.busy_timeout(Duration::from_secs(10));
    patience.expect("a setting");
    holder.execute_batch("BEGIN EXCLUSIVE").expect("a lock");
    while loads(&child) {
        let _ = tick.recv_timeout(Duration::from_millis(5));
    }
    interrupt(&child);
    let mut stderr = BufReader::new(child.stderr.take().expect("it is piped"));
    let mut line = String::new();
    stderr.read_line(&mut line).expect("text");
    assert!(line.contains("stopping"), "{line}");
    interrupt(&child);
    let status = child.wait().expect("it was ours");
    assert_eq!(status.code(), Some(130), "{status}");
    drop(holder);
    assert!((1..24).contains(&lab.cells_in("a.db")));
}

#[test]
fn two_runs_at_once_into_one_store_end_as_one_alone() {
    let lab = Lab::new(SMALL);
    let run = ["run", "small.toml", "--store", "both.db", "--jobs", "1"];
    let start = || {
        let mut command = lab.command(&run);
        let child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        child.expect("the program can be started")
    };
    for child in [start(), start()] {
        let output = child.wait_with_output().expect("it was ours");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    }
    lab.run("alone.db", &[]);
    assert!(
        content(lab.bytes("both.db")) == content(lab.bytes("alone.db")),
        "the files differ"
    );
}

#[test]
fn loads_that_are_not_whole_are_kept_marked_and_told() {
    let lab = Lab::new(
        "name = 'lossy'\npages = ['portal']\nprotocols = ['http', 'spdy']\n\
         [factors]\nrate = '10kbit'\nrtt = '100ms'\nloss = ['0', '50%']\n",
    );
    let output = ended_with(1, &mut lab.command(&["run", "small.toml"]));
    let (said, why) = (text(&output.stdout), text(&output.stderr));
    let [.., whole, lossy] = said.lines().collect::<Vec<_>>()[..] else {
        panic!("no table: {said}");
    };
    assert!(whole.starts_with("0 ") && !whole.contains('!'), "{said}");
    assert!(lossy.starts_with("50% ") && lossy.contains('!'), "{said}");
    assert!(why.ends_with(" of 4 loads are not whole\n"), "{why}");
    let csv = lab.csv("lossy.db");
    assert!(csv.contains("http://www.portal.test/"), "no cause in {csv}");
    // They are results as others are: nothing is loaded again.
    let again = ended_with(1, &mut lab.command(&["run", "small.toml"]));
    assert!(text(&again.stderr).contains("4 of 4 cells are there already"));
}

#[test]
fn a_folded_page_takes_its_connections_to_one_host() {
    let lab = Lab::new(
        "name = 'fold'\npages = ['portal']\nprotocols = ['spdy']\n[factors]\nnetwork = 'cable'\nfold = [false, true]\n",
    );
    let cells = ["cell", "small.toml", "1", "2", "--json"];
    let told = text(&ended_with(0, &mut lab.command(&cells)).stdout);
    let rows: Vec<Value> = told
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let connections: Vec<_> = rows
        .iter()
        .map(|row| (row["fold"].clone(), row["connections"].clone()))
        .collect();
    assert_eq!(connections, [(0.into(), 7.into()), (1.into(), 1.into())]);
    assert_eq!(rows[0]["requests"], rows[1]["requests"]);
    assert_eq!(rows[0]["page"], rows[1]["page"], "it is the same page");
}

/// Makes the store what version 1 of its tables was: without the choices that came later.
fn age(store: &Path) {
    let connection = Connection::open(store).expect("a store");
    let names = "SELECT name FROM pragma_table_info('results') ORDER BY cid";
    let names: Vec<String> = {
        let mut query = connection.prepare(names).expect("a table");
        let names = query.query_map([], |row| row.get(0)).expect("rows");
        names.collect::<Result<_, _>>().expect("text")
    };
    let place = |wanted: &str| names.iter().position(|name| name == wanted).expect(wanted);
    let later = &names[place("fold") + 1..place("dom_content_loaded_ms")];
    assert!(!later.is_empty());
    for name in later {
        let drop = format!("ALTER TABLE results DROP COLUMN {name}");
        connection.execute_batch(&drop).expect("a column");
    }
    let version = connection.pragma_update(None, "user_version", 1);
    version.expect("a number");
}

#[test]
fn a_store_of_an_earlier_version_is_read_and_not_added_to() {
    let lab = Lab::new(SMALL);
    lab.run("a.db", &[]);
    let today = lab.csv("a.db");
    age(&lab.path("a.db"));
    assert_eq!(lab.csv("a.db"), today);
    let before = lab.bytes("a.db");
    let run = ["run", "small.toml", "--store", "a.db"];
    let refused = text(&ended_with(1, &mut lab.command(&run)).stderr);
    assert!(refused.contains("version 1, want 2"), "{refused}");
    assert!(lab.bytes("a.db") == before, "it was written to");
}

#[test]
fn cells_are_listed_and_loaded_one_by_one_as_a_run_loads_them() {
    let lab = Lab::new(SMALL);
    let listed = text(&ended_with(0, &mut lab.command(&["cells", "small.toml"])).stdout);
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
    let told = text(&ended_with(0, &mut lab.command(&cell)).stdout);
    let rows: Vec<Value> = told
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
            other => other.as_f64().expect("a number").to_string(),
        };
        let line: Vec<_> = names.iter().map(|name| field(name)).collect();
        assert_eq!(lines[*id as usize - 1], line.join(","));
    }

    let unknown = ended_with(2, &mut lab.command(&["cell", "small.toml", "13"]));
    assert!(
        text(&unknown.stderr).contains("lists its 12"),
        "{}",
        text(&unknown.stderr)
    );
}

#[test]
fn a_cell_keeps_its_key_and_its_seeds_when_the_plan_gets_more_levels_and_protocols_share_seeds() {
    let cells = |experiment: &str| -> Vec<(String, Value)> {
        let lab = Lab::new(experiment);
        let listed =
            text(&ended_with(0, &mut lab.command(&["cells", "small.toml", "--json"])).stdout);
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
        assert!(larger.contains(cell), "{cell:?} is another now");
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
fn a_wrong_experiment_is_told_with_its_line_and_what_was_wanted() {
    let lab = Lab::new(&SMALL.replace("loss", "los"));
    let told = text(&ended_with(1, &mut lab.command(&["run", "small.toml"])).stderr);
    assert_eq!(told.lines().count(), 1, "{told}");
    for word in ["small.toml", "line 9, column 1", "\"los\"", "loss_up"] {
        assert!(told.contains(word), "no {word} in {told}");
    }
    assert!(!lab.path("small.db").exists(), "a store of nothing");
    let bare = Lab::new("name = 'bare'\npages = ['portal']\n[factors]\nconnections = 6\n");
    let told = text(&ended_with(1, &mut bare.command(&["run", "small.toml"])).stderr);
    assert!(told.contains("no network given: want a name"), "{told}");
    let told = text(&ended_with(2, &mut lab.command(&["run", "nowhere.toml"])).stderr);
    assert!(
        told.contains("nowhere.toml") && told.contains("lulic"),
        "{told}"
    );
    let lab = Lab::new(&SMALL.replace("\"portal\"", "\"gone.har\""));
    let told = text(&ended_with(2, &mut lab.command(&["run", "small.toml"])).stderr);
    assert!(told.contains("gone.har"), "{told}");
}

#[test]
fn a_store_of_something_else_is_left_as_it_is() {
    let lab = Lab::new(&SMALL.replace("runs = 2", "runs = 1").replace("[2, 6]", "6"));
    lab.run("a.db", &[]);
    let before = lab.bytes("a.db");
    let refused = |store: &str, words: &[&str]| {
        let run = ["run", "small.toml", "--store", store];
        let told = text(&ended_with(1, &mut lab.command(&run)).stderr);
        for word in words {
            assert!(told.contains(word), "no {word} in {told}");
        }
    };
    // Another plan.
    fs::write(lab.path("small.toml"), SMALL).expect("the folder can be written to");
    refused("a.db", &["a.db", "the plan small (", "want small ("]);
    assert!(lab.bytes("a.db") == before, "the store was written to");
    // Text, another program's database, another version of ours.
    fs::write(lab.path("text.db"), "these are no results\n".repeat(100))
        .expect("it can be written to");
    refused("text.db", &["no SQLite file"]);
    let other = |name: &str, sql: &str| {
        let connection = Connection::open(lab.path(name)).expect("a file can be made");
        connection.execute_batch(sql).expect("it is SQL");
    };
    other("other.db", "CREATE TABLE bookmarks (url TEXT)");
    refused("other.db", &["no store of experiments"]);
    fs::copy(lab.path("a.db"), lab.path("newer.db")).expect("a file can be copied");
    other("newer.db", "PRAGMA user_version = 99");
    refused("newer.db", &["version 99, want 2"]);
    let missing = ended_with(1, &mut lab.command(&["show", "missing.db"]));
    assert!(text(&missing.stderr).contains("there is no store missing.db"));
    assert!(!lab.path("missing.db").exists(), "looking made a file");
}

#[test]
fn a_page_that_changed_is_another_experiment() {
    let lab = Lab::new(
        &SMALL
            .replace("\"portal\"", "\"page.warc\"")
            .replace("runs = 2", "runs = 1")
            .replace("[2, 6]", "6"),
    );
    let replicas = Path::new(env!("CARGO_MANIFEST_DIR")).join("../spdy-page/replicas");
    let put = |name: &str| {
        fs::copy(replicas.join(name), lab.path("page.warc")).expect("a file can be copied")
    };
    put("portal.warc.gz");
    lab.run("a.db", &[]);
    put("flags.warc.gz");
    let told = text(
        &ended_with(
            1,
            &mut lab.command(&["run", "small.toml", "--store", "a.db"]),
        )
        .stderr,
    );
    assert!(told.contains("the page page.warc ("), "{told}");
}

#[test]
fn lulics_table_is_imported_shown_and_exported() {
    let lab = Lab::new(SMALL);
    let his = Connection::open(lab.path("results.db")).expect("a file can be made");
    his.execute_batch(
        "CREATE TABLE results (id INTEGER PRIMARY KEY, bw text, delay text, method text, site text,
                               onContentLoad INT, onLoad INT, tow FLOAT, run INT);
         INSERT INTO results VALUES
           (1, '100', '10', 'http', 'www.flags.test', 300, 30000, 31.5, 0),
           (2, '100', '10', 'spdy', 'www.flags.test', 400, 10000, 11.5, 0),
           (3, '100', '10', 'http', 'www.flags.test', 310, 32000, 33.5, 1),
           (4, '256', '10', 'http', 'www.flags.test', 200, 12000, 13.5, 0);",
    )
    .expect("it is SQL");
    let import = ["import", "results.db", "--store", "his.db"];
    ended_with(0, &mut lab.command(&import));
    let told = text(&ended_with(0, &mut lab.command(&["show", "his.db"])).stdout);
    let lines: Vec<_> = told.lines().collect();
    assert!(
        lines[0].starts_with("results: 3 of 3 cells") && lines[0].contains("imported"),
        "{told}"
    );
    assert_eq!(lines[1], "everywhere page=www.flags.test delay=10");
    assert_eq!(
        lines[2..],
        [
            "bw    http   spdy  ratio",
            "100  31000  10000   0.32",
            "256  12000      –      –"
        ]
    );
    let csv = lab.csv("his.db");
    let starts: Vec<_> = csv
        .lines()
        .skip(1)
        .map(|line| line.split(",\"page=").next().expect("a part"))
        .collect();
    assert_eq!(
        starts,
        [
            "1,100,10,http,www.flags.test,300,30000,31.5,1",
            "2,100,10,http,www.flags.test,310,32000,33.5,2",
            "3,100,10,spdy,www.flags.test,400,10000,11.5,1",
            "4,256,10,http,www.flags.test,200,12000,13.5,1",
        ]
    );
    // It is not written over, and its rows are nobody else's.
    let again = ended_with(1, &mut lab.command(&import));
    assert!(
        text(&again.stderr).contains("there already"),
        "{}",
        text(&again.stderr)
    );
    let run = ["run", "small.toml", "--store", "his.db"];
    let told = text(&ended_with(1, &mut lab.command(&run)).stderr);
    assert!(told.contains("the plan results ("), "{told}");

    // A store has his columns too, but more than they say tells its cells apart.
    let ours = ended_with(
        1,
        &mut lab.command(&["import", "his.db", "--store", "twice.db"]),
    );
    assert!(
        text(&ours.stderr).contains("his.db is a store of spdy already"),
        "{}",
        text(&ours.stderr)
    );
    assert!(!lab.path("twice.db").exists(), "a store of nothing");

    his.execute_batch("ALTER TABLE results DROP COLUMN tow")
        .expect("it is SQL");
    let wrong = ended_with(
        1,
        &mut lab.command(&["import", "results.db", "--store", "wrong.db"]),
    );
    assert!(
        text(&wrong.stderr).contains("want the columns id, bw, delay"),
        "{}",
        text(&wrong.stderr)
    );
    assert!(!lab.path("wrong.db").exists(), "a store of nothing");
}

#[test]
fn two_stores_are_compared_cell_by_cell_and_a_budget_is_held() {
    let lab = Lab::new(SMALL);
    lab.run("before.db", &[]);
    let same = text(
        &ended_with(
            0,
            &mut lab.command(&["compare", "before.db", "before.db", "--budget", "0%"]),
        )
        .stdout,
    );
    assert!(
        same.contains("load of 12 cells: 0 slower, 0 faster, 12 the same within 1 %, 0 undecided"),
        "{same}"
    );
    assert!(
        same.contains("all in all 1.000 of before (1.000 to 1.000)"),
        "{same}"
    );

    // Another network by the same names: what a worse site or program would look like.
    let worse = "UPDATE results SET load_ms = load_ms * 1.05, bytes_down = bytes_down / 2 WHERE method = 'spdy'";
    fs::copy(lab.path("before.db"), lab.path("after.db")).expect("it can be copied");
    let connection = Connection::open(lab.path("after.db")).expect("a store");
    assert_eq!(connection.execute(worse, []).expect("rows"), 12);
    drop(connection);
    let compare = |code, more: &[&str]| {
        let mut command = lab.command(&["compare", "before.db", "after.db"]);
        ended_with(code, command.args(more))
    };
    let shown = text(&compare(0, &[]).stdout);
    assert!(
        shown.contains("2 slower, 0 faster, 6 the same within 1 %, 4 undecided"),
        "{shown}"
    );
    assert!(shown.contains("1.050-1.050"), "{shown}");
    let bytes = text(&compare(0, &["--measure", "bytes"]).stdout);
    assert!(bytes.contains("0 more, 2 less, 6 the same"), "{bytes}");
    compare(0, &["--budget", "6%"]);
    let over = text(&compare(1, &["--budget", "4.9%"]).stderr);
    assert!(
        over.contains("2 cells take more than 4.9")
            && over.contains("5.0 % more")
            && over.contains("4 cells are over the budget and undecided"),
        "{over}"
    );
    let json: Value = serde_json::from_slice(&compare(0, &["--json"]).stdout).expect("JSON");
    assert_eq!(json["cells"].as_array().expect("cells").len(), 12);
    assert_eq!(json["cells"][0]["paired"], true);

    // A cell that is there no more passes no gate.
    let connection = Connection::open(lab.path("after.db")).expect("a store");
    connection
        .execute(
            "UPDATE results SET load_ms = load_ms / 1.05 WHERE method = 'spdy'",
            [],
        )
        .expect("rows");
    connection
        .execute("DELETE FROM results WHERE id <= 2", [])
        .expect("rows");
    drop(connection);
    compare(0, &[]);
    let gone = text(&compare(1, &["--budget", "2%"]).stderr);
    assert!(
        gone.contains("1 cells of before cannot be compared"),
        "{gone}"
    );
    ended_with(
        2,
        &mut lab.command(&["compare", "before.db", "after.db", "--budget", "much"]),
    );
    ended_with(
        2,
        &mut lab.command(&["compare", "before.db", "after.db", "--measure", "joy"]),
    );
    ended_with(1, &mut lab.command(&["compare", "before.db", "nowhere.db"]));
}

#[test]
fn more_than_the_limits_is_refused() {
    let at_most = |bytes: usize| SMALL.to_owned() + &"#".repeat(bytes - SMALL.len());
    let lab = Lab::new(&at_most(1 << 20));
    ended_with(0, &mut lab.command(&["cells", "small.toml"]));
    let lab = Lab::new(&at_most((1 << 20) + 1));
    let told = ended_with(1, &mut lab.command(&["cells", "small.toml"]));
    assert!(
        text(&told.stderr).contains("longer than 1048576 bytes"),
        "{}",
        text(&told.stderr)
    );

    let his = Connection::open(lab.path("results.db")).expect("a file can be made");
    his.execute_batch(
        "CREATE TABLE results (id INTEGER PRIMARY KEY, bw, delay, method, site, onContentLoad, onLoad, tow, run);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i <= 100000)
         INSERT INTO results SELECT i, '100', '10', 'http', 'a', 1, 2, 0.5, i FROM n;",
    )
    .expect("it is SQL");
    let import = |store: &str| {
        let mut command = lab.command(&["import", "results.db", "--store", store]);
        command.output().expect("the program can be started")
    };
    let told = text(&import("a.db").stderr);
    assert!(
        told.contains("more than 100000 rows") && !lab.path("a.db").exists(),
        "{told}"
    );
    his.execute_batch("DELETE FROM results WHERE id = 7")
        .expect("it is SQL");
    assert_eq!(text(&import("a.db").stdout), "a.db: 100000 loads\n");
}

#[test]
fn a_report_of_a_store_needs_no_network_and_takes_no_name_for_markup() {
    let lab = Lab::new(SMALL);
    lab.run("small.db", &[]);
    ended_with(0, &mut lab.command(&["report", "small.db"]));
    let html = fs::read_to_string(lab.path("small.html")).expect("a report");
    for heading in [
        "Experiment: small",
        "One against the other",
        "Load time over loss",
        "Load time over connections",
        "DOMContentLoaded, load and time on wire",
        "Ratios over loss and connections",
        "Distribution",
        "Waterfalls",
        "On the wire",
        "Cells to look at",
    ] {
        assert!(html.contains(heading), "no {heading}");
    }
    // 12 cells of two protocols: 6 dots against the midline; each cell once over each of two factors, and thrice as three moments.
    assert_eq!(html.matches("class=\"dot faint ").count(), 6);
    assert_eq!(html.matches("class=\"dot p-").count(), 24 + 36);
    assert_eq!(html.matches("class=\"chart waterfall named\"").count(), 2);
    assert!(html.contains("those of the store, to the nanosecond"));
    for outside in ["<script", " src=", " href=", "<link", "url("] {
        assert!(!html.contains(outside), "{outside} in it");
    }
    let written = text(
        &ended_with(
            0,
            &mut lab.command(&["report", "small.db", "--output", "-"]),
        )
        .stdout,
    );
    assert_eq!(written, html);

    let connection = Connection::open(lab.path("small.db")).expect("a store");
    let hostile = "UPDATE results SET failures = '<script>alert(1)</script>', cell = replace(cell, 'portal', '<b onload=x>')";
    connection.execute(hostile, []).expect("rows");
    drop(connection);
    let html = text(
        &ended_with(
            0,
            &mut lab.command(&["report", "small.db", "--output", "-"]),
        )
        .stdout,
    );
    assert!(html.contains("&lt;script&gt;alert(1)") && html.contains("&lt;b onload=x&gt;"));
    assert!(!html.contains("<script") && !html.contains("<b "));
    ended_with(1, &mut lab.command(&["report", "nowhere.db"]));
    let hostile = "UPDATE results SET cell = replace(cell, 'page=', 'page=../../x/')";
    let connection = Connection::open(lab.path("small.db")).expect("a store");
    connection.execute(hostile, []).expect("rows");
    drop(connection);
    ended_with(
        0,
        &mut lab.command(&["report", "small.db", "--svg", "figures"]),
    );
    let figures = fs::read_dir(lab.path("figures")).expect("they were made");
    let mut count = 0;
    for figure in figures {
        let svg = fs::read_to_string(figure.expect("a file").path()).expect("text");
        assert!(!svg.contains("<b ") && !svg.contains("onload=x>"), "{svg}");
        count += 1;
    }
    assert_eq!(count, 9);

    // A report is not written over what it is of, nor is a table.
    let before = lab.bytes("small.db");
    ended_with(
        2,
        &mut lab.command(&["report", "small.db", "--output", "small.db"]),
    );
    ended_with(
        2,
        &mut lab.command(&["export", "small.db", "--csv", "./small.db"]),
    );
    assert!(
        lab.bytes("small.db") == before,
        "the store was written over"
    );

    // A time without an end has no place in a picture, and no name speaks to a terminal.
    let connection = Connection::open(lab.path("small.db")).expect("a store");
    let endless = "UPDATE results SET load_ms = 9e999, cell = replace(cell, '<b', char(27) || ']0;x') WHERE id = 1";
    connection.execute(endless, []).expect("rows");
    drop(connection);
    ended_with(
        0,
        &mut lab.command(&["report", "small.db", "--output", "-"]),
    );
    lab.run("other.db", &[]);
    let told = ended_with(
        1,
        &mut lab.command(&["compare", "small.db", "other.db", "--budget", "1%"]),
    );
    assert!(!told.stderr.contains(&27), "{}", text(&told.stderr));
}

#[test]
fn claims_are_told_as_text_json_and_markdown_and_the_same_twice() {
    let told = |more: &[&str]| {
        let quick = ["lab", "reproduce", "mineki", "--quick"];
        text(&ended_with(0, spdy(&quick).args(more)).stdout)
    };
    let one = told(&["--jobs", "1"]);
    assert_eq!(one, told(&["--jobs", "3"]));
    for word in ["mineki", "accelerator", "33.3 % ± 6.0 %", "3 claims: "] {
        assert!(one.contains(word), "no {word:?} in {one}");
    }
    let findings: Vec<Value> = told(&["--json"])
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(findings.len(), 3);
    assert_eq!(findings[0]["expected"]["number"]["value"], 33.3);
    assert!(findings[0]["measured"]["points"][0]["estimate"]["low"].is_number());
    let markdown = told(&["--markdown"]);
    assert!(
        markdown.starts_with("### mineki\n\n| claim | "),
        "{markdown}"
    );

    // What needs recordings says so; a folder without them is a fault.
    let belshe = spdy(&["lab", "reproduce", "belshe", "--quick"]).output();
    let belshe = text(&belshe.expect("the program can be started").stdout);
    assert!(belshe.contains("no corpus given"), "{belshe}");
    let empty = tempfile::tempdir().expect("a folder can be made");
    let folder = empty.path().to_str().expect("a name in UTF-8");
    let nothing = ended_with(
        1,
        &mut spdy(&["lab", "reproduce", "all", "--corpus", folder]),
    );
    assert!(
        text(&nothing.stderr).contains("holds no page"),
        "{}",
        text(&nothing.stderr)
    );
    ended_with(2, &mut spdy(&["lab", "reproduce", "nobody"]));
}
