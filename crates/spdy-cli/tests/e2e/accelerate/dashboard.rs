//! The operator's dashboard in Chromium: its token, its numbers, a purge, and texts that are markup.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use spdy_testkit::wait::WAIT_LIMIT;

use crate::lab::reports::FIND_FAULTS;
use crate::support::accelerator::program::Accelerator;
use crate::support::clients::chromium::{Chromium, Viewport};
use crate::support::clients::raw_client::PendingResponse;
use crate::support::peers::{is_installed, peers_enabled, require};
use crate::support::program::ServeProcess;

const TOKEN: &str = "a token of the operator";

/// A URL that is a script if it is set as markup.
const HOSTILE: &str = "<img src=x onerror=window.hasRun=1>";

/// Replaces parts of URLs in the numbers by [`HOSTILE`], as a server with less careful parsers would send them.
const REPLACE_URLS: &str = r#"
const fetchUnchanged = window.fetch;
window.fetch = async (...request) => {
  const response = await fetchUnchanged(...request);
  const text = (await response.text()).replaceAll(/hostile/g, '<img src=x onerror=window.hasRun=1>');
  return new Response(text, { status: response.status });
};
"#;

const DESKTOP: Viewport = Viewport {
    width: 1280,
    dark: false,
};

fn write_site(folder: &Path) {
    let page = "<!doctype html><title>shop</title><img src=https://cdn.test/a.png><img src=https://cdn.test/hostile.png>\
                <script src=https://else.test/b.js></script>";
    for (name, text) in [
        ("index.html", page),
        ("hostile.html", page),
        (
            "plain.html",
            "<!doctype html><title>plain</title><p>No references",
        ),
        ("a.txt", &"twelve bytes".repeat(20_000)),
    ] {
        fs::write(folder.join(name), text).expect("write the file");
    }
}

/// Starts it for three sites: one is rewritten, one is a dry run, and the origin of one does not listen.
fn start(folder: &Path, origin: &ServeProcess) -> Accelerator {
    let token = folder.join("token");
    fs::write(&token, format!("{TOKEN}\n")).expect("write the file");
    let origin = origin.plain;
    let hosts = "[[site.rewrite.hosts]]\nhost = 'cdn.test'\nkinds = ['image']\nwhole = true\n";
    Accelerator::start(&format!(
        "[listen]\nplain = ['127.0.0.1:0']\ntls = []\n[admin]\naddress = '127.0.0.1:0'\ntoken_file = {token:?}\n\
         [[site]]\nnames = ['www.shop.test']\norigin = 'http://{origin}'\n{hosts}\
         [[site]]\nnames = ['new.shop.test']\norigin = 'http://{origin}'\n[site.rewrite]\ndry_run = true\n{hosts}\
         [[site]]\nnames = ['broken.test']\norigin = 'http://127.0.0.1:1'\n"
    ))
}

fn get(accelerator: &Accelerator, host: &str, target: &str) {
    let request = format!(
        "GET {target} HTTP/1.1\r\nHost: {host}\r\nAccept: text/html\r\nConnection: close\r\n\r\n"
    );
    PendingResponse::begin(accelerator.plain(), request.as_bytes()).end(usize::MAX);
}

/// Waits until the expression `what` is true in the page. Fails with the text of the page: it requests numbers for ever, so no reply times out.
fn until(chromium: &mut Chromium, what: &str) {
    let limit_ms = WAIT_LIMIT.as_millis();
    let text = chromium.evaluate(&format!(
        "new Promise(done => {{ const start = performance.now(); \
         const look = () => ({what}) ? done(null) : performance.now() - start > {limit_ms} ? done(document.body.innerText) \
         : setTimeout(look, 20); look(); }})"
    ));
    assert_eq!(text, Value::Null, "{what}: {text:#}");
}

fn enter_token(chromium: &mut Chromium, token: &str) {
    chromium.evaluate(&format!(
        "document.querySelector('#token').value = {}; document.querySelector('#login').requestSubmit(); 0",
        json!(token)
    ));
}

/// The texts of the cells of the row of `key` in a table.
fn row(chromium: &mut Chromium, table: &str, key: &str) -> Vec<String> {
    let cells = chromium.evaluate(&format!(
        "[...document.querySelectorAll('#{table} tbody tr')].filter(row => row.cells[0].textContent.includes({}))\
         .flatMap(row => [...row.cells].map(cell => cell.textContent))",
        json!(key)
    ));
    serde_json::from_value(cells).expect("texts")
}

fn text(chromium: &mut Chromium, selector: &str) -> String {
    let text = chromium.evaluate(&format!("document.querySelector('{selector}').innerText"));
    text.as_str().expect("text").to_owned()
}

fn assert_only_own_requests(chromium: &Chromium, own: &str) {
    let foreign: Vec<_> = chromium
        .requests()
        .into_iter()
        .filter(|url| !url.starts_with(own) && *url != "data:,")
        .collect();
    assert!(foreign.is_empty(), "{foreign:?}");
}

