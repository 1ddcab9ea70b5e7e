//! Host aliases: a page in Chromium whose images, style sheet, scripts and frame have alias hosts. The bytes must be the same as
//! without the accelerator, and the frame must still be cross-origin to the page. The test also checks which resources share a
//! connection, compared with an alias in the site's own domain.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use serde_json::json;

use crate::support::accelerator::accelerated_site::{AcceleratedSite, Setting};
use crate::support::clients::chromium::{Chromium, FetchedResource, Viewport};
use crate::support::origins::pictures::png;
use crate::support::origins::scripted::{
    OriginAddresses, OriginRequest, Origins, Step, complete_response,
};
use crate::support::peers::{is_installed, peers_enabled, require};

const SITE: &str = "www.site.test";
const CDN: &str = "cdn.assets-b.test";
const FRAMES: &str = "frames.other-d.test";
const ZONE: &str = "x.names-e.test";
/// Another name of the site, in its registrable domain.
const OWN_HOST: &str = "img.site.test";

const PAGE: &str = r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>secret of the site</title>
<link rel="icon" href="data:,">
<link rel="preconnect" href="{cdn}">
<link rel="stylesheet" href="{cdn}/css/main.css">
<script src="{cdn}/js/classic.js"></script>
<script type="module" src="{cdn}/js/main.mjs"></script>
</head><body>
<p class="main">Named hosts</p>
<img id="one" alt="" src="{frames}/img/one.png">
<img id="two" alt="" src="{cdn}/img/one.png" srcset="{cdn}/img/two.png 1x">
<iframe src="{frames}/frame.html"></iframe>
</body></html>
"#;

const FRAME: &str = r#"<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>a frame</title></head>
<body><img alt="" src="in-frame.png"><script src="/frame.js"></script></body></html>
"#;

/// What the frame can read of the page around it.
const FRAME_SCRIPT: &str = "let around = 'read'; try { around = parent.document.title } catch (error) { around = error.name }\n\
    fetch('data.json').then(got => got.json()).then(data => parent.postMessage(\
    { around, cookies: document.cookie, at: location.pathname, data: data.of }, '*'));\n";

/// The response of the requested host. `cdn` and `frames` are the origins of the other two.
fn respond(request: &OriginRequest, cdn: &str, frames: &str) -> Vec<Step> {
    let filled = |text: &str| text.replace("{cdn}", cdn).replace("{frames}", frames);
    let open = "Access-Control-Allow-Origin: *\r\n";
    let cookie = match request.host {
        SITE => "Set-Cookie: of-site=secret; Path=/; Secure\r\n",
        _ => "Set-Cookie: of-third=tracker; Path=/; Secure; SameSite=None\r\n",
    };
    let (kind, body) = match (request.host, request.target.as_str()) {
        (SITE, "/") => ("text/html", filled(PAGE)),
        (CDN, "/css/main.css") => (
            "text/css",
            ".main { text-indent: 7px; background: url(../img/relative.png); list-style: url(/img/root.png) }\n".to_owned(),
        ),
        (CDN, "/js/classic.js") => ("text/javascript", "window.classic = true;\n".to_owned()),
        (CDN, "/js/main.mjs") => (
            "text/javascript",
            "import part from './part.mjs'; const detail = part + (await import('/js/late.mjs')).default;\n\
             dispatchEvent(new CustomEvent('modules', { detail }));\n"
                .to_owned(),
        ),
        (CDN, "/js/part.mjs") => ("text/javascript", "export default 'part ';\n".to_owned()),
        (CDN, "/js/late.mjs") => ("text/javascript", "export default 'late';\n".to_owned()),
        (FRAMES, "/frame.html") => ("text/html", FRAME.to_owned()),
        (FRAMES, "/frame.js") => ("text/javascript", FRAME_SCRIPT.to_owned()),
        (FRAMES, "/data.json") => ("application/json", "{\"of\": \"the frame\"}".to_owned()),
        (_, path) if path.ends_with(".png") => {
            let head = format!("200 OK\r\nContent-Type: image/png\r\nCache-Control: max-age=600\r\n{open}{cookie}");
            return complete_response(&head, &png(10 + path.len() as u32, 10, [path.len() as u8; 3]));
        }
        _ => return complete_response("404 Not Found\r\nContent-Type: text/plain\r\n", b"no\n"),
    };
    let policy = match request.host {
        SITE => filled(
            "Content-Security-Policy: default-src 'none'; script-src {cdn}; style-src {cdn}; img-src data: {cdn} {frames}; frame-src {frames}\r\n",
        ),
        FRAMES if kind == "text/html" => {
            "Content-Security-Policy: default-src 'self'\r\n".to_owned()
        }
        _ => String::new(),
    };
    let head = format!(
        "200 OK\r\nContent-Type: {kind}; charset=utf-8\r\nCache-Control: max-age=600\r\n{open}{cookie}{policy}"
    );
    complete_response(&head, body.as_bytes())
}

