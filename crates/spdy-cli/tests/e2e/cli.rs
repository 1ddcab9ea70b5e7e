//! The command line: what it says of itself, how it ends, what its results look like.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use serde_json::Value;
use spdy_testkit::wait::ended;

use crate::support::program::{run_expecting, spdy};

/// The fields of a load, in the order in which they are printed.
const FIELDS: [&str; 17] = [
    "replica",
    "protocol",
    "network",
    "seed",
    "dom_content_loaded_ms",
    "load_ms",
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

fn stdout_of(code: i32, arguments: &[&str]) -> String {
    String::from_utf8(run_expecting(code, &mut spdy(arguments)).stdout).expect("text is UTF-8")
}

fn stderr_of(code: i32, arguments: &[&str]) -> String {
    String::from_utf8(run_expecting(code, &mut spdy(arguments)).stderr).expect("text is UTF-8")
}

#[test]
fn help_matches_its_snapshot() {
    for command in [
        "",
        "accelerate",
        "accelerate audit",
        "accelerate schema",
        "race",
        "doctor",
        "serve",
        "fetch",
        "bench",
        "inspect",
        "lab",
        "lab run",
        "lab compare",
        "lab show",
        "lab report",
        "lab view",
        "lab compare",
        "lab cells",
        "lab cell",
        "lab merge",
        "lab import",
        "lab export",
        "lab browse",
        "lab calibrate",
        "lab shape",
        "lab reproduce",
        "record",
        "replica",
        "replica import",
        "replica show",
        "replica check",
        "replica draw",
        "replica export",
        "completions",
    ] {
        let arguments: Vec<_> = command.split_whitespace().chain(["--help"]).collect();
        let name = if command.is_empty() {
            "spdy".to_owned()
        } else {
            command.replace(' ', "-")
        };
        insta::assert_snapshot!(name, stdout_of(0, &arguments));
    }
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = stdout_of(0, &["completions", shell]);
        for command in ["race", "serve", "fetch", "replica"] {
            assert!(script.contains(command), "{shell} has no {command}");
        }
    }
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    for arguments in [
        &["walk"][..],
        &["race", "--runs", "0"],
        &["race", "--protocols", "spdi"],
        &["replica"],
    ] {
        run_expecting(2, &mut spdy(arguments));
    }
    for none in ["0", "-1", "x"] {
        let stderr = stderr_of(2, &["lab", "run", "lulic", &format!("--jobs={none}")]);
        assert!(
            stderr.contains("expected a whole number, 1 or more"),
            "{stderr}"
        );
    }
    for arguments in [
        &["serve", "portal", "--plain", "8080"][..],
        &["accelerate", "--origin", "http://a.test", "--tls", "8443"],
    ] {
        let stderr = stderr_of(2, arguments);
        assert!(
            stderr.contains("such as 127.0.0.1:8443 or [::]:443"),
            "{stderr}"
        );
    }
}

#[test]
fn load_options_take_effect_and_invalid_ones_state_the_expected() {
    let race = |options: &[&str]| {
        let mut command = spdy(&["race", "portal", "--network", "cable", "--json"]);
        command.args(["--protocols", "spdy"]).args(options);
        let output = run_expecting(0, &mut command);
        String::from_utf8(output.stdout).expect("JSON is text")
    };
    let usual = race(&[]);
    for choice in [
        &["--deploy", "first-party"][..],
        &["--set", "shard=3"],
        &["--set", "fold=yes"],
        &["--set", "cache=warm:1h"],
        &["--set", "frame=1024"],
        &["--push"],
        &["--push=all"],
    ] {
        assert_ne!(race(choice), usual, "{choice:?}");
    }
    assert_eq!(
        race(&["--push=no", "--deploy", "all", "--set", "cache=cold"]),
        usual
    );
    for (wrong_options, expected) in [
        (&["--deploy", "some"][..], "all or first-party"),
        (&["--set", "cache=warm:1"], "warm:1h"),
        (&["--set", "frame=63"], "64 to 1048576"),
        (&["--set", "shard=0"], "1 to 100"),
        (&["--push=some"], "no, yes or all"),
        (
            &["--set", "fold=yes", "--set", "shard=2"],
            "give one of them",
        ),
        (&["--push", "--set", "push=all"], "push is set twice"),
        (&["--set", "urls=paper"], "set accelerator=cold"),
    ] {
        let mut arguments = vec!["race"];
        arguments.extend(wrong_options);
        let stderr = stderr_of(2, &arguments);
        assert!(stderr.contains(expected), "{wrong_options:?}: {stderr}");
    }
}

