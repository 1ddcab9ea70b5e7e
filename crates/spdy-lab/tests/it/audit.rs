//! Audits of pages with a resource for each kind of delivery.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::Duration;

use spdy_lab::audit::case::{Audit, AuditCase};
use spdy_lab::experiment::builtin_experiments;
use spdy_page::builtin;
use spdy_page::head;
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_proxy::config::learn::LearnConfig;
use spdy_rewrite::kind::Kind as Use;
use spdy_rewrite::rules::config::{Config, HostConfig};
use spdy_sim::accelerator::site::OperatorConfig;
use spdy_sim::options::{Options, RaceProtocol};
use spdy_sim::race::RaceNetwork;
use url::Url;

fn exchange(url: &str, kind: Kind, body: impl Into<Vec<u8>>) -> Exchange {
    let media = match kind {
        Kind::Document => "text/html",
        Kind::Stylesheet => "text/css",
        Kind::Script => "text/javascript",
        _ => "image/png",
    };
    let exchange = Exchange::synthetic(Url::parse(url).unwrap(), kind, media, body.into());
    let cache_control = Some("max-age=3600");
    Exchange {
        response_head: head::with_field(&exchange.response_head, "cache-control", cache_control),
        ..exchange
    }
}

const HTML: &str = "<link rel=stylesheet href=https://cdn.test/a.css><link rel=stylesheet href=/own.css>\
    <script src=https://code.jquery.com/s.js></script><img src=https://img.page.test/a.png>\
    <img src=https://ads.test/b.png data-no-spdy><iframe src=https://frames.test/></iframe>";

/// A page with a resource for each kind of delivery.
fn page() -> Replica {
    let image = |url| exchange(url, Kind::Image, [7; 3_000]);
    Replica {
        name: "page".to_owned(),
        exchanges: vec![
            exchange("https://www.page.test/", Kind::Document, HTML),
            exchange(
                "https://cdn.test/a.css",
                Kind::Stylesheet,
                "p { background: url(https://deep.test/c.png) }",
            ),
            exchange("https://www.page.test/own.css", Kind::Stylesheet, "p {}"),
            exchange("https://code.jquery.com/s.js", Kind::Script, "load()"),
            image("https://img.page.test/a.png"),
            image("https://ads.test/b.png"),
            exchange("https://frames.test/", Kind::Document, "<img src=d.png>"),
            image("https://frames.test/d.png"),
            image("https://deep.test/c.png"),
            image("https://beacon.test/e.png"),
        ],
        ..builtin::flags()
    }
}

fn case(replica: Replica, operator: Option<OperatorConfig>) -> AuditCase {
    AuditCase {
        replica,
        networks: vec![RaceNetwork::parse("cable").unwrap()],
        protocol: RaceProtocol::Spdy,
        options: Options {
            backhaul: Duration::from_millis(20),
            ..Options::default()
        },
        operator,
        learn: LearnConfig::default(),
        runs: 1,
        seed: 1,
    }
}

fn audit(case: &AuditCase) -> Audit {
    let audit = case.audit(None, |_, _| ControlFlow::Continue(()));
    let audit = audit.unwrap().expect("the audit was not interrupted");
    assert_eq!(audit.failures, []);
    audit
}

/// The delivery of each resource, or the reason if it is direct.
fn deliveries(audit: &Audit) -> BTreeMap<&str, &str> {
    let resources = audit.survey.resources.iter();
    resources
        .map(|it| (it.url.as_str(), it.reason.unwrap_or(it.delivery)))
        .collect()
}

fn listed(audit: &Audit) -> Vec<(&str, &[Use], usize)> {
    let hosts = audit.advice.hosts.iter();
    hosts
        .map(|it| (it.entry.host.as_str(), &it.entry.kinds[..], it.resources))
        .collect()
}

