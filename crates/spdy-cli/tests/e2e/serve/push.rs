//! Pushes from `spdy serve` to `spdy fetch`: what is pushed, which pushes are claimed, and what is only hinted.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::peers::peers_enabled;
use crate::support::program::{ServeProcess, run_expecting, spdy};

/// A folder with a page, its style sheet, and an image that the style sheet references.
fn site() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("create a folder");
    let big = "p { color: red }\n".repeat(20_000);
    for (name, text) in [
        (
            "index.html",
            "<link rel=stylesheet href=a.css><img src=//far.test/b.png>",
        ),
        ("a.css", &format!("{big} p {{ background: url(c.png) }}")),
        ("c.png", "not much of an image"),
    ] {
        std::fs::write(folder.path().join(name), text).expect("write the file");
    }
    folder
}

fn serve(folder: &Path, extra_options: &[&str]) -> ServeProcess {
    let options = ["--protocols", "spdy/3.1,spdy/2,http/1.1"];
    ServeProcess::start(folder, &[&options[..], extra_options].concat())
}

/// The result of `spdy fetch` for each URL.
fn fetch_results(protocol: &str, options: &[&str], urls: &[String]) -> Vec<Value> {
    let mut command = spdy(&["fetch", "--protocol", protocol, "--json"]);
    let output = run_expecting(0, command.args(options).args(urls));
    let text = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    let line = |line| serde_json::from_str(line).expect("a line of JSON");
    text.lines().map(line).collect()
}

/// The last part of each URL, and whether it was claimed, if it was pushed.
fn claimed_pushes(results: &[Value]) -> Vec<(&str, Option<bool>)> {
    results
        .iter()
        .map(|result| {
            let url = result["url"].as_str().expect("a URL");
            (
                url.rsplit('/').next().unwrap_or_default(),
                result["pushed"]["claimed"].as_bool(),
            )
        })
        .collect()
}

fn links(result: &Value) -> Vec<&str> {
    let headers = result["headers"].as_array().expect("headers");
    let links = headers.iter().filter(|pair| pair[0] == "link");
    links.map(|pair| pair[1].as_str().expect("text")).collect()
}

#[test]
fn referenced_resources_are_pushed_and_satisfy_the_next_request() {
    let folder = site();
    for form in ["two-blocks", "version-twice", "one-block"] {
        let server = serve(folder.path(), &["--push", "graph", "--push-form", form]);
        let url = |name: &str| format!("{}/{name}", server.origin(false));
        for protocol in ["spdy/3.1", "spdy/2"] {
            let urls = [url(""), url("a.css")];
            let results = fetch_results(protocol, &["--push", "accept"], &urls);
            let expected = [("", None), ("a.css", Some(true)), ("c.png", Some(false))];
            assert_eq!(claimed_pushes(&results), expected, "{form} {protocol}");
            for (result, name) in results.iter().zip(["index.html", "a.css", "c.png"]) {
                let bytes = std::fs::metadata(folder.path().join(name))
                    .expect("a file")
                    .len();
                assert_eq!(result["bytes"], bytes, "{form} {protocol}: {name}");
            }
            let results = fetch_results(protocol, &[], &urls);
            assert_eq!(
                claimed_pushes(&results),
                [("", None), ("a.css", None)],
                "refused: {protocol}"
            );
        }
    }
}

/// The server chooses the name of an unclaimed push: it may be `.profile`, or any other existing file.
#[test]
fn an_unclaimed_push_never_overwrites_a_file() {
    let folder = site();
    let server = serve(folder.path(), &["--push", "graph"]);
    let to = tempfile::tempdir().expect("create a folder");
    let at = |name: &str| to.path().join(name);
    for name in ["index.html", "c.png"] {
        std::fs::write(at(name), "mine").expect("write the file");
    }
    let path = to.path().to_str().expect("text");
    let options = ["--push", "accept", "--output-dir", path];
    let results = fetch_results(
        "spdy/3.1",
        &options,
        &[format!("{}/", server.origin(false))],
    );
    assert_eq!(results.len(), 3);
    let read_file = |name: &str| std::fs::read_to_string(at(name)).expect("a file");
    assert!(
        read_file("index.html").starts_with("<link"),
        "expected the requested page"
    );
    assert_eq!(read_file("c.png"), "mine");
    assert_eq!(read_file("c.png.1"), "not much of an image");
}