#[test]
fn names_that_do_not_exist_get_the_list_of_those_that_do() {
    let cases: [(&[&str], &[&str]); 6] = [
        (&["race", "nowhere"], &["nowhere", "flags", "portal"]),
        (&["doctor", "nowhere"], &["nowhere", "flags", "portal"]),
        (&["serve", "nowhere"], &["nowhere", "flags", "portal"]),
        (
            &["race", "--network", "dls"],
            &["dls", "dsl", "cable", "3g", "lte", "fibre", "satellite"],
        ),
        (
            &["race", "--protocols", "http,spdi"],
            &["spdi", "http", "https", "spdy", "h2"],
        ),
        (
            &["replica", "show", "nowhere"],
            &["nowhere", "flags", "portal", "mineki", "lulic-bing"],
        ),
    ];
    for (arguments, words) in cases {
        let stderr = stderr_of(2, arguments);
        for word in words {
            assert!(
                stderr.contains(word),
                "{arguments:?}: no {word} in {stderr}"
            );
        }
    }
}

#[test]
fn a_page_of_an_experiment_is_found_by_its_name() {
    let race = [
        "race", "mineki", "-q", "-p", "spdy", "-n", "cable", "--json",
    ];
    assert!(stdout_of(0, &race).contains("\"replica\":\"mineki\""));
    assert!(stdout_of(0, &["replica", "show", "mineki"]).contains("7 hosts"));
    let folder = tempfile::tempdir().expect("create a folder");
    let file = folder.path().join("page.replica");
    for name in ["portal", "mineki"] {
        let import = [
            "replica",
            "import",
            name,
            "-o",
            file.to_str().expect("text"),
        ];
        let stdout = stdout_of(0, &import);
        assert!(stdout.contains("44 exchanges"), "{stdout}");
        fs::remove_file(&file).expect("the file exists");
    }
}

#[test]
fn an_error_is_one_line_and_ends_with_1() {
    let folder = tempfile::tempdir().expect("create a folder");
    let file = folder.path().join("page.har");
    fs::write(&file, "{\"log\": 7}").expect("write the file");
    let stderr = stderr_of(
        1,
        &["replica", "show", file.to_str().expect("the path is UTF-8")],
    );
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("error: cannot open "), "{stderr}");
}

#[test]
fn a_race_with_a_load_that_is_not_whole_shows_the_others_and_fails() {
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
        assert_eq!(load["failures"], serde_json::json!([]), "{load}");
    }
    let seeds: Vec<_> = loads
        .iter()
        .map(|load| load["seed"].as_u64().expect("a number"))
        .collect();
    assert_eq!(seeds, [7, 8, 7, 8, 7, 8, 7, 8]);
}