#[test]
fn aliased_and_proxied_resources_are_counted_apart() {
    let rewrite = Config {
        names_under: Some("x.names.test".to_owned()),
        hosts: vec![
            HostConfig::named("frames.test"),
            HostConfig::passive("cdn.test"),
        ],
        ..Config::default()
    };
    let operator = OperatorConfig {
        rewrite,
        ..OperatorConfig::default()
    };
    let audit = audit(&case(page(), Some(operator)));
    let deliveries = deliveries(&audit);
    for (url, delivery) in [
        ("https://frames.test/", "aliased"),
        ("https://frames.test/d.png", "aliased"),
        ("https://cdn.test/a.css", "proxied"),
        ("https://deep.test/c.png", "not-listed"),
    ] {
        assert_eq!(deliveries[url], delivery, "{url}");
    }
    let mut hosts = audit.survey.hosts.iter();
    let frames = hosts.find(|host| host.host == "frames.test").unwrap();
    assert_eq!((frames.aliased, frames.proxied, frames.direct), (2, 0, 0));
}

#[test]
fn every_resource_has_a_delivery_and_direct_ones_a_reason() {
    let audit = audit(&case(page(), None));
    assert_eq!(
        deliveries(&audit),
        BTreeMap::from([
            ("https://www.page.test/", "own"),
            ("https://cdn.test/a.css", "proxied"),
            ("https://www.page.test/own.css", "own"),
            ("https://code.jquery.com/s.js", "proxied"),
            ("https://img.page.test/a.png", "proxied"),
            ("https://ads.test/b.png", "opt-out"),
            ("https://frames.test/", "document"),
            ("https://frames.test/d.png", "referrer-is-direct"),
            // Found only once the sheet that names it is proxied.
            ("https://deep.test/c.png", "proxied"),
            ("https://beacon.test/e.png", "dynamic-url"),
        ])
    );
    assert_eq!(audit.survey.hosts_contacted(), (4, 8));
    let host = |name: &str| {
        let mut hosts = audit.survey.hosts.iter();
        hosts.find(|host| host.host == name).unwrap()
    };
    let own = host("www.page.test");
    assert_eq!((own.is_own, own.resources, own.cacheable), (true, 2, 2));
    let cdn = host("cdn.test");
    assert_eq!((cdn.proxied, cdn.direct, cdn.cacheable), (1, 0, 1));
    assert_eq!(
        (host("frames.test").proxied, host("frames.test").direct),
        (0, 2)
    );
}

#[test]
fn unrecorded_references_differ_from_script_requests() {
    let without_text = |number: usize| {
        let mut page = page();
        page.exchanges[number].body_is_real = false;
        page.exchanges[number].body = vec![b' '; 3_000].into();
        audit(&case(page, None))
    };
    let of_sheet = without_text(1);
    assert_eq!(
        deliveries(&of_sheet)["https://beacon.test/e.png"],
        "dynamic-url"
    );
    assert_eq!(deliveries(&of_sheet)["https://cdn.test/a.css"], "proxied");
    let of_document = without_text(0);
    for (url, delivery) in deliveries(&of_document) {
        let expected = match url {
            "https://www.page.test/" | "https://www.page.test/own.css" => "own",
            "https://frames.test/" => "document",
            _ => "not-recorded",
        };
        assert_eq!(delivery, expected, "{url}");
    }
    assert!(of_document.advice.is_empty());
}

#[test]
fn advised_hosts_are_exactly_those_that_get_proxied() {
    let audit = audit(&case(page(), None));
    assert_eq!(audit.advice.own_hosts, ["img.page.test"]);
    assert_eq!(
        listed(&audit),
        [
            ("cdn.test", &[Use::Style][..], 1),
            ("code.jquery.com", &[Use::Script], 1),
            ("img.page.test", &[Use::Image], 1),
            ("deep.test", &[Use::Image], 1),
        ]
    );
    let shared = |host: &str| {
        let mut hosts = audit.advice.hosts.iter();
        hosts.find(|it| it.entry.host == host).unwrap().entry.shared
    };
    assert!(shared("code.jquery.com") && !shared("cdn.test"));
    assert_eq!(audit.savings[0].advised, None);
}

