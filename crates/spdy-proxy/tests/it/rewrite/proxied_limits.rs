//! Limits of the responses of other hosts, stored or not: one above each limit, and the response for the client.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use http::StatusCode;
use spdy::body::Body;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::telemetry::counters::CounterFamily;

use crate::support::fields::{ONCE, PNG};
use crate::support::{CollectedResponse, Origin, accelerator_of, get, pages, respond, until};

/// As a browser loads an image of a page of the site.
const IMAGE: [(&str, &str); 3] = [
    ("sec-fetch-dest", "image"),
    ("sec-fetch-mode", "no-cors"),
    ("sec-fetch-site", "same-origin"),
];
const MIB: usize = 1 << 20;

/// The accelerator that moves images of `other`, with the limits `limits` for all hosts and `own` for this one.
fn before(other: &Origin, limits: &str, own: &str) -> Arc<Proxy> {
    before_patient(0, other, limits, own)
}

/// The same, where a request without a permit waits for `queue_timeout_s`.
fn before_patient(queue_timeout_s: u64, other: &Origin, limits: &str, own: &str) -> Arc<Proxy> {
    let port = other.address.port();
    accelerator_of(&format!(
        "[upstream]\nallow_addresses = ['127.0.0.0/8']\nallow_ports = [{port}]\nresolve = {{ 'cdn.test' = '127.0.0.1' }}\nqueue_timeout_s = {queue_timeout_s}\n\
         [[site]]\nnames = ['www.site.test']\norigin = 'http://127.0.0.1:9'\n\
         [site.rewrite]\nlimits = {{ {limits} }}\n\
         [[site.rewrite.hosts]]\nhost = 'cdn.test:{port}'\nscheme = 'http'\nkinds = ['image']\nlimits = {{ {own} }}\n"
    ))
}

async fn get_proxied(
    proxy: &Arc<Proxy>,
    other: &Origin,
    fields: &[(&str, &str)],
) -> CollectedResponse {
    let port = other.address.port();
    get(
        proxy,
        &format!("/.spdy/1/-/p/cdn.test~{port}/a.png"),
        fields,
    )
    .await
}

fn met(proxy: &Proxy) -> Vec<(&'static str, u64)> {
    proxy.telemetry.counters.read(CounterFamily::Limits)
}

#[track_caller]
fn assert_redirected_to_host(response: &CollectedResponse, other: &Origin) {
    assert_eq!(
        response.status,
        StatusCode::TEMPORARY_REDIRECT,
        "{response:?}"
    );
    let host_url = format!("http://cdn.test:{}/a.png", other.address.port());
    assert_eq!(response.field("location"), host_url);
}

#[tokio::test]
async fn response_announced_too_large_redirects_to_host() {
    let other = Origin::start(|_| std::future::ready(respond(&[PNG, ONCE], vec![0; MIB + 1])));
    let proxy = before(&other, "max_mib = 1", "");
    assert_redirected_to_host(&get_proxied(&proxy, &other, &IMAGE).await, &other);
    let response = get_proxied(&proxy, &other, &[]).await;
    assert_eq!(response.status, StatusCode::NOT_FOUND);
    assert_eq!(met(&proxy), [("limits.max_mib", 2)]);
    assert_eq!(
        proxy
            .telemetry
            .counters
            .read(CounterFamily::RefusedRequests),
        [("too-large", 1)]
    );

    let other = Origin::start(|_| std::future::ready(respond(&[PNG, ONCE], vec![0; MIB])));
    let proxy = before(&other, "max_mib = 1", "");
    let response = get_proxied(&proxy, &other, &IMAGE).await;
    assert_eq!(
        response.body.expect("the body is complete").len(),
        MIB,
        "it just fits"
    );
}

#[tokio::test]
async fn response_growing_too_large_is_aborted() {
    for (len, is_complete) in [(MIB, true), (MIB + 1, false)] {
        let other = Origin::start(move |_| {
            let pieces = [vec![0; len / 2], vec![0; len - len / 2]];
            let pieces = pieces.map(|piece| Ok::<_, std::io::Error>(Bytes::from(piece)));
            let mut response = respond(&[PNG, ONCE], "");
            *response.body_mut() = Body::from_stream(futures_util::stream::iter(pieces));
            std::future::ready(response)
        });
        // The limit in the host's own table overrides the limit for all hosts.
        let proxy = before(&other, "max_mib = 7", "max_mib = 1");
        let received = get_proxied(&proxy, &other, &IMAGE).await;
        assert_eq!(received.status, StatusCode::OK);
        assert_eq!(
            received.body.map(|body| body.len()).ok(),
            is_complete.then_some(len)
        );
        let counted = met(&proxy).first().map_or(0, |(_, count)| *count);
        assert_eq!(counted, u64::from(!is_complete));
    }
}

