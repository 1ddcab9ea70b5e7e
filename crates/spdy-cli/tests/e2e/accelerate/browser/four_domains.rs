//! A page with resources on four domains in Chromium: directly from its origins, then through `spdy accelerate`. The fetched bytes
//! must be the same, and no host may learn more about the client.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::accelerator::accelerated_site::{AcceleratedSite, Setting};
use crate::support::clients::chromium::{Chromium, FetchedResource, Viewport};
use crate::support::origins::four_domains::{
    CDN, FONTS, FRAMES, POLICIES, SECOND, SITE, origins, own_pinned_sheet, pinned_sheet, sha256,
    sha384,
};
use crate::support::origins::scripted::{OriginAddresses, OriginRequest, Origins};
use crate::support::peers::{is_installed, peers_enabled, require};

const LOOK: Viewport = Viewport {
    width: 1000,
    dark: false,
};

fn browser(origins: &Origins, site: std::net::SocketAddr) -> Chromium {
    let mut rules = [SITE, SECOND]
        .map(|name| format!("MAP {name}:443 {site}"))
        .to_vec();
    for name in [CDN, FONTS, FRAMES] {
        rules.push(format!(
            "MAP {name} {}",
            origins.addresses.address(name).ip()
        ));
    }
    // Allows third-party cookies, which Chromium blocks by default. Otherwise their absence would prove nothing.
    let preferences = serde_json::json!({"profile": {"cookie_controls_mode": 0}});
    let arguments = [
        format!("--host-resolver-rules={}", rules.join(", ")),
        format!(
            "--ignore-certificate-errors-spki-list={}",
            origins.certificates.pins
        ),
        "--disable-quic".to_owned(),
        // Without site isolation, DevTools reports the requests of frames with the rest.
        "--disable-features=IsolateOrigins,site-per-process".to_owned(),
        "--disable-site-isolation-trials".to_owned(),
    ];
    let mut browser = Chromium::start_with_preferences(&preferences, &arguments);
    browser.run_in_new_pages(
        "window.violations = []; document.addEventListener('securitypolicyviolation', \
         event => window.violations.push(event.violatedDirective + ' ' + event.blockedURI))",
    );
    browser
}

/// What a browser shows and fetches for a page.
#[derive(Debug, Eq, PartialEq)]
struct PageResult {
    /// Widths of the images, fonts, modules, styles.
    works: serde_json::Value,
    /// Bodies by original URL: text, or the hash of binary data.
    bodies: BTreeMap<String, BTreeSet<String>>,
}

/// Opens the page under one of the site's names, and checks that everything in it works.
fn look(browser: &mut Chromium, name: &str, flavour: &str) -> (PageResult, Vec<FetchedResource>) {
    browser.clear_cache();
    browser.open(&format!("https://{name}/{flavour}"), LOOK);
    let works = browser.evaluate(
        "(async () => {
            await document.fonts.ready;
            const style = (selector, name) => getComputedStyle(document.querySelector(selector))[name];
            const canvas = document.createElement('canvas').getContext('2d');
            canvas.drawImage(document.getElementById('open'), 0, 0);
            return {
                images: [...document.images].map(image => image.id + ' ' + image.naturalWidth),
                fonts: [...document.fonts].map(font => font.family + ' ' + font.status),
                modules: window.modules, classic: window.classic, pinned: window.pinned,
                sheets: document.styleSheets.length,
                imported: style('.imported', 'outlineColor'),
                indented: style('.pinned', 'textIndent'),
                pinnedBackground: style('.pinned', 'backgroundImage').length > 4,
                readable: canvas.getImageData(0, 0, 1, 1).data[0],
                violations: window.violations,
                cookies: document.cookie,
            };
        })()",
    );
    let resources = browser.fetched_resources();
    let messages = browser.console_messages();
    assert!(messages.is_empty(), "{flavour}: {messages:#?}");
    let mut result = PageResult {
        works,
        bodies: BTreeMap::new(),
    };
    for resource in &resources {
        let body = resource.body.clone();
        let body = body.unwrap_or_else(|error| panic!("{flavour}: {}: {error}", resource.url));
        let bodies = result
            .bodies
            .entry(restore_urls(&resource.url))
            .or_default();
        bodies.insert(restore_body_urls(body));
    }
    (result, resources)
}