/// Whether the browser stores and sends third-party cookies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ThirdParties {
    Allowed,
    Blocked,
}

impl ThirdParties {
    /// The value of the preference `profile.cookie_controls_mode`.
    fn mode(self) -> u8 {
        match self {
            Self::Allowed => 0,
            Self::Blocked => 1,
        }
    }
}

/// A browser that resolves the site's names and the alias zone to `site`, and the other hosts of `origins` to their addresses.
fn browser(origins: &Origins, site: SocketAddr, third_parties: ThirdParties) -> Chromium {
    let site_rules =
        [SITE, OWN_HOST, &format!("*.{ZONE}")].map(|name| format!("MAP {name}:443 {site}"));
    let mut rules = site_rules.to_vec();
    for (name, address) in origins.addresses.all().skip(1) {
        rules.push(format!("MAP {name} {}", address.ip()));
    }
    let preferences = json!({ "profile": { "cookie_controls_mode": third_parties.mode() } });
    let mut browser = Chromium::start_with_preferences(
        &preferences,
        &[
            format!("--host-resolver-rules={}", rules.join(", ")),
            format!(
                "--ignore-certificate-errors-spki-list={}",
                origins.certificates.pins
            ),
            "--disable-quic".to_owned(),
            // Without site isolation, DevTools reports the requests of frames with the rest.
            "--disable-features=IsolateOrigins,site-per-process".to_owned(),
            "--disable-site-isolation-trials".to_owned(),
        ],
    );
    browser.run_in_new_pages(
        "window.violations = []; document.addEventListener('securitypolicyviolation', \
         event => window.violations.push(event.violatedDirective + ' ' + event.blockedURI)); \
         window.message = new Promise(done => window.addEventListener('message', event => done(event.data))); \
         window.modules = new Promise(done => window.addEventListener('modules', event => done(event.detail)))",
    );
    browser
}

/// Opens the page. Returns results of its scripts, and the fetched resources.
fn look(browser: &mut Chromium) -> (serde_json::Value, Vec<FetchedResource>) {
    browser.clear_cache();
    let look = Viewport {
        width: 1000,
        dark: false,
    };
    browser.open(&format!("https://{SITE}/"), look);
    let works = browser.evaluate(
        "(async () => ({
            message: await window.message,
            images: [...document.images].map(image => image.id + ' ' + image.naturalWidth),
            indented: getComputedStyle(document.querySelector('.main')).textIndent,
            classic: window.classic, modules: await window.modules,
            violations: window.violations, cookies: document.cookie,
        }))()",
    );
    let resources = browser.fetched_resources();
    let messages = browser.console_messages();
    assert!(messages.is_empty(), "{messages:#?}");
    (works, resources)
}

/// Bodies by URL, with each alias in `names` replaced by its origin.
fn bodies(
    resources: &[FetchedResource],
    names: &BTreeMap<String, String>,
) -> BTreeMap<String, BTreeSet<Vec<u8>>> {
    let restore_origins = |text: &str| {
        let names = names.iter();
        names.fold(text.to_owned(), |text, (name, origin)| {
            text.replace(name, origin)
        })
    };
    let mut all = BTreeMap::<_, BTreeSet<_>>::new();
    for resource in resources {
        let body = resource.body.clone();
        let body = body.unwrap_or_else(|error| panic!("{}: {error}", resource.url));
        let body = match String::from_utf8(body) {
            Ok(text) => restore_origins(&text).into_bytes(),
            Err(binary) => binary.into_bytes(),
        };
        all.entry(restore_origins(&resource.url))
            .or_default()
            .insert(body);
    }
    all
}

