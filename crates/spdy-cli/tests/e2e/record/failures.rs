//! `spdy record` with failures: what it prints, what it records, and that no file or process remains.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::Path;

use serde_json::Value;
use spdy_page::open::open;
use spdy_page::replica::Kind;
use spdy_testkit::wait::{ended, until, with_read_timeout};

use crate::support::peers::{is_installed, peers_enabled, require};
use crate::support::program::{ServeProcess, run_expecting, spdy};

#[test]
fn a_failed_navigation_is_reported_with_its_reason() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let folder = tempfile::tempdir().expect("create a folder");
    let output = folder.path().join("none.warc");
    let output = output.to_str().expect("the path is UTF-8");
    let result = run_expecting(
        1,
        &mut spdy(&["record", "http://127.0.0.1:1/", "-o", output]),
    );
    let stderr = String::from_utf8_lossy(&result.stderr).into_owned();
    assert!(
        stderr.contains(
            "cannot record http://127.0.0.1:1/: cannot load http://127.0.0.1:1/: net::ERR_"
        ),
        "{stderr}"
    );
    assert!(!Path::new(output).exists());

    let arguments = [
        "record",
        "http://a.test/",
        "-o",
        output,
        "--browser",
        "/no/such/browser",
    ];
    let stderr =
        String::from_utf8_lossy(&run_expecting(1, &mut spdy(&arguments)).stderr).into_owned();
    assert!(stderr.contains("cannot start /no/such/browser"), "{stderr}");
}

#[cfg(unix)]
#[test]
fn an_interrupted_recording_leaves_neither_file_nor_profile_nor_browser() {
    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    // This server never responds, so Ctrl-C is sent while the recorder waits for the page.
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port on loopback");
    listener.set_nonblocking(true).expect("set the option");
    let address = listener.local_addr().expect("a bound socket");
    let [folder, outputs] = [(); 2].map(|()| tempfile::tempdir().expect("create a folder"));
    let output = outputs.path().join("none.warc");
    let url = format!("http://{address}/");
    for (signal, code, profile_stays) in [
        (Signal::SIGINT, Some(1), false),
        (Signal::SIGKILL, None, true),
    ] {
        let mut command = spdy(&[
            "record",
            &url,
            "-o",
            output.to_str().expect("the path is UTF-8"),
        ]);
        command.env("TMPDIR", folder.path());
        let mut recorder = command.spawn().expect("start the program");
        // Waits for the browser's request. Chromium also opens speculative connections, and closes them without one.
        let mut connection = loop {
            let mut socket = None;
            until("the browser connects", || {
                socket = listener.accept().ok();
                socket.is_some()
            });
            let (socket, _) = socket.expect("a connection");
            socket.set_nonblocking(false).expect("set the option");
            let mut socket = with_read_timeout(socket);
            if socket.read_exact(&mut [0; 4]).is_ok() {
                break socket;
            }
        };
        let id = i32::try_from(recorder.id()).expect("a process has an id");
        kill(Pid::from_raw(id), signal).expect("a running process");
        assert_eq!(ended(&mut recorder).code(), code);
        // Once the browser has exited, its connection is closed.
        let mut rest = Vec::new();
        let end = connection.read_to_end(&mut rest);
        let is_late = |kind| matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut);
        assert!(
            !end.is_err_and(|error| is_late(error.kind())),
            "the browser still runs"
        );
        let file_count = fs::read_dir(folder.path())
            .expect("read the folder")
            .count();
        assert_eq!(file_count, usize::from(profile_stays), "after {signal}");
        assert!(!output.exists());
    }
}

#[test]
fn a_page_that_never_settles_is_recorded_partially() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port on loopback");
    let address = listener.local_addr().expect("a bound socket");
    // This thread, and those that hold requests for /never, end with the test process.
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            std::thread::spawn(move || {
                serve_page_without_image(socket.expect("accept the browser's connection"));
            });
        }
    });
    let folder = tempfile::tempdir().expect("create a folder");
    let output = folder.path().join("page.warc");
    let output = output.to_str().expect("the path is UTF-8");
    let url = format!("http://{address}/");
    let command = ["record", &url, "-o", output, "--timeout", "20", "--json"];
    let result = run_expecting(0, &mut spdy(&command));
    let report: Value = serde_json::from_slice(&result.stdout).expect("valid JSON");
    assert_eq!(report["load_ms"], Value::Null, "{report}");
    assert!(
        report["remarks"]
            .to_string()
            .contains("no load event before the timeout"),
        "{report}"
    );
    let replica = open(output).expect("a replica was written").replica;
    assert_eq!(replica.exchanges.len(), 1);
    assert_eq!(replica.failures.len(), 1, "{:?}", replica.failures);
    assert_eq!(replica.failures[0].url, format!("{url}never"));
    assert_eq!(
        replica.failures[0].error,
        "in progress when the recording ended"
    );
}

/// A page with an image that never gets a response.
fn serve_page_without_image(socket: TcpStream) {
    let page = "<!doctype html><img src=/never>";
    serve_requests(socket, |target| {
        (target == "/").then(|| response_with("Content-Type: text/html", page))
    });
}

fn response_with(field: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\n{field}\r\nContent-Length: {length}\r\n\r\n{body}")
}

