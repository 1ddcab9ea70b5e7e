//! The host and the client address that an origin receives, and hosts that no site has.

use http::{Request, StatusCode};
use spdy::body::Body;
use spdy_frame::priority::Priority;
use spdy_net::handler::RequestInfo;
use spdy_net::protocol::Protocol;

use crate::support::fields::FRESH;
use crate::support::{self, Origin, accelerator_of, get, pages, respond};

#[tokio::test]
async fn redirect_to_origin_name_becomes_site_name() {
    let origin = Origin::start(|request: Request<bytes::Bytes>| {
        let host = request.headers()["host"]
            .to_str()
            .expect("ASCII")
            .to_owned();
        let mut response = respond(&[], "");
        *response.status_mut() = StatusCode::FOUND;
        let location = format!("http://{host}/there?x=1");
        response
            .headers_mut()
            .insert("location", location.parse().expect("a value"));
        std::future::ready(response)
    });
    let proxy = accelerator_of(&format!(
        "[listen]\ntls = ['0.0.0.0:443']\n[[site]]\nnames = ['www.site.test', 'site.test']\norigin = 'http://{}'\n",
        origin.address
    ));
    let redirect = get(&proxy, "/here", &[]).await;
    assert_eq!(
        redirect.field("location"),
        "https://www.site.test/there?x=1"
    );
    // To where the client has it from: by that name, at that door.
    for (secure, host, home) in [
        (true, "www.site.test", "https://www.site.test"),
        (true, "site.test", "https://site.test"),
        (false, "www.site.test:8080", "http://www.site.test:8080"),
    ] {
        let arrival = RequestInfo {
            protocol: Protocol::Http1,
            secure,
            priority: Priority::HIGHEST,
        };
        let request = Request::get("/here").header("host", host);
        let request = request.extension(arrival).body(Body::empty());
        let request = request.expect("a request");
        let redirect = proxy.answer(request, None).await;
        assert_eq!(redirect.headers()["location"], format!("{home}/there?x=1"));
    }
}

/// Regression: the host had the origin's port, and redirects and links led browsers there.
#[tokio::test]
async fn preserve_host_sends_client_host() {
    let origin = Origin::start(pages(&[("/a", &[FRESH], "a")]));
    let proxy = accelerator_of(&format!(
        "[[site]]\nnames = ['www.site.test']\norigin = 'http://{}'\naddress = '127.0.0.1'\nkeep_host = true\n",
        origin.address
    ));
    for host in ["www.site.test", "www.site.test:8443"] {
        let mut request = Request::get("/a")
            .body(Body::empty())
            .expect("the value is valid");
        let host = http::HeaderValue::from_static(host);
        request.headers_mut().insert("host", host.clone());
        support::collect_response(&proxy, request, 1).await;
        assert_eq!(origin.fields("/a")["host"], host);
    }
}

#[tokio::test]
async fn origin_gets_client_address_that_cannot_be_forged() {
    let origin = Origin::start(pages(&[("/a", &[FRESH], "a")]));
    let proxy = support::accelerator(&origin, "");
    let claims = [
        ("x-forwarded-for", "10.0.0.1"),
        ("forwarded", "for=10.0.0.1"),
        ("connection", "x-secret, close"),
        ("x-secret", "1"),
        ("accept-encoding", "zstd;q=1, br"),
    ];
    get(&proxy, "/a", &claims).await;
    let headers = origin.fields("/a");
    assert_eq!(headers["x-forwarded-for"], "192.0.2.1");
    assert_eq!(headers["x-forwarded-host"], "www.site.test");
    assert_eq!(headers["accept-encoding"], "br, zstd;q=0.9");
    assert_eq!(headers["cdn-loop"], "www.site.test");
    assert!(!headers.contains_key("forwarded") && !headers.contains_key("x-secret"));
    let looped = get(&proxy, "/a?2", &[("cdn-loop", "other, www.site.test;x=1")]).await;
    assert_eq!(looped.status, StatusCode::LOOP_DETECTED);
}

#[tokio::test]
async fn unknown_host_is_misdirected() {
    let origin = Origin::start(pages(&[]));
    let proxy = support::accelerator(&origin, "");
    let request = Request::get("/").header("host", "other.test");
    let request = request.body(Body::empty()).expect("a request");
    let response = proxy.answer(request, None).await;
    assert_eq!(response.status(), StatusCode::MISDIRECTED_REQUEST);
    assert_eq!(origin.request_lines(), [""; 0]);
}
