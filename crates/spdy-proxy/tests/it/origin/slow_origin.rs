//! Many requests for the same resource of a slow origin: how many requests it gets, and how the others are answered. In virtual time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Request, Response};
use spdy::body::Body;
use spdy_proxy::telemetry::counters::CounterFamily;
use tokio::io::{AsyncReadExt, DuplexStream};

use crate::support::wire::{Between, head, write};

const CLIENTS: usize = 50;
const RESPONSE: &str =
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nok";

const OVERLOADED: &str =
    "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";

/// The number of clients, which have all requested the same resource.
async fn clients(between: &Between) -> Vec<DuplexStream> {
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let (mut client, _) = between.client();
        write(
            &mut client,
            "GET /a HTTP/1.1\r\nHost: www.site.test\r\n\r\n",
        )
        .await;
        clients.push(client);
    }
    clients
}

/// The connections that the origin has got since it was looked the last time, each with a request.
fn new_origin_connections(between: &mut Between) -> Vec<DuplexStream> {
    std::iter::from_fn(|| between.origin.try_recv().ok()).collect()
}

/// How many of `clients` have got this status, when all that is on its way has come.
async fn count_with_status(between: &Between, clients: &mut [DuplexStream], status: &str) -> usize {
    let mut count = 0;
    for client in clients {
        let reading = async { head(client).await.starts_with(status) };
        let nothing = between.clock.advance(Duration::ZERO);
        tokio::select! {
            biased;
            has_status = reading => count += usize::from(has_status),
            () = nothing => {}
        }
    }
    count
}

fn limits(between: &Between) -> Vec<(&'static str, u64)> {
    between.proxy.telemetry.counters.read(CounterFamily::Limits)
}

/// Regression: after five seconds each of them sent its own request.
#[tokio::test]
async fn slow_origin_is_requested_once() {
    let mut between = Between::start("");
    let mut clients = clients(&between).await;
    between.clock.advance(Duration::from_secs(8)).await;
    let mut origin = new_origin_connections(&mut between);
    assert_eq!(origin.len(), 1, "one request for all clients");
    head(&mut origin[0]).await;
    write(&mut origin[0], RESPONSE).await;
    let responses = count_with_status(&between, &mut clients, "HTTP/1.1 200").await;
    assert_eq!(responses, CLIENTS);
    assert_eq!(new_origin_connections(&mut between).len(), 0);
    assert!(limits(&between).is_empty());
}

#[tokio::test]
async fn one_more_leader_per_coalesce_timeout() {
    let mut between = Between::start("");
    let mut clients = clients(&between).await;
    between.clock.advance(Duration::from_secs(9)).await;
    let mut origin = new_origin_connections(&mut between);
    assert_eq!(origin.len(), 1);
    between.clock.advance(Duration::from_secs(2)).await;
    let mut more = new_origin_connections(&mut between);
    assert_eq!(more.len(), 1, "after ten seconds one more");
    head(&mut more[0]).await;
    write(&mut more[0], RESPONSE).await;
    let responses = count_with_status(&between, &mut clients, "HTTP/1.1 200").await;
    assert_eq!(responses, CLIENTS - 1, "all but whose own is stuck");
    assert_eq!(limits(&between), [("lock_age_s", 1)]);
    origin.clear();
}

/// Regression: all waiters went to an origin that was overloaded already.
#[tokio::test]
async fn overloaded_extra_leader_does_not_release_waiters() {
    let mut between = Between::start("");
    let mut clients = clients(&between).await;
    between.clock.advance(Duration::from_secs(11)).await;
    let mut origin = new_origin_connections(&mut between);
    assert_eq!(origin.len(), 2);
    for io in &mut origin {
        head(io).await;
    }
    write(&mut origin[1], OVERLOADED).await;
    let responses = count_with_status(&between, &mut clients, "HTTP/1.1 503").await;
    assert_eq!(responses, 1, "the second request is sent to the origin");
    assert_eq!(new_origin_connections(&mut between).len(), 0);
    write(&mut origin[0], RESPONSE).await;
    let responses = count_with_status(&between, &mut clients, "HTTP/1.1 200").await;
    assert_eq!(responses, CLIENTS - 1);
    assert_eq!(new_origin_connections(&mut between).len(), 0);
}