#[test]
fn an_audit_of_a_configuration_lists_what_it_lacks() {
    let rewrite = Config {
        hosts: vec![
            HostConfig {
                kinds: vec![Use::Image],
                ..HostConfig::passive("cdn.test")
            },
            HostConfig::passive("img.page.test"),
        ],
        deny: vec!["code.jquery.com".to_owned()],
        ..Config::default()
    };
    let operator = OperatorConfig {
        rewrite,
        ..OperatorConfig::default()
    };
    let audit = audit(&case(page(), Some(operator)));
    let deliveries = deliveries(&audit);
    for (url, delivery) in [
        ("https://img.page.test/a.png", "proxied"),
        ("https://cdn.test/a.css", "kind-not-listed"),
        ("https://deep.test/c.png", "referrer-is-direct"),
        ("https://code.jquery.com/s.js", "denied"),
    ] {
        assert_eq!(deliveries[url], delivery, "{url}");
    }
    assert_eq!(
        listed(&audit),
        [
            ("cdn.test", &[Use::Image, Use::Style][..], 1),
            ("deep.test", &[Use::Image], 1),
        ]
    );
    assert!(audit.advice.hosts[0].replaces && !audit.advice.hosts[1].replaces);
    let saving = &audit.savings[0];
    let advised = saving.advised.as_ref().expect("it would proxy more");
    assert!(advised.times.connections < saving.warm.times.connections);
}

#[test]
fn the_page_of_the_paper_loads_faster_the_more_the_accelerator_has() {
    let case = case(builtin_experiments::page("mineki").unwrap(), None);
    let first = audit(&case);
    assert_eq!(first.survey.hosts_contacted(), (1, 7));
    let saving = &first.savings[0];
    assert!(saving.warm.saved_load_ms > 0.0, "{saving:?}");
    assert!(saving.warm.times.load_ms <= saving.cold.times.load_ms);
    assert_eq!(saving.direct.connections, 7.0);
    assert_eq!(saving.warm.times.connections, 1.0);
    // Equal to the nanosecond.
    assert_eq!(audit(&case), first);
}

#[test]
fn an_audit_can_be_cancelled_and_requires_a_host_name() {
    let case_of_page = case(page(), None);
    let broken = case_of_page.audit(None, |done, total| {
        assert_eq!((done, total), (1, 3));
        ControlFlow::Break(())
    });
    assert_eq!(broken, Ok(None));
    let mut of_address = page();
    of_address.exchanges[0].url = Url::parse("https://192.0.2.1/").unwrap();
    let audit = case(of_address, None).audit(None, |_, _| ControlFlow::Continue(()));
    assert_eq!(
        audit.unwrap_err(),
        "an accelerator needs a hostname, found 192.0.2.1"
    );
}

/// A page of modules: an import map with a bare name, an inline module that imports by absolute URLs, and modules that import
/// relative to themselves, from their root and by absolute URLs.
fn page_of_modules(head: &str) -> Replica {
    let html = format!(
        "{head}<script type=importmap>{{\"imports\": {{\"lib\": \"https://esm.test/lib/index.js\"}}}}</script>\
         <link rel=modulepreload href=https://esm.test/lib/preloaded.js>\
         <script type=module src=/app.js></script>\
         <script type=module>import {{ x }} from 'https://esm.test/full.js'</script>"
    );
    let script = |url: &str, text: &str| exchange(url, Kind::Script, text);
    Replica {
        name: "modules".to_owned(),
        exchanges: vec![
            exchange("https://www.page.test/", Kind::Document, html),
            script(
                "https://www.page.test/app.js",
                "import a from 'lib'; import('./own.js')",
            ),
            script("https://www.page.test/own.js", "import '/rooted.js'"),
            script("https://www.page.test/rooted.js", "1"),
            script(
                "https://esm.test/lib/index.js",
                "import './a.js'; export * from \"/b.js\"",
            ),
            script(
                "https://esm.test/lib/a.js",
                "import c from 'https://esm.test/c.js'",
            ),
            script(
                "https://esm.test/b.js",
                "fetch('https://esm.test/data.json')",
            ),
            script(
                "https://esm.test/c.js",
                "import 'https://other.test/deep.js'",
            ),
            script("https://other.test/deep.js", "1"),
            script("https://esm.test/full.js", "1"),
            script("https://esm.test/lib/preloaded.js", "1"),
            script("https://ads.test/inserted.js", "1"),
        ],
        ..builtin::flags()
    }
}

