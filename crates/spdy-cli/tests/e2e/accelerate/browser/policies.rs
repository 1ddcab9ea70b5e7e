//! Pages with strict policies or frames, in Chromium: what works in them without the accelerator also works through `spdy
//! accelerate`, and what is blocked is blocked.

use data_encoding::BASE64;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::support::accelerator::accelerated_site::{AcceleratedSite, Setting};
use crate::support::clients::chromium::{Chromium, Viewport};
use crate::support::origins::pictures::png;
use crate::support::origins::scripted::{
    OriginAddresses, OriginRequest, Origins, Step, complete_response,
};
use crate::support::peers::{is_installed, peers_enabled, require};

const SITE: &str = "www.site.test";
const CDN: &str = "cdn.assets-b.test";

/// The pages, and the expected results, so that the test does not compare two empty results.
const PAGES: [(&str, &str); 6] = [
    (
        "/hashes",
        r#"{"images":[15],"inline":true,"classic":true,"lib":"lib"}"#,
    ),
    (
        "/meta",
        r#"{"images":[15],"inline":true,"classic":true,"lib":"lib"}"#,
    ),
    (
        "/sandboxed",
        r#"{"images":[15],"inline":true,"classic":true,"lib":"lib"}"#,
    ),
    ("/refused", r#"{"images":[0],"inline":true}"#),
    // The last two test other policies: a frame with an opaque origin, and an injected script.
    ("/framing", r#"{"framed":{"images":[15],"classic":true}}"#),
    ("/injected", r#"{"images":[15],"inline":true}"#),
];

const STYLE: &str = ".inline { background: url({cdn}/in.png) }";
const MAP: &str = r#"{"imports": {"lib": "{cdn}/lib.mjs"}}"#;
const LOADS: &str = "<p class=inline>text</p><img src=\"{cdn}/a.png\">\
    <script src=\"{cdn}/classic.js\"></script><script type=module src=\"{cdn}/main.mjs\"></script>";

fn fill_template(text: &str, addresses: &OriginAddresses) -> String {
    text.replace("{cdn}", &addresses.origin(CDN))
}

fn hash(text: &str, addresses: &OriginAddresses) -> String {
    let digest = Sha256::digest(fill_template(text, addresses));
    format!("'sha256-{}'", BASE64.encode(&digest))
}

/// Policy in the head, policy in a `meta` element, and the body of a page.
fn page(path: &str, addresses: &OriginAddresses) -> Option<(String, String, String)> {
    let cdn = addresses.origin(CDN);
    let open =
        format!("script-src 'unsafe-inline' {cdn}; style-src 'unsafe-inline'; img-src data: {cdn}");
    let (style, map) = (hash(STYLE, addresses), hash(MAP, addresses));
    let hashes = format!(
        "default-src 'none'; style-src {style}; script-src {cdn} {map}; img-src data: {cdn}"
    );
    let loads = fill_template(LOADS, addresses);
    let proxied_url = cdn.replace("https://", "/.spdy/1/-/s/").replace(':', "~");
    Some(match path {
        "/hashes" => (hashes, String::new(), loads),
        "/meta" => (String::new(), open, loads),
        "/sandboxed" => (
            format!("sandbox allow-scripts; {open}"),
            String::new(),
            loads,
        ),
        "/refused" => {
            let image =
                format!("<p class=inline>text</p><img crossorigin src=\"{cdn}/closed.png\">");
            (open, String::new(), image)
        }
        "/framing" => {
            let frame = "<iframe sandbox=allow-scripts src=/framed></iframe>";
            (String::new(), String::new(), frame.to_owned())
        }
        "/framed" => {
            let report_script = "<script>onload = () => parent.postMessage({images: [...document.images]\
                .map(image => image.naturalWidth), classic: window.classic}, '*')</script>";
            (
                String::new(),
                String::new(),
                format!("{loads}{report_script}"),
            )
        }
        "/injected" => {
            let script = format!(
                "<p class=inline>text</p><img src=\"{cdn}/a.png\"><script src=\"{proxied_url}/classic.js\"></script>"
            );
            let policy =
                format!("script-src 'self'; style-src 'unsafe-inline'; img-src data: {cdn}");
            (policy, String::new(), script)
        }
        _ => return None,
    })
}

fn respond(request: &OriginRequest, addresses: &OriginAddresses) -> Vec<Step> {
    let path = request.target.split('?').next().unwrap_or_default();
    if let (SITE, Some((policy, meta, body))) = (request.host, page(path, addresses)) {
        let meta = match meta.is_empty() {
            true => meta,
            false => format!("<meta http-equiv=Content-Security-Policy content=\"{meta}\">"),
        };
        let (style, map) = (
            fill_template(STYLE, addresses),
            fill_template(MAP, addresses),
        );
        let text = format!(
            "<!doctype html><html><head><title>{path}</title>{meta}<link rel=icon href=data:,>\
             <style>{style}</style><script type=importmap>{map}</script></head><body>{body}</body></html>"
        );
        let policy = match policy.is_empty() {
            true => policy,
            false => format!("Content-Security-Policy: {policy}\r\n"),
        };
        let head = format!(
            "200 OK\r\nContent-Type: text/html; charset=utf-8\r\nCache-Control: no-store\r\n{policy}"
        );
        return complete_response(&head, text.as_bytes());
    }
    let open = "Access-Control-Allow-Origin: *\r\nCache-Control: max-age=600\r\n";
    let script = format!("200 OK\r\nContent-Type: text/javascript\r\n{open}");
    match (request.host, path) {
        (CDN, "/classic.js") => complete_response(&script, b"window.classic = true;\n"),
        (CDN, "/main.mjs") => {
            complete_response(&script, b"import lib from 'lib'; window.lib = lib;\n")
        }
        (CDN, "/lib.mjs") => complete_response(&script, b"export default 'lib';\n"),
        (CDN, "/closed.png") => complete_response(
            "200 OK\r\nContent-Type: image/png\r\n",
            &png(15, 10, [9; 3]),
        ),
        (CDN, _) => {
            let head = format!("200 OK\r\nContent-Type: image/png\r\n{open}");
            complete_response(&head, &png(15, 10, [7; 3]))
        }
        _ => complete_response("404 Not Found\r\nContent-Type: text/plain\r\n", b"no\n"),
    }
}

fn browser(origins: &Origins, site: std::net::SocketAddr) -> Chromium {
    let cdn = origins.addresses.address(CDN).ip();
    let mut browser = Chromium::start_with(&[
        format!("--host-resolver-rules=MAP {SITE}:443 {site}, MAP {CDN} {cdn}"),
        format!(
            "--ignore-certificate-errors-spki-list={}",
            origins.certificates.pins
        ),
        "--disable-quic".to_owned(),
    ]);
    browser.run_in_new_pages(
        "window.message = new Promise(resolve => addEventListener('message', event => resolve(event.data)))",
    );
    browser
}

/// Opens a page and returns what works in it.
fn look(browser: &mut Chromium, path: &str) -> Value {
    let look = Viewport {
        width: 800,
        dark: false,
    };
    browser.clear_cache();
    browser.open(&format!("https://{SITE}{path}"), look);
    browser.evaluate(
        "(async () => {
            const inline = document.querySelector('.inline');
            const has = inline && getComputedStyle(inline).backgroundImage.includes('in.png');
            const images = [...document.images].map(image => image.naturalWidth);
            const framed = document.querySelector('iframe') && await window.message;
            const all = { images, inline: has, classic: window.classic, lib: window.lib, framed };
            return Object.fromEntries(Object.entries(all).filter(([, is]) => is && is.length !== 0));
        })()",
    )
}

#[test]
fn pages_with_strict_policies_work_the_same_in_chromium() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let hosts = [(SITE, "https"), (CDN, "https")];
    let origins = Origins::start(&hosts, respond);
    let mut direct = browser(&origins, origins.addresses.address(SITE));
    for (path, expected) in PAGES {
        let expected: Value = serde_json::from_str(expected).expect("JSON");
        assert_eq!(look(&mut direct, path), expected, "{path}, direct");
    }
    drop(direct);
    let requests_before = origins.requests().len();
    let port = origins.addresses.address(CDN).port();
    let setting = Setting {
        site: &format!(
            "[[site.rewrite.hosts]]\nhost = '{CDN}:{port}'\nkinds = ['image', 'style', 'script']\n"
        ),
        upstream: &format!("allow_addresses = ['127.0.0.2/32']\nallow_ports = [{port}]"),
        ..Setting::default()
    };
    // The injected script needs an accelerator that has handled no other page, and a browser with an empty cache.
    let (injected, other_pages) = PAGES.split_last().expect("the pages");
    for pages in [other_pages, std::slice::from_ref(injected)] {
        let accelerated_site = AcceleratedSite::start(&origins, &setting);
        let mut browser = browser(&origins, accelerated_site.tls);
        for (path, expected) in pages {
            let expected: Value = serde_json::from_str(expected).expect("JSON");
            assert_eq!(look(&mut browser, path), expected, "{path}, accelerated");
        }
    }
    let mut requests = origins.requests().split_off(requests_before).into_iter();
    assert!(
        requests.any(|request| request.host == CDN && request.head.contains("via:")),
        "nothing was proxied"
    );
}
