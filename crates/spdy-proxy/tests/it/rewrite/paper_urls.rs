//! URLs as in the paper, for experiments: what pages name then, and what a site can have no more.

use std::sync::Arc;

use http::StatusCode;
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::sites::site_table::Sites;

use crate::support::fields::{FRESH, PNG};
use crate::support::{
    self, Origin, accelerator_of, accelerator_with_literal_urls, get, pages, respond,
};

const HTML: (&str, &str) = ("content-type", "text/html");
const IMAGE: [(&str, &str); 3] = [
    ("sec-fetch-dest", "image"),
    ("sec-fetch-mode", "no-cors"),
    ("sec-fetch-site", "same-origin"),
];

/// A host that is listed, and the site that names it, which has something below that host's name itself.
fn origins() -> (Origin, Origin) {
    let other = Origin::start(pages(&[("/a.png?b", &[PNG, FRESH], "the picture")]));
    let port = other.address.port();
    let own = Origin::start(move |request| {
        let page = format!("<img src=http://cdn.test:{port}/a.png?b>");
        std::future::ready(match request.uri().path() {
            "/" => respond(&[HTML, FRESH], page),
            _ => respond(&[PNG, FRESH], "the site's own"),
        })
    });
    (own, other)
}

fn configured(own: &Origin, other: &Origin) -> String {
    let (origin, port) = (own.address, other.address.port());
    format!(
        "[listen]\ntls = []\nplain = ['127.0.0.1:80']\n\
         [upstream]\nallow_addresses = ['127.0.0.0/8']\nallow_ports = [{port}]\nresolve = {{ 'cdn.test' = '127.0.0.1' }}\n\
         [[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n\
         [[site.rewrite.hosts]]\nhost = 'cdn.test:{port}'\nscheme = 'http'\nkinds = ['image']\n"
    )
}

fn before(own: &Origin, other: &Origin) -> Arc<Proxy> {
    accelerator_with_literal_urls(&configured(own, other))
}

#[tokio::test]
async fn paper_url_is_used_in_page_and_served() {
    let (own, other) = origins();
    let proxy = before(&own, &other);
    let page = get(&proxy, "/", &[]).await;
    assert_eq!(page.text(), "<img src=\"/cdn.test/a.png?b\">");
    let picture = get(&proxy, "/cdn.test/a.png?b", &IMAGE).await;
    assert_eq!(picture.text(), "the picture");
    assert_eq!(own.times("/cdn.test/a.png?b"), 0, "it is not the site's");
    // What is refused in the other form is refused here: pages, and resources of a host that is not listed.
    let opened = get(
        &proxy,
        "/cdn.test/a.png?b",
        &[("sec-fetch-dest", "document")],
    )
    .await;
    assert_eq!(opened.status, StatusCode::NOT_FOUND);
    let opened = get(&proxy, "/cdn.test/../a.png?b", &IMAGE).await;
    assert_eq!(opened.status, StatusCode::NOT_FOUND);
    assert_eq!(
        get(&proxy, "/stranger.test/a.png", &IMAGE).await.text(),
        "the site's own"
    );
}

#[tokio::test]
async fn site_path_equal_to_a_listed_host_is_unreachable() {
    let (own, other) = origins();
    let proxy = before(&own, &other);
    let hidden = get(&proxy, "/cdn.test/own.png", &IMAGE).await;
    assert_eq!(hidden.status, StatusCode::NOT_FOUND, "the host has none");
    assert_eq!(own.times("/cdn.test/own.png"), 0);
    assert_eq!(
        get(&proxy, "/cdn.test", &IMAGE).await.text(),
        "the site's own"
    );
}

#[tokio::test]
async fn without_the_switch_paper_path_is_a_site_path() {
    let (own, other) = origins();
    let port = other.address.port();
    let proxy = accelerator_of(&configured(&own, &other));
    let page = get(&proxy, "/", &[]).await;
    assert_eq!(
        page.text(),
        format!("<img src=\"/.spdy/1/-/p/cdn.test~{port}/a.png?b\">")
    );
    let picture = get(&proxy, "/cdn.test/a.png?b", &IMAGE).await;
    assert_eq!(picture.text(), "the site's own");
}

#[tokio::test]
async fn paper_urls_are_rejected_with_discovery() {
    let (own, other) = origins();
    let text = format!(
        "{}[site.rewrite]\ndiscover = true\n",
        configured(&own, &other)
    );
    let config = Config::parse(&text).expect("valid TOML");
    let error = Sites::compile_with_literal_urls(&config, &support::keys());
    let error = error.expect_err("no host is allowed").to_string();
    assert!(
        error.contains("discover is true, expected false"),
        "{error}"
    );
}