#[test]
fn module_imports_are_proxied_by_the_import_map() {
    let page = page_of_modules("");
    let first = audit(&case(page.clone(), None));
    let delivered = deliveries(&first);
    for (url, delivery) in [
        ("https://www.page.test/app.js", "own"),
        ("https://www.page.test/rooted.js", "own"),
        ("https://esm.test/lib/index.js", "proxied"),
        ("https://esm.test/lib/a.js", "proxied"),
        ("https://esm.test/b.js", "proxied"),
        ("https://esm.test/c.js", "proxied"),
        ("https://other.test/deep.js", "proxied"),
        ("https://esm.test/full.js", "proxied"),
        ("https://esm.test/lib/preloaded.js", "proxied"),
        // A script inserts it by a URL that it builds.
        ("https://ads.test/inserted.js", "dynamic-url"),
    ] {
        assert_eq!(delivered[url], delivery, "{url}");
    }
    assert_eq!(
        listed(&first),
        [
            ("esm.test", &[Use::Script][..], 6),
            ("other.test", &[Use::Script], 1)
        ]
    );
    // For a configuration without the host, the audit reports that the host is missing.
    let bare = audit(&case(page, Some(OperatorConfig::default())));
    let delivered = deliveries(&bare);
    for url in ["https://esm.test/lib/index.js", "https://esm.test/full.js"] {
        assert_eq!(delivered[url], "not-listed", "{url}");
    }
    assert_eq!(listed(&bare), listed(&first));
}

#[test]
fn a_page_without_an_import_map_gets_one_and_a_policy_may_forbid_it() {
    let of_policy = |policy: Option<&str>| {
        let mut page = page_of_modules("");
        let document = &mut page.exchanges[0];
        let html = "<script type=module src=/app.js></script>";
        *document = exchange("https://www.page.test/", Kind::Document, html);
        document.response_head =
            head::with_field(&document.response_head, "content-security-policy", policy);
        page.exchanges[1].body = "import 'https://esm.test/full.js'".into();
        page.exchanges
            .retain(|it| ["/", "/app.js", "/full.js"].contains(&it.url.path()));
        page
    };
    let mapped = audit(&case(of_policy(None), None));
    assert_eq!(deliveries(&mapped)["https://esm.test/full.js"], "proxied");
    // The map would be an inline script.
    let policy = "script-src 'self' https://esm.test";
    let forbidden = audit(&case(of_policy(Some(policy)), None));
    assert_eq!(
        deliveries(&forbidden)["https://esm.test/full.js"],
        "unmapped"
    );
    assert!(forbidden.advice.is_empty(), "{:?}", forbidden.advice);
}