/// The aliases in the page, each with the origin of its host.
fn names_of(page: &FetchedResource, addresses: &OriginAddresses) -> BTreeMap<String, String> {
    let text = String::from_utf8(page.body.clone().expect("the page")).expect("text");
    let name_after = |mark: &str| {
        let at = text.find(mark).expect(mark) + mark.len();
        let end = at + text[at..].find(ZONE).expect("a name") + ZONE.len();
        text[at..end].to_owned()
    };
    [
        ("<img id=\"two\" alt=\"\" src=\"", CDN),
        ("<iframe src=\"", FRAMES),
    ]
    .map(|(mark, host)| (name_after(mark), addresses.origin(host)))
    .into()
}

/// An accelerator in front of `origins`, with aliases for the two other hosts.
fn start_accelerator(origins: &Origins, secret: &std::path::Path) -> AcceleratedSite {
    std::fs::write(secret, [b'x'; 32]).expect("write the file");
    let port = |name| origins.addresses.address(name).port();
    let (cdn, frames) = (port(CDN), port(FRAMES));
    AcceleratedSite::start(
        origins,
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
    )
}

/// Compares the page from its hosts with the page from aliases. Returns which resources shared a connection.
fn compare(third_parties: ThirdParties) -> BTreeSet<BTreeSet<String>> {
    let hosts = [SITE, CDN, FRAMES].map(|name| (name, "https"));
    let origins = Origins::start(&hosts, |request, addresses| {
        respond(request, &addresses.origin(CDN), &addresses.origin(FRAMES))
    });
    let mut direct = browser(&origins, origins.addresses.address(SITE), third_parties);
    let (direct_results, direct_resources) = look(&mut direct);
    let has_third_party_cookies = direct.cookies().iter().any(|(_, name)| name == "of-third");
    assert_eq!(
        has_third_party_cookies,
        third_parties == ThirdParties::Allowed,
        "the preference has no effect"
    );
    drop(direct);
    assert_eq!(direct_results["message"]["around"], "SecurityError");
    assert_eq!(direct_results["modules"], "part late");

    let requests_before = origins.requests().len();
    let folder = tempfile::tempdir().expect("create a folder");
    let accelerated_site = start_accelerator(&origins, &folder.path().join("secret"));
    let mut browser = browser(&origins, accelerated_site.tls, third_parties);
    let (works, resources) = look(&mut browser);
    // The frame's cookies depend on its own host, which sets none here.
    let mut expected = direct_results;
    expected["message"]["cookies"] = "".into();
    assert_eq!(works, expected);

    assert_same_bytes(&resources, &direct_resources, &origins.addresses);
    assert_eq!(
        browser.cookies(),
        [(SITE.to_owned(), "of-site".to_owned())],
        "a third party's cookie"
    );
    for request in &origins.requests()[requests_before..] {
        let has_identity = request.head.contains("cookie") || request.head.contains("secret");
        assert!(request.host == SITE || !has_identity, "{}", request.head);
    }
    by_connection(&resources, accelerated_site.tls.port())
}

/// The bytes from the aliases equal those from their hosts, except for the preconnect hint, which is removed.
fn assert_same_bytes(
    resources: &[FetchedResource],
    direct_resources: &[FetchedResource],
    addresses: &OriginAddresses,
) {
    let page = format!("https://{SITE}/");
    let names = resources.iter().find(|resource| resource.url == page);
    let names = names_of(names.expect("the page"), addresses);
    let (mut accelerated_bodies, direct_bodies) =
        (bodies(resources, &names), bodies(direct_resources, &names));
    let hint = format!(
        "<link rel=\"preconnect\" href=\"{}\">",
        addresses.origin(CDN)
    );
    let direct_page = direct_bodies[&page].iter().map(|text| {
        let text = String::from_utf8(text.clone()).expect("text");
        text.replace(&hint, "<!---->").into_bytes()
    });
    assert_eq!(
        accelerated_bodies.remove(&page),
        Some(direct_page.collect())
    );
    for (url, bodies) in &accelerated_bodies {
        assert_eq!(Some(bodies), direct_bodies.get(url), "{url}");
    }
    assert_eq!(
        accelerated_bodies.len() + 1,
        direct_bodies.len(),
        "{:?}\n{:?}",
        accelerated_bodies.keys(),
        direct_bodies.keys()
    );
}

