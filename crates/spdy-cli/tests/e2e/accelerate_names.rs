//! Hosts with names of their own: what the program says of them, and a page in Chromium that has its images, sheet, scripts and frame
//! from such names. What is fetched must be the same, byte for byte; the frame must be as much a stranger to the page as it was.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::accelerated::{Accelerated, Setting};
use crate::support::chromium::{Chromium, Fetched, Look};
use crate::support::origins::{Asked, Origins, Places, Step, whole};
use crate::support::peers::{is_installed, require, wanted};
use crate::support::pictures::png;
use crate::support::program::{ended_with, spdy};

const SITE: &str = "www.site.test";
const CDN: &str = "cdn.assets-b.test";
const FRAMES: &str = "frames.other-d.test";
const ZONE: &str = "x.names-e.test";

#[test]
fn the_check_tells_names_and_what_is_still_to_be_done() {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let (secret, config) = (
        folder.path().join("secret"),
        folder.path().join("site.toml"),
    );
    std::fs::write(&secret, [b'x'; 32]).expect("the folder can be written to");
    let text = |dns: &str| {
        format!(
            "secret_file = {secret:?}\n[[site]]\nnames = ['{SITE}']\norigin = 'https://origin.test'\n\
             [site.rewrite]\nnames_under = '{ZONE}'\n[[site.rewrite.hosts]]\nhost = '{FRAMES}'\nmode = 'name'\nkinds = ['document']\n{dns}"
        )
    };
    let check = |text: &str, more: &[&str]| {
        std::fs::write(&config, text).expect("the folder can be written to");
        let mut command = spdy(&["accelerate", "--check"]);
        let output = ended_with(0, command.arg(&config).args(more));
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|it| String::from_utf8(it).expect("text"));
        (stdout, stderr)
    };
    let (told, beside) = check(&text(""), &[]);
    let (name, stands_for) = told.trim().split_once(" stands for ").expect("one name");
    assert_eq!(stands_for, format!("https://{FRAMES}"));
    assert!(name.ends_with(&format!(".{ZONE}")), "{name}");
    assert!(
        beside.contains(&format!("{name} is in no zone of [dns]")),
        "{beside}"
    );
    let dns = "[dns]\nlisten = ['127.0.0.1:0']\n\
               [[dns.zone]]\napex = 'site.test'\nname_servers = ['ns.origin.test']\n\
               [[dns.zone.names]]\nname = 'www'\naddresses = ['192.0.2.1']\n\
               [[dns.zone]]\napex = 'names-e.test'\nname_servers = ['ns.origin.test']\n";
    let (told, beside) = check(&text(dns), &["--json"]);
    assert!(!beside.contains("is in no zone"), "{beside}");
    let told: serde_json::Value = serde_json::from_str(&told).expect("JSON");
    assert_eq!(told["sites"][0], SITE);
    assert_eq!(told["names"][0]["name"], name, "the same again");
    assert_eq!(told["names"][0]["is_answered_here"], true);
    assert!(told["names"][0]["is_certified"].is_null());
}

const PAGE: &str = r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>secret of the site</title>
<link rel="icon" href="data:,">
<link rel="preconnect" href="{cdn}">
<link rel="stylesheet" href="{cdn}/css/main.css">
<script src="{cdn}/js/classic.js"></script>
<script type="module" src="{cdn}/js/main.mjs"></script>
</head><body>
<p class="main">Named hosts</p>
<img id="one" alt="" src="{cdn}/img/one.png">
<img id="two" alt="" src="{cdn}/img/one.png" srcset="{cdn}/img/two.png 1x">
<iframe src="{frames}/frame.html"></iframe>
</body></html>
"#;

const FRAME: &str = r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>a frame</title></head>
<body><img alt="" src="in-frame.png"><script src="/frame.js"></script></body></html>
"#;

/// What the frame can learn of the page around it.
const FRAME_SCRIPT: &str = "let around = 'read'; try { around = parent.document.title } catch (error) { around = error.name }\n\
    fetch('data.json').then(got => got.json()).then(data => parent.postMessage(\
    { around, cookies: document.cookie, at: location.pathname, data: data.of }, '*'));\n";