#[test]
fn modules_of_a_public_cdn_are_listed_by_package() {
    let cdn = "https://cdn.jsdelivr.net/npm";
    let html = format!(
        "<script type=importmap>{{\"imports\": {{\"vue\": \"{cdn}/vue@3.5.0/dist/vue.js\"}}}}</script>\
         <script src={cdn}/classic@1.0.0/classic.js></script><script type=module src=/app.js></script>"
    );
    let script = |url: &str, text: &str| exchange(url, Kind::Script, text);
    let page = Replica {
        name: "package".to_owned(),
        exchanges: vec![
            exchange("https://www.page.test/", Kind::Document, html),
            script("https://www.page.test/app.js", "import 'vue'"),
            script(&format!("{cdn}/classic@1.0.0/classic.js"), "1"),
            script(
                &format!("{cdn}/vue@3.5.0/dist/vue.js"),
                "import './part.js'; import '/npm/other@2/other.js'",
            ),
            script(&format!("{cdn}/vue@3.5.0/dist/part.js"), "1"),
            script(&format!("{cdn}/other@2/other.js"), "1"),
        ],
        ..builtin::flags()
    };
    let audit = audit(&case(page, None));
    for (url, delivery) in deliveries(&audit) {
        assert!(matches!(delivery, "own" | "proxied"), "{url}: {delivery}");
    }
    let entries = audit.advice.hosts.iter();
    let entries: Vec<_> = entries
        .map(|it| (&it.entry.path[..], it.entry.shared, it.resources))
        .collect();
    assert_eq!(
        entries,
        [
            ("/", true, 1),
            ("/npm/vue@3.5.0/", false, 2),
            ("/npm/other@2/", false, 1)
        ]
    );
}

/// A version that is a range is one path, with a query. An import map has it only if the query is known too.
#[test]
fn module_with_a_range_as_its_version_is_listed_with_its_query() {
    let cdn = "https://esm.sh";
    let html = format!("<script type=module>import '{cdn}/a@1.0.0'</script>");
    let script = |path: &str, text: &str| exchange(&format!("{cdn}{path}"), Kind::Script, text);
    let page = Replica {
        name: "range".to_owned(),
        exchanges: vec![
            exchange("https://www.page.test/", Kind::Document, html),
            script("/a@1.0.0", "export * from '/a@1.0.0/es2022/a.mjs'"),
            script(
                "/a@1.0.0/es2022/a.mjs",
                "import '/@scope/b@^1.2.1?target=es2022'",
            ),
            script(
                "/@scope/b@%5E1.2.1?target=es2022",
                "export * from '/@scope/b@1.2.4/es2022/b.mjs'",
            ),
            script("/@scope/b@1.2.4/es2022/b.mjs", "1"),
        ],
        ..builtin::flags()
    };
    let audit = audit(&case(page, None));
    for (url, delivery) in deliveries(&audit) {
        assert!(matches!(delivery, "own" | "proxied"), "{url}: {delivery}");
    }
    let entries = audit.advice.hosts.iter();
    let entries: Vec<_> = entries
        .map(|it| (&it.entry.path[..], it.resources))
        .collect();
    let expected = [
        ("/a@1.0.0", 1),
        ("/@scope/b@%5E1.2.1?target=es2022", 1),
        ("/a@1.0.0/", 1),
        ("/@scope/b@1.2.4/", 1),
    ];
    assert_eq!(entries, expected);
}

/// `exchange`, requested by the script of exchange `index`.
fn by_script(index: usize, exchange: Exchange) -> Exchange {
    Exchange {
        initiator: Initiator::Resource {
            index,
            at_byte: None,
        },
        ..exchange
    }
}