/// Responds to each request on `socket` with `respond(target)`; `None` sends no response.
fn serve_requests(mut socket: TcpStream, respond: impl Fn(&str) -> Option<String>) {
    let mut request = Vec::new();
    let mut byte = [0];
    while matches!(socket.read(&mut byte), Ok(1)) {
        request.push(byte[0]);
        if request.ends_with(b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&request).into_owned();
            request.clear();
            let target = head.split(' ').nth(1).unwrap_or_default();
            if let Some(response) = respond(target)
                && socket.write_all(response.as_bytes()).is_err()
            {
                return;
            }
        }
    }
}

#[test]
fn downloads_leave_no_file_in_the_home_folder() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a free port on loopback");
    let address = listener.local_addr().expect("a bound socket");
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let socket = socket.expect("accept the browser's connection");
            std::thread::spawn(move || {
                serve_requests(socket, |target| {
                    Some(match target {
                        "/" => response_with(
                            "Content-Type: text/html",
                            "<!doctype html><iframe src=/file></iframe>",
                        ),
                        _ => response_with("Content-Disposition: attachment; filename=f.txt", "f"),
                    })
                });
            });
        }
    });
    let [home, output] = [(); 2].map(|()| tempfile::tempdir().expect("create a folder"));
    let output = output.path().join("page.warc");
    let output = output.to_str().expect("the path is UTF-8");
    let url = format!("http://{address}/");
    let mut command = spdy(&["record", &url, "-o", output]);
    for folders in ["CONFIG", "CACHE", "DATA"] {
        command.env_remove(format!("XDG_{folders}_HOME"));
    }
    run_expecting(0, command.env("HOME", home.path()));
    let files: Vec<_> = fs::read_dir(home.path())
        .expect("read the folder")
        .map(|entry| entry.expect("read the file").path())
        .collect();
    assert!(files.is_empty(), "{files:?}");
    let replica = open(output).expect("a replica was written").replica;
    let urls = replica.exchanges.iter().map(|exchange| exchange.url.path());
    let failed = replica.failures.iter().map(|failure| &failure.url[..]);
    let all: Vec<_> = urls.chain(failed).collect();
    assert!(all.iter().any(|url| url.ends_with("/file")), "{all:?}");
}

#[test]
fn a_failed_page_does_not_stop_the_others() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let server = ServeProcess::start(Path::new("flags"), &[]);
    let folder = tempfile::tempdir().expect("create a folder");
    let output = folder.path().join("pages");
    let url = format!("{}/", server.origin(false));
    let command = ["record", "http://127.0.0.1:1/", &url, "--json", "-o"];
    let result = run_expecting(1, spdy(&command).arg(&output));
    let stderr = String::from_utf8_lossy(&result.stderr).into_owned();
    assert!(
        stderr.contains("cannot record http://127.0.0.1:1/"),
        "{stderr}"
    );
    let report: Value = serde_json::from_slice(&result.stdout).expect("a report of one page");
    let file = report["output"].as_str().expect("a path");
    let replica = open(file).expect("a replica was written").replica;
    assert_eq!(Path::new(file).parent(), Some(&*output));
    let images = replica
        .exchanges
        .iter()
        .filter(|exchange| exchange.kind == Kind::Image);
    assert!(images.count() >= 196, "{report}");
}

/// The fake browser of `spdy-record`'s own tests, which reads its log from a file.
fn fake_browser(output: &Path) -> std::process::Command {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let browser = crates.join("spdy-record/tests/data/browser.sh");
    let log = crates.join("spdy-page/tests/data/chromium.netlog.json");
    let mut command = spdy(&["record", "http://a.test/", "--settle", "0.01"]);
    command.arg("-o").arg(output).arg("--browser").arg(browser);
    command.arg(format!("--browser-arg=log={}", log.display()));
    command
}

#[test]
fn a_failed_run_is_reported_and_the_previous_replica_stays() {
    let folder = tempfile::tempdir().expect("create a folder");
    let output = folder.path().join("page.warc");
    let mut command = fake_browser(&output);
    let marker = folder.path().join("once");
    command.arg(format!("--browser-arg=once={}", marker.display()));
    let result = run_expecting(1, command.args(["--runs", "2", "--json"]));
    let report: Value = serde_json::from_slice(&result.stdout).expect("valid JSON");
    let runs = report["runs"].as_array().expect("a list of runs");
    assert_eq!(runs.len(), 2, "{report}");
    assert!(runs[0]["fingerprint"].is_string(), "{report}");
    assert_eq!(runs[1]["fingerprint"], Value::Null, "{report}");
    let error = runs[1]["error"].as_str().unwrap_or_default();
    assert!(error.contains("the browser already ran"), "{report}");
    let stderr = String::from_utf8_lossy(&result.stderr).into_owned();
    assert!(
        stderr.contains("cannot record http://a.test/ in run 2: the browser exited"),
        "{stderr}"
    );
    let replica = open(output.to_str().expect("the path is UTF-8"));
    assert!(!replica.expect("a replica").replica.exchanges.is_empty());
}

#[test]
fn an_unwritable_output_is_reported_before_a_browser_starts() {
    let folder = tempfile::tempdir().expect("create a folder");
    let started = folder.path().join("started");
    let mut command = fake_browser(&folder.path().join("none/page.warc.gz"));
    command.arg(format!("--browser-arg=once={}", started.display()));
    let stderr = String::from_utf8_lossy(&run_expecting(2, &mut command).stderr).into_owned();
    assert!(stderr.contains("error: cannot write "), "{stderr}");
    assert!(!started.exists());
}