fn answer(asked: &Asked, places: &Places) -> Vec<Step> {
    let filled = |text: &str| {
        let text = text.replace("{cdn}", &places.origin(CDN));
        text.replace("{frames}", &places.origin(FRAMES))
    };
    let open = "Access-Control-Allow-Origin: *\r\n";
    let cookie = match asked.host {
        SITE => "Set-Cookie: of-site=secret; Path=/; Secure\r\n",
        _ => "Set-Cookie: of-third=tracker; Path=/; Secure; SameSite=None\r\n",
    };
    let (kind, body) = match (asked.host, asked.target.as_str()) {
        (SITE, "/") => ("text/html", filled(PAGE)),
        (CDN, "/css/main.css") => (
            "text/css",
            ".main { text-indent: 7px; background: url(../img/relative.png); list-style: url(/img/root.png) }\n".to_owned(),
        ),
        (CDN, "/js/classic.js") => ("text/javascript", "window.classic = true;\n".to_owned()),
        (CDN, "/js/main.mjs") => (
            "text/javascript",
            "import part from './part.mjs'; window.modules = part + (await import('/js/late.mjs')).default;\n".to_owned(),
        ),
        (CDN, "/js/part.mjs") => ("text/javascript", "export default 'part ';\n".to_owned()),
        (CDN, "/js/late.mjs") => ("text/javascript", "export default 'late';\n".to_owned()),
        (FRAMES, "/frame.html") => ("text/html", FRAME.to_owned()),
        (FRAMES, "/frame.js") => ("text/javascript", FRAME_SCRIPT.to_owned()),
        (FRAMES, "/data.json") => ("application/json", "{\"of\": \"the frame\"}".to_owned()),
        (_, path) if path.ends_with(".png") => {
            let head = format!("200 OK\r\nContent-Type: image/png\r\nCache-Control: max-age=600\r\n{open}{cookie}");
            return whole(&head, &png(10 + path.len() as u32, 10, [path.len() as u8; 3]));
        }
        _ => return whole("404 Not Found\r\nContent-Type: text/plain\r\n", b"no\n"),
    };
    let policy = match asked.host {
        SITE => filled(
            "Content-Security-Policy: default-src 'none'; script-src {cdn}; style-src {cdn}; img-src data: {cdn}; frame-src {frames}\r\n",
        ),
        FRAMES if kind == "text/html" => {
            "Content-Security-Policy: default-src 'self'\r\n".to_owned()
        }
        _ => String::new(),
    };
    let head = format!(
        "200 OK\r\nContent-Type: {kind}; charset=utf-8\r\nCache-Control: max-age=600\r\n{open}{cookie}{policy}"
    );
    whole(&head, body.as_bytes())
}

fn browser(origins: &Origins, site: std::net::SocketAddr) -> Chromium {
    let mut rules = vec![
        format!("MAP {SITE}:443 {site}"),
        format!("MAP *.{ZONE}:443 {site}"),
    ];
    for name in [CDN, FRAMES] {
        rules.push(format!("MAP {name} {}", origins.places.address(name).ip()));
    }
    let mut browser = Chromium::start_with(&[
        format!("--host-resolver-rules={}", rules.join(", ")),
        format!(
            "--ignore-certificate-errors-spki-list={}",
            origins.signed.pins
        ),
        "--disable-quic".to_owned(),
        // What frames fetch is then told with the rest.
        "--disable-features=IsolateOrigins,site-per-process".to_owned(),
        "--disable-site-isolation-trials".to_owned(),
    ]);
    browser.prepare(
        "window.violations = []; document.addEventListener('securitypolicyviolation', \
         event => window.violations.push(event.violatedDirective + ' ' + event.blockedURI)); \
         window.told = new Promise(done => window.addEventListener('message', event => done(event.data)))",
    );
    browser
}

/// What works of the page, and what was fetched.
fn look(browser: &mut Chromium) -> (serde_json::Value, Vec<Fetched>) {
    browser.forget();
    let look = Look {
        width: 1000,
        dark: false,
    };
    browser.open(&format!("https://{SITE}/"), look);
    let works = browser.ask(
        "(async () => ({
            told: await window.told,
            images: [...document.images].map(image => image.id + ' ' + image.naturalWidth),
            indented: getComputedStyle(document.querySelector('.main')).textIndent,
            classic: window.classic, modules: window.modules,
            violations: window.violations, cookies: document.cookie,
        }))()",
    );
    let fetched = browser.fetched();
    let complaints = browser.complaints();
    assert!(complaints.is_empty(), "{complaints:#?}");
    (works, fetched)
}

/// By URL, with `names` in their own places.
fn bodies(
    fetched: &[Fetched],
    names: &BTreeMap<String, String>,
) -> BTreeMap<String, BTreeSet<Vec<u8>>> {
    let in_place = |text: &str| {
        let names = names.iter();
        names.fold(text.to_owned(), |text, (name, own)| text.replace(name, own))
    };
    let mut all = BTreeMap::<_, BTreeSet<_>>::new();
    for one in fetched {
        let body = one.body.clone();
        let body = body.unwrap_or_else(|error| panic!("{}: {error}", one.url));
        let body = match String::from_utf8(body) {
            Ok(text) => in_place(&text).into_bytes(),
            Err(binary) => binary.into_bytes(),
        };
        all.entry(in_place(&one.url)).or_default().insert(body);
    }
    all
}