/// Loaders on public CDNs request their other files by their own URLs. With a capability for the loader alone, the page would lack them.
#[test]
fn the_package_of_a_loader_is_listed_or_the_loader_stays() {
    let html = "<link rel=preconnect href=https://cdn.jsdelivr.net>\
        <script src=https://cdnjs.cloudflare.com/ajax/libs/ace/1.35.2/ace.js></script>\
        <script src=https://cdn.jsdelivr.net/npm/math/loader.js></script>\
        <script src=https://cdn.jsdelivr.net/npm/plain/plain.js></script>";
    let script = |url: &str| {
        exchange(
            url,
            Kind::Script,
            "load(folderOf(document.currentScript.src) + name)",
        )
    };
    let font = exchange(
        "https://cdn.jsdelivr.net/npm/math/a.woff2",
        Kind::Font,
        [7; 3_000],
    );
    let page = Replica {
        name: "loaders".to_owned(),
        exchanges: vec![
            exchange("https://www.page.test/", Kind::Document, html),
            script("https://cdnjs.cloudflare.com/ajax/libs/ace/1.35.2/ace.js"),
            script("https://cdn.jsdelivr.net/npm/math/loader.js"),
            exchange(
                "https://cdn.jsdelivr.net/npm/plain/plain.js",
                Kind::Script,
                "x".repeat(300_000),
            ),
            by_script(
                1,
                script("https://cdnjs.cloudflare.com/ajax/libs/ace/1.35.2/mode.js"),
            ),
            by_script(
                1,
                exchange(
                    "https://cdnjs.cloudflare.com/ajax/libs/ace/1.35.2/icon.png",
                    Kind::Image,
                    [7; 3_000],
                ),
            ),
            by_script(2, font),
        ],
        ..builtin::flags()
    };
    let audit = audit(&case(page, None));
    let delivered = deliveries(&audit);
    for (url, delivery) in [
        (
            "https://cdnjs.cloudflare.com/ajax/libs/ace/1.35.2/ace.js",
            "proxied",
        ),
        (
            "https://cdnjs.cloudflare.com/ajax/libs/ace/1.35.2/mode.js",
            "proxied",
        ),
        (
            "https://cdnjs.cloudflare.com/ajax/libs/ace/1.35.2/icon.png",
            "proxied",
        ),
        ("https://cdn.jsdelivr.net/npm/plain/plain.js", "proxied"),
        // Without a version there is no package to list.
        (
            "https://cdn.jsdelivr.net/npm/math/loader.js",
            "path-excepted",
        ),
        ("https://cdn.jsdelivr.net/npm/math/a.woff2", "dynamic-url"),
    ] {
        assert_eq!(delivered[url], delivery, "{url}");
    }
    let entries = audit.advice.hosts.iter().map(|it| &it.entry);
    let entries: Vec<_> = entries
        .map(|it| (&it.path[..], it.shared, &it.except[..]))
        .collect();
    let excepted = ["/npm/math/loader.js".to_owned()];
    assert_eq!(
        entries,
        [
            ("/", true, &[][..]),
            ("/", true, &excepted),
            ("/ajax/libs/ace/1.35.2/", false, &[])
        ]
    );
}

/// A policy that names public CDNs and not the site. A source for a capability of one URL cannot be written, one for a package or a path can.
#[test]
fn scripts_that_a_policy_allows_from_public_cdns_are_listed_by_package_or_path() {
    let scripts = [
        "https://cdn.jsdelivr.net/npm/vue@3.5.0/dist/vue.js",
        "https://code.jquery.com/jquery-3.7.1.min.js",
    ];
    let html = scripts
        .map(|url| format!("<script src={url}></script>"))
        .concat();
    let mut document = exchange("https://www.page.test/", Kind::Document, html);
    let policy = "script-src https://cdn.jsdelivr.net https://code.jquery.com";
    document.response_head = head::with_field(
        &document.response_head,
        "content-security-policy",
        Some(policy),
    );
    let scripts = scripts.map(|url| exchange(url, Kind::Script, "x".repeat(30_000)));
    let page = Replica {
        name: "policy".to_owned(),
        exchanges: [&[document][..], &scripts].concat(),
        ..builtin::flags()
    };
    let audit = audit(&case(page, None));
    for (url, delivery) in deliveries(&audit) {
        assert!(matches!(delivery, "own" | "proxied"), "{url}: {delivery}");
    }
    let entries = audit.advice.hosts.iter().map(|it| &it.entry);
    let entries: Vec<_> = entries.map(|it| (&it.path[..], it.shared)).collect();
    for path in ["/npm/vue@3.5.0/", "/jquery-3.7.1.min.js"] {
        assert!(entries.contains(&(path, false)), "{entries:?}");
    }
}

