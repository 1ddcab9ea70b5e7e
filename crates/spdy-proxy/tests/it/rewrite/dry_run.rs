//! Dry run of rules on a live site: nothing that it serves changes, and the operator sees what would.

use std::io::Write;
use std::sync::Arc;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{Request, StatusCode};
use serde_json::json;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::telemetry::counters::CounterFamily;

use crate::support::fields::{CSS, FRESH, HTML};
use crate::support::{Origin, accelerator_of, get, pages, respond, until};

const SITE: &str = "https://www.site.test:8443";

fn before(own: &Origin, other: &Origin) -> Arc<Proxy> {
    let (origin, port) = (own.address, other.address.port());
    accelerator_of(&format!(
        "[upstream]\nallow_addresses = ['127.0.0.0/8']\nallow_ports = [{port}]\nresolve = {{ 'cdn.test' = '127.0.0.1' }}\n\
         [[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n[site.rewrite]\ndry_run = true\n\
         [[site.rewrite.hosts]]\nhost = 'cdn.test:{port}'\nscheme = 'http'\nkinds = ['image', 'style']\n"
    ))
}

fn other() -> Origin {
    let picture: &[_] = &[("content-type", "image/png"), FRESH];
    Origin::start(pages(&[("/b.png", picture, "a picture")]))
}

#[tokio::test]
async fn dry_run_passes_pages_and_reports() {
    let other = other();
    let port = other.address.port();
    let page = format!(
        "<link rel=preconnect href=http://cdn.test:{port}><img src='http://cdn.test:{port}/b.png'><img src=https://else.test/c.png>\
         <img src=/own.png>"
    );
    let sheet = format!("p {{ background: url(http://cdn.test:{port}/b.png) }}");
    let link = format!("<http://cdn.test:{port}/b.png>; rel=preload; as=image");
    let policy = format!("img-src http://cdn.test:{port} https://else.test 'self'");
    let (page, sheet): (&str, &str) = (page.leak(), sheet.leak());
    let origin_fields = [
        ("etag", "\"one\""),
        ("content-security-policy", &*policy.leak()),
        ("link", &*link.leak()),
    ];
    let fields = [&[HTML, FRESH][..], &origin_fields].concat();
    let own = Origin::start(pages(&[
        ("/", &fields, page),
        ("/a.css", &[CSS, FRESH, ("etag", "\"two\"")], sheet),
    ]));
    let proxy = before(&own, &other);
    for outcome in ["fetched", "kept"] {
        let response = get(&proxy, "/", &[]).await;
        assert_eq!(response.text(), page, "{outcome}");
        for (name, value) in origin_fields {
            assert_eq!(response.field(name), value, "{outcome}");
        }
        let response = get(&proxy, "/a.css", &[]).await;
        assert_eq!(
            (response.text(), response.field("etag")),
            (sheet, "\"two\""),
            "{outcome}"
        );
        until("the page has come by", || {
            proxy.pages.reports.of(&format!("{SITE}/")).is_some()
        })
        .await;
    }
    assert_eq!((own.times("/"), own.times("/a.css")), (1, 1));
    assert_eq!(own.times("/own.png"), 0, "nothing is made ready for it");
    assert_eq!(other.request_lines(), [""; 0]);

    let report = proxy
        .pages
        .reports
        .of(&format!("{SITE}/"))
        .expect("the page has a report");
    let report_json = serde_json::to_value(&report).expect("the report is JSON");
    assert_eq!(
        (&report_json["dry_run"], &report_json["proxied"]),
        (&json!(true), &json!(2))
    );
    assert_eq!(report_json["skipped_by_reason"], json!({"not-listed": 1}));
    let would = format!("/.spdy/1/-/p/cdn.test~{port}/b.png");
    let references = report_json["references"].as_array().expect("a list");
    let with = |key: &str, value: &str| references.iter().any(|reference| reference[key] == value);
    assert!(with("proxied_to", &would), "{references:?}");
    assert!(with("message", "else.test is not listed"), "{references:?}");
    assert!(proxy.pages.reports.list()[0].dry_run);
    assert_eq!(
        proxy.telemetry.counters.read(CounterFamily::Pages),
        [("dry-run", 1)]
    );
    let counted = proxy.telemetry.counters.read(CounterFamily::References);
    assert_eq!(counted, [("not-listed", 1), ("would-proxy", 2)]);
    // Browsers have pages of before that name it.
    let response = get(&proxy, &would, &[("sec-fetch-dest", "image")]).await;
    assert_eq!(
        (response.status, response.text()),
        (StatusCode::OK, "a picture")
    );
}

#[tokio::test]
async fn dry_run_page_keeps_its_content_coding() {
    const PAGE: &[u8] = b"<img src=https://else.test/c.png>";
    let mut coded = GzEncoder::new(Vec::new(), Compression::fast());
    coded.write_all(PAGE).expect("writing to a Vec never fails");
    let coded = Bytes::from(coded.finish().expect("the folder can be created"));
    let body = coded.clone();
    let own = Origin::start(move |request: Request<Bytes>| {
        let body = match request.uri().path() {
            "/coded" => body.clone(),
            _ => Bytes::from_static(b"this is not gzip"),
        };
        std::future::ready(respond(&[HTML, FRESH, ("content-encoding", "gzip")], body))
    });
    let proxy = before(&own, &other());
    for outcome in ["fetched", "kept"] {
        let response = get(&proxy, "/broken", &[("accept-encoding", "gzip")]).await;
        assert_eq!(response.text(), "this is not gzip", "{outcome}");
        let response = get(&proxy, "/coded", &[("accept-encoding", "gzip")]).await;
        assert_eq!(response.body.as_ref(), Ok(&coded), "{outcome}");
    }
    until("the page has come by", || {
        proxy.pages.reports.of(&format!("{SITE}/coded")).is_some()
    })
    .await;
    let summaries = proxy.pages.reports.list();
    let summaries: Vec<_> = summaries
        .iter()
        .map(|line| (&*line.url, line.skipped))
        .collect();
    assert_eq!(summaries, [(&*format!("{SITE}/coded"), 1)]);
    assert_eq!((own.times("/broken"), own.times("/coded")), (1, 1));
}

#[tokio::test]
async fn dry_run_reports_https_upgrade_of_site_urls() {
    let page = "<img src=http://www.site.test/a.png>";
    let own = Origin::start(pages(&[("/", &[HTML, FRESH], page)]));
    let proxy = before(&own, &other());
    assert_eq!(get(&proxy, "/", &[]).await.text(), page);
    until("the page has come by", || {
        proxy.pages.reports.of(&format!("{SITE}/")).is_some()
    })
    .await;
    let report = proxy
        .pages
        .reports
        .of(&format!("{SITE}/"))
        .expect("the page has a report");
    let report = serde_json::to_value(&report).expect("the report is JSON");
    assert_eq!(
        (&report["dry_run"], &report["proxied"]),
        (&json!(true), &json!(1))
    );
    assert_eq!(report["references"][0]["proxied_to"], "/a.png");
}