/// The names that the page has for its hosts, each with the host's own origin.
fn names_of(page: &Fetched, places: &Places) -> BTreeMap<String, String> {
    let text = String::from_utf8(page.body.clone().expect("the page")).expect("text");
    let after = |mark: &str| {
        let at = text.find(mark).expect(mark) + mark.len();
        let end = at + text[at..].find(ZONE).expect("a name") + ZONE.len();
        text[at..end].to_owned()
    };
    [
        ("<img id=\"one\" alt=\"\" src=\"", CDN),
        ("<iframe src=\"", FRAMES),
    ]
    .map(|(mark, host)| (after(mark), places.origin(host)))
    .into()
}

#[test]
fn chromium_gets_from_names_what_it_gets_from_their_hosts_over_the_sites_connection() {
    if !wanted() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let hosts = [SITE, CDN, FRAMES].map(|name| (name, "https"));
    let origins = Origins::start(&hosts, answer);
    let mut direct = browser(&origins, origins.places.address(SITE));
    let (straight, fetched_straight) = look(&mut direct);
    drop(direct);
    assert_eq!(straight["told"]["around"], "SecurityError");
    assert_eq!(straight["modules"], "part late");

    let before = origins.asked().len();
    let folder = tempfile::tempdir().expect("a folder can be made");
    let secret = folder.path().join("secret");
    std::fs::write(&secret, [b'x'; 32]).expect("the folder can be written to");
    let port = |name| origins.places.address(name).port();
    let (cdn, frames) = (port(CDN), port(FRAMES));
    let accelerated = Accelerated::start(
        &origins,
        &Setting {
            top: &format!("secret_file = {secret:?}"),
            site: &format!(
                "[site.rewrite]\nnames_under = '{ZONE}'\n\
                 [[site.rewrite.hosts]]\nhost = '{CDN}:{cdn}'\nmode = 'name'\nkinds = ['image', 'style', 'script']\nwhole = true\n\
                 [[site.rewrite.hosts]]\nhost = '{FRAMES}:{frames}'\nmode = 'name'\nkinds = ['document', 'image', 'script']\n"
            ),
            upstream: &format!(
                "allow_addresses = ['127.0.0.2/32', '127.0.0.3/32']\nallow_ports = [{cdn}, {frames}]"
            ),
            ..Setting::default()
        },
    );
    let mut browser = browser(&origins, accelerated.tls);
    let (works, fetched) = look(&mut browser);
    // Whose cookies the frame sees is its own host's business, and here the host sets none.
    let mut told_straight = straight.clone();
    told_straight["told"]["cookies"] = "".into();
    assert_eq!(works, told_straight);

    let page = fetched
        .iter()
        .find(|one| one.url == format!("https://{SITE}/"));
    let names = names_of(page.expect("the page"), &origins.places);
    let (mut ours, theirs) = (bodies(&fetched, &names), bodies(&fetched_straight, &names));
    let page = format!("https://{SITE}/");
    // Nobody connects to the host any more.
    let hint = format!(
        "<link rel=\"preconnect\" href=\"{}\">",
        origins.places.origin(CDN)
    );
    let theirs_page = theirs[&page].iter().map(|text| {
        let text = String::from_utf8(text.clone()).expect("text");
        text.replace(&hint, "<!---->").into_bytes()
    });
    assert_eq!(ours.remove(&page), Some(theirs_page.collect()));
    for (url, bodies) in &ours {
        assert_eq!(Some(bodies), theirs.get(url), "{url}");
    }
    assert_eq!(
        ours.len() + 1,
        theirs.len(),
        "{:?}\n{:?}",
        ours.keys(),
        theirs.keys()
    );

    connections(&fetched, accelerated.tls.port());
    let cookies = browser.cookies();
    assert_eq!(
        cookies,
        [(SITE.to_owned(), "of-site".to_owned())],
        "a third party's cookie"
    );
    for asked in &origins.asked()[before..] {
        let says = asked.head.contains("cookie") || asked.head.contains("secret");
        assert!(asked.host == SITE || !says, "{}", asked.head);
    }
}

/// All came from the accelerator, and what the page loads with its cookies' mode over the page's own connection.
fn connections(fetched: &[Fetched], port: u16) {
    let mut by_connection = BTreeMap::<_, BTreeSet<_>>::new();
    for one in fetched {
        assert_eq!(
            (one.port, one.protocol.as_str()),
            (u64::from(port), "h2"),
            "{}",
            one.url
        );
        let path = one.url.rsplit('/').next().unwrap_or_default();
        by_connection
            .entry(one.connection)
            .or_default()
            .insert(path.to_owned());
    }
    println!("connections: {by_connection:#?}");
    let of = |path: &str| {
        let mut all = by_connection.iter();
        all.find(|(_, paths)| paths.contains(path))
            .map(|(connection, _)| connection)
    };
    for path in ["main.css", "classic.js", "two.png", "relative.png"] {
        assert_eq!(of(path), of(""), "{path}: {by_connection:#?}");
    }
    assert!(by_connection.len() <= 3, "{by_connection:#?}");
}