#[test]
fn an_operator_sees_what_a_site_gains_and_purges_in_a_browser() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let folder = tempfile::tempdir().expect("create a folder");
    let site = folder.path().join("site");
    fs::create_dir(&site).expect("create a folder");
    write_site(&site);
    let origin = ServeProcess::start(&site, &[]);
    let accelerator = start(folder.path(), &origin);
    for (host, target) in [
        ("www.shop.test", "/"),
        ("www.shop.test", "/"),
        ("www.shop.test", "/a.txt"),
        ("www.shop.test", "/a.txt"),
        ("www.shop.test", "/a.txt"),
        ("www.shop.test", "/hostile.html"),
        ("www.shop.test", "/missing"),
        ("new.shop.test", "/"),
        ("broken.test", "/"),
    ] {
        get(&accelerator, host, target);
    }

    let url = format!("http://{}/", accelerator.admin());
    let mut chromium = Chromium::start();
    chromium.run_in_new_pages(REPLACE_URLS);
    chromium.open(&url, DESKTOP);
    // Without the token there are no data, and no requests for them.
    assert!(text(&mut chromium, "body").contains("Enter the operator’s token"));
    assert_eq!(
        chromium.evaluate("document.querySelector('main').checkVisibility()"),
        false
    );
    assert!(!chromium.requests().iter().any(|url| url.contains("json")));
    assert_eq!(chromium.console_messages(), Vec::<&Value>::new());
    chromium.save_screenshot("dashboard-login");
    enter_token(&mut chromium, "a token of the operatoR");
    until(
        &mut chromium,
        "document.querySelector('#login-message').textContent.includes('This token is wrong')",
    );
    assert_eq!(chromium.evaluate("sessionStorage.length"), 0);

    chromium.open(&url, DESKTOP);
    enter_token(&mut chromium, TOKEN);
    until(
        &mut chromium,
        "document.querySelector('main').checkVisibility()",
    );
    let sites = row(&mut chromium, "sites", "www.shop.test");
    assert_eq!(
        (&sites[1][..], &sites[2][..], &sites[7][..]),
        ("7", "42.9 %", "1"),
        "{sites:?}"
    );
    assert!(row(&mut chromium, "sites", "new.shop.test")[0].ends_with("dry run"));
    assert_eq!(row(&mut chromium, "sites", "broken.test")[8], "1");
    let broken = row(&mut chromium, "origins", "127.0.0.1:1/");
    assert_eq!((&broken[1][..], &broken[5][..]), ("broken.test", "1"));
    assert!(
        text(&mut chromium, "#dry-run-sites")
            .contains("new.shop.test: of 1 page, 2 references would be moved, and 1 would not")
    );

    // A URL that is markup is shown as text, in the list and in the report.
    assert_eq!(row(&mut chromium, "pages", HOSTILE).len(), 5);
    let open_report = |chromium: &mut Chromium, host: &str| {
        chromium.evaluate(&format!(
            "[...document.querySelectorAll('#pages button')].find(it => it.textContent.includes('{host}') \
             && it.textContent.endsWith('/')).click(); 0"
        ));
        until(
            chromium,
            &format!("document.querySelector('#page-url').textContent.includes('{host}')"),
        );
    };
    open_report(&mut chromium, "new.shop.test");
    assert!(text(&mut chromium, "#page-summary").starts_with("Dry run: the page was not changed."));
    open_report(&mut chromium, "www.shop.test");
    let moved = row(&mut chromium, "references", "cdn.test/a.png");
    assert!(moved[2].starts_with("moved to /.spdy/"), "{moved:?}");
    let hostile = row(&mut chromium, "references", HOSTILE);
    assert!(hostile[2].starts_with("moved to "), "{hostile:?}");
    let kept = row(&mut chromium, "references", "else.test/b.js");
    assert!(kept[2].starts_with("not moved: "), "{kept:?}");
    assert!(text(&mut chromium, "#page-command").starts_with("spdy accelerate audit 'http"));
    assert_eq!(
        chromium.evaluate("window.hasRun ?? document.querySelectorAll('img').length"),
        0
    );

    // The page is purged: the next request for it is a miss, and the dashboard shows that without a click.
    let misses = |chromium: &mut Chromium| text(chromium, "#summary");
    let before = misses(&mut chromium);
    assert!(before.contains("3 hits, 5 misses"), "{before}");
    chromium.evaluate(
        "document.querySelector('#purge-value').value = document.querySelector('#page-url').textContent; \
         window.sameRow = document.querySelector('#sites tbody tr'); \
         document.querySelector('#purge').requestSubmit(); 0",
    );
    until(
        &mut chromium,
        "document.querySelector('#purge-message').textContent === '1 object in memory removed.'",
    );
    get(&accelerator, "www.shop.test", "/");
    until(
        &mut chromium,
        "document.querySelector('#summary').innerText.includes('3 hits, 6 misses')",
    );
    assert_eq!(
        chromium.evaluate("window.sameRow === document.querySelector('#sites tbody tr')"),
        true
    );
    chromium.evaluate("document.querySelector('#purge-value').value = 'no URL'; document.querySelector('#purge').requestSubmit(); 0");
    until(
        &mut chromium,
        "document.querySelector('#purge-message').textContent.startsWith('Not purged: ')",
    );
    assert_only_own_requests(&chromium, &url);

    // The token stays for this tab.
    for (width, dark) in [(1280, false), (1280, true), (390, false), (390, true)] {
        chromium.open(&url, Viewport { width, dark });
        until(
            &mut chromium,
            "document.querySelector('main').checkVisibility()",
        );
        open_report(&mut chromium, "www.shop.test");
        let faults = chromium.evaluate(FIND_FAULTS);
        let shade = if dark { "dark" } else { "light" };
        chromium.save_screenshot(&format!("dashboard-{width}-{shade}"));
        assert_eq!(faults, json!([]), "{width} {shade}: {faults:#}");
        let paper = chromium.evaluate("getComputedStyle(document.body).backgroundColor");
        assert_eq!(paper == "rgb(21, 24, 28)", dark, "{paper}");
        assert_eq!(chromium.console_messages(), Vec::<&Value>::new());
        assert_only_own_requests(&chromium, &url);
    }
    chromium.evaluate("document.querySelector('#forget').click(); 0");
    assert_eq!(chromium.evaluate("sessionStorage.length"), 0);
    assert_eq!(
        chromium.evaluate("document.querySelector('main').checkVisibility()"),
        false
    );
}
