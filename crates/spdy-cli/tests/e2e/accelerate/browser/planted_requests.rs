//! Clients that plant requests must have no effect on the browser of the next visitor.

use std::process::Command;

use crate::support::accelerator::accelerated_site::{AcceleratedSite, Setting};
use crate::support::clients::chromium::{Chromium, Viewport};
use crate::support::origins::scripted::{
    OriginAddresses, OriginRequest, Origins, Step, complete_response,
};
use crate::support::peers::{is_installed, peers_enabled, require};
use crate::support::program::{run_expecting, spdy};

const SITE: &str = "www.site.test";
/// Number of networks that plant: a /24 of the loopback network each.
const NETWORKS: u8 = 6;
/// Visits of a browser, of which at least one must use hints.
const VISITS: usize = 4;
const COOKIE: &str = "cookie: who=alice";

fn respond(request: &OriginRequest, _: &OriginAddresses) -> Vec<Step> {
    let path = request.target.split('?').next().unwrap_or_default();
    let page = "<!doctype html><title>planted</title><link rel=icon href=data:,>\
                <link rel=stylesheet href=/a.css><script src=/b.js></script>";
    let (kind, control, body) = match path {
        // Always stale when it arrives: hints are sent, and the origin sees every request.
        "/" => ("text/html", "max-age=60\r\nAge: 60\r\nETag: \"1\"", page),
        "/account" => ("text/html", "private", page),
        // Browsers store these and the accelerator does not, so the origin sees every request of a browser.
        "/a.css" => ("text/css", "private, max-age=600", "p { color: red }"),
        "/b.js" => ("text/javascript", "private, max-age=600", "window.ran = 1"),
        "/logout" => ("text/html", "no-store", "good bye"),
        _ => ("image/png", "max-age=600", "a picture"),
    };
    if request.head.contains("\r\nif-none-match: ") {
        return complete_response("304 Not Modified\r\nAge: 60\r\nETag: \"1\"\r\n", b"");
    }
    let head = format!("200 OK\r\nContent-Type: {kind}\r\nCache-Control: {control}\r\n");
    complete_response(&head, body.as_bytes())
}

struct Setup {
    origins: Origins,
    accelerated_site: AcceleratedSite,
}

impl Setup {
    /// `None` if tests with peers are disabled.
    fn start() -> Option<Self> {
        if !peers_enabled() {
            return None;
        }
        require("Chromium", is_installed("chromium"));
        require("curl", is_installed("curl"));
        let origins = Origins::start(&[(SITE, "https")], respond);
        let accelerated_site = AcceleratedSite::start(&origins, &Setting::default());
        Some(Self {
            origins,
            accelerated_site,
        })
    }

    /// A client in each network requests `page`, and then `targets` like a browser that loads the page's resources.
    fn plant(&self, page: &str, targets: &[&str], fields: &[&str]) {
        for network in 1..=NETWORKS {
            let mut curl = Command::new("curl");
            let referer = format!("referer: https://{SITE}{page}");
            let image = [
                "sec-fetch-dest: image",
                "sec-fetch-mode: no-cors",
                "sec-fetch-site: same-origin",
                &referer,
            ];
            for (nth, (targets, extra_fields)) in
                [(&[page][..], &["accept: text/html"][..]), (targets, &image)]
                    .into_iter()
                    .enumerate()
            {
                if nth > 0 {
                    curl.arg("--next");
                }
                curl.args(["--silent", "--show-error", "--noproxy", "*"])
                    .args(["--max-time", "60", "--path-as-is"])
                    .args(["--interface", &format!("127.0.{network}.1")])
                    .args(["--connect-to", &format!("::{}", self.accelerated_site.tls)])
                    .arg("--cacert")
                    .arg(self.origins.certificates.path("authority.pem"));
                for field in fields.iter().chain(extra_fields) {
                    curl.args(["--header", field]);
                }
                curl.args(
                    targets
                        .iter()
                        .map(|target| format!("https://{SITE}{target}")),
                );
            }
            run_expecting(0, &mut curl);
        }
        let requests = self.origins.requests();
        for target in targets {
            let is_planted = requests.iter().any(|request| request.target == *target);
            assert!(is_planted, "{target}: {requests:?}");
        }
    }