/// The resources of each connection, by the last part of their paths. All are from the accelerator.
fn by_connection(resources: &[FetchedResource], port: u16) -> BTreeSet<BTreeSet<String>> {
    let mut by_number = BTreeMap::<_, BTreeSet<_>>::new();
    for resource in resources {
        assert_eq!(
            (resource.port, resource.protocol.as_str()),
            (u64::from(port), "h2"),
            "{}",
            resource.url
        );
        let path = resource.url.rsplit('/').next().unwrap_or_default();
        by_number
            .entry(resource.connection)
            .or_default()
            .insert(path.to_owned());
    }
    by_number.into_values().collect()
}

fn sets(sets: &[&[&str]]) -> BTreeSet<BTreeSet<String>> {
    let set = |names: &&[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    sets.iter().map(set).collect()
}

/// What the page loads without `crossorigin` from both hosts.
const PLAIN: [&str; 6] = [
    "main.css",
    "classic.js",
    "one.png",
    "two.png",
    "relative.png",
    "root.png",
];
/// What it loads with CORS, without cookies.
const MODULES: [&str; 3] = ["main.mjs", "part.mjs", "late.mjs"];
/// The frame and its resources, embedded in a page of another site.
const IN_FRAME: [&str; 4] = ["frame.html", "frame.js", "in-frame.png", "data.json"];

#[test]
fn chromium_gets_the_same_bytes_from_aliases_over_one_connection() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let with_page = [&[""], &PLAIN[..]].concat();
    assert_eq!(
        compare(ThirdParties::Allowed),
        sets(&[&with_page, &MODULES, &IN_FRAME])
    );
}

/// A third party that may not have the page's cookies shares no connection with the page. Names that are requested at once, before
/// any of them has a connection, open one each.
#[test]
fn with_blocked_third_party_cookies_aliases_use_own_connections() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let connections = compare(ThirdParties::Blocked);
    let separate_kinds = sets(&[&[""], &PLAIN, &MODULES, &IN_FRAME]);
    for connection in &connections {
        let is_of_one_kind = separate_kinds.iter().any(|kind| connection.is_subset(kind));
        assert!(is_of_one_kind, "{connections:#?}");
    }
    assert!(
        connections.len() <= separate_kinds.len() + 1,
        "{connections:#?}"
    );
}

/// For a browser, a name in the site's registrable domain is not a third party. This is the benefit of such aliases.
#[test]
fn an_alias_in_the_sites_domain_shares_the_connection_except_modules() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let origins = Origins::start(&[(SITE, "https"), (OWN_HOST, "https")], |request, _| {
        let own_origin = format!("https://{OWN_HOST}");
        let in_frame = IN_FRAME.iter().any(|name| request.target.ends_with(name));
        let host = match request.host {
            OWN_HOST if in_frame => FRAMES,
            OWN_HOST => CDN,
            site => site,
        };
        let request = OriginRequest {
            host,
            ..request.clone()
        };
        respond(&request, &own_origin, &own_origin)
    });
    let own_address = origins.addresses.address(OWN_HOST);
    let accelerated_site = AcceleratedSite::start(
        &origins,
        &Setting {
            site: &format!(
                "[[site]]\nnames = ['{OWN_HOST}']\norigin = '{}'\naddress = '{}'\n",
                origins.addresses.origin(OWN_HOST),
                own_address.ip()
            ),
            ..Setting::default()
        },
    );
    let mut browser = browser(&origins, accelerated_site.tls, ThirdParties::Blocked);
    let (works, resources) = look(&mut browser);
    assert_eq!(works["modules"], "part late");
    let with_page = [&[""], &PLAIN[..], &IN_FRAME].concat();
    assert_eq!(
        by_connection(&resources, accelerated_site.tls.port()),
        sets(&[&with_page, &MODULES])
    );
}