/// A policy with the site itself and a path of a CDN: no other script of the CDN may come from the site, so the script stays at its host.
#[test]
fn script_that_a_policy_allows_by_path_stays_at_its_host() {
    let script = "https://cdn.jsdelivr.net/npm/vue@3.5.0/dist/vue.js";
    let html = format!("<script src={script}></script>");
    let mut document = exchange("https://www.page.test/", Kind::Document, html);
    let policy = "script-src 'self' https://cdn.jsdelivr.net/npm/";
    document.response_head = head::with_field(
        &document.response_head,
        "content-security-policy",
        Some(policy),
    );
    let page = Replica {
        name: "policy".to_owned(),
        exchanges: vec![document, exchange(script, Kind::Script, "x".repeat(30_000))],
        ..builtin::flags()
    };
    // A load fails if the page's text differs from that of the accelerator.
    let audit = audit(&case(page, None));
    assert_eq!(deliveries(&audit)[script], "csp-guarded");
}

/// A loader of which the accelerator can move only the first script: the connection to the other scripts would begin later.
fn page_with_a_loader() -> Replica {
    let cdn = "https://loader.test";
    // Its connection is fast by then, and a new one is not.
    let filler = "x".repeat(30_000);
    let script = |url: &str, text: &str| exchange(url, Kind::Script, text);
    Replica {
        name: "loader".to_owned(),
        exchanges: vec![
            exchange(
                "https://www.page.test/",
                Kind::Document,
                format!(
                    "<script>const from = '{cdn}/'</script><script src={cdn}/loader.js></script>"
                ),
            ),
            script(&format!("{cdn}/loader.js"), &filler),
            script(&format!("{cdn}/a.js"), &filler),
            script(&format!("{cdn}/b.js"), &filler),
        ]
        .into_iter()
        .map(unstored)
        .collect(),
        ..builtin::flags()
    }
}

/// `exchange` with a response that no cache stores.
fn unstored(exchange: Exchange) -> Exchange {
    let head = head::with_field(&exchange.response_head, "cache-control", Some("no-store"));
    Exchange {
        response_head: head,
        ..exchange
    }
}

#[test]
fn a_host_is_left_out_if_a_part_of_it_makes_the_page_slower() {
    let audit = audit(&AuditCase {
        networks: vec![RaceNetwork::parse("down=50mbit,up=5mbit,rtt=200ms").unwrap()],
        ..case(page_with_a_loader(), None)
    });
    let saving = &audit.savings[0];
    assert_eq!(
        audit.advice.left_out.iter().collect::<Vec<_>>(),
        ["loader.test"],
        "{saving:?}"
    );
    assert!(audit.advice.hosts.is_empty());
    assert_eq!(
        deliveries(&audit)["https://loader.test/loader.js"],
        "not-listed"
    );
    // As fast as without the accelerator, which costs nothing on the way.
    assert!(saving.warm.saved_part > -0.01, "{saving:?}");
}

/// A loader of few bytes, whose host keeps the rest. With the loader proxied, an image of the site is requested a connection earlier,
/// which saves 2 %: too little for the host to be listed.
#[test]
fn a_host_that_keeps_most_bytes_is_left_out_unless_it_saves_much() {
    let mut replica = page_with_a_loader();
    let image = "x".repeat(300_000);
    let mut image = exchange("https://www.page.test/a.png", Kind::Image, image);
    image.initiator = Initiator::Resource {
        index: 1,
        at_byte: None,
    };
    replica.exchanges.push(image);
    let audit = audit(&AuditCase {
        networks: vec![RaceNetwork::parse("down=1mbit,up=1mbit,rtt=20ms").unwrap()],
        ..case(replica, None)
    });
    let left_out = audit.advice.left_out.iter();
    assert_eq!(left_out.collect::<Vec<_>>(), ["loader.test"]);
}
