//! The command line: help, errors, exit codes and the form of the output.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use spdy_testkit::wait::ended;

use crate::support::json_output::json_errors;
use crate::support::program::{run_expecting, spdy, stderr_of, stdout_of};

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
        "man",
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
fn every_command_has_a_version_and_the_program_a_help_command() {
    let version = format!(
        "{}\nfeatures: accelerate, lab, parquet, serve\n",
        env!("CARGO_PKG_VERSION")
    );
    for command in [
        &[][..],
        &["race"],
        &["inspect"],
        &["lab", "run"],
        &["replica", "show"],
    ] {
        for flag in ["-V", "--version"] {
            let arguments: Vec<_> = command.iter().copied().chain([flag]).collect();
            let stdout = stdout_of(0, &arguments);
            assert!(stdout.ends_with(&version), "{arguments:?}: {stdout}");
        }
    }
    assert_eq!(
        stdout_of(0, &["help", "race"]),
        stdout_of(0, &["race", "--help"])
    );
}

#[test]
fn man_writes_a_page_for_each_command() {
    let folder = tempfile::tempdir().expect("create a folder");
    let pages = folder.path().join("new/man1");
    stdout_of(0, &["man", pages.to_str().expect("UTF-8")]);
    for (page, word) in [
        ("spdy.1", "spdy\\-race(1)"),
        ("spdy-race.1", "\\-\\-network"),
        ("spdy-lab-run.1", "\\-\\-store"),
        ("spdy-accelerate.1", "SIGHUP"),
    ] {
        let path = pages.join(page);
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{page}: {error}"));
        assert!(text.contains(word), "{page} has no {word:?}");
    }
    assert!(!pages.join("spdy-help.1").exists());
}

#[test]
fn completions_have_the_commands() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = stdout_of(0, &["completions", shell]);
        for command in ["race", "serve", "fetch", "replica"] {
            assert!(script.contains(command), "{shell} has no {command}");
        }
    }
}

#[test]
fn an_invalid_command_line_exits_2() {
    for arguments in [
        &["walk"][..],
        &["race", "--runs", "0"],
        &["race", "--protocols", "spdi"],
        &["replica"],
    ] {
        run_expecting(2, &mut spdy(arguments));
    }
    for invalid in ["0", "-1", "x"] {
        let stderr = stderr_of(2, &["lab", "run", "lulic", &format!("--jobs={invalid}")]);
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
    let default_output = race(&[]);
    for options in [
        &["--deploy", "first-party"][..],
        &["--set", "shard=3"],
        &["--set", "fold=yes"],
        &["--set", "cache=warm:1h"],
        &["--set", "frame=1024"],
        &["--push"],
        &["--push=all"],
    ] {
        assert_ne!(race(options), default_output, "{options:?}");
    }
    assert_eq!(
        race(&["--push=no", "--deploy", "all", "--set", "cache=cold"]),
        default_output
    );
    for (invalid_options, expected) in [
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
        arguments.extend(invalid_options);
        let stderr = stderr_of(2, &arguments);
        assert!(stderr.contains(expected), "{invalid_options:?}: {stderr}");
    }
}

#[test]
fn an_unknown_name_is_reported_with_the_known_ones() {
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
fn a_schema_refuses_missing_fields_and_a_test_also_unknown_ones() {
    let command = spdy(&["serve", "portal", "--json"]);
    let valid = r#"{"listening":[{"address":"127.0.0.1:1","tls":false,"quic":false,"host":null}],"protocols":["h2"],
                    "hosts":[],"default_host":null,"targets":1,"metrics":null}"#
        .replace('\n', "");
    assert_eq!(json_errors(&command, [&valid[..]]), [""; 0]);
    for (part, changed) in [
        ("\"targets\":1", "\"targets\":\"1\""),
        ("\"targets\":1,", ""),
        ("\"targets\":1", "\"targets\":1,\"more\":1"),
        ("\"quic\":false,", ""),
        ("\"quic\":false", "\"quic\":false,\"more\":1"),
    ] {
        let invalid = valid.replace(part, changed);
        assert_ne!(json_errors(&command, [&invalid[..]]), [""; 0], "{invalid}");
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
fn an_error_is_one_line_and_exits_1() {
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