#[test]
fn with_loss_another_seed_is_another_race() {
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
    let brief: Vec<_> = table
        .lines()
        .skip_while(|line| !line.is_empty())
        .skip(1)
        .collect();
    assert!(brief[0].starts_with("what would help"), "{table}");
    assert_eq!(brief.len(), 1 + 2 + 1, "{table}");
    // By the faster of the two, and what the doctor has first.
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
    let of_doctor = [
        "doctor",
        "portal",
        "-n",
        "cable",
        "--protocol",
        protocol,
        "--json",
    ];
    let of_doctor: Value = serde_json::from_str(&stdout_of(0, &of_doctor)).expect("JSON");
    assert_eq!(*examination, of_doctor);
    let (_, best) = brief[1].split_once(" %  ").expect("a part, and a change");
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
fn quiet_prints_only_the_result() {
    let output = run_expecting(
        0,
        &mut spdy(&[
            "race",
            "portal",
            "--network",
            "dsl",
            "-p",
            "spdy",
            "--quiet",
        ]),
    );
    assert!(!output.stdout.is_empty());
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn colour_is_used_on_terminals_or_on_request() {
    let race = |options: &[&str]| {
        stdout_of(
            0,
            &[
                &["race", "portal", "--network", "dsl", "-p", "http,spdy"],
                options,
            ]
            .concat(),
        )
    };
    assert!(!race(&[]).contains('\u{1b}'));
    assert!(race(&["--color", "always"]).contains('\u{1b}'));
}

#[test]
fn a_closed_stdout_ends_the_program_quietly() {
    let mut command = spdy(&[
        "race",
        "portal",
        "--network",
        "dsl,cable,lte",
        "--runs",
        "20",
        "--json",
    ]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start `spdy`");
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    stdout.read_line(&mut line).expect("a first line");
    drop(stdout);
    assert!(line.starts_with('{'), "{line}");
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .expect("a pipe")
        .read_to_string(&mut stderr)
        .expect("text");
    assert_eq!((ended(&mut child).code(), stderr.as_str()), (Some(0), ""));
}

/// A recording of a page with one image, whose body the recorder left out, and one request that failed.
const HAR: &str = r#"{"log":{"version":"1.2","creator":{"name":"hand","version":"1"},"pages":[
  {"id":"p1","startedDateTime":"2013-06-04T10:00:00.000Z","title":"t","pageTimings":{"onContentLoad":90,"onLoad":120}}],
 "entries":[
  {"pageref":"p1","startedDateTime":"2013-06-04T10:00:00.000Z","time":50,"serverIPAddress":"192.0.2.1","cache":{},
   "request":{"method":"GET","url":"http://a.test/","httpVersion":"HTTP/1.1","headers":[{"name":"Host","value":"a.test"}],
    "cookies":[],"queryString":[],"headersSize":-1,"bodySize":0},
   "response":{"status":200,"statusText":"OK","httpVersion":"HTTP/1.1","headers":[{"name":"Content-Type","value":"text/html"}],
    "cookies":[],"redirectURL":"","headersSize":-1,"bodySize":39,
    "content":{"size":39,"mimeType":"text/html","text":"<html><img src=\"http://b.test/i.png\"> "}},
   "timings":{"blocked":0,"dns":-1,"connect":-1,"send":0,"wait":40,"receive":10}},
  {"pageref":"p1","startedDateTime":"2013-06-04T10:00:00.060Z","time":30,"serverIPAddress":"192.0.2.2","cache":{},
   "request":{"method":"GET","url":"http://b.test/i.png","httpVersion":"HTTP/1.1","headers":[{"name":"Host","value":"b.test"}],
    "cookies":[],"queryString":[],"headersSize":-1,"bodySize":0},
   "response":{"status":200,"statusText":"OK","httpVersion":"HTTP/1.1","headers":[{"name":"Content-Type","value":"image/png"}],
    "cookies":[],"redirectURL":"","headersSize":-1,"bodySize":1234,"content":{"size":1234,"mimeType":"image/png"}},
   "timings":{"blocked":0,"dns":-1,"connect":-1,"send":0,"wait":20,"receive":10}}]}}"#;

#[test]
fn a_recording_becomes_a_replica_that_shows_checks_and_races() {
    let folder = tempfile::tempdir().expect("create a folder");
    let path = |name: &str| {
        folder
            .path()
            .join(name)
            .to_str()
            .expect("the path is UTF-8")
            .to_owned()
    };
    fs::write(path("page.har"), HAR).expect("write the file");

    let imported = stdout_of(
        0,
        &[
            "replica",
            "import",
            &path("page.har"),
            "-o",
            &path("page.replica"),
            "--json",
        ],
    );
    let imported: Value = serde_json::from_str(&imported).expect("JSON");
    assert_eq!(
        (&imported["exchanges"], &imported["filler_bodies"]),
        (&2.into(), &1.into()),
        "{imported}"
    );

    let summary: Value = serde_json::from_str(&stdout_of(
        0,
        &["replica", "show", &path("page.replica"), "--json"],
    ))
    .expect("JSON");
    assert_eq!(
        summary["hosts"].as_array().map(Vec::len),
        Some(2),
        "{summary}"
    );
    let text = stdout_of(
        0,
        &["replica", "show", &path("page.replica"), "--resources"],
    );
    assert!(
        text.contains("a.test") && text.contains("http://b.test/i.png"),
        "{text}"
    );

    for file in ["page.har", "page.replica"] {
        let line = stdout_of(
            0,
            &[
                "race",
                &path(file),
                "-n",
                "dsl",
                "-p",
                "spdy",
                "--json",
                "--quiet",
            ],
        );
        let load: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(load["requests"], 2, "{load}");
    }
}

#[test]
fn a_sound_replica_passes_its_check() {
    for name in ["flags", "portal"] {
        stdout_of(0, &["replica", "check", name]);
    }
}

#[test]
fn an_unknown_format_is_reported_with_its_first_bytes() {
    let folder = tempfile::tempdir().expect("create a folder");
    let file = folder.path().join("photo.har");
    fs::write(&file, b"\x89PNG....").expect("write the file");
    let path = file.to_str().expect("the path is UTF-8");
    let stderr = stderr_of(1, &["replica", "import", path, "-o", "nothing.replica"]);
    assert!(stderr.contains("PNG") && stderr.contains("HAR"), "{stderr}");
}