#[tokio::test]
async fn third_party_responses_are_limited_in_number() {
    let (other, gate) = Origin::start_gated(|_| respond(&[PNG, ONCE], "a picture"));
    let proxy = before(&other, "fetches = 1", "");
    let (first_proxy, at) = (proxy.clone(), other.clone());
    let first = tokio::spawn(async move { get_proxied(&first_proxy, &at, &[]).await });
    until("the first is requested", || {
        other.request_lines().len() == 1
    })
    .await;
    // A range that does not begin with the first byte is fetched for its client only.
    let range = [("range", "bytes=1-3")];
    let response = get_proxied(&proxy, &other, &range).await;
    assert_eq!(response.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(response.field("retry-after"), "1");
    let reason = response.field("proxy-status");
    assert_eq!(reason, "spdy; error=connection_limit_reached");
    // The host itself may have room for a browser.
    let of_page = [range[0], IMAGE[0], IMAGE[1], IMAGE[2]];
    assert_redirected_to_host(&get_proxied(&proxy, &other, &of_page).await, &other);
    assert_eq!(met(&proxy), [("limits.fetches", 2)]);
    gate.add_permits(2);
    assert_eq!(first.await.expect("no panic").text(), "a picture");
    assert_eq!(
        get_proxied(&proxy, &other, &range).await.text(),
        "a picture"
    );
}

#[tokio::test]
async fn third_party_head_and_body_have_timeouts() {
    let silent = Origin::start(|_| std::future::pending());
    let proxy = before(&silent, "head_timeout_s = 3", "");
    for (fields, status) in [
        (&IMAGE[..], StatusCode::TEMPORARY_REDIRECT),
        (&[], StatusCode::GATEWAY_TIMEOUT),
    ] {
        let received = get_proxied(&proxy, &silent, fields).await;
        assert_eq!(received.status, status);
        let proxy_status = received.field("proxy-status");
        assert_eq!(proxy_status, "spdy; error=http_response_timeout");
    }

    let endless = Origin::start(|_| {
        let begun = futures_util::stream::iter([Ok::<_, std::io::Error>(Bytes::from("begun"))]);
        let mut response = respond(&[PNG, ONCE], "");
        *response.body_mut() = Body::from_stream(begun.chain(futures_util::stream::pending()));
        std::future::ready(response)
    });
    let proxy = before(&endless, "", "fetch_timeout_s = 3");
    let received = get_proxied(&proxy, &endless, &IMAGE).await;
    assert_eq!(received.status, StatusCode::OK);
    let proxy_status = received.body.expect_err("it is not whole");
    assert!(
        proxy_status.contains("limits.fetch_timeout_s"),
        "{proxy_status}"
    );
    assert_eq!(met(&proxy), [("limits.fetch_timeout_s", 1)]);
}

#[tokio::test]
async fn waiting_for_a_permit_does_not_use_host_timeout() {
    let (other, gate) = Origin::start_gated(|_| respond(&[PNG, ONCE], "a picture"));
    // The first is given up when the second has waited for nearly as long.
    let proxy = before_patient(10, &other, "fetches = 1, head_timeout_s = 1", "");
    let (client_proxy, at) = (proxy.clone(), other.clone());
    let first = tokio::spawn(async move { get_proxied(&client_proxy, &at, &[]).await });
    until("the first is requested", || {
        other.request_lines().len() == 1
    })
    .await;
    let (client_proxy, at) = (proxy.clone(), other.clone());
    let range = [("range", "bytes=1-3")];
    let second = tokio::spawn(async move { get_proxied(&client_proxy, &at, &range).await });
    assert_eq!(
        first.await.expect("no panic").status,
        StatusCode::GATEWAY_TIMEOUT
    );
    until("the second is requested", || {
        other.request_lines().len() == 2
    })
    .await;
    gate.add_permits(2);
    assert_eq!(second.await.expect("no panic").text(), "a picture");
}

#[tokio::test]
async fn response_within_limits_is_served() {
    let other = Origin::start(pages(&[("/a.png", &[PNG, ONCE], "a picture")]));
    let proxy = before(&other, "", "");
    assert_eq!(
        get_proxied(&proxy, &other, &IMAGE).await.text(),
        "a picture"
    );
    assert_eq!(met(&proxy), []);
}
