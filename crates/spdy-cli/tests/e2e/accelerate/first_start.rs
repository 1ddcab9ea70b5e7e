//! The first start: with `--origin`, and with the configuration that an audit writes.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::support::clients::raw_client::PendingResponse;
use crate::support::program::{
    ReadyOn, RunningProgram, ServeProcess, address_after, run_expecting, spdy,
};

/// A server with these files.
fn serve(files: &[(&str, &str)]) -> ServeProcess {
    let folder = tempfile::tempdir().expect("create a folder");
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("write the file");
    }
    // The server reads the files once, at its start.
    ServeProcess::start(folder.path(), &[])
}

/// Starts the accelerator by `command`, and returns the address of its listener without TLS.
fn start(mut command: Command) -> (RunningProgram, SocketAddr) {
    command.args(["--plain", "127.0.0.1:0", "--tls", "127.0.0.1:0"]);
    // The lookups of a prefetch would be sent to the public DNS.
    command.env("SPDY_ACCELERATE__LEARN__PREFETCH", "false");
    let mut plain = None;
    RunningProgram::start(command, ReadyOn::Stderr, |line| {
        plain = plain.or(address_after(line, "http://"));
        line.starts_with("accelerating").then_some(plain?)
    })
}

fn get(at: SocketAddr, host: &str, target: &str) -> String {
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    PendingResponse::begin(at, request.as_bytes())
        .end(usize::MAX)
        .text()
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

#[test]
fn an_audit_writes_a_configuration_that_works_when_started() {
    let other = serve(&[
        ("a.css", "p { background: url(b.png) }"),
        ("b.png", "a picture"),
    ]);
    let html = format!(
        "<link rel=stylesheet href=http://far.test:{}/a.css>",
        other.plain.port()
    );
    let site = serve(&[("index.html", &html)]);
    let page = format!("http://www.site.test:{}/", site.plain.port());
    let folder = tempfile::tempdir().expect("create a folder");
    let [file, picture] = ["site.toml", "site.svg"].map(|name| folder.path().join(name));
    let resolve = [("www.site.test", site.plain), ("far.test", other.plain)]
        .map(|(host, at)| format!("{host}:{}:{}", at.port(), at.ip()));
    let audit = || {
        let mut command = spdy(&["accelerate", "audit", &page, "--no-browser", "-n", "cable"]);
        command.args(["--resolve", &resolve[0], "--resolve", &resolve[1]]);
        command.args(["-o", text(&file), "--picture", text(&picture)]);
        command
    };
    let output = run_expecting(0, &mut audit());
    let report = String::from_utf8(output.stdout).expect("text is UTF-8");
    assert!(
        report.contains("site.toml: 2 proxied, 0 direct, 1 are") && !report.contains("[[site"),
        "{report}"
    );
    let drawn = fs::read_to_string(&picture).expect("a picture");
    for name in [
        "direct: ",
        "accelerator just started: ",
        "accelerator with the page in its cache: ",
    ] {
        assert!(drawn.contains(name), "no {name:?} in {drawn}");
    }
    let secret = folder.path().join("site.secret");
    let mode = fs::metadata(&secret)
        .expect("the secret")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);

    // By hand, it may be started in another folder.
    let mut command = spdy(&["accelerate", text(&file)]);
    command.current_dir("/");
    let (_accelerator, at) = start(command);
    let html = get(at, "www.site.test", "/");
    let (_, begin) = html.split_once("href=\"").expect("a proxied URL");
    let (target, _) = begin.split_once('"').expect("its end");
    assert!(target.starts_with("/.spdy/1/"), "{target}");
    let sheet = get(at, "www.site.test", target);
    assert!(sheet.contains("background: url("), "{sheet}");
    let picture = target.replace("a.css", "b.png");
    assert!(get(at, "www.site.test", &picture).ends_with("a picture"));

    // A file that may have changes by hand is not replaced.
    let refused = run_expecting(2, &mut audit());
    let refused = String::from_utf8(refused.stderr).expect("text is UTF-8");
    assert!(
        refused.contains("expected the name of a new file"),
        "{refused}"
    );
    // The secret signs URLs that browsers already have.
    fs::remove_file(&file).expect("remove the file");
    let before = fs::read(&secret).expect("the secret");
    run_expecting(0, &mut audit());
    assert_eq!(fs::read(&secret).expect("the secret"), before);
}

#[test]
fn an_origin_without_a_configuration_gets_its_passive_resources_proxied() {
    let html = "<img src=https://static.example.com/a.png><script src=https://static.example.com/a.js></script>\
        <iframe src=https://static.example.com/></iframe>";
    let origin = serve(&[("index.html", html)]);
    let origin = format!("http://localhost:{}", origin.plain.port());
    let data = tempfile::tempdir().expect("create a folder");
    let authority = data.path().join("spdy/ca.pem");
    let certificate = || fs::read(&authority).expect("the authority's certificate");
    let command = || {
        let mut command = spdy(&["accelerate", "--origin", &origin]);
        command.env("XDG_DATA_HOME", data.path());
        command
    };
    run_expecting(0, command().arg("--check"));
    assert!(!authority.exists(), "a check writes nothing");
    let (accelerator, at) = start(command());
    let first = certificate();
    accelerator.line_with(&format!("try: curl --cacert {}", text(&authority)));
    let html = get(at, "localhost", "/");
    assert!(html.contains("/s/static.example.com/a.png"), "{html}");
    assert!(
        html.contains("src=https://static.example.com/a.js"),
        "{html}"
    );
    let note = accelerator.line_with("of other hosts proxied");
    assert!(
        note.ends_with("1 URL of other hosts proxied, 2 not: 1 document, 1 kind-not-listed"),
        "{note}"
    );
    drop(accelerator);
    let (_accelerator, _) = start(command());
    assert!(certificate() == first, "the authority stays the same");
}