#[test]
fn the_doctor_warns_of_chance_where_there_is_some_and_runs_are_few() {
    let warning = "a saving may be random too";
    let examine = |network: &str, runs: &str| {
        let doctor = ["doctor", "portal", "--network", network, "--runs", runs];
        stderr_of(0, &doctor)
    };
    let lossy = "down=5mbit,up=1mbit,rtt=20ms,loss=0.5%";
    assert!(examine(lossy, "1").contains(warning), "one run");
    assert!(!examine(lossy, "6").contains(warning), "six runs");
    assert!(!examine("cable", "1").contains(warning), "no randomness");
    let default = ["doctor", "portal", "--network", lossy];
    assert!(!stderr_of(0, &default).contains(warning), "default runs");
}

/// With one seed, 1 % loss is faster than none on some pages, by chance.
#[test]
fn the_doctor_reports_no_difference_within_chance() {
    let loss = |options: &[&str]| {
        let arguments = ["doctor", "flags", "--network", "cable", "--json"];
        let json = stdout_of(0, &[&arguments[..], options].concat());
        let examination: Value = serde_json::from_str(&json).expect("JSON");
        let findings = examination["findings"].as_array().expect("a list");
        let loss = findings.iter().find(|finding| finding["change"] == "loss");
        loss.expect("loss is tried").clone()
    };
    let several = loss(&[]);
    assert_eq!(several["runs"], 9, "{several}");
    let saved_load = &several["saved_load"];
    let ms = |name: &str| saved_load[name].as_f64().expect("a number");
    assert!(ms("low_ms") < ms("high_ms"), "{several}");
    let includes_zero = ms("low_ms") <= 0.0 && ms("high_ms") >= 0.0;
    assert_eq!(saved_load["is_certain"], !includes_zero, "{several}");
    let single_run = loss(&["--runs", "1"]);
    assert_eq!(
        (&single_run["runs"], &single_run["saved_load"]["is_certain"]),
        (&1.into(), &false.into())
    );
    let text = stdout_of(0, &["doctor", "flags", "--network", "cable", "--runs", "1"]);
    let row = text
        .lines()
        .find(|line| line.ends_with("1 % of packets lost"));
    assert!(row.is_some_and(|row| row.contains("–")), "{text}");
}

#[test]
fn the_doctor_is_deterministic() {
    let stdout = stdout_of(0, &["doctor", "portal", "--network", "cable"]);
    let first = stdout.lines().next().expect("a line");
    assert!(
        first.starts_with("portal over cable by spdy: load "),
        "{first}"
    );
    assert!(stdout.contains("fold all 6 other hosts ("), "{stdout}");
    assert!(stdout.contains("twice the round-trip time"), "{stdout}");
    let arguments = ["doctor", "portal", "--network", "cable", "--json"];
    let json = stdout_of(0, &arguments);
    assert_eq!(json, stdout_of(0, &arguments));
    let examination: Value = serde_json::from_str(&json).expect("JSON");
    let findings = examination["findings"].as_array().expect("findings");
    let fold = &findings[0];
    assert_eq!(fold["remedy"], "fold");
    let ms = |value: &Value| value.as_f64().expect("milliseconds");
    let saved_ms = ms(&examination["now"]["load_ms"]) - ms(&fold["load_ms"]);
    assert!(
        (saved_ms - ms(&fold["saved_load"]["median_ms"])).abs() < 1e-6 && saved_ms > 0.0,
        "{fold}"
    );
    assert_eq!(
        (&fold["runs"], &fold["saved_load"]["is_certain"]),
        (&1.into(), &true.into())
    );
}

#[test]
fn a_replica_is_exported_as_har_to_stdout_or_a_file_and_read_again() {
    let folder = tempfile::tempdir().expect("create a folder");
    let file = folder.path().join("portal.har");
    let file = file.to_str().expect("the path is UTF-8");
    let text = stdout_of(0, &["replica", "export", "har", "portal"]);
    stdout_of(0, &["replica", "export", "har", "portal", "-o", file]);
    assert_eq!(fs::read_to_string(file).expect("the file exists"), text);
    let stdout = stdout_of(0, &["replica", "show", file]);
    assert!(stdout.contains("44 exchanges with 7 hosts"), "{stdout}");
}
