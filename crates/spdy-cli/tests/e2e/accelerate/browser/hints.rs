//! Chromium loads each early hint once, in the mode that the page uses.

use data_encoding::BASE64;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::accelerator::accelerated_site::{AcceleratedSite, Setting};
use crate::support::clients::chromium::{Chromium, Viewport};
use crate::support::origins::scripted::{
    OriginAddresses, OriginRequest, Origins, Step, complete_response,
};
use crate::support::peers::{is_installed, peers_enabled, require};

const SITE: &str = "www.site.test";
const CDN: &str = "cdn.assets-b.test";

/// Visits, of which at least one must use the hints.
const VISITS: usize = 5;

/// Scripts, whether the page loads them with CORS, and whether there is a hint for them. Pinned scripts have none.
const SCRIPTS: [(&str, bool, bool); 4] = [
    ("/main.mjs", true, true),
    ("/shared.js", true, true),
    ("/classic.js", false, true),
    ("/pinned.js", true, false),
];

const SCRIPT: &[u8] = b"window.ran = (window.ran ?? 0) + 1;\n";

fn respond(request: &OriginRequest, addresses: &OriginAddresses) -> Vec<Step> {
    if request.host == SITE {
        let cdn = addresses.origin(CDN);
        let page = format!(
            "<!doctype html><title>hints</title><link rel=icon href=data:,>\
             <script type=module src=\"{cdn}/main.mjs\"></script>\
             <script crossorigin src=\"{cdn}/shared.js\"></script><script src=\"{cdn}/classic.js\"></script>\
             <script crossorigin integrity=\"sha256-{}\" src=\"{cdn}/pinned.js\"></script>",
            BASE64.encode(&Sha256::digest(SCRIPT))
        );
        let head = "200 OK\r\nContent-Type: text/html\r\nCache-Control: max-age=600\r\n";
        return complete_response(head, page.as_bytes());
    }
    // `private`: browsers store it and the accelerator does not, so its host gets every request of a browser.
    complete_response(
        "200 OK\r\nContent-Type: text/javascript\r\nAccess-Control-Allow-Origin: *\r\n\
         Cache-Control: private, max-age=600\r\n",
        SCRIPT,
    )
}

/// Opens the page in a browser with an empty cache. Returns the scripts that ran early.
fn visit(origins: &Origins, accelerated_site: &AcceleratedSite) -> Vec<String> {
    let (site, cdn) = (accelerated_site.tls, origins.addresses.address(CDN).ip());
    let mut browser = Chromium::start_with(&[
        format!("--host-resolver-rules=MAP {SITE}:443 {site}, MAP {CDN} {cdn}"),
        format!(
            "--ignore-certificate-errors-spki-list={}",
            origins.certificates.pins
        ),
        "--disable-quic".to_owned(),
    ]);
    let look = Viewport {
        width: 800,
        dark: false,
    };
    browser.open(&format!("https://{SITE}/"), look);
    assert_eq!(browser.evaluate("window.ran"), json!(SCRIPTS.len()));
    let early = browser.evaluate(
        "performance.getEntriesByType('resource').filter(entry => entry.initiatorType === 'early-hints')\
         .map(entry => new URL(entry.name).pathname)",
    );
    let early = early.as_array().cloned().unwrap_or_default();
    let name = |path: &Value| {
        let path = path.as_str().unwrap_or_default();
        path[path.rfind('/').unwrap_or_default()..].to_owned()
    };
    let mut names: Vec<_> = early.iter().map(name).collect();
    names.sort();
    names
}

#[test]
fn hinted_resources_load_once_in_the_right_mode() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let origins = Origins::start(&[(SITE, "https"), (CDN, "https")], respond);
    let port = origins.addresses.address(CDN).port();
    let accelerated_site = AcceleratedSite::start(
        &origins,
        &Setting {
            site: &format!("[[site.rewrite.hosts]]\nhost = '{CDN}:{port}'\nkinds = ['script']\n"),
            upstream: "allow_addresses = ['127.0.0.2/32']",
            ..Setting::default()
        },
    );
    assert_eq!(
        visit(&origins, &accelerated_site),
        [""; 0],
        "no resource was learned yet"
    );
    let hinted_scripts = SCRIPTS.iter().filter(|(.., is_hinted)| *is_hinted);
    let mut all: Vec<_> = hinted_scripts.map(|(script, ..)| *script).collect();
    all.sort_unstable();
    // A browser ignores hints if it already has the page; this can happen on a busy machine.
    let requests = (0..VISITS).find_map(|_| {
        let requests_before = origins.requests().len();
        let early = visit(&origins, &accelerated_site);
        let requests = origins.requests().split_off(requests_before);
        assert!(early.is_empty() || early == all, "{early:?}");
        assert_eq!(requests.len(), SCRIPTS.len(), "{requests:?}");
        (!early.is_empty()).then_some(requests)
    });
    let requests = requests.expect("a visit that used hints");
    for (script, with_cors, _) in SCRIPTS {
        let script_request = requests.iter().find(|request| request.target == script);
        let head = &script_request
            .unwrap_or_else(|| panic!("{script}: {requests:?}"))
            .head;
        assert_eq!(head.contains("\r\norigin: "), with_cors, "{script}: {head}");
    }
}
