//! `spdy accelerate audit`: of recordings, of live pages with and without a browser, and whether what it advises is taken.

use std::fs;
use std::path::Path;

use serde_json::Value;
use spdy_page::head;
use spdy_page::replica::{Exchange, Kind, Replica};

use crate::support::accelerator::program::{Accelerator, check};
use crate::support::clients::raw_client::PendingResponse;
use crate::support::origins::raw::RawOrigin;
use crate::support::peers::{is_installed, require, wanted};
use crate::support::program::{ServeProcess, run_expecting, spdy};

fn audit(code: i32, arguments: &[&str]) -> (String, String) {
    let mut command = spdy(&["accelerate", "audit"]);
    let output = run_expecting(code, command.args(arguments));
    let text = |bytes| String::from_utf8(bytes).expect("text is UTF-8");
    (text(output.stdout), text(output.stderr))
}

fn json(arguments: &[&str]) -> Value {
    let (said, _) = audit(0, &[arguments, &["--json"]].concat());
    serde_json::from_str(&said).expect("valid JSON")
}

/// The entries that `said` ends with, as they are to be copied.
fn advised_entries(said: &str) -> String {
    let begin = said.find("[[site.rewrite.hosts]]").expect("an entry");
    let lines = said[begin..].lines();
    let is_after =
        |line: &str| line.starts_with("A moved script") || line.starts_with("Not public");
    let lines = lines.take_while(|line| !is_after(line));
    lines.flat_map(|line| [line, "\n"]).collect()
}

fn path(path: &Path) -> &str {
    path.to_str().expect("the path is UTF-8")
}

#[test]
fn an_audit_of_the_shipped_page_advises_lines_that_move_all_of_it() {
    let (said, _) = audit(0, &["portal", "--network", "dsl"]);
    assert_eq!(
        (said.clone(), String::new()),
        audit(0, &["portal", "--network", "dsl"])
    );
    for told in [
        "portal, as recorded: 44 resources of 7 hosts",
        "36 moved, 0 left in place, 8 are the site's own; a client then contacts 1 of 7 hosts.",
        "img.portal.test, thumbs.portal.test are on the same site",
    ] {
        assert!(said.contains(told), "no {told:?} in\n{said}");
    }
    let folder = tempfile::tempdir().expect("create a folder");
    let file = folder.path().join("site.toml");
    let site = "[[site]]\nnames = ['www.portal.test']\norigin = 'http://origin.portal.test'\n";
    let write = |entries: &str| {
        fs::write(&file, format!("{site}{entries}")).expect("write the file");
    };
    write(&advised_entries(&said));
    run_expecting(0, &mut spdy(&["accelerate", "--check", path(&file)]));
    let by_config = ["portal", "--network", "dsl", "--config", path(&file)];
    let told = json(&by_config);
    assert_eq!(told["is_configured"], true);
    assert_eq!(told["advice"]["hosts"], Value::Array(Vec::new()));
    assert!(
        told["resources"]
            .as_array()
            .expect("a list")
            .iter()
            .all(|it| it["becomes"] != "left")
    );

    // Without them nothing moves, and the report shows what would move and what that would save.
    write("");
    let (bare, _) = audit(0, &by_config);
    assert!(bare.contains("0 moved, 36 left in place, 8 are"), "{bare}");
    assert!(
        bare.contains("as advised ms") && bare.contains("not-listed"),
        "{bare}"
    );
    assert_eq!(advised_entries(&bare), advised_entries(&said));
}

#[test]
fn audit_errors_state_the_expected_input() {
    let folder = tempfile::tempdir().expect("create a folder");
    let file = folder.path().join("site.toml");
    let site = "[[site]]\nnames = ['other.test']\norigin = 'http://origin.test'\n";
    fs::write(&file, site).expect("write the file");
    for (wrong, told) in [
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
        let (_, said) = audit(2, wrong);
        assert!(said.contains(told), "{wrong:?}: {said}");
    }
    let resolve = "site.test:1:127.0.0.1";
    let refused = ["http://site.test:1/", "--no-browser", "--resolve", resolve];
    let (_, said) = audit(1, &refused);
    assert!(said.contains("cannot fetch http://site.test:1/"), "{said}");
}