    /// Opens `page` in a browser with an empty cache. Returns what it requested.
    fn browse(&self, page: &str) -> Vec<String> {
        let mut browser = Chromium::start_with(&[
            format!(
                "--host-resolver-rules=MAP {SITE}:443 {}",
                self.accelerated_site.tls
            ),
            format!(
                "--ignore-certificate-errors-spki-list={}",
                self.origins.certificates.pins
            ),
            "--disable-quic".to_owned(),
        ]);
        let look = Viewport {
            width: 800,
            dark: false,
        };
        browser.open(&format!("https://{SITE}{page}"), look);
        assert_eq!(browser.evaluate("window.ran"), 1);
        browser.requests().into_iter().map(str::to_owned).collect()
    }

    /// The output of `spdy fetch` for `page` over `protocol`: heads, including 103, and pushes.
    fn fetch(&self, page: &str, protocol: &str) -> String {
        let mut fetch = spdy(&["fetch", "--verbose", "--protocol", protocol]);
        if protocol.starts_with("spdy") {
            fetch.args(["--push", "accept"]);
        }
        for field in [
            "accept: text/html",
            "sec-fetch-dest: document",
            "sec-fetch-mode: navigate",
        ] {
            fetch.args(["--header", field]);
        }
        let tls = self.accelerated_site.tls;
        fetch
            .arg("--cacert")
            .arg(self.origins.certificates.path("authority.pem"))
            .args(["--resolve", &format!("{SITE}:{}:{}", tls.port(), tls.ip())])
            .arg(format!("https://{SITE}:{}{page}", tls.port()));
        let output = run_expecting(0, &mut fetch);
        let texts =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        texts.concat()
    }

    /// Asserts that no visitor of `page` requests a URL that contains a word of `planted`. Returns what the last browser requested.
    fn assert_not_requested(&self, page: &str, planted: &[&str]) -> Vec<String> {
        let has = |text: &str| planted.iter().any(|word| text.contains(word));
        let requests_before = self.origins.requests().len();
        let mut requested = Vec::new();
        for _ in 0..VISITS {
            requested = self.browse(page);
            assert!(!requested.iter().any(|url| has(url)), "{requested:?}");
        }
        for protocol in ["spdy/3.1", "h2"] {
            let text = self.fetch(page, protocol);
            assert!(
                text.contains("planted</title>"),
                "expected the page: {text}"
            );
            assert!(!has(&text), "{protocol}: {text}");
        }
        let requests = self.origins.requests().split_off(requests_before);
        let targets: Vec<_> = requests.into_iter().map(|request| request.target).collect();
        assert!(!targets.iter().any(|target| has(target)), "{targets:?}");
        requested
    }
}

#[test]
fn requests_planted_by_other_clients_are_never_hinted() {
    let Some(setup) = Setup::start() else {
        return;
    };
    let planted = [
        "/logout?confirm=1",
        "//evil.test/x.png",
        "/planted.png?for=mallory",
    ];
    setup.plant("/", &planted, &[]);
    let words = ["logout", "evil.test", "mallory"];
    let requested = setup.assert_not_requested("/", &words);
    assert_eq!(requested.len(), 3, "page, sheet and script: {requested:?}");
    let text = setup.fetch("/", "spdy/3.1");
    assert!(
        text.contains("</a.css>"),
        "the resources of the page are hinted: {text}"
    );
}

#[test]
fn requests_after_a_private_page_are_never_hinted() {
    let Some(setup) = Setup::start() else {
        return;
    };
    let own_urls = ["/files/x.jpg?cap=SECRET", "/files/of-alice.jpg"];
    setup.plant("/account", &own_urls, &[COOKIE]);
    setup.plant("/", &own_urls[..1], &[COOKIE]);
    for page in ["/account", "/"] {
        setup.assert_not_requested(page, &["SECRET", "of-alice"]);
    }
}
