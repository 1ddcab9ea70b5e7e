//! Early hints (103) of an origin reach the client, rewritten as in the response. In virtual time.

use std::time::Duration;

use http::{HeaderName, HeaderValue};
use spdy_frame::priority::Priority;
use spdy_net::interim::interim_responses::InterimResponses;
use spdy_net::protocol::Protocol;

use crate::support::stage::{DOCUMENT, links, request};
use crate::support::wire::{Between, head, write};

const RULES: &str =
    "---[site.rewrite]\n[[site.rewrite.hosts]]\nhost = 'cdn.test'\nkinds = ['style']\n";
const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </own.css>; rel=preload; as=style\r\n\
    Link: <https://cdn.test/a.css>; rel=preload; as=style\r\nX-Secret: 1\r\n\r\n";
const RESPONSE: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nCache-Control: no-store\r\n\
    Link: <https://cdn.test/a.css>; rel=preload; as=style\r\nContent-Length: 4\r\n\r\npage";

/// The interim responses that a client gets, as their links, and the links of the response. The origin sends `hints` before it.
async fn received(
    protocol: Protocol,
    hints: &str,
    navigates: bool,
) -> (Vec<Vec<String>>, Vec<String>) {
    let mut between = Between::start(RULES);
    load(&mut between, protocol, hints, navigates, RESPONSE).await
}

/// The same of a client that loads the page from a new connection of the origin, which sends `hints` and `response`.
async fn load(
    between: &mut Between,
    protocol: Protocol,
    hints: &str,
    navigates: bool,
    response: &str,
) -> (Vec<Vec<String>>, Vec<String>) {
    let client = between.connection(protocol).await;
    let fields = if navigates { &DOCUMENT[..] } else { &[] };
    let mut request = request("/page", fields);
    let name = HeaderName::from_static("accept");
    request
        .headers_mut()
        .insert(name, HeaderValue::from_static("text/html"));
    let (listens, mut heads) = InterimResponses::channel();
    request.extensions_mut().insert(listens);
    let sent = tokio::spawn(client.send(request, Priority::HIGHEST));
    let mut origin = between.next_connection().await;
    while !head(&mut origin).await.starts_with("GET /page ") {
        origin = between.next_connection().await; // the other was for a prefetch
    }
    write(&mut origin, hints).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    write(&mut origin, response).await;
    let received = between.wait(sent).await.0.expect("no panic");
    let received = received.expect("a response");
    let mut early = Vec::new();
    while let Ok(head) = heads.try_recv() {
        assert_eq!(head.status, 103);
        assert!(!head.headers.contains_key("x-secret"));
        early.push(links(&head.headers));
    }
    let of_response = links(received.headers());
    let body = received.into_body().collect_up_to(1000);
    between.wait(body).await.0.expect("the body is complete");
    (early, of_response)
}

#[tokio::test]
async fn hints_of_the_origin_are_passed_with_the_urls_of_the_response() {
    let (early, of_response) = received(Protocol::Http2, HINTS, true).await;
    let rewritten = &of_response[0];
    assert!(rewritten.contains("/.spdy/"), "{rewritten}");
    assert_eq!(early, [vec!["/own.css".to_owned(), rewritten.clone()]]);
}

#[tokio::test]
async fn a_link_is_hinted_once() {
    let (early, _) = received(Protocol::Http2, &[HINTS, HINTS].concat(), true).await;
    assert_eq!(early.len(), 1, "{early:?}");
}

/// The proxy hints what a stale page names, and then the origin hints the same and more.
#[tokio::test]
async fn a_link_that_the_proxy_hinted_is_not_hinted_again() {
    let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nCache-Control: max-age=1\r\nConnection: close\r\n\
        Content-Length: 37\r\n\r\n<link rel=stylesheet href='/own.css'>";
    let mut between = Between::start(RULES);
    let (early, _) = load(&mut between, Protocol::Http2, "", true, page).await;
    assert!(early.is_empty(), "{early:?}");
    between.clock.advance(Duration::from_secs(5)).await;
    let (early, _) = load(&mut between, Protocol::Http2, HINTS, true, page).await;
    let [by_proxy, by_origin] = &early[..] else {
        panic!("expected two: {early:?}");
    };
    assert_eq!(by_proxy, &["/own.css"]);
    assert!(
        by_origin.len() == 1 && by_origin[0].contains("/.spdy/"),
        "{by_origin:?}"
    );
}

#[tokio::test]
async fn at_most_eight_hints_are_passed() {
    let hints: String = (0..9)
        .map(|n| {
            format!("HTTP/1.1 103 Early Hints\r\nLink: </{n}.css>; rel=preload; as=style\r\n\r\n")
        })
        .collect();
    let (early, of_response) = received(Protocol::Http2, &hints, true).await;
    assert_eq!(early.len(), 8, "{early:?}");
    assert_eq!(of_response.len(), 1);
}

#[tokio::test]
async fn links_of_all_hints_of_a_response_are_limited() {
    let hints: String = (0..8)
        .map(|head| {
            let links = (0..20)
                .map(|link| format!("Link: </{head}-{link}.css>; rel=preload; as=style\r\n"));
            let links: String = links.collect();
            format!("HTTP/1.1 103 Early Hints\r\n{links}\r\n")
        })
        .collect();
    let (early, _) = received(Protocol::Http2, &hints, true).await;
    assert_eq!(early.iter().map(Vec::len).sum::<usize>(), 64, "{early:?}");
}

#[tokio::test]
async fn a_rule_that_removes_links_removes_them_from_hints() {
    let rule = "---[[site.paths]]\npath = '/'\nresponse_headers = { Link = '' }\n";
    let mut between = Between::start(rule);
    let (early, of_response) = load(&mut between, Protocol::Http2, HINTS, true, RESPONSE).await;
    assert!(early.is_empty(), "{early:?}");
    assert!(of_response.is_empty(), "{of_response:?}");
}

/// Some browsers fail on a 103, and those that support it state a navigation.
#[tokio::test]
async fn clients_that_may_not_support_hints_get_none() {
    for (protocol, navigates) in [(Protocol::Http2, false), (Protocol::Http1, true)] {
        let (early, of_response) = received(protocol, HINTS, navigates).await;
        assert!(early.is_empty(), "{protocol} {early:?}");
        assert_eq!(of_response.len(), 1);
    }
}