/// `text` with each proxied URL replaced by the original one.
fn restore_urls(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("/.spdy/1/-/s/") {
        let prefix = rest[..at].trim_end_matches(&format!("https://{SITE}")[..]);
        let prefix = prefix.trim_end_matches(&format!("https://{SECOND}")[..]);
        out.push_str(prefix);
        rest = &rest[at + "/.spdy/1/-/s/".len()..];
        let (host, path) = rest.split_once('/').expect("a proxied URL has a path");
        out.push_str(&format!("https://{}/", host.replace('~', ":")));
        rest = path;
    }
    // The page requests its own pinned style sheets with this query.
    (out + rest).replace("?spdy=off", "")
}

fn restore_body_urls(body: Vec<u8>) -> String {
    match String::from_utf8(body) {
        Ok(text) => restore_urls(&text),
        Err(binary) => sha256(binary.as_bytes()),
    }
}

#[test]
fn chromium_gets_the_same_bytes_over_one_connection() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let origins = origins();
    let mut direct = browser(&origins, origins.addresses.address(SITE));
    let direct_results: Vec<_> = POLICIES
        .map(|flavour| look(&mut direct, SITE, flavour))
        .into();
    assert_third_parties_have_cookies(&mut direct, &origins);
    drop(direct);

    let requests_before = origins.requests().len();
    let accelerated_site = start_accelerator(&origins);
    let mut browser = browser(&origins, accelerated_site.tls);
    for (flavour, (direct_result, _)) in POLICIES.into_iter().zip(&direct_results) {
        // After the last visit no resource of the proxied hosts may remain.
        browser.clear_cookies();
        let (result, resources) = look(&mut browser, SITE, flavour);
        assert_eq!(result.works, direct_result.works, "{flavour}");
        let pinned = PinnedHashes::of(flavour, &resources);
        compare(flavour, &result, direct_result, &origins.addresses, &pinned);
        one_connection(
            flavour,
            &resources,
            accelerated_site.tls.port(),
            &origins.addresses,
        );
    }
    // Each resource was fetched once, by the page or by a prefetch, in whatever mode it is loaded.
    let mut fetch_counts = BTreeMap::<_, u32>::new();
    for request in &origins.requests()[requests_before..] {
        *fetch_counts
            .entry((request.host, request.target.clone()))
            .or_default() += 1;
    }
    for script in ["main", "part", "deep/deep", "lib"] {
        let target = format!("/js/{script}.mjs");
        assert_eq!(
            fetch_counts[&(CDN, target)],
            1,
            "{script}: {fetch_counts:?}"
        );
    }
    for target in [
        "/js/pinned.js",
        "/js/classic.js",
        "/img/open.png",
        "/img/one.png",
    ] {
        assert_eq!(
            fetch_counts[&(CDN, target.to_owned())],
            1,
            "{fetch_counts:?}"
        );
    }
    let cookies = browser.cookies();
    let third_party_cookie = (FRAMES.to_owned(), "of-third".to_owned());
    let site_cookie = (SITE.to_owned(), "of-site".to_owned());
    assert!(cookies.contains(&site_cookie), "{cookies:?}");
    assert!(
        cookies
            .iter()
            .all(|cookie| *cookie == site_cookie || *cookie == third_party_cookie),
        "a third party's cookie: {cookies:?}"
    );
    assert_no_cookies_sent(&origins.requests()[requests_before..]);
}

/// The accelerator sent cookies to no other host. The browser requested other resources itself, with at most their host's cookies.
fn assert_no_cookies_sent(requests: &[OriginRequest]) {
    let third_party_requests = requests
        .iter()
        .filter(|request| matches!(request.host, CDN | FONTS));
    let (accelerator_requests, browser_requests): (Vec<_>, Vec<_>) =
        third_party_requests.partition(|request| request.head.contains("\r\ncdn-loop: "));
    assert!(
        accelerator_requests.len() > browser_requests.len(),
        "{browser_requests:#?}"
    );
    for request in accelerator_requests {
        assert!(!request.head.contains("cookie"), "{}", request.head);
    }
    for request in browser_requests {
        assert!(!request.head.contains("secret"), "{}", request.head);
    }
}

