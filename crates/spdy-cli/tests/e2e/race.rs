//! Races: which loads they run, what they print, and that they are deterministic.

use std::fs;
use std::io::{BufRead, BufReader};
#[cfg(unix)]
use std::process::Stdio;

use serde_json::Value;

use spdy_page::archive;
use spdy_page::builtin;
use spdy_page::replica::Replica;

use crate::support::program::{run_expecting, spdy, stderr_of, stdout_of};

/// The fields of a load, in the order in which they are printed.
const FIELDS: [&str; 19] = [
    "replica",
    "protocol",
    "network",
    "seed",
    "dom_content_loaded_ms",
    "load_ms",
    "fcp_ms",
    "lcp_ms",
    "time_on_wire_ms",
    "connections",
    "requests",
    "packets_up",
    "packets_down",
    "bytes_up",
    "bytes_down",
    "request_header_bytes",
    "request_header_bytes_wire",
    "response_header_bytes",
    "response_header_bytes_wire",
];

#[test]
fn a_report_that_cannot_be_written_stops_the_race_before_it_starts() {
    let folder = tempfile::tempdir().expect("create a folder");
    let path = folder.path().join("missing").join("report.html");
    let path = path.to_str().expect("UTF-8");
    // This race would take hours.
    let race = ["race", "--runs", "100000", "--report", path];
    let stderr = stderr_of(2, &race);
    assert!(stderr.contains(&format!("cannot write {path}")), "{stderr}");
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_race_with_the_loads_that_are_done() {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    let race = [
        "race",
        "portal",
        "--network",
        "lte",
        "--runs",
        "100000",
        "--json",
    ];
    let mut child = spdy(&race)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start the program");
    let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
    let mut first = String::new();
    stdout.read_line(&mut first).expect("read the first load");
    let pid = Pid::from_raw(child.id().try_into().expect("a process number"));
    kill(pid, Signal::SIGINT).expect("send the signal");
    let rest: Vec<_> = stdout.lines().map(|line| line.expect("a line")).collect();
    for line in [first].iter().chain(&rest) {
        serde_json::from_str::<Value>(line).expect("a whole JSON object");
    }
    let output = child.wait_with_output().expect("the program ends");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let expected = format!(
        "stopped by a signal: {} of 400000 loads are done",
        rest.len() + 1
    );
    assert!(stderr.contains(&expected), "{stderr}, expected {expected}");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_race_with_an_incomplete_load_shows_the_others_and_fails() {
    let network = "down=10kbit,up=10kbit,rtt=100ms,loss=50%";
    let race = [
        "race",
        "flags",
        "--protocols",
        "spdy,http",
        "--network",
        network,
    ];
    let output = run_expecting(1, &mut spdy(&race));
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(stdout.contains("flags"), "{stdout}");
    assert!(
        stderr.contains("by spdy, seed 1, is incomplete"),
        "{stderr}"
    );
    let last = stderr.lines().last().expect("a reason");
    assert_eq!(last, "error: 1 of 2 loads are incomplete");
}

#[test]
fn the_pages_of_a_visit_are_loaded_one_after_the_other() {
    let folder = tempfile::tempdir().expect("create a folder");
    let visit = folder.path().join("visit.warc.gz");
    let pages = [builtin::portal(), builtin::flags()];
    let files = pages.iter().flat_map(|page| archive::encode(page, true));
    fs::write(&visit, files.collect::<Vec<_>>()).expect("write the file");
    let visit = visit.to_str().expect("a path of text");
    let race = [
        "race",
        visit,
        "portal",
        "--visit=3s",
        "--network",
        "cable",
        "--protocols",
        "h2",
        "--json",
    ];
    let loads: Vec<Value> = stdout_of(0, &race)
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    let facts = loads
        .iter()
        .map(|load| (load["replica"].as_str(), load["connections"].as_u64()));
    assert_eq!(
        facts.collect::<Vec<_>>(),
        [
            (Some("portal"), Some(7)),
            (Some("flags"), Some(1)),
            (Some("portal 2"), Some(0))
        ]
    );
    let table = stdout_of(
        0,
        &["race", "portal", "flags", "--visit", "--network", "cable"],
    );
    assert!(table.contains("flags"), "{table}");
    for (options, expected) in [
        (
            &["portal", "--visit"][..],
            "a visit has 2 to 10 pages, found 1",
        ),
        (
            &["portal", "flags", "--visit=1h"],
            "expected no, or a pause",
        ),
        (
            &["portal", "flags", "--visit", "--doctor"],
            "--doctor cannot be used with a visit",
        ),
        (
            &["portal", "flags", "--visit", "--accelerator=warm"],
            "a visit has no accelerator",
        ),
    ] {
        let words = [&["race"], options].concat();
        let output = run_expecting(2, &mut spdy(&words));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(expected), "{stderr}");
    }
}

#[test]
fn a_file_with_several_pages_is_noted_if_only_the_first_is_loaded() {
    let folder = tempfile::tempdir().expect("create a folder");
    let notes_of = |pages: &[Replica], options: &[&str]| {
        let file = folder.path().join("pages.warc.gz");
        let bytes = pages.iter().flat_map(|page| archive::encode(page, true));
        fs::write(&file, bytes.collect::<Vec<_>>()).expect("write the file");
        let mut race = spdy(&["race", "pages.warc.gz", "-n", "cable", "-p", "h2"]);
        let output = run_expecting(0, race.args(options).current_dir(folder.path()));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let [flags, portal] = [builtin::flags(), builtin::portal()];
    let three = [flags.clone(), portal, flags.clone()];
    let note = "note: pages.warc.gz has 3 pages: the first is loaded; --visit loads all\n";
    assert_eq!(notes_of(&three, &[]), note);
    assert_eq!(notes_of(&three, &["--visit"]), "");
    assert_eq!(notes_of(&three[..1], &[]), "");
    let eleven = vec![flags; 11];
    let note = "note: pages.warc.gz has 11 pages: the first is loaded\n";
    assert_eq!(notes_of(&eleven, &[]), note);
}

#[test]
fn a_race_is_deterministic() {
    let race = [
        "race",
        "portal",
        "--network",
        "down=2mbit,up=384kbit,rtt=100ms,loss=0.02",
        "--runs",
        "2",
        "--seed",
        "7",
        "--json",
    ];
    let first = stdout_of(0, &race);
    assert_eq!(first, stdout_of(0, &race));
    let loads: Vec<Value> = first
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line of JSON"))
        .collect();
    assert_eq!(loads.len(), 4 * 2);
    for load in &loads {
        let fields: Vec<_> = load
            .as_object()
            .expect("an object")
            .keys()
            .map(String::as_str)
            .collect();
        for field in FIELDS {
            assert!(fields.contains(&field), "no {field} in {load}");
        }
        assert!(
            load["load_ms"].as_f64() >= load["dom_content_loaded_ms"].as_f64(),
            "{load}"
        );
        let (first, largest) = (load["fcp_ms"].as_f64(), load["lcp_ms"].as_f64());
        assert!(first > Some(0.0) && first <= largest, "{load}");
        assert_eq!(load["failures"], serde_json::json!([]), "{load}");
    }
    let seeds: Vec<_> = loads
        .iter()
        .map(|load| load["seed"].as_u64().expect("a number"))
        .collect();
    assert_eq!(seeds, [7, 8, 7, 8, 7, 8, 7, 8]);
}

#[test]
fn a_race_reports_equal_runs() {
    let note = |network: &str, runs: &str| {
        let mut command = spdy(&["race", "flags", "-p", "spdy,https,h3", "--json"]);
        let output = run_expecting(0, command.args(["-n", network, "--runs", runs]));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        stderr
            .lines()
            .find(|line| line.starts_with("note: "))
            .map(str::to_owned)
    };
    // QUIC draws numbers from the seed.
    let expected = "note: over lte all 2 runs by spdy, https are equal: nothing in them is random";
    assert_eq!(note("lte", "2").as_deref(), Some(expected));
    assert_eq!(note("lte", "1"), None);
    assert_eq!(note("lte,loss=3%", "2"), None);
}

#[test]
fn a_race_over_a_trace_reads_its_file_and_names_a_wrong_line() {
    let folder = tempfile::tempdir().expect("create a folder");
    let write = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).expect("write the trace");
    };
    write("fast", "1\n");
    write("slow", "10\n");
    write("wrong", "1\nsoon\n");
    let race = |trace: &str| {
        let network = format!("down=trace:{trace},up=1mbit,rtt=40ms,queue=fq_codel");
        let arguments = [
            "race",
            "portal",
            "--protocols",
            "spdy",
            "--json",
            "--network",
        ];
        let mut command = spdy(&arguments);
        command.arg(network).current_dir(folder.path());
        command
    };
    let load_ms = |trace: &str| {
        let output = run_expecting(0, &mut race(trace));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        report["load_ms"].as_f64().expect("a time")
    };
    let (fast, slow) = (load_ms("fast"), load_ms("slow"));
    assert!(slow > 2.0 * fast, "{fast} and {slow} ms");
    let output = run_expecting(2, &mut race("wrong"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    let expected = "down=trace:wrong: line 2: found \"soon\", expected a time in milliseconds";
    assert!(stderr.contains(expected), "{stderr}");
}

#[test]
fn with_loss_another_seed_changes_the_race() {
    let race = |seed| {
        let network = "down=2mbit,up=384kbit,rtt=100ms,loss=0.02";
        let text = stdout_of(
            0,
            &[
                "race",
                "portal",
                "-n",
                network,
                "-p",
                "http,spdy",
                "--seed",
                seed,
                "--json",
            ],
        );
        text.replace(&format!("\"seed\":{seed}"), "")
    };
    assert_ne!(race("1"), race("2"));
}

#[test]
fn a_race_prints_a_table_and_writes_a_report() {
    let folder = tempfile::tempdir().expect("create a folder");
    let report = folder.path().join("race.html");
    let path = report.to_str().expect("the path is UTF-8");
    let output = run_expecting(
        0,
        &mut spdy(&["race", "portal", "--network", "dsl,lte", "--report", path]),
    );
    let table = String::from_utf8(output.stdout).expect("a table is UTF-8");
    let lines: Vec<_> = table.lines().collect();
    assert_eq!(lines.len(), 3, "{table}");
    for word in ["page", "network", "http", "https", "spdy", "h2", "ratio"] {
        assert!(lines[0].contains(word), "no {word} in {table}");
    }
    assert!(
        lines[1].starts_with("portal  dsl") && lines[1].contains("1.00") && lines[1].contains('█'),
        "{table}"
    );
    assert!(!table.contains('\u{1b}'), "colours in a pipe: {table}");
    let html = fs::read_to_string(report).expect("the report was written");
    assert!(
        html.contains("<svg") && html.contains("portal") && html.trim_end().ends_with("</html>")
    );
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("race.html"),
        "expected the path of the report"
    );
}

#[test]
fn a_race_shows_the_doctors_advice() {
    let folder = tempfile::tempdir().expect("create a folder");
    let report = folder.path().join("race.html");
    let path = report.to_str().expect("the path is UTF-8");
    let race = ["race", "portal", "--network", "cable", "-p", "https,spdy"];
    let with = |options: &[&str]| stdout_of(0, &[&race[..], options].concat());
    let table = with(&["--doctor=2", "--report", path]);
    let advice: Vec<_> = table
        .lines()
        .skip_while(|line| !line.is_empty())
        .skip(1)
        .collect();
    assert!(advice[0].starts_with("what would help"), "{table}");
    assert_eq!(advice.len(), 1 + 2 + 1, "{table}");
    // The advice is for the faster of the two loads, with the doctor's first finding.
    let loads = with(&["--json", "--doctor"]);
    let entries: Vec<Value> = loads
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let [by_https, by_spdy, examination] = &entries[..] else {
        panic!("expected two loads and an examination: {loads}");
    };
    let ms = |load: &Value| load["load_ms"].as_f64().expect("a number");
    let faster = if ms(by_spdy) < ms(by_https) {
        by_spdy
    } else {
        by_https
    };
    assert_eq!(examination["protocol"], faster["protocol"]);
    let protocol = faster["protocol"].as_str().expect("a name");
    let doctor_command = [
        "doctor",
        "portal",
        "-n",
        "cable",
        "--protocol",
        protocol,
        "--json",
    ];
    let doctor_report: Value = serde_json::from_str(&stdout_of(0, &doctor_command)).expect("JSON");
    assert_eq!(*examination, doctor_report);
    let (_, best) = advice[1].split_once(" %  ").expect("a part, and a change");
    let arguments = ["doctor", "portal", "-n", "cable", "--protocol", protocol];
    let stdout = stdout_of(0, &arguments);
    let first = stdout.lines().find(|line| line.contains(" %  "));
    assert!(
        first.is_some_and(|line| line.ends_with(best)),
        "{best}: {stdout}"
    );
    let html = fs::read_to_string(report).expect("the report was written");
    assert!(html.contains("<h2>What would help</h2>") && html.contains(best));
    let output = run_expecting(
        2,
        &mut spdy(&[&race[..], &["--doctor", "--set", "fold=yes"]].concat()),
    );
    assert!(String::from_utf8_lossy(&output.stderr).contains("fold"));
}

#[test]
fn a_race_writes_a_qlog_of_each_http3_connection() {
    let folder = tempfile::tempdir().expect("create a folder");
    let logs = folder.path().join("logs");
    let path = logs.to_str().expect("UTF-8");
    let mut race = spdy(&["race", "flags", "--network", "cable"]);
    run_expecting(0, race.args(["--protocols", "h2,h3", "--qlog", path]));
    let entries = fs::read_dir(&logs).expect("read the folder");
    let names: Vec<String> = entries
        .map(|entry| entry.expect("a file").file_name())
        .map(|name| name.into_string().expect("UTF-8"))
        .collect();
    assert_eq!(names, ["flags-h3-cable-1-0-www.world-flags.test.sqlog"]);
    let log = fs::read_to_string(logs.join(&names[0])).expect("read the log");
    assert!(log.starts_with("\u{1e}{\"qlog_version\":"), "{log:.80}");
    assert!(log.contains("\"transport:packet_received\""));
}