/// Regression: the answer to one released them all, and for ten seconds requests were not coalesced.
#[tokio::test]
async fn waiters_of_an_overloaded_origin_get_the_error() {
    let mut between = Between::start("");
    for round in 0..2 {
        let mut clients = clients(&between).await;
        between.clock.advance(Duration::from_secs(1)).await;
        let mut origin = new_origin_connections(&mut between);
        assert_eq!(
            origin.len(),
            1,
            "one request for all clients, round {round}"
        );
        head(&mut origin[0]).await;
        write(&mut origin[0], OVERLOADED).await;
        let mut responses = Vec::new();
        for client in &mut clients {
            responses.push(between.wait(head(client)).await.0);
        }
        let is_503 = |response: &String| response.starts_with("HTTP/1.1 503 ");
        assert!(responses.iter().all(is_503), "{responses:?}");
        let is_backoff =
            |response: &&String| response.contains("error=destination_unavailable\r\n");
        assert_eq!(responses.iter().filter(is_backoff).count(), CLIENTS - 1);
        let is_retry_soon = |response: &&String| response.contains("retry-after: 1\r\n");
        assert_eq!(responses.iter().filter(is_retry_soon).count(), CLIENTS - 1);
        assert_eq!(new_origin_connections(&mut between).len(), 0);
    }
}

/// Regression: clients that accept another coding than the leader sent their own requests until the leader's answer came.
#[tokio::test]
async fn waiters_for_another_variant_share_their_own_fetch() {
    let mut between = Between::start("");
    let request = async |between: &Between, language: &str| {
        let (mut client, _) = between.client();
        let fields = format!("Host: www.site.test\r\nAccept-Language: {language}");
        write(&mut client, &format!("GET /a HTTP/1.1\r\n{fields}\r\n\r\n")).await;
        client
    };
    let mut german = request(&between, "de").await;
    let mut origin = between.next_connection().await;
    let begun = |language: &str| {
        let fields = "Cache-Control: max-age=60\r\nVary: Accept-Language\r\nContent-Length: 4";
        format!("HTTP/1.1 200 OK\r\nContent-Language: {language}\r\n{fields}\r\n\r\nha")
    };
    head(&mut origin).await;
    write(&mut origin, &begun("de")).await;
    between.wait(head(&mut german)).await;
    let mut french = Vec::new();
    for _ in 0..5 {
        french.push(request(&between, "fr").await);
    }
    between.clock.advance(Duration::from_secs(1)).await;
    let mut more = new_origin_connections(&mut between);
    assert_eq!(more.len(), 1, "one request for all French clients");
    head(&mut more[0]).await;
    write(&mut more[0], &begun("fr")).await;
    french.push(request(&between, "fr").await);
    for client in &mut french {
        let (response, _) = between.wait(head(client)).await;
        assert!(response.contains("content-language: fr\r\n"), "{response}");
    }
    assert_eq!(new_origin_connections(&mut between).len(), 0);
    let mut again = request(&between, "de").await;
    let (response, _) = between.wait(head(&mut again)).await;
    assert!(response.contains("content-language: de\r\n"), "{response}");
}

