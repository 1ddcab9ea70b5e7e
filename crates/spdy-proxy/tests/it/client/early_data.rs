//! Requests in early data (0-RTT): a stored response is sent at once, and the origin gets nothing before the client's handshake is
//! complete (RFC 8470).

use std::sync::Arc;

use futures_util::FutureExt;
use http::{Request, StatusCode};
use spdy::body::Body;
use spdy_net::early_data::EarlyData;
use spdy_net::latch::Latch;
use spdy_proxy::proxy::Proxy;

use crate::support::fields::FRESH;
use crate::support::{
    CollectedResponse, Origin, accelerator_of, collect_response, get, respond, until,
};

/// An accelerator of `own` with a rule for `/unstored`.
fn accelerator(own: &Origin) -> Arc<Proxy> {
    accelerator_with(own, "")
}

/// The same with `more` rules.
fn accelerator_with(own: &Origin, more: &str) -> Arc<Proxy> {
    let origin = own.address;
    accelerator_of(&format!(
        "[[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\n\
         [[site.paths]]\npath = '/unstored'\nstore = false\n{more}"
    ))
}

fn origin() -> Origin {
    Origin::start(|request: Request<bytes::Bytes>| {
        let path = request.uri().path().to_owned();
        let mut response = match path.starts_with("/stale") {
            true => respond(&[("cache-control", "max-age=0"), ("etag", "\"1\"")], path),
            false => respond(&[FRESH], path),
        };
        let is_early = request.headers().contains_key("early-data");
        if is_early {
            *response.status_mut() = StatusCode::TOO_EARLY;
        }
        std::future::ready(response)
    })
}

/// A GET on a connection whose handshake sets `complete`.
fn early(target: &str, complete: &Latch) -> Request<Body> {
    let request = Request::get(target).header("host", "www.site.test");
    let request = request.extension(EarlyData::new(complete.clone()));
    request.body(Body::empty()).expect("a request")
}

fn send_early(
    proxy: &Arc<Proxy>,
    target: &str,
    complete: &Latch,
) -> tokio::task::JoinHandle<CollectedResponse> {
    let (proxy, request) = (proxy.clone(), early(target, complete));
    tokio::spawn(async move { collect_response(&proxy, request, 1).await })
}

#[tokio::test]
async fn a_stored_response_does_not_wait_for_the_handshake() {
    let own = origin();
    let proxy = accelerator(&own);
    assert_eq!(get(&proxy, "/a", &[]).await.text(), "/a");
    let never = Latch::new();
    let hit = collect_response(&proxy, early("/a", &never), 1).now_or_never();
    assert_eq!(hit.expect("it does not wait").text(), "/a");
    assert_eq!(own.times("/a"), 1);
}

#[tokio::test]
async fn the_origin_gets_nothing_before_the_handshake_is_complete() {
    let own = origin();
    let proxy = accelerator(&own);
    get(&proxy, "/stale", &[]).await;
    let complete = Latch::new();
    let targets = ["/miss", "/stale", "/unstored"];
    let waiting = targets.map(|target| send_early(&proxy, target, &complete));
    // Others do not wait for an early request.
    for target in ["/other", "/miss"] {
        assert_eq!(get(&proxy, target, &[]).await.text(), target);
    }
    let so_far = ["GET /stale", "GET /other", "GET /miss"];
    assert_eq!(own.request_lines(), so_far);
    complete.set();
    for (target, response) in targets.into_iter().zip(waiting) {
        let response = response.await.expect("no panic");
        assert_eq!((response.status, response.text()), (StatusCode::OK, target));
    }
    assert_eq!(own.times("/miss"), 1, "stored in the meantime");
    assert_eq!(own.times("/stale"), 2);
    assert_eq!(own.times("/unstored"), 1);
}

/// RFC 8470 §5.1 and §5.2: the field of an earlier hop is passed on, and so is 425, to this client alone.
#[tokio::test]
async fn the_field_of_an_earlier_hop_and_its_425_are_passed_on() {
    let (own, gate) = Origin::start_gated(|request: Request<bytes::Bytes>| {
        let is_early = request.headers().contains_key("early-data");
        let mut response = respond(&[FRESH], "body");
        if is_early {
            *response.status_mut() = StatusCode::TOO_EARLY;
        }
        response
    });
    let proxy = accelerator(&own);
    let marked = {
        let proxy = proxy.clone();
        tokio::spawn(async move { get(&proxy, "/a", &[("early-data", "1")]).await })
    };
    until("the origin has the request", || own.times("/a") == 1).await;
    assert_eq!(own.fields("/a")["early-data"], "1");
    let mut follower = Box::pin(get(&proxy, "/a", &[]));
    assert!((&mut follower).now_or_never().is_none());
    gate.add_permits(2);
    assert_eq!(marked.await.unwrap().status, StatusCode::TOO_EARLY);
    assert_eq!(follower.await.status, StatusCode::OK);
    let third = get(&proxy, "/a", &[("early-data", "1")]).await;
    assert_eq!((third.status, third.text()), (StatusCode::OK, "body"));
}

#[tokio::test]
async fn passwords_and_rates_are_checked_for_early_requests() {
    let own = origin();
    let folder = tempfile::tempdir().expect("create a folder");
    let users = folder.path().join("users");
    std::fs::write(&users, "bob:{SHA}0JQeaNqPOBUf+Gph/Fn3xc+fyqI=\n").expect("write the file");
    let rules = format!(
        "[[site.paths]]\npath = '/admin/'\nbasic_auth = {users:?}\n\
         [[site.paths]]\npath = '/limited'\nrequests_per_second = 1\n"
    );
    let proxy = accelerator_with(&own, &rules);
    let never = Latch::new();
    let status = |target: &str| {
        let response = collect_response(&proxy, early(target, &never), 1).now_or_never();
        response.expect("it does not wait").status
    };
    assert_eq!(status("/admin/a"), StatusCode::UNAUTHORIZED);
    get(&proxy, "/limited", &[]).await;
    let statuses: Vec<_> = (0..1000).map(|_| status("/limited")).collect();
    assert_eq!(statuses[0], StatusCode::OK);
    assert!(statuses.contains(&StatusCode::TOO_MANY_REQUESTS));
    assert_eq!(own.request_lines(), ["GET /limited"]);
}