/// An accelerator in front of `origins` that proxies all resources of one host and some of another.
fn start_accelerator(origins: &Origins) -> AcceleratedSite {
    let port = |name| origins.addresses.address(name).port();
    let site = format!(
        "[[site.rewrite.hosts]]\nhost = '{CDN}:{}'\nkinds = ['image', 'style', 'script']\nwhole = true\n\
         [[site.rewrite.hosts]]\nhost = '{FONTS}:{}'\n",
        port(CDN),
        port(FONTS)
    );
    let upstream = format!(
        "allow_addresses = ['127.0.0.2/32', '127.0.0.3/32']\nallow_ports = [{}, {}]",
        port(CDN),
        port(FONTS)
    );
    let setting = Setting {
        site: &site,
        upstream: &upstream,
        ..Setting::default()
    };
    AcceleratedSite::start(origins, &setting)
}

/// The page's third parties set cookies and get them back without the accelerator. So their absence with the accelerator is not a
/// default of this browser.
fn assert_third_parties_have_cookies(direct: &mut Chromium, origins: &Origins) {
    let cookies = direct.cookies();
    for name in [CDN, FONTS, FRAMES] {
        let third_party_cookie = (name.to_owned(), "of-third".to_owned());
        assert!(cookies.contains(&third_party_cookie), "{name}: {cookies:?}");
    }
    for host in [CDN, FONTS] {
        let requests = origins.requests();
        let mut host_requests = requests
            .iter()
            .filter(|host_requests| host_requests.host == host);
        let has_cookie =
            host_requests.any(|request| request.head.contains("cookie: of-third=tracker"));
        assert!(has_cookie, "{host} gets no cookie");
    }
}

#[test]
fn a_page_works_the_same_under_another_site_name() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let origins = origins();
    let flavour = POLICIES[0];
    let mut direct = browser(&origins, origins.addresses.address(SITE));
    let (direct_result, _) = look(&mut direct, SECOND, flavour);
    drop(direct);
    let requests_before = origins.requests().len();
    let accelerated_site = start_accelerator(&origins);
    let mut browser = browser(&origins, accelerated_site.tls);
    let (result, resources) = look(&mut browser, SECOND, flavour);
    assert_eq!(result.works, direct_result.works);
    let pinned = PinnedHashes::of(flavour, &resources);
    compare(
        flavour,
        &result,
        &direct_result,
        &origins.addresses,
        &pinned,
    );
    one_connection(
        flavour,
        &resources,
        accelerated_site.tls.port(),
        &origins.addresses,
    );
    let first_name_resource = resources
        .iter()
        .find(|resource| resource.url.contains(SITE));
    assert!(
        first_name_resource.is_none(),
        "expected the first name: {first_name_resource:?}"
    );
    assert_no_cookies_sent(&origins.requests()[requests_before..]);
}

/// Hashes of the style sheets that the page pins, as they were served.
struct PinnedHashes {
    css: String,
    own_css: String,
}

impl PinnedHashes {
    fn of(flavour: &str, resources: &[FetchedResource]) -> Self {
        let body_of = |name: &str| {
            let resource = resources
                .iter()
                .rfind(|resource| resource.url.contains(name));
            let body = resource.and_then(|resource| resource.body.clone().ok());
            body.unwrap_or_else(|| panic!("{flavour}: {name}"))
        };
        Self {
            css: sha384(&body_of("/css/pinned.css")),
            own_css: sha256(&body_of("/own-pinned.css")),
        }
    }
}

/// The same resources were fetched, except for expected differences in their bytes.
fn compare(
    flavour: &str,
    result: &PageResult,
    direct_result: &PageResult,
    addresses: &OriginAddresses,
    pinned: &PinnedHashes,
) {
    let urls = |result: &PageResult| result.bodies.keys().cloned().collect::<BTreeSet<_>>();
    let (accelerated_urls, direct_urls) = (urls(result), urls(direct_result));
    let extra: Vec<_> = accelerated_urls.difference(&direct_urls).collect();
    let missing: Vec<_> = direct_urls.difference(&accelerated_urls).collect();
    assert!(
        extra.is_empty() && missing.is_empty(),
        "{flavour}: extra {extra:?}, missing {missing:?}"
    );
    for (url, bodies) in &result.bodies {
        let direct_bodies = direct_result.bodies[url].iter();
        if url.ends_with(flavour) {
            let [accelerated_body, direct_body] =
                [bodies, &direct_result.bodies[url]].map(|bodies| bodies.first().expect("one"));
            page(flavour, accelerated_body, direct_body, addresses, pinned);
            continue;
        }
        // A root-relative URL resolves against the sheet's own origin, which the accelerator must write out.
        let direct_bodies = direct_bodies
            .map(|text| text.replace("url(/img", &format!("url({}/img", addresses.origin(CDN))));
        assert_eq!(*bodies, direct_bodies.collect(), "{flavour}: {url}");
    }
}

