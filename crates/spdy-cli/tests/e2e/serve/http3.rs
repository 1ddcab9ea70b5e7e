//! `spdy serve` and `spdy fetch` over HTTP/3.

use std::fs;

use serde_json::Value;

use crate::support::certificate::CERTIFICATE;
use crate::support::files::FILES;
use crate::support::program::{ServeProcess, run_expecting, spdy};

fn serve(options: &[&str]) -> ServeProcess {
    let paths = [&CERTIFICATE.chain, &CERTIFICATE.key]
        .map(|path| path.to_str().expect("the path is UTF-8"));
    let certificate = ["--cert", paths[0], "--key", paths[1]];
    ServeProcess::start(&FILES.folder, &[&certificate, options].concat())
}

fn fetch(protocol: &str, options: &[&str]) -> std::process::Command {
    let mut fetch = spdy(&["fetch", "--protocol", protocol, "--cacert"]);
    fetch.arg(&CERTIFICATE.authority).args(options);
    fetch
}

#[test]
fn files_of_every_length_are_complete_over_one_connection() {
    let server = serve(&["--protocols", "h3,http/1.1"]);
    let folder = tempfile::tempdir().expect("create a folder");
    let names = ["0", "128", "10k", "1m"];
    let urls = names.map(|name| format!("https://localhost:{}/{name}", server.tls.port()));
    let mut fetch = fetch("h3", &["--json", "--output-dir"]);
    let output = run_expecting(0, fetch.arg(folder.path()).args(&urls));
    for name in names {
        let (expected, actual) = (FILES.folder.join(name), folder.path().join(name));
        assert!(
            fs::read(expected).unwrap() == fs::read(actual).unwrap(),
            "{name}"
        );
    }
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let report: Value = serde_json::from_str(line).expect("one JSON object per line");
        assert_eq!(report["protocol"], "h3", "{line}");
        assert_eq!(report["tls"]["version"], "TLSv1_3", "{line}");
        assert_eq!(report["tls"]["cipher"], Value::Null, "{line}");
    }
}

#[test]
fn only_tls_responses_have_alt_svc() {
    let server = serve(&["--protocols", "h3,http/1.1"]);
    let head = |url: String, protocol| {
        let output = run_expecting(0, &mut fetch(protocol, &["--head", &url]));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let port = server.tls.port();
    let alt_svc = format!("alt-svc: h3=\":{port}\"; ma=3600");
    let secure = head(format!("https://localhost:{port}/128"), "http/1.1");
    assert!(secure.contains(&alt_svc), "{secure}");
    let plain = head(
        format!("http://localhost:{}/128", server.plain.port()),
        "http/1.1",
    );
    assert!(!plain.contains("alt-svc"), "{plain}");
    let without = serve(&[]);
    let secure = head(
        format!("https://localhost:{}/128", without.tls.port()),
        "http/1.1",
    );
    assert!(!secure.contains("alt-svc"), "{secure}");
}

#[test]
fn http_3_without_tls_is_refused_on_both_sides() {
    let output = run_expecting(1, &mut fetch("h3", &["http://localhost:1/"]));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(stderr.contains("HTTP/3 needs https"), "{stderr}");
    for options in [&["--protocols", "h3"][..], &["--protocols", "h3,h2"]] {
        let mut serve = spdy(&["serve", "portal", "--plain", "127.0.0.1:0"]);
        let output = run_expecting(2, serve.args(options));
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains("h3 needs TLS"), "{stderr}");
    }
    let bench = ["bench", "--protocol", "h3", "https://localhost:1/"];
    run_expecting(2, &mut spdy(&bench));
}
