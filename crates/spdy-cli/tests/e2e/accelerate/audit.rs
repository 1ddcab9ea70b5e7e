//! `spdy accelerate audit`: of recordings and of live pages, with and without a browser. Its advice is accepted as configuration.

use std::fs;
use std::path::Path;

use serde_json::Value;
use spdy_page::head;
use spdy_page::replica::{Exchange, Kind, Replica};

use crate::support::accelerator::program::{Accelerator, check};
use crate::support::clients::raw_client::PendingResponse;
use crate::support::origins::raw::RawOrigin;
use crate::support::peers::{is_installed, peers_enabled, require};
use crate::support::program::{ServeProcess, run_expecting, spdy};

fn audit(code: i32, arguments: &[&str]) -> (String, String) {
    let mut command = spdy(&["accelerate", "audit"]);
    let output = run_expecting(code, command.args(arguments));
    let text = |bytes| String::from_utf8(bytes).expect("text is UTF-8");
    (text(output.stdout), text(output.stderr))
}

fn json(arguments: &[&str]) -> Value {
    let (stdout, _) = audit(0, &[arguments, &["--json"]].concat());
    serde_json::from_str(&stdout).expect("valid JSON")
}

/// The configuration entries at the end of `report`, ready to be copied.
fn advised_entries(report: &str) -> String {
    let begin = report.find("[[site.rewrite.hosts]]").expect("an entry");
    let lines = report[begin..].lines();
    let is_after =
        |line: &str| line.starts_with("A proxied script") || line.starts_with("Not public");
    let lines = lines.take_while(|line| !is_after(line));
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn path(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

#[test]
fn the_advice_for_the_shipped_page_proxies_all_of_it() {
    let (text, _) = audit(0, &["portal", "--network", "dsl"]);
    assert_eq!(
        (text.clone(), String::new()),
        audit(0, &["portal", "--network", "dsl"])
    );
    for expected in [
        "portal, as recorded: 44 resources of 7 hosts",
        "36 proxied, 0 direct, 8 are the site's own; a client then contacts 1 of 7 hosts.",
        "img.portal.test, thumbs.portal.test are on the same site",
    ] {
        assert!(text.contains(expected), "no {expected:?} in\n{text}");
    }
    let folder = tempfile::tempdir().expect("create a folder");
    let file = folder.path().join("site.toml");
    let site = "[[site]]\nnames = ['www.portal.test']\norigin = 'http://origin.portal.test'\n";
    let write = |entries: &str| {
        fs::write(&file, format!("{site}{entries}")).expect("write the file");
    };
    write(&advised_entries(&text));
    run_expecting(0, &mut spdy(&["accelerate", "--check", path(&file)]));
    let by_config = ["portal", "--network", "dsl", "--config", path(&file)];
    let report = json(&by_config);
    assert_eq!(report["is_configured"], true);
    assert_eq!(report["advice"]["hosts"], Value::Array(Vec::new()));
    assert!(
        report["resources"]
            .as_array()
            .expect("a list")
            .iter()
            .all(|resource| resource["delivery"] != "direct")
    );

    // Without the entries nothing is proxied, and the report shows what would be proxied and the saving.
    write("");
    let (bare, _) = audit(0, &by_config);
    assert!(bare.contains("0 proxied, 36 direct, 8 are"), "{bare}");
    assert!(
        bare.contains("as advised ms") && bare.contains("not-listed"),
        "{bare}"
    );
    assert_eq!(advised_entries(&bare), advised_entries(&text));
}

#[test]
fn audit_errors_state_the_expected_input() {
    let folder = tempfile::tempdir().expect("create a folder");
    let file = folder.path().join("site.toml");
    let site = "[[site]]\nnames = ['other.test']\norigin = 'http://origin.test'\n";
    fs::write(&file, site).expect("write the file");
    for (arguments, expected) in [
        (&["nowhere"][..], "nowhere"),
        (&["portal", "--set", "accelerator=warm"], "accelerator"),
        (&["portal", "--set", "cache=warm"], "cache"),
        (
            &["http://127.0.0.1:1/"],
            "expected a URL with a hostname, found the address 127.0.0.1",
        ),
        (
            &["portal", "--config", path(&file)],
            "no site has the host www.portal.test of the page: expected one of other.test",
        ),
    ] {
        let (_, stderr) = audit(2, arguments);
        assert!(stderr.contains(expected), "{arguments:?}: {stderr}");
    }
    let resolve = "site.test:1:127.0.0.1";
    let arguments = ["http://site.test:1/", "--no-browser", "--resolve", resolve];
    let (_, stderr) = audit(1, &arguments);
    assert!(
        stderr.contains("cannot fetch http://site.test:1/"),
        "{stderr}"
    );
}

#[test]
fn without_a_browser_a_live_page_is_crawled() {
    let folder = tempfile::tempdir().expect("create a folder");
    let serve = |files: &[(&str, String)]| {
        let folder = tempfile::tempdir_in(folder.path()).expect("create a folder");
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("write the file");
        }
        // The server reads the files once, at its start.
        ServeProcess::start(folder.path(), &[])
    };
    let text = |text: &str| text.to_owned();
    let other_server = serve(&[
        ("b.css", text("p { background: url(c.png) }")),
        ("c.png", text("a picture")),
        ("s.js", text("fetch('/d.json')")),
    ]);
    let far = |name: &str| format!("http://far.test:{}/{name}", other_server.plain.port());
    let html = format!(
        "<link rel=stylesheet href={}><img src=/a.png><iframe src={}></iframe><script src={}></script>",
        far("b.css"),
        far("frame.html"),
        far("s.js")
    );
    // This address has no listener, and must not be requested.
    let html = format!("{html}<img src=http://127.0.0.77/e.png>");
    let site = serve(&[("index.html", html), ("a.png", text("another"))]);
    let page = format!("http://www.site.test:{}/", site.plain.port());
    let resolve = [
        ("www.site.test", site.plain),
        ("far.test", other_server.plain),
    ]
    .map(|(host, at)| format!("{host}:{}:{}", at.port(), at.ip()));
    let report = json(&[
        &page,
        "--no-browser",
        "--network",
        "cable",
        "--resolve",
        &resolve[0],
        "--resolve",
        &resolve[1],
    ]);
    assert_eq!(report["source"], "fetched");
    let remarks = report["remarks"].to_string();
    assert!(
        remarks.contains("address 127.0.0.77 is denied"),
        "{remarks}"
    );
    let resources = report["resources"].as_array().expect("a list");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let mut outcomes: Vec<_> = resources
        .iter()
        .map(|resource| (text(&resource["url"]), text(&resource["delivery"])))
        .collect();
    outcomes.sort();
    let own = |name: &str| (format!("{page}{name}"), "own".to_owned());
    let proxied = |name: &str| (far(name), "proxied".to_owned());
    assert_eq!(
        outcomes,
        [
            proxied("b.css"),
            proxied("c.png"),
            proxied("s.js"),
            own(""),
            own("a.png")
        ]
    );
    let pattern = "*.test:80:127.0.0.1";
    let (_, stderr) = audit(2, &[&page, "--no-browser", "--resolve", pattern]);
    assert!(
        stderr.contains("only browsers support patterns"),
        "{stderr}"
    );
}

#[test]
fn a_live_page_is_loaded_by_a_browser_if_one_is_installed() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let origin = RawOrigin::start();
    let mut command = spdy(&["accelerate", "audit", &origin.url(), "--json", "--insecure"]);
    for resolve in origin.resolve() {
        command.args(["--resolve", &resolve]);
    }
    let output = run_expecting(0, command.args(["--network", "cable"]));
    let report: Value = serde_json::from_slice(&output.stdout).expect("valid JSON");
    assert_eq!(report["source"], "browser");
    assert_eq!(report["hosts"].as_array().expect("a list").len(), 4);
    let resources = report["resources"].as_array().expect("a list");
    let sent_urls: std::collections::BTreeSet<_> = origin
        .exchanges()
        .into_iter()
        .map(|exchange| exchange.url.to_string())
        .collect();
    let reported_urls: std::collections::BTreeSet<_> = resources
        .iter()
        .filter_map(|resource| resource["url"].as_str())
        .map(str::to_owned)
        .collect();
    assert_eq!(reported_urls, sent_urls);
}

