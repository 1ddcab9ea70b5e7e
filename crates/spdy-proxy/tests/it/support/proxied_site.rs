//! An accelerator that serves resources of `cdn.test` under its site, and requests for them.

use http::StatusCode;

use crate::support::fields::{CSS, FRESH, JS, PNG};
use crate::support::{CollectedResponse, Origin, accelerator_of, get, pages};

/// Names nothing that has a port, so that its hash is known: `openssl dgst -sha256 -binary | base64`.
pub(crate) const SHEET: &str = "p { background: url(http://cdn.test/b.png) }\n";
pub(crate) const SHEET_SHA256: &str = "sha256-n2NC7uYfsk6aCLM32Xq8aC1K+KrH1vQLOlLAB3v6YsM=";
pub(crate) type Proxy = std::sync::Arc<spdy_proxy::proxy::Proxy>;

/// The accelerator before `own`, which moves all that `cdn.test` has but `/ads/`, at `other`, and images and sheets of its port 80.
pub(crate) fn before(own: &Origin, other: &Origin) -> Proxy {
    let (origin, port) = (own.address, other.address.port());
    accelerator_of(&format!(
        "[listen]\ntls = []\nplain = ['127.0.0.1:80']\n\
         [upstream]\nallow_addresses = ['127.0.0.0/8']\nallow_ports = [{port}]\nresolve = {{ 'cdn.test' = '127.0.0.1' }}\n\
         [[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n\
         [[site.rewrite.hosts]]\nhost = 'cdn.test:{port}'\nscheme = 'http'\nkinds = ['image', 'style', 'script', 'font']\nexcept = ['/ads/']\n\
         [[site.rewrite.hosts]]\nhost = 'cdn.test'\nscheme = 'http'\nkinds = ['image', 'style']\n"
    ))
}

pub(crate) fn other() -> Origin {
    Origin::start(pages(&[
        ("/a.js", &[JS, FRESH], "window.a = 1"),
        ("/s.css", &[CSS, FRESH], "p { color: red }"),
        ("/b.png", &[PNG, FRESH], "a picture"),
        ("/c.png", &[PNG, FRESH], "a picture"),
        ("/typeless", &[FRESH], "a picture"),
        (
            "/fixed.css",
            &[CSS, ("cache-control", "no-transform, max-age=60")],
            "a{b:url(/c)}",
        ),
        (
            "/coded.css",
            &[CSS, FRESH, ("content-encoding", "x-own")],
            "a{b:url(/c)}",
        ),
    ]))
}

/// As a browser loads a thing that a page of the site names.
pub(crate) fn load(destination: &'static str) -> [(&'static str, &'static str); 3] {
    [
        ("sec-fetch-dest", destination),
        ("sec-fetch-mode", "no-cors"),
        ("sec-fetch-site", "same-origin"),
    ]
}

pub(crate) async fn get_proxied(
    proxy: &Proxy,
    other: &Origin,
    path: &str,
    fields: &[(&str, &str)],
) -> CollectedResponse {
    let port = other.address.port();
    get(
        proxy,
        &format!("/.spdy/1/-/p/cdn.test~{port}{path}"),
        fields,
    )
    .await
}

#[track_caller]
pub(crate) fn assert_redirected_to_host(response: &CollectedResponse, other: &Origin, path: &str) {
    assert_eq!(response.status, StatusCode::TEMPORARY_REDIRECT, "{path}");
    let host_url = format!("http://cdn.test:{}{path}", other.address.port());
    assert_eq!(response.field("location"), host_url);
    assert_eq!(response.field("cache-control"), "no-store");
}
