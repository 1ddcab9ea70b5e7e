//! A page of four domains in Chromium: straight from its origins, then through `spdy accelerate`. What is fetched must be the same,
//! byte for byte, and no host may learn more about the client.

use std::collections::{BTreeMap, BTreeSet};

use crate::support::accelerator::accelerated_site::{AcceleratedSite, Setting};
use crate::support::clients::chromium::{Chromium, FetchedResource, Viewport};
use crate::support::origins::four_domains::{
    CDN, FONTS, FRAMES, POLICIES, SECOND, SITE, origins, own_pinned_sheet, pinned_sheet, sha256,
    sha384,
};
use crate::support::origins::scripted::{OriginAddresses, OriginRequest, Origins};
use crate::support::peers::{is_installed, require, wanted};

const LOOK: Viewport = Viewport {
    width: 1000,
    dark: false,
};

fn browser(origins: &Origins, site: std::net::SocketAddr) -> Chromium {
    let mut rules = [SITE, SECOND]
        .map(|name| format!("MAP {name}:443 {site}"))
        .to_vec();
    for name in [CDN, FONTS, FRAMES] {
        rules.push(format!("MAP {name} {}", origins.places.address(name).ip()));
    }
    // Allows third-party cookies, which Chromium blocks by default. Otherwise their absence would prove nothing.
    let preferences = serde_json::json!({"profile": {"cookie_controls_mode": 0}});
    let arguments = [
        format!("--host-resolver-rules={}", rules.join(", ")),
        format!(
            "--ignore-certificate-errors-spki-list={}",
            origins.signed.pins
        ),
        "--disable-quic".to_owned(),
        // Without site isolation, DevTools reports the requests of frames with the rest.
        "--disable-features=IsolateOrigins,site-per-process".to_owned(),
        "--disable-site-isolation-trials".to_owned(),
    ];
    let mut browser = Chromium::start_preferring(&preferences, &arguments);
    browser.prepare(
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
    /// By URL, as the origins know it: text as it is, everything else by its hash.
    fetched: BTreeMap<String, BTreeSet<String>>,
}

/// Opens the page under one of the site's names, and has it prove that it works.
fn look(browser: &mut Chromium, name: &str, flavour: &str) -> (PageResult, Vec<FetchedResource>) {
    browser.forget();
    browser.open(&format!("https://{name}/{flavour}"), LOOK);
    let works = browser.ask(
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
    let fetched = browser.fetched_resources();
    let complaints = browser.console_messages();
    assert!(complaints.is_empty(), "{flavour}: {complaints:#?}");
    let mut seen = PageResult {
        works,
        fetched: BTreeMap::new(),
    };
    for one in &fetched {
        let body = one.body.clone();
        let body = body.unwrap_or_else(|error| panic!("{flavour}: {}: {error}", one.url));
        let bodies = seen.fetched.entry(restore_urls(&one.url)).or_default();
        bodies.insert(restore_body_urls(body));
    }
    (seen, fetched)
}

/// `text` with every moved URL in its own place again.
fn restore_urls(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("/.spdy/1/-/s/") {
        let before = rest[..at].trim_end_matches(&format!("https://{SITE}")[..]);
        let before = before.trim_end_matches(&format!("https://{SECOND}")[..]);
        out.push_str(before);
        rest = &rest[at + "/.spdy/1/-/s/".len()..];
        let (place, path) = rest.split_once('/').expect("a proxied URL has a path");
        out.push_str(&format!("https://{}/", place.replace('~', ":")));
        rest = path;
    }
    // A sheet of the site's own that a page pins is asked for so.
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
    if !wanted() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let origins = origins();
    let mut direct = browser(&origins, origins.places.address(SITE));
    let straight: Vec<_> = POLICIES
        .map(|flavour| look(&mut direct, SITE, flavour))
        .into();
    assert_third_parties_have_cookies(&mut direct, &origins);
    drop(direct);

    let before = origins.requests().len();
    let accelerated = start_accelerator(&origins);
    let mut browser = browser(&origins, accelerated.tls);
    for (flavour, (straight, _)) in POLICIES.into_iter().zip(&straight) {
        // The last leaves nothing of the moved hosts where it is.
        browser.forget_cookies();
        let (seen, fetched) = look(&mut browser, SITE, flavour);
        assert_eq!(seen.works, straight.works, "{flavour}");
        let pinned = PinnedHashes::of(flavour, &fetched);
        compare(flavour, &seen, straight, &origins.places, &pinned);
        one_connection(flavour, &fetched, accelerated.tls.port(), &origins.places);
    }
    // Each thing was fetched once, by the page's wish or ahead of it, however it is loaded.
    let mut often = BTreeMap::<_, u32>::new();
    for asked in &origins.requests()[before..] {
        *often.entry((asked.host, asked.target.clone())).or_default() += 1;
    }
    for script in ["main", "part", "deep/deep", "lib"] {
        let target = format!("/js/{script}.mjs");
        assert_eq!(often[&(CDN, target)], 1, "{script}: {often:?}");
    }
    for target in [
        "/js/pinned.js",
        "/js/classic.js",
        "/img/open.png",
        "/img/one.png",
    ] {
        assert_eq!(often[&(CDN, target.to_owned())], 1, "{often:?}");
    }
    let cookies = browser.cookies();
    let third = (FRAMES.to_owned(), "of-third".to_owned());
    let of_site = (SITE.to_owned(), "of-site".to_owned());
    assert!(cookies.contains(&of_site), "{cookies:?}");
    assert!(
        cookies
            .iter()
            .all(|cookie| *cookie == of_site || *cookie == third),
        "a third party's cookie: {cookies:?}"
    );
    assert_asked_without_cookies(&origins.requests()[before..]);
}

/// The accelerator sent cookies to no other host. The browser requested unmoved resources itself, with at most their host's cookies.
fn assert_asked_without_cookies(asked: &[OriginRequest]) {
    let others = asked
        .iter()
        .filter(|asked| matches!(asked.host, CDN | FONTS));
    let (ours, browsers): (Vec<_>, Vec<_>) =
        others.partition(|asked| asked.head.contains("\r\ncdn-loop: "));
    assert!(ours.len() > browsers.len(), "{browsers:#?}");
    for asked in ours {
        assert!(!asked.head.contains("cookie"), "{}", asked.head);
    }
    for asked in browsers {
        assert!(!asked.head.contains("secret"), "{}", asked.head);
    }
}

/// Before these origins, with all of one host moved and some of another.
fn start_accelerator(origins: &Origins) -> AcceleratedSite {
    let port = |name| origins.places.address(name).port();
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

/// Straight from its hosts, the page's third parties set cookies and get them back. So their absence through the accelerator is no
/// default of this browser.
fn assert_third_parties_have_cookies(direct: &mut Chromium, origins: &Origins) {
    let cookies = direct.cookies();
    for name in [CDN, FONTS, FRAMES] {
        let third = (name.to_owned(), "of-third".to_owned());
        assert!(cookies.contains(&third), "{name}: {cookies:?}");
    }
    for host in [CDN, FONTS] {
        let asked = origins.requests();
        let mut asked = asked.iter().filter(|asked| asked.host == host);
        let is_told = asked.any(|asked| asked.head.contains("cookie: of-third=tracker"));
        assert!(is_told, "{host} gets no cookie");
    }
}

#[test]
fn a_page_works_the_same_under_another_site_name() {
    if !wanted() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let origins = origins();
    let flavour = POLICIES[0];
    let mut direct = browser(&origins, origins.places.address(SITE));
    let (straight, _) = look(&mut direct, SECOND, flavour);
    drop(direct);
    let before = origins.requests().len();
    let accelerated = start_accelerator(&origins);
    let mut browser = browser(&origins, accelerated.tls);
    let (seen, fetched) = look(&mut browser, SECOND, flavour);
    assert_eq!(seen.works, straight.works);
    let pinned = PinnedHashes::of(flavour, &fetched);
    compare(flavour, &seen, &straight, &origins.places, &pinned);
    one_connection(flavour, &fetched, accelerated.tls.port(), &origins.places);
    let of_first = fetched.iter().find(|one| one.url.contains(SITE));
    assert!(of_first.is_none(), "expected the first name: {of_first:?}");
    assert_asked_without_cookies(&origins.requests()[before..]);
}

/// Hashes of the sheets that the page pins, as they were served.
struct PinnedHashes {
    css: String,
    own: String,
}

impl PinnedHashes {
    fn of(flavour: &str, fetched: &[FetchedResource]) -> Self {
        let body_of = |name: &str| {
            let found = fetched.iter().rfind(|one| one.url.contains(name));
            let body = found.and_then(|one| one.body.clone().ok());
            body.unwrap_or_else(|| panic!("{flavour}: {name}"))
        };
        Self {
            css: sha384(&body_of("/css/pinned.css")),
            own: sha256(&body_of("/own-pinned.css")),
        }
    }
}

/// The same was fetched, but for what must be said otherwise where it is.
fn compare(
    flavour: &str,
    seen: &PageResult,
    straight: &PageResult,
    places: &OriginAddresses,
    pinned: &PinnedHashes,
) {
    let urls = |seen: &PageResult| seen.fetched.keys().cloned().collect::<BTreeSet<_>>();
    let (ours, theirs) = (urls(seen), urls(straight));
    let more: Vec<_> = ours.difference(&theirs).collect();
    let less: Vec<_> = theirs.difference(&ours).collect();
    assert!(
        more.is_empty() && less.is_empty(),
        "{flavour}: more {more:?}, less {less:?}"
    );
    for (url, bodies) in &seen.fetched {
        let theirs = straight.fetched[url].iter();
        if url.ends_with(flavour) {
            let [ours, theirs] =
                [bodies, &straight.fetched[url]].map(|one| one.first().expect("one"));
            page(flavour, ours, theirs, places, pinned);
            continue;
        }
        // A root-relative URL resolves against the sheet's own origin, which the accelerator must write out.
        let theirs =
            theirs.map(|text| text.replace("url(/img", &format!("url({}/img", places.origin(CDN))));
        assert_eq!(*bodies, theirs.collect(), "{flavour}: {url}");
    }
}

/// The page is the same except for three things: the preconnect hint for a host that is no longer connected to, the import map,
/// which maps modules of the other host to their new URLs, and the hashes of rewritten sheets.
fn page(flavour: &str, ours: &str, theirs: &str, places: &OriginAddresses, pinned: &PinnedHashes) {
    let cdn = places.origin(CDN);
    let map = format!("\"lib\":\"{cdn}/js/lib.mjs\"");
    let scope = format!("{{\"{cdn}/\":{{\"/\":\"{cdn}/\",\"/.spdy/\":\"/.spdy/\"}}}}");
    let all = format!("{{\"imports\":{{\"{cdn}/\":\"{cdn}/\",{map}}},\"scopes\":{scope}}}");
    let connect = format!("<link rel=\"preconnect\" href=\"{cdn}\">");
    // The second page's policy allows folders of the host: the map may not speak of all of it, and the page may need the rest.
    let (map, connect_left) = match flavour {
        "nonce" => (
            format!("{{\"imports\":{{{map}}},\"scopes\":{scope}}}"),
            &connect[..],
        ),
        _ => (all, "<!---->"),
    };
    let theirs = theirs.replace(&connect, connect_left).replace(
        &format!("{{\"imports\": {{\"lib\": \"{cdn}/js/lib.mjs\"}}}}"),
        &map,
    );
    let was_pinned = sha384(pinned_sheet(places).as_bytes());
    let own_was_pinned = sha256(own_pinned_sheet(places).as_bytes());
    let theirs = theirs.replace(&was_pinned, &pinned.css);
    let theirs = theirs.replace(&own_was_pinned, &pinned.own);
    for (one, other) in ours.lines().zip(theirs.lines()) {
        assert_eq!(one, other, "{flavour}");
    }
    assert_eq!(ours.lines().count(), theirs.lines().count());
}

/// All that came from the accelerator came over one connection, and what else came had to.
fn one_connection(flavour: &str, fetched: &[FetchedResource], port: u16, places: &OriginAddresses) {
    let mut connections = BTreeMap::<_, Vec<_>>::new();
    for one in fetched.iter().filter(|one| one.port == u64::from(port)) {
        assert_eq!(one.protocol, "h2", "{flavour}: {}", one.url);
        connections
            .entry(one.connection)
            .or_default()
            .push(&one.url);
    }
    assert_eq!(connections.len(), 1, "{flavour}: {connections:#?}");
    let left = fetched.iter().filter(|one| one.port != u64::from(port));
    let left: BTreeSet<_> = left.map(|one| one.url.clone()).collect();
    let cdn = places.origin(CDN);
    let frames = places.origin(FRAMES);
    let mut wanted = BTreeSet::from([
        format!("{frames}/frame.html"),
        format!("{frames}/in-frame.png"),
    ]);
    if flavour == POLICIES[0] {
        // They were not fetched before, so the hashes of their rewritten bytes were not known.
        wanted.insert(format!("{cdn}/css/pinned.css"));
        wanted.insert(format!("{cdn}/img/pinned.png"));
        wanted.insert(format!("{}/texture.png", places.origin(FONTS)));
    }
    if flavour == "nonce" {
        // No import map has their new URLs, because the policy allows only a folder of the host.
        wanted.insert(format!("{cdn}/js/far.mjs"));
        wanted.insert(format!("{cdn}/js/root.mjs"));
    }
    assert_eq!(left, wanted, "{flavour}");
}