/// The page is the same except for three things: the preconnect hint for a host that is no longer connected to, the import map,
/// which maps modules of the other host to their new URLs, and the hashes of rewritten sheets.
fn page(
    flavour: &str,
    accelerated_page: &str,
    direct_page: &str,
    addresses: &OriginAddresses,
    pinned: &PinnedHashes,
) {
    let cdn = addresses.origin(CDN);
    let map = format!("\"lib\":\"{cdn}/js/lib.mjs\"");
    let scope = format!("{{\"{cdn}/\":{{\"/\":\"{cdn}/\",\"/.spdy/\":\"/.spdy/\"}}}}");
    let all = format!("{{\"imports\":{{\"{cdn}/\":\"{cdn}/\",{map}}},\"scopes\":{scope}}}");
    let connect = format!("<link rel=\"preconnect\" href=\"{cdn}\">");
    // The second page's policy allows only folders of the host: the import map may not cover all of it, and the page may need the
    // rest.
    let (map, expected_connect) = match flavour {
        "nonce" => (
            format!("{{\"imports\":{{{map}}},\"scopes\":{scope}}}"),
            &connect[..],
        ),
        _ => (all, "<!---->"),
    };
    let direct_page = direct_page.replace(&connect, expected_connect).replace(
        &format!("{{\"imports\": {{\"lib\": \"{cdn}/js/lib.mjs\"}}}}"),
        &map,
    );
    let original_hash = sha384(pinned_sheet(addresses).as_bytes());
    let own_original_hash = sha256(own_pinned_sheet(addresses).as_bytes());
    let direct_page = direct_page.replace(&original_hash, &pinned.css);
    let direct_page = direct_page.replace(&own_original_hash, &pinned.own_css);
    for (accelerated_line, direct_line) in accelerated_page.lines().zip(direct_page.lines()) {
        assert_eq!(accelerated_line, direct_line, "{flavour}");
    }
    assert_eq!(
        accelerated_page.lines().count(),
        direct_page.lines().count()
    );
}

/// All resources from the accelerator came over one connection. Only expected ones came from other hosts.
fn one_connection(
    flavour: &str,
    resources: &[FetchedResource],
    port: u16,
    addresses: &OriginAddresses,
) {
    let mut connections = BTreeMap::<_, Vec<_>>::new();
    for resource in resources
        .iter()
        .filter(|resource| resource.port == u64::from(port))
    {
        assert_eq!(resource.protocol, "h2", "{flavour}: {}", resource.url);
        connections
            .entry(resource.connection)
            .or_default()
            .push(&resource.url);
    }
    assert_eq!(connections.len(), 1, "{flavour}: {connections:#?}");
    let other_urls = resources
        .iter()
        .filter(|resource| resource.port != u64::from(port));
    let other_urls: BTreeSet<_> = other_urls.map(|resource| resource.url.clone()).collect();
    let cdn = addresses.origin(CDN);
    let frames = addresses.origin(FRAMES);
    let mut expected = BTreeSet::from([
        format!("{frames}/frame.html"),
        format!("{frames}/in-frame.png"),
    ]);
    if flavour == POLICIES[0] {
        // They were not fetched before, so the hashes of their rewritten bytes were not known.
        expected.insert(format!("{cdn}/css/pinned.css"));
        expected.insert(format!("{cdn}/img/pinned.png"));
        expected.insert(format!("{}/texture.png", addresses.origin(FONTS)));
    }
    if flavour == "nonce" {
        // No import map has their new URLs, because the policy allows only a folder of the host.
        expected.insert(format!("{cdn}/js/far.mjs"));
        expected.insert(format!("{cdn}/js/root.mjs"));
    }
    assert_eq!(other_urls, expected, "{flavour}");
}