/// Regression: a request after a purge or a change got what was requested before.
#[tokio::test]
async fn request_after_purge_does_not_share_earlier_fetch() {
    for has_begun in [false, true] {
        let mut between = Between::start("");
        let (mut early, _) = between.client();
        let request = "GET /a HTTP/1.1\r\nHost: www.site.test\r\n\r\n";
        write(&mut early, request).await;
        let mut old = between.next_connection().await;
        head(&mut old).await;
        let response_with = |text: &str| RESPONSE.replace("ok", text);
        if has_begun {
            write(
                &mut old,
                response_with("old").strip_suffix("ld").expect("it is"),
            )
            .await;
            between.wait(head(&mut early)).await;
        }
        let purge = serde_json::from_str(r#"{"site": "www.site.test"}"#).expect("a purge");
        between.proxy.purge(&purge).expect("the purge is valid");
        let (mut late, _) = between.client();
        write(&mut late, request).await;
        let mut new = between.next_connection().await;
        head(&mut new).await;
        write(&mut new, &response_with("ne")).await;
        between.wait(head(&mut late)).await;
        let mut body = [0; 2];
        between
            .wait(late.read_exact(&mut body))
            .await
            .0
            .expect("the body");
        assert_eq!(&body, b"ne");
    }
}

/// A connection to the origin stayed taken until its next byte, or until the origin had been silent for too long.
#[tokio::test]
async fn stalled_body_is_aborted_when_client_leaves() {
    let mut between = Between::start("");
    let request = Request::get("/events").header("host", "www.site.test");
    let request = request.body(Body::empty()).expect("a request");
    let proxy = between.proxy.clone();
    let exchange = tokio::spawn(async move { proxy.answer(request, None).await });
    let mut origin = between.next_connection().await;
    head(&mut origin).await;
    let fields = "Cache-Control: no-store\r\nContent-Type: text/event-stream";
    write(
        &mut origin,
        &format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\ndata: 1\n\n"),
    )
    .await;
    let (response, _) = between.wait(exchange).await;
    drop(response.expect("a response")); // as a session does when its stream is reset
    let (read, took) = between.wait(origin.read_u8()).await;
    assert_eq!(
        read.map_err(|error| error.kind()),
        Err(std::io::ErrorKind::UnexpectedEof)
    );
    assert!(took < Duration::from_secs(2), "{took:?}");
}

/// The stored `/a` is stale, and all clients request it again. Returns them, and the connection that reached the origin.
async fn with_stale_entry(between: &mut Between) -> (Vec<DuplexStream>, DuplexStream) {
    let (mut first, _) = between.client();
    write(&mut first, "GET /a HTTP/1.1\r\nHost: www.site.test\r\n\r\n").await;
    let mut origin = between.next_connection().await;
    head(&mut origin).await;
    let fields =
        "Cache-Control: max-age=0, stale-if-error=3600\r\nETag: \"a\"\r\nContent-Length: 2";
    let response = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{fields}\r\n\r\nok");
    write(&mut origin, &response).await;
    head(&mut first).await;
    between.clock.advance(Duration::from_secs(1)).await;
    let clients = clients(between).await;
    let mut origin = between.next_connection().await;
    head(&mut origin).await;
    between.clock.advance(Duration::from_secs(1)).await;
    assert_eq!(
        new_origin_connections(between).len(),
        0,
        "one request for all clients"
    );
    (clients, origin)
}

/// Regression: they were sent one after the other, each when the one before was answered.
#[tokio::test]
async fn waiters_get_stale_response_when_origin_fails() {
    let mut between = Between::start("");
    let (mut clients, mut origin) = with_stale_entry(&mut between).await;
    write(&mut origin, OVERLOADED).await;
    let responses = count_with_status(&between, &mut clients, "HTTP/1.1 200").await;
    assert_eq!(responses, CLIENTS);
    assert_eq!(new_origin_connections(&mut between).len(), 0);
}

#[tokio::test]
async fn single_use_304_sends_waiters_concurrently() {
    let mut between = Between::start("[upstream]\nconnections = 100\n");
    let (mut clients, mut origin) = with_stale_entry(&mut between).await;
    let once = "HTTP/1.1 304 Not Modified\r\nConnection: close\r\nCache-Control: no-store\r\n\r\n";
    write(&mut origin, once).await;
    let responses = count_with_status(&between, &mut clients, "HTTP/1.1 200").await;
    assert_eq!(responses, 1);
    between.clock.advance(Duration::from_secs(1)).await;
    assert_eq!(new_origin_connections(&mut between).len(), CLIENTS - 1);
}

/// Regression: for ten seconds each sent its own request, just when the cache is empty.
#[tokio::test]
async fn purge_during_revalidation_leaves_one_fetch() {
    let mut between = Between::start("");
    let (mut clients, mut origin) = with_stale_entry(&mut between).await;
    let purge = serde_json::from_str(r#"{"site": "www.site.test"}"#).expect("a purge");
    between.proxy.purge(&purge).expect("the purge is valid");
    let good =
        "HTTP/1.1 304 Not Modified\r\nConnection: close\r\nCache-Control: max-age=60\r\n\r\n";
    write(&mut origin, good).await;
    between.clock.advance(Duration::from_secs(1)).await;
    let mut more = new_origin_connections(&mut between);
    assert_eq!(more.len(), 1, "one request for the remaining clients");
    // The purged response may be wrong. A 304 does not change that.
    let request = head(&mut more[0]).await;
    assert!(!request.contains("if-none-match"), "{request}");
    write(&mut more[0], RESPONSE).await;
    let responses = count_with_status(&between, &mut clients, "HTTP/1.1 200").await;
    assert_eq!(responses, CLIENTS);
    assert_eq!(new_origin_connections(&mut between).len(), 0);
}

/// Regression: a request for a resource that takes too long made the whole site unavailable.
#[tokio::test]
async fn slow_resource_does_not_back_off_responsive_origin() {
    let mut between = Between::start("[upstream]\nfailures = 1\nretries = 0\n");
    let send_request = async |between: &Between, target: &str| {
        let (mut client, _) = between.client();
        let request = format!("GET {target} HTTP/1.1\r\nHost: www.site.test\r\n\r\n");
        write(&mut client, &request).await;
        client
    };
    for (responds, status) in [(true, "200"), (false, "503")] {
        let mut slow = send_request(&between, "/slow").await;
        let slow_connection = between.next_connection().await;
        between.clock.advance(Duration::from_secs(10)).await;
        if responds {
            let mut quick = send_request(&between, "/quick").await;
            let mut origin = between.next_connection().await;
            head(&mut origin).await;
            write(&mut origin, &RESPONSE.replace("max-age=60", "no-store")).await;
            between.wait(head(&mut quick)).await;
        }
        between.clock.advance(Duration::from_secs(21)).await;
        let (late, _) = between.wait(head(&mut slow)).await;
        assert!(late.starts_with("HTTP/1.1 504"), "{late}");
        let mut next = send_request(&between, "/next").await;
        between.clock.advance(Duration::from_secs(1)).await;
        for mut origin in new_origin_connections(&mut between) {
            head(&mut origin).await;
            write(&mut origin, &RESPONSE.replace("max-age=60", "no-store")).await;
        }
        let (next, _) = between.wait(head(&mut next)).await;
        assert!(next.starts_with(&format!("HTTP/1.1 {status}")), "{next}");
        drop(slow_connection);
    }
}

#[tokio::test]
async fn waiter_times_out_after_head_timeout() {
    let mut between = Between::start("[cache]\nlock_age_s = 12\n");
    let mut clients = clients(&between).await;
    let mut origin = Vec::new();
    for second in 1..=30 {
        between.clock.advance(Duration::from_secs(1)).await;
        origin.extend(new_origin_connections(&mut between));
        let expected = 1 + usize::from(second >= 12) + usize::from(second >= 24);
        assert_eq!(origin.len(), expected, "after {second} s");
    }
    between.clock.advance(Duration::from_secs(1)).await;
    let responses = count_with_status(&between, &mut clients, "HTTP/1.1 504").await;
    assert_eq!(
        responses,
        CLIENTS - 2,
        "two requests wait for their own fetch"
    );
    assert_eq!(new_origin_connections(&mut between).len(), 0);
    assert_eq!(limits(&between), [("lock_age_s", 2 + 47)]);
}

/// Has the origin take `millis` for each answer, which has these fields and the request's number as its body.
fn respond_after(between: &mut Between, millis: u64, fields: &'static str) -> Arc<AtomicUsize> {
    let (total, runtime) = (Arc::new(AtomicUsize::new(0)), between.runtime.clone());
    let count = total.clone();
    between.serve_origin(move |_: Request<Body>| {
        let number = count.fetch_add(1, Ordering::SeqCst);
        let ready = runtime.sleep_until(runtime.now() + Duration::from_millis(millis));
        async move {
            ready.await;
            let response = Response::builder().header("cache-control", fields);
            response
                .body(Body::full(number.to_string().into_bytes()))
                .expect("a response")
        }
    });
    total
}

/// A client that requests `/a` after `millis`.
async fn client_after(between: &Between, millis: u64) -> DuplexStream {
    between.clock.advance(Duration::from_millis(millis)).await;
    let (mut client, _) = between.client();
    let request = "GET /a HTTP/1.1\r\nHost: www.site.test\r\nConnection: close\r\n\r\n";
    write(&mut client, request).await;
    between.clock.advance(Duration::ZERO).await;
    client
}

/// Before, each client's request went to the origin, in virtual time too: the response was stale on arrival.
#[tokio::test]
async fn response_stale_on_arrival_is_shared_with_waiters() {
    for (fields, expected) in [
        ("max-age=1", 1),
        ("s-maxage=1", 1),
        ("max-age=60", 1),
        // Never fresh: each request needs an answer of its own (RFC 9111 §5.2.2.1, §5.2.2.4).
        ("max-age=0", 20),
        ("no-cache", 20),
        ("max-age=1, no-cache", 20),
        ("private, max-age=1", 20),
        ("no-store", 20),
    ] {
        let mut between = Between::start("");
        let requests = respond_after(&mut between, 1500, fields);
        let mut clients = Vec::new();
        for number in 0..20 {
            clients.push(client_after(&between, if number == 0 { 0 } else { 10 }).await);
        }
        for client in &mut clients {
            let response = between.wait(head(client)).await.0;
            assert!(
                response.starts_with("HTTP/1.1 200 "),
                "{fields}: {response}"
            );
        }
        assert_eq!(requests.load(Ordering::SeqCst), expected, "{fields}");
    }
}

#[tokio::test]
async fn late_request_shares_the_next_fetch() {
    let mut between = Between::start("");
    let requests = respond_after(&mut between, 1500, "max-age=1");
    let mut clients = Vec::new();
    // At 0, 0.9, 1.1 and 1.2 s; the first answer comes at 1.5 s, and was fresh until 1 s.
    for millis in [0, 900, 200, 100] {
        clients.push(client_after(&between, millis).await);
    }
    let mut bodies = Vec::new();
    for client in &mut clients {
        let response = between.read_available(client).await;
        assert!(response.starts_with("HTTP/1.1 200 "), "{response}");
        bodies.push(response.chars().next_back());
    }
    assert_eq!(bodies, [Some('0'), Some('0'), Some('1'), Some('1')]);
    assert_eq!(requests.load(Ordering::SeqCst), 2);
    // A response that is stale on arrival is not stored.
    let mut later = client_after(&between, 0).await;
    between.read_available(&mut later).await;
    assert_eq!(requests.load(Ordering::SeqCst), 3);
    let passed = between
        .proxy
        .telemetry
        .counters
        .read(CounterFamily::Uncacheable);
    assert_eq!(passed, [("never-reusable", 3)]);
}