/// Regression: pushes were read to their end, however long a server made them.
#[test]
fn unclaimed_pushes_are_limited_in_bytes() {
    let folder = site();
    let server = serve(folder.path(), &["--push", "graph"]);
    let url = format!("{}/", server.origin(false));
    let text = std::fs::metadata(folder.path().join("a.css")).expect("a file");
    let all = text.len() + "not much of an image".len() as u64;
    for (bytes, code) in [(all, 0), (all - 1, 1)] {
        let mut command = spdy(&["fetch", "--protocol", "spdy/3.1", "--json"]);
        let bytes = bytes.to_string();
        command.args(["--push", "accept", "--push-bytes", &bytes, &url]);
        let output = run_expecting(code, &mut command);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(stderr.contains("(--push-bytes)"), code == 1, "{stderr}");
        let results = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            results.lines().count(),
            3,
            "expected a line for each: {results}"
        );
    }
}

#[test]
fn clients_without_push_get_link_hints() {
    let folder = site();
    let far = "<http://far.test/b.png>; rel=\"subresource preload\"; as=image";
    let all = format!(
        "</a.css>; rel=\"subresource preload\"; as=style, </c.png>; rel=\"subresource preload\"; as=image, {far}"
    );
    for (hint, protocol, push, expected) in [
        ("rest", "spdy/3.1", "accept", Some(far)),
        ("rest", "spdy/3.1", "refuse", Some(&all[..])),
        ("rest", "http/1.1", "refuse", Some(&all)),
        ("instead", "spdy/3.1", "accept", Some("</a.css>")),
        ("off", "http/1.1", "refuse", None),
    ] {
        let server = serve(folder.path(), &["--push", "graph", "--hint", hint]);
        let results = fetch_results(
            protocol,
            &["--push", push],
            &[format!("{}/", server.origin(false))],
        );
        let hints = links(&results[0]);
        let case = format!("{hint} {protocol} {push}: {hints:?}");
        match expected {
            None => assert!(hints.is_empty(), "{case}"),
            Some(expected) if hint == "instead" => {
                assert!(hints[0].starts_with(expected), "{case}");
                assert_eq!(results.len(), 1, "nothing is pushed; {case}");
            }
            Some(expected) => assert_eq!(hints, [expected], "{case}"),
        }
    }
}

#[test]
fn by_default_references_cause_no_pushes_or_hints() {
    let folder = site();
    for options in [&[][..], &["--push", "none"]] {
        let server = serve(folder.path(), options);
        let results = fetch_results(
            "spdy/3.1",
            &["--push", "accept"],
            &[format!("{}/", server.origin(false))],
        );
        assert_eq!(
            (claimed_pushes(&results), links(&results[0])),
            (vec![("", None)], vec![])
        );
    }
    let mut command = spdy(&["serve", "--push", "none,graph"]);
    let output = run_expecting(2, command.arg(folder.path()));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(
        text.contains("--push none cannot be combined with other sources"),
        "{text}"
    );
}

#[test]
fn requests_of_several_networks_after_a_page_are_learned() {
    if !peers_enabled() {
        return;
    }
    let folder = site();
    let server = serve(folder.path(), &["--push", "learned"]);
    let (page, style) = (
        format!("{}/", server.origin(false)),
        format!("{}/a.css", server.origin(false)),
    );
    let referer = format!("referer: {page}");
    let fetch_both = || {
        let urls = [page.clone(), style.clone()];
        fetch_results("spdy/3.1", &["--push", "accept", "-H", &referer], &urls)
    };
    // Requests from three networks are enough evidence; repeated requests from one network are not.
    for _ in 0..4 {
        assert_eq!(claimed_pushes(&fetch_both()), [("", None), ("a.css", None)]);
    }
    for network in 1..=2 {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--fail", "--noproxy", "*"])
            .args(["--interface", &format!("127.0.{network}.1")])
            .args(["--header", &referer, &page, &style]);
        run_expecting(0, &mut curl);
    }
    assert_eq!(
        claimed_pushes(&fetch_both()),
        [("", None), ("a.css", Some(true))]
    );
}