#[test]
fn without_a_browser_a_live_page_is_crawled() {
    let folder = tempfile::tempdir().expect("create a folder");
    let served = |files: &[(&str, String)]| {
        let folder = tempfile::tempdir_in(folder.path()).expect("create a folder");
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("write the file");
        }
        // What is served is read at the beginning.
        ServeProcess::start(folder.path(), &[])
    };
    let text = |text: &str| text.to_owned();
    let others = served(&[
        ("b.css", text("p { background: url(c.png) }")),
        ("c.png", text("a picture")),
        ("s.js", text("fetch('/d.json')")),
    ]);
    let far = |name: &str| format!("http://far.test:{}/{name}", others.plain.port());
    let html = format!(
        "<link rel=stylesheet href={}><img src=/a.png><iframe src={}></iframe><script src={}></script>",
        far("b.css"),
        far("frame.html"),
        far("s.js")
    );
    // This address has no listener, and must not be requested.
    let html = format!("{html}<img src=http://127.0.0.77/e.png>");
    let site = served(&[("index.html", html), ("a.png", text("another"))]);
    let page = format!("http://www.site.test:{}/", site.plain.port());
    let resolve = [("www.site.test", site.plain), ("far.test", others.plain)]
        .map(|(host, at)| format!("{host}:{}:{}", at.port(), at.ip()));
    let told = json(&[
        &page,
        "--no-browser",
        "--network",
        "cable",
        "--resolve",
        &resolve[0],
        "--resolve",
        &resolve[1],
    ]);
    assert_eq!(told["source"], "fetched");
    let remarks = told["remarks"].to_string();
    assert!(
        remarks.contains("address 127.0.0.77 is denied"),
        "{remarks}"
    );
    let resources = told["resources"].as_array().expect("a list");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let mut found: Vec<_> = resources
        .iter()
        .map(|it| (text(&it["url"]), text(&it["becomes"])))
        .collect();
    found.sort();
    let own = |name: &str| (format!("{page}{name}"), "own".to_owned());
    let moved = |name: &str| (far(name), "moved".to_owned());
    assert_eq!(
        found,
        [
            moved("b.css"),
            moved("c.png"),
            moved("s.js"),
            own(""),
            own("a.png")
        ]
    );
    let pattern = "*.test:80:127.0.0.1";
    let (_, said) = audit(2, &[&page, "--no-browser", "--resolve", pattern]);
    assert!(said.contains("only browsers support patterns"), "{said}");
}

#[test]
fn a_live_page_is_loaded_by_a_browser_where_there_is_one() {
    if !wanted() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let origin = RawOrigin::start();
    let mut command = spdy(&["accelerate", "audit", &origin.url(), "--json", "--insecure"]);
    for resolve in origin.resolve() {
        command.args(["--resolve", &resolve]);
    }
    let said = run_expecting(0, command.args(["--network", "cable"]));
    let told: Value = serde_json::from_slice(&said.stdout).expect("valid JSON");
    assert_eq!(told["source"], "browser");
    assert_eq!(told["hosts"].as_array().expect("a list").len(), 4);
    let resources = told["resources"].as_array().expect("a list");
    let sent: std::collections::BTreeSet<_> = origin
        .sent()
        .into_iter()
        .map(|it| it.url.to_string())
        .collect();
    let found: std::collections::BTreeSet<_> = resources
        .iter()
        .filter_map(|it| it["url"].as_str())
        .map(str::to_owned)
        .collect();
    assert_eq!(found, sent);
}

/// The `[upstream]` section of `text` to its end, as an operator copies it.
fn upstream_of(text: &str) -> &str {
    &text[text.find("[upstream]").expect("lines of [upstream]")..]
}

#[test]
fn the_lines_that_an_audit_of_modules_prints_move_the_modules() {
    let folder = tempfile::tempdir().expect("create a folder");
    let served = |files: &[(&str, String)]| {
        let folder = tempfile::tempdir_in(folder.path()).expect("create a folder");
        for (name, text) in files {
            fs::write(folder.path().join(name), text).expect("write the file");
        }
        ServeProcess::start(folder.path(), &[])
    };
    let text = |text: &str| text.to_owned();
    // Modules of other hosts are loaded by CORS.
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
    let others = ServeProcess::start(&modules, &[]);
    let far = format!("http://esm.test:{}", others.plain.port());
    let html = format!(
        "<!doctype html><script type=importmap>{{\"imports\": {{\"lib\": \"{far}/lib.js\"}}}}</script>\
         <script type=module src=/app.js></script>"
    );
    let site = served(&[("index.html", html), ("app.js", text("import 'lib'"))]);
    let page = format!("http://www.site.test:{}/", site.plain.port());
    let resolve = [("www.site.test", site.plain), ("esm.test", others.plain)]
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
    assert!(plan.contains("3 moved, 0 left in place, 2 are"), "{plan}");
    assert!(plan.contains("\"esm.test\" = \"127.0.0.1\""), "{plan}");
    assert!(
        plan.contains("allow_addresses = [\"127.0.0.1/32\"]"),
        "{plan}"
    );

    let site_lines = format!(
        "[listen]\ntls = []\nplain = ['127.0.0.1:0']\n[[site]]\nnames = ['www.site.test']\norigin = 'http://{}'\n",
        site.plain
    );
    let config = |more: &str| format!("{site_lines}{}{more}", advised_entries(&plan));
    // Without what [upstream] needs, the check says so.
    let (code, note) = check(&config(""));
    assert!(
        code == 0
            && note.contains("esm.test is not in the public DNS")
            && note.contains("`upstream.resolve`"),
        "{note}"
    );
    let config = config(upstream_of(&plan));
    let (code, note) = check(&config);
    assert!(code == 0 && !note.contains("upstream"), "{note}");
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
    let (moved, _) = begin.split_once('"').expect("its end");
    assert!(
        moved.starts_with("/.spdy/1/") && moved.ends_with("/lib.js"),
        "{moved}"
    );
    for (name, text) in [
        ("lib.js", "part.js"),
        ("part.js", "part = 1"),
        ("rooted.js", "rooted"),
    ] {
        let target = moved.replace("lib.js", name);
        let body = get(&target);
        assert!(body.contains(text), "{target}: {body}");
    }
}
