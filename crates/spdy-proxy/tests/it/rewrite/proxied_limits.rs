//! What the answers of other hosts may cost, stored or not: one past each limit, and what the client gets instead.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use http::StatusCode;
use spdy::body::Body;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::telemetry::counters::CounterFamily;

use crate::support::{Answer, Origin, accelerator_of, answer, get, pages, until};

const PNG: (&str, &str) = ("content-type", "image/png");
const ONCE: (&str, &str) = ("cache-control", "no-store");
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

async fn asked(proxy: &Arc<Proxy>, other: &Origin, fields: &[(&str, &str)]) -> Answer {
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
fn is_sent_on(got: &Answer, other: &Origin) {
    assert_eq!(got.status, StatusCode::TEMPORARY_REDIRECT, "{got:?}");
    let there = format!("http://cdn.test:{}/a.png", other.address.port());
    assert_eq!(got.field("location"), there);
}

#[tokio::test]
async fn response_announced_too_large_redirects_to_host() {
    let other = Origin::start(|_| std::future::ready(answer(&[PNG, ONCE], vec![0; MIB + 1])));
    let proxy = before(&other, "max_mib = 1", "");
    is_sent_on(&asked(&proxy, &other, &IMAGE).await, &other);
    let got = asked(&proxy, &other, &[]).await;
    assert_eq!(got.status, StatusCode::NOT_FOUND);
    assert_eq!(met(&proxy), [("limits.max_mib", 2)]);
    assert_eq!(
        proxy
            .telemetry
            .counters
            .read(CounterFamily::RefusedRequests),
        [("too-large", 1)]
    );

    let other = Origin::start(|_| std::future::ready(answer(&[PNG, ONCE], vec![0; MIB])));
    let proxy = before(&other, "max_mib = 1", "");
    let got = asked(&proxy, &other, &IMAGE).await;
    assert_eq!(got.body.expect("all of it").len(), MIB, "it just fits");
}

#[tokio::test]
async fn response_growing_too_large_is_aborted() {
    for (len, is_whole) in [(MIB, true), (MIB + 1, false)] {
        let other = Origin::start(move |_| {
            let pieces = [vec![0; len / 2], vec![0; len - len / 2]];
            let pieces = pieces.map(|piece| Ok::<_, std::io::Error>(Bytes::from(piece)));
            let mut response = answer(&[PNG, ONCE], "");
            *response.body_mut() = Body::from_stream(futures_util::stream::iter(pieces));
            std::future::ready(response)
        });
        // The limit in the host's own table overrides the limit for all hosts.
        let proxy = before(&other, "max_mib = 7", "max_mib = 1");
        let got = asked(&proxy, &other, &IMAGE).await;
        assert_eq!(got.status, StatusCode::OK);
        assert_eq!(
            got.body.map(|body| body.len()).ok(),
            is_whole.then_some(len)
        );
        let counted = met(&proxy).first().map_or(0, |(_, count)| *count);
        assert_eq!(counted, u64::from(!is_whole));
    }
}

#[tokio::test]
async fn third_party_responses_are_limited_in_number() {
    let (other, gate) = Origin::start_held(|_| answer(&[PNG, ONCE], "a picture"));
    let proxy = before(&other, "fetches = 1", "");
    let (asking, at) = (proxy.clone(), other.clone());
    let first = tokio::spawn(async move { asked(&asking, &at, &[]).await });
    until("the first is asked for", || other.asked().len() == 1).await;
    // A range that does not begin with the first byte is fetched for its client only.
    let range = [("range", "bytes=1-3")];
    let got = asked(&proxy, &other, &range).await;
    assert_eq!(got.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(got.field("retry-after"), "1");
    let why = got.field("proxy-status");
    assert_eq!(why, "spdy; error=connection_limit_reached");
    // The host itself may have room for a browser.
    let of_page = [range[0], IMAGE[0], IMAGE[1], IMAGE[2]];
    is_sent_on(&asked(&proxy, &other, &of_page).await, &other);
    assert_eq!(met(&proxy), [("limits.fetches", 2)]);
    gate.add_permits(2);
    assert_eq!(first.await.expect("no panic").text(), "a picture");
    assert_eq!(asked(&proxy, &other, &range).await.text(), "a picture");
}

#[tokio::test]
async fn third_party_head_and_body_have_timeouts() {
    let silent = Origin::start(|_| std::future::pending());
    let proxy = before(&silent, "head_timeout_s = 3", "");
    for (fields, status) in [
        (&IMAGE[..], StatusCode::TEMPORARY_REDIRECT),
        (&[], StatusCode::GATEWAY_TIMEOUT),
    ] {
        let got = asked(&proxy, &silent, fields).await;
        assert_eq!(got.status, status);
        let why = got.field("proxy-status");
        assert_eq!(why, "spdy; error=http_response_timeout");
    }

    let endless = Origin::start(|_| {
        let begun = futures_util::stream::iter([Ok::<_, std::io::Error>(Bytes::from("begun"))]);
        let mut response = answer(&[PNG, ONCE], "");
        *response.body_mut() = Body::from_stream(begun.chain(futures_util::stream::pending()));
        std::future::ready(response)
    });
    let proxy = before(&endless, "", "fetch_timeout_s = 3");
    let got = asked(&proxy, &endless, &IMAGE).await;
    assert_eq!(got.status, StatusCode::OK);
    let why = got.body.expect_err("it is not whole");
    assert!(why.contains("limits.fetch_timeout_s"), "{why}");
    assert_eq!(met(&proxy), [("limits.fetch_timeout_s", 1)]);
}

#[tokio::test]
async fn waiting_for_a_permit_does_not_use_host_timeout() {
    let (other, gate) = Origin::start_held(|_| answer(&[PNG, ONCE], "a picture"));
    // The first is given up when the second has waited for nearly as long.
    let proxy = before_patient(10, &other, "fetches = 1, head_timeout_s = 1", "");
    let (asking, at) = (proxy.clone(), other.clone());
    let first = tokio::spawn(async move { asked(&asking, &at, &[]).await });
    until("the first is asked for", || other.asked().len() == 1).await;
    let (asking, at) = (proxy.clone(), other.clone());
    let range = [("range", "bytes=1-3")];
    let second = tokio::spawn(async move { asked(&asking, &at, &range).await });
    assert_eq!(
        first.await.expect("no panic").status,
        StatusCode::GATEWAY_TIMEOUT
    );
    until("the second is asked for", || other.asked().len() == 2).await;
    gate.add_permits(2);
    assert_eq!(second.await.expect("no panic").text(), "a picture");
}

#[tokio::test]
async fn response_within_limits_is_served() {
    let other = Origin::start(pages(&[("/a.png", &[PNG, ONCE], "a picture")]));
    let proxy = before(&other, "", "");
    assert_eq!(asked(&proxy, &other, &IMAGE).await.text(), "a picture");
    assert_eq!(met(&proxy), []);
}
