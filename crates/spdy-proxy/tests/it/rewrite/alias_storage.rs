//! Responses of aliases: how they are stored, and what invalidates them.

use http::{Method, StatusCode};
use spdy::body::Body;

use crate::support::aliased_site::AliasedSite;

#[tokio::test]
async fn alias_response_is_stored_per_request_origin() {
    let named = AliasedSite::start("");
    for origin in [
        "https://www.site.test:8443",
        "https://site.test:8443",
        "null",
    ] {
        for _ in 0..2 {
            let script = named.get("/open.js", &[("origin", origin)]).await;
            assert_eq!(script.text(), "read()");
            assert_eq!(
                script.field("access-control-allow-origin"),
                "https://www.site.test:8443"
            );
        }
        assert_eq!(named.widgets.fields("/open.js")["origin"], origin);
    }
    assert_eq!(named.widgets.times("/open.js"), 3);
    let refused = named
        .get("/open.js", &[("origin", "https://evil.test")])
        .await;
    assert_eq!(refused.status, StatusCode::NOT_FOUND);
    assert_eq!(named.widgets.times("/open.js"), 3);
}

#[tokio::test]
async fn post_to_alias_invalidates_that_url() {
    let named = AliasedSite::start("");
    let name = &named.names[0];
    let origin = format!("https://{name}");
    let own = [("origin", origin.as_str()), ("sec-fetch-dest", "empty")];
    named.get("/form", &[]).await;
    named.get("/form", &[]).await;
    assert_eq!(named.widgets.times("/form"), 1);
    let body = Body::full("{\"posted\":true}");
    let posted = named.send(Method::POST, name, "/form", &own, body).await;
    assert_eq!(posted.text(), "{\"posted\":true}");
    named.get("/form", &[]).await;
    assert_eq!(named.widgets.times("/form"), 2);
    let elsewhere = named
        .send_request(Method::POST, &named.names[1], "/form", &own)
        .await;
    assert_eq!(elsewhere.status, StatusCode::METHOD_NOT_ALLOWED);
}

/// The site's own answer to a POST may be stored (RFC 9110 §9.3.3). The answer of another host to a frame is private to it.
#[tokio::test]
async fn alias_post_response_is_not_stored() {
    let named = AliasedSite::start("");
    let name = &named.names[0];
    let origin = format!("https://{name}");
    let own = [("origin", origin.as_str()), ("sec-fetch-dest", "empty")];
    let body = Body::full("posted");
    let posted = named.send(Method::POST, name, "/located", &own, body).await;
    assert_eq!(posted.text(), "posted");
    assert_eq!(named.get("/located", &own).await.text(), "");
    assert_eq!(named.widgets.times("/located"), 1);
}

#[tokio::test]
async fn post_to_alias_is_not_retried() {
    let named = AliasedSite::start("");
    let name = &named.names[0];
    let origin = format!("https://{name}");
    for destination in ["empty", "iframe"] {
        let own = [
            ("origin", origin.as_str()),
            ("sec-fetch-dest", destination),
            ("sec-fetch-site", "same-origin"),
        ];
        for path in ["/collect", "/fixed.css"] {
            let done = named.send_request(Method::POST, name, path, &own).await;
            assert_eq!(done.status, StatusCode::OK, "{path} {destination}");
        }
    }
    let requests = named.widgets.request_lines();
    let posted = requests
        .iter()
        .filter(|request| *request == "POST /collect");
    assert_eq!(posted.count(), 2);
    // A script may read what no tag would load.
    let data = named.get("/collect", &[("sec-fetch-dest", "empty")]).await;
    assert_eq!(data.text(), "done");
}

#[tokio::test]
async fn unknown_requester_cannot_post_or_invalidate() {
    let named = AliasedSite::start("");
    let (name, port) = (&named.names[0], named.widgets.address.port());
    named.get("/form", &[]).await;
    for origin in [&[][..], &[("origin", "null")]] {
        let refused = named
            .send_request(Method::POST, name, "/form", origin)
            .await;
        assert_eq!(refused.status, StatusCode::NOT_FOUND);
        // A sandboxed frame's form.
        let fields = [origin, &[("sec-fetch-dest", "iframe")]].concat();
        let response = named
            .send_request(Method::POST, name, "/form", &fields)
            .await;
        assert_eq!(response.status, StatusCode::TEMPORARY_REDIRECT);
        let host_url = format!("http://widgets.test:{port}/form");
        assert_eq!(response.field("location"), host_url);
    }
    named.get("/form", &[]).await;
    assert_eq!(named.widgets.times("/form"), 1);
}

#[tokio::test]
async fn script_request_is_stored_per_script_headers() {
    let named = AliasedSite::start("");
    for accept in ["text/csv", "application/json", "*/*"] {
        for _ in 0..2 {
            let fields = [("sec-fetch-dest", "empty"), ("accept", accept)];
            assert_eq!(named.get("/data", &fields).await.text(), accept);
        }
    }
    assert_eq!(named.widgets.times("/data"), 3);
}

#[tokio::test]
async fn purge_by_either_url_removes_alias_entry() {
    let named = AliasedSite::start("");
    let port = named.widgets.address.port();
    let urls = [
        format!("https://{}/a.png", named.names[0]),
        format!("http://widgets.test:{port}/a.png"),
    ];
    for (round, url) in urls.iter().enumerate() {
        named.get("/a.png", &[]).await;
        named.get("/a.png", &[]).await;
        assert_eq!(named.widgets.times("/a.png"), round + 1);
        let wish = spdy_proxy::cache::purge::PurgeRequest {
            url: Some(url.clone()),
            ..Default::default()
        };
        named.proxy.purge(&wish).expect("a purge");
    }
    named.get("/a.png", &[]).await;
    assert_eq!(named.widgets.times("/a.png"), 3);
    let unmarked = spdy_proxy::cache::purge::PurgeRequest {
        url: Some(format!("https://{}/a.png?spdy=off", named.names[0])),
        ..Default::default()
    };
    named.proxy.purge(&unmarked).expect("a purge");
    named.get("/a.png", &[]).await;
    assert_eq!(named.widgets.times("/a.png"), 4);
}