/// The `[upstream]` section of `text` to its end, as an operator copies it.
fn upstream_section(text: &str) -> &str {
    &text[text.find("[upstream]").expect("lines of [upstream]")..]
}

#[test]
fn configuration_lines_from_an_audit_proxy_the_modules() {
    let folder = tempfile::tempdir().expect("create a folder");
    let serve = |files: &[(&str, String)]| {
        let folder = tempfile::tempdir_in(folder.path()).expect("create a folder");
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("write the file");
        }
        ServeProcess::start(folder.path(), &[])
    };
    let text = |text: &str| text.to_owned();
    // Modules of other hosts are loaded with CORS.
    let module = |name: &str, text: &str| {
        let url = format!("http://esm.test/{name}").parse().expect("a URL");
        let module = Exchange::synthetic(url, Kind::Script, "text/javascript", text.to_owned());
        let head = head::with_field(
            &module.response_head,
            "access-control-allow-origin",
            Some("*"),
        );
        Exchange {
            response_head: head,
            ..module
        }
    };
    let replica = Replica {
        start: 0,
        exchanges: vec![
            module("lib.js", "export * from './part.js'; import '/rooted.js'"),
            module("part.js", "export const part = 1"),
            module("rooted.js", "export const rooted = 1"),
        ],
        ..spdy_page::builtin::flags()
    };
    let modules = folder.path().join("modules.warc");
    let encoded = spdy_page::archive::encode(&replica, false);
    fs::write(&modules, encoded).expect("write the file");
    let module_server = ServeProcess::start(&modules, &[]);
    let far = format!("http://esm.test:{}", module_server.plain.port());
    let html = format!(
        "<!doctype html><script type=importmap>{{\"imports\": {{\"lib\": \"{far}/lib.js\"}}}}</script>\
         <script type=module src=/app.js></script>"
    );
    let site = serve(&[("index.html", html), ("app.js", text("import 'lib'"))]);
    let page = format!("http://www.site.test:{}/", site.plain.port());
    let resolve = [
        ("www.site.test", site.plain),
        ("esm.test", module_server.plain),
    ]
    .map(|(host, at)| format!("{host}:{}:{}", at.port(), at.ip()));
    let args = [
        &page[..],
        "--no-browser",
        "--network",
        "cable",
        "--resolve",
        &resolve[0],
        "--resolve",
        &resolve[1],
    ];
    let (plan, _) = audit(0, &args);
    assert!(plan.contains("3 proxied, 0 direct, 2 are"), "{plan}");
    assert!(plan.contains("\"esm.test\" = \"127.0.0.1\""), "{plan}");
    assert!(
        plan.contains("allow_addresses = [\"127.0.0.1/32\"]"),
        "{plan}"
    );

    let site_lines = format!(
        "[listen]\ntls = []\nplain = ['127.0.0.1:0']\n[[site]]\nnames = ['www.site.test']\norigin = 'http://{}'\n",
        site.plain
    );
    let config =
        |extra_config: &str| format!("{site_lines}{}{extra_config}", advised_entries(&plan));
    // Without the required keys of [upstream], the check reports it.
    let (code, message) = check(&config(""));
    assert!(
        code == 0
            && message.contains("esm.test is not in the public DNS")
            && message.contains("`upstream.resolve`"),
        "{message}"
    );
    let config = config(upstream_section(&plan));
    let (code, message) = check(&config);
    assert!(code == 0 && !message.contains("upstream"), "{message}");
    let accelerator = Accelerator::start(&config);
    let get = |target: &str| {
        let request =
            format!("GET {target} HTTP/1.1\r\nHost: www.site.test\r\nConnection: close\r\n\r\n");
        PendingResponse::begin(accelerator.plain(), request.as_bytes())
            .end(usize::MAX)
            .text()
    };
    let html = get("/");
    let (_, begin) = html
        .split_once("\"lib\":\"")
        .expect("an address in the import map");
    let (proxied_path, _) = begin.split_once('"').expect("its end");
    assert!(
        proxied_path.starts_with("/.spdy/1/") && proxied_path.ends_with("/lib.js"),
        "{proxied_path}"
    );
    for (name, text) in [
        ("lib.js", "part.js"),
        ("part.js", "part = 1"),
        ("rooted.js", "rooted"),
    ] {
        let target = proxied_path.replace("lib.js", name);
        let body = get(&target);
        assert!(body.contains(text), "{target}: {body}");
    }
}
