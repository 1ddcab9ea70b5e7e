//! Pushes and hints for pages, over sockets in memory.

use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, Request};
use spdy::body::Body;
use spdy::client::PushLimits;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_frame::priority::Priority;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::protocol::Protocol;
use spdy_page::head;
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_server::directory::{Directory, DirectoryLimits};
use spdy_server::learned_resources::LearningLimits;
use spdy_server::page_resources::PageResources;
use spdy_server::push_plan::{Budget, Hints, Sources};
use spdy_server::serve::{ServeConfig, serve_connection};
use spdy_server::site::Site;
use spdy_server::site_pusher::{PushConfig, SitePusher};

use crate::support::replica_of;

const SPDY: Protocol = Protocol::Spdy(spdy::Version::V31);

fn exchange(
    url: &str,
    kind: Kind,
    media_type: &str,
    more: &[(&str, &str)],
    body: &str,
) -> Exchange {
    let mut fields = vec![("Content-Type", media_type)];
    fields.extend_from_slice(more);
    Exchange {
        response_head: head::synthesize("HTTP/1.1 200 OK", fields),
        ..Exchange::synthetic(url.parse().unwrap(), kind, media_type, body.to_owned())
    }
}

/// A page with a style sheet, a script in it, and something of another host.
fn replica(headers: &[(&str, &str)]) -> Replica {
    let page = "<link rel=stylesheet href=/a.css><img src=/b.png><img src=http://cdn.test/far.png>";
    let mut exchanges = vec![
        exchange(
            "http://www.test/",
            Kind::Document,
            "text/html",
            headers,
            page,
        ),
        exchange(
            "http://www.test/a.css",
            Kind::Stylesheet,
            "text/css",
            &[],
            "p { background: url(c.png) }",
        ),
        exchange("http://www.test/b.png", Kind::Image, "image/png", &[], "b"),
        exchange("http://www.test/c.png", Kind::Image, "image/png", &[], "c"),
        exchange(
            "http://cdn.test/far.png",
            Kind::Image,
            "image/png",
            &[],
            "far",
        ),
        exchange(
            "http://www.test/other",
            Kind::Document,
            "text/html",
            &[],
            "another page",
        ),
    ];
    exchanges[0].initiator = Initiator::Navigation;
    replica_of(exchanges)
}

/// A server and the pushing that its sessions share.
struct Server {
    site: Arc<Site>,
    pushing: Arc<SitePusher>,
}

impl Server {
    fn of(replica: &Replica, config: PushConfig) -> Self {
        let site = Site::of_replica(replica).with_default_host("www.test");
        let pushing = SitePusher::new(config, PageResources::of_replica(replica), &site);
        Self {
            site: Arc::new(site),
            pushing: Arc::new(pushing.expect("there is something to send along")),
        }
    }

    async fn connect(&self, protocol: Protocol, pushes: bool) -> Connection {
        self.connect_from(0, protocol, pushes).await
    }

    /// The same by a client of the `network`th network.
    async fn connect_from(&self, network: u8, protocol: Protocol, pushes: bool) -> Connection {
        let runtime = SharedRuntime::new(TokioRuntime::start());
        let (near, far) = tokio::io::duplex(64 * 1024);
        let config = ServeConfig {
            protocols: vec![protocol],
            pusher: Some(self.pushing.clone()),
            from: Some(IpAddr::from([198, 51, network, 1])),
            ..ServeConfig::default()
        };
        let serving = serve_connection(Box::new(far), self.site.clone(), config, runtime.clone());
        tokio::spawn(serving);
        let mut options = ClientOptions::default();
        options.spdy.pushes = pushes.then(PushLimits::default);
        let connection = Connection::start(Box::new(near), protocol, 0, &options, &runtime);
        connection.await.unwrap()
    }
}

/// Headers of the response, and what was pushed beside it, with priorities.
async fn get(
    connection: &Connection,
    target: &str,
    headers: &[(&str, &str)],
) -> (HeaderMap, Vec<String>) {
    let mut request = Request::get(format!("http://www.test{target}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    assert!(connection.ready().await);
    let request = request.body(Body::empty()).unwrap();
    let response = connection.send(request, Priority::HIGHEST).await.unwrap();
    let (head, body) = response.into_parts();
    body.collect_up_to(1 << 20).await.unwrap();
    let mut pushed = Vec::new();
    for push in connection.take_pushes() {
        pushed.push(format!("{} {}", push.request().uri, push.priority()));
        let response = push.response().await.unwrap();
        assert_eq!(response.status(), 200);
        assert!(
            response.headers().contains_key("content-type")
                && response.headers().contains_key("date")
        );
        response.into_body().collect_up_to(1 << 20).await.unwrap();
    }
    (head.headers, pushed)
}

fn links(headers: &HeaderMap) -> Vec<&str> {
    let all = headers.get_all("link").into_iter();
    all.map(|value| value.to_str().unwrap()).collect()
}

fn by(sources: Sources, hints: Hints) -> PushConfig {
    PushConfig {
        sources,
        hints,
        ..PushConfig::default()
    }
}

const LINK: Sources = Sources {
    link: true,
    graph: false,
    learned: false,
};

#[tokio::test]
async fn link_resources_are_pushed_once_per_session() {
    let preload = "</a.css>; rel=preload; as=style, </b.png>; rel=preload; nopush, <http://cdn.test/far.png>; rel=preload, \
                   </nowhere>; rel=preload, </other>; rel=next";
    let headers = [
        ("Link", preload),
        (
            "X-Associated-Content",
            "\"/c.png\":5, \"http://cdn.test/far.png\"",
        ),
    ];
    let server = Server::of(&replica(&headers), by(LINK, Hints::Remaining));
    for version in spdy::Version::ALL {
        let connection = server.connect(Protocol::Spdy(version), true).await;
        let (head, pushed) = get(&connection, "/", &[]).await;
        // SPDY/2 has four levels.
        let (sheet, image) = if version == spdy::Version::V2 {
            (0, 4)
        } else {
            (1, 5)
        };
        let expected = [
            format!("http://www.test/a.css {sheet}"),
            format!("http://www.test/c.png {image}"),
        ];
        assert_eq!(pushed, expected, "{version}");
        assert_eq!(
            links(&head),
            [preload],
            "what the client reads of needs no hint"
        );
        assert!(!head.contains_key("x-associated-content"));
        let (_, pushed) = get(&connection, "/", &[]).await;
        assert_eq!(pushed, [""; 0], "it was sent already");
    }
    let connection = server.connect(SPDY, true).await;
    get(&connection, "/a.css", &[]).await;
    let (_, pushed) = get(&connection, "/", &[]).await;
    assert_eq!(pushed, ["http://www.test/c.png 5"], "a.css was requested");
}

#[tokio::test]
async fn a_client_without_push_gets_hints() {
    let headers = [(
        "X-Associated-Content",
        "\"/a.css\", \"/c.png\", \"http://cdn.test/far.png\", \"/nowhere\"",
    )];
    let hints = "</a.css>; rel=\"subresource preload\"; as=style, </c.png>; rel=\"subresource preload\"; as=image, \
                 <http://cdn.test/far.png>; rel=\"subresource preload\"; as=image";
    let server = Server::of(&replica(&headers), by(LINK, Hints::Remaining));
    for (protocol, pushes) in [(SPDY, false), (Protocol::Http1, false)] {
        let connection = server.connect(protocol, pushes).await;
        let (head, pushed) = get(&connection, "/", &[]).await;
        assert_eq!((links(&head), pushed), (vec![hints], vec![]), "{protocol}");
    }
    let connection = server.connect(SPDY, false).await;
    let (head, _) = get(&connection, "/", &[("x-subresource", "enabled")]).await;
    assert_eq!(links(&head), [""; 0]);
    assert_eq!(
        head["x-subresource"],
        "text/css; /a.css; image/*; /c.png; image/*; http://cdn.test/far.png"
    );
    for (hints, expected_links, expected_pushes) in [(Hints::Off, 0, 2), (Hints::Instead, 1, 0)] {
        let server = Server::of(&replica(&headers), by(LINK, hints));
        let (head, pushed) = get(&server.connect(SPDY, true).await, "/", &[]).await;
        assert_eq!(
            (links(&head).len(), pushed.len()),
            (expected_links, expected_pushes),
            "{hints:?}"
        );
    }
}

/// A page requests only a part of such a resource, and a push would send all of it.
#[tokio::test]
async fn a_resource_recorded_as_206_is_not_pushed_though_it_is_complete() {
    let mut replica = replica(&[]);
    let image = replica
        .exchanges
        .iter_mut()
        .find(|exchange| exchange.url.path() == "/b.png");
    image.expect("it has the image").response_head = head::synthesize(
        "HTTP/1.1 206 Partial Content",
        vec![
            ("Content-Type", "image/png"),
            ("Content-Range", "bytes 0-0/1"),
        ],
    );
    let graph = Sources {
        graph: true,
        ..Sources::default()
    };
    let server = Server::of(&replica, by(graph, Hints::Off));
    let connection = server.connect(SPDY, true).await;
    let (_, pushed) = get(&connection, "/", &[]).await;
    assert!(!pushed.is_empty(), "the page brings its style sheet along");
    assert!(
        !pushed.iter().any(|push| push.contains("/b.png")),
        "{pushed:?}"
    );
}

#[tokio::test]
async fn only_a_full_page_has_pushes() {
    let headers = [("Link", "</a.css>; rel=preload"), ("Etag", "\"1\"")];
    let server = Server::of(&replica(&headers), by(LINK, Hints::Remaining));
    let connection = server.connect(SPDY, true).await;
    let (_, pushed) = get(&connection, "/", &[("if-none-match", "\"1\"")]).await;
    assert_eq!(pushed, [""; 0], "304");
    let (_, pushed) = get(&connection, "/", &[("range", "bytes=0-3")]).await;
    assert_eq!(pushed, [""; 0], "206");
    let (_, pushed) = get(&connection, "/", &[]).await;
    assert_eq!(pushed.len(), 1);
}

#[tokio::test]
async fn recorded_resources_are_pushed_under_any_host_name() {
    let graph = Sources {
        graph: true,
        ..Sources::default()
    };
    let server = Server::of(&replica(&[]), by(graph, Hints::Off));
    let (_, pushed) = get(&server.connect(SPDY, true).await, "/", &[]).await;
    let expected =
        ["/a.css 1", "/b.png 4", "/c.png 4"].map(|push| format!("http://www.test{push}"));
    assert_eq!(pushed, expected);
    let connection = server.connect(SPDY, true).await;
    let request = Request::get("http://127.0.0.1:8080/")
        .body(Body::empty())
        .unwrap();
    connection.send(request, Priority::HIGHEST).await.unwrap();
    let pushes = connection.take_pushes();
    assert_eq!(pushes[0].request().uri, "http://127.0.0.1:8080/a.css");
    let (_, pushed) = get(&server.connect(SPDY, true).await, "/other", &[]).await;
    assert_eq!(pushed, [""; 0]);
}

#[tokio::test]
async fn resources_named_in_files_are_pushed() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [
        (
            "index.html",
            "<link rel=stylesheet href='a%20b.css'><script src=//cdn.test/s.js></script><img src=i.png>",
        ),
        ("a b.css", "@import 'c.css';"),
        ("c.css", "p { background: url(/i.png) }"),
        ("i.png", "png"),
    ] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let directory = Directory::read(folder.path(), &DirectoryLimits::default()).unwrap();
    let graph = Sources {
        graph: true,
        ..Sources::default()
    };
    let needs = PageResources::of_directory(&directory);
    let site = Site::of_directory(directory);
    let link = SitePusher::new(by(LINK, Hints::Remaining), PageResources::default(), &site);
    assert!(link.is_none(), "files have no headers of their own");
    let pushing = SitePusher::new(by(graph, Hints::Remaining), needs, &site);
    let server = Server {
        site: Arc::new(site),
        pushing: Arc::new(pushing.unwrap()),
    };
    for target in ["/", "/index.html?x"] {
        let (head, pushed) = get(&server.connect(SPDY, true).await, target, &[]).await;
        let expected =
            ["/a%20b.css 1", "/c.css 1", "/i.png 4"].map(|push| format!("http://www.test{push}"));
        assert_eq!(pushed, expected, "{target}");
        assert_eq!(
            links(&head),
            ["<http://cdn.test/s.js>; rel=\"subresource preload\"; as=script"]
        );
    }
}

const LEARNED: Sources = Sources {
    link: false,
    graph: false,
    learned: true,
};

/// A server that learns from two networks.
fn learning(replica: &Replica, hints: Hints) -> Server {
    let config = PushConfig {
        learning: LearningLimits {
            min_networks: 2,
            ..LearningLimits::default()
        },
        ..by(LEARNED, hints)
    };
    Server::of(replica, config)
}

#[tokio::test]
async fn learned_resources_are_pushed_to_the_next_client() {
    let server = learning(&replica(&[]), Hints::Off);
    // A second view in one session adds nothing. One view of eight gets no learned resources.
    for (view, expected) in [0, 0, 1, 1, 1, 1, 1, 0, 1].into_iter().enumerate() {
        let network = u8::try_from(view).unwrap();
        let connection = server.connect_from(network, SPDY, true).await;
        let (_, pushed) = get(&connection, "/", &[]).await;
        assert_eq!(pushed.len(), expected, "view {view}: {pushed:?}");
        get(&connection, "/", &[]).await;
        if pushed.is_empty() {
            let referer = [("referer", "http://www.test/#top")];
            get(&connection, "/a.css", &referer).await;
            get(
                &connection,
                "/c.png",
                &[("referer", "http://elsewhere.test/")],
            )
            .await;
        }
    }
}

#[tokio::test]
async fn only_resources_of_the_site_are_learned() {
    let server = learning(&replica(&[]), Hints::Remaining);
    let image = [
        ("sec-fetch-dest", "image"),
        ("sec-fetch-site", "same-origin"),
    ];
    for network in 0..6 {
        let connection = server.connect_from(network, SPDY, false).await;
        get(&connection, "/", &[]).await;
        for target in [
            "/nowhere.png",
            "/other",
            "/b.png?x=1",
            "//evil.test/x.png",
            "/x/../b.png",
        ] {
            let referer = ("referer", "http://www.test/");
            get(&connection, target, &[&image[..], &[referer]].concat()).await;
        }
    }
    let connection = server.connect_from(7, SPDY, false).await;
    assert_eq!(links(&get(&connection, "/", &[]).await.0), [""; 0]);
}

#[tokio::test]
async fn resources_requested_by_one_network_are_not_learned() {
    let server = learning(&replica(&[]), Hints::Remaining);
    for _ in 0..81 {
        let connection = server.connect_from(1, SPDY, false).await;
        get(&connection, "/", &[]).await;
        let referer = [("referer", "http://www.test/")];
        get(&connection, "/b.png", &referer).await;
    }
    let connection = server.connect_from(2, SPDY, false).await;
    assert_eq!(links(&get(&connection, "/", &[]).await.0), [""; 0]);
}

/// Otherwise `as=` and `crossorigin` of a hint would be what clients made up.
#[tokio::test]
async fn the_kind_of_a_learned_resource_is_its_content_type() {
    let server = learning(&replica(&[]), Hints::Remaining);
    for network in 0..4 {
        let connection = server.connect_from(network, SPDY, false).await;
        get(&connection, "/", &[]).await;
        let fields = [
            ("referer", "http://www.test/"),
            ("sec-fetch-dest", "script"),
            ("sec-fetch-mode", "no-cors"),
            ("sec-fetch-site", "same-origin"),
        ];
        get(&connection, "/b.png", &fields).await;
    }
    let connection = server.connect_from(9, SPDY, false).await;
    let expected = "</b.png>; rel=\"subresource preload\"; as=image";
    assert_eq!(links(&get(&connection, "/", &[]).await.0), [expected]);
}

#[tokio::test]
async fn a_query_that_a_folder_ignores_is_not_learned() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("index.html", "a page"), ("i.png", "png")] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let directory = Directory::read(folder.path(), &DirectoryLimits::default()).unwrap();
    let site = Site::of_directory(directory);
    let pushing = SitePusher::new(
        by(LEARNED, Hints::Remaining),
        PageResources::default(),
        &site,
    );
    let server = Server {
        site: Arc::new(site),
        pushing: Arc::new(pushing.unwrap()),
    };
    for network in 0..4 {
        let connection = server.connect_from(network, SPDY, false).await;
        get(&connection, "/", &[]).await;
        for target in ["/i.png", "/i.png?planted"] {
            let referer = [("referer", "http://www.test/")];
            get(&connection, target, &referer).await;
        }
    }
    let connection = server.connect_from(9, SPDY, false).await;
    let (head, _) = get(&connection, "/", &[]).await;
    let expected = "</i.png>; rel=\"subresource preload\"; as=image";
    assert_eq!(links(&head), [expected]);
}

#[tokio::test]
async fn pushes_and_hints_stop_at_the_budget() {
    let headers = [(
        "Link",
        "</b.png>; rel=preload, </a.css>; rel=preload, </c.png>; rel=preload",
    )];
    for (streams, bytes, expected) in [(1, 100, 1), (9, 2, 2), (9, 100, 3), (0, 100, 0)] {
        let config = PushConfig {
            budget: Budget {
                streams,
                bytes,
                ..Budget::default()
            },
            ..by(LINK, Hints::Remaining)
        };
        let server = Server::of(&replica(&headers), config);
        let (_, pushed) = get(&server.connect(SPDY, true).await, "/", &[]).await;
        assert_eq!(
            pushed.len(),
            expected,
            "{streams} streams, {bytes} bytes: {pushed:?}"
        );
    }
}

/// Our own client accepts no pushes over HTTP/2, so this is the h2 crate's.
#[tokio::test]
async fn http2_clients_get_pushes_or_hints_by_their_settings() {
    let headers = [("X-Associated-Content", "\"/a.css\", \"/b.png\"")];
    let server = Server::of(&replica(&headers), by(LINK, Hints::Remaining));
    for accepts_pushes in [true, false] {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let config = ServeConfig {
            protocols: vec![Protocol::Http2],
            pusher: Some(server.pushing.clone()),
            ..ServeConfig::default()
        };
        let runtime = SharedRuntime::new(TokioRuntime::start());
        let serving = serve_connection(Box::new(far), server.site.clone(), config, runtime);
        tokio::spawn(serving);
        let mut builder = h2::client::Builder::new();
        let shaken = builder
            .enable_push(accepts_pushes)
            .handshake::<_, bytes::Bytes>(near);
        let (mut sender, connection) = shaken.await.unwrap();
        tokio::spawn(connection);
        // The server reads SETTINGS before the request, so that it knows what it may.
        let request = Request::get("http://www.test/").body(()).unwrap();
        let (mut response, _) = sender.send_request(request, true).unwrap();
        let mut promises = response.push_promises();
        let page = response.await.unwrap();
        assert_eq!(
            links(page.headers()).len(),
            usize::from(!accepts_pushes),
            "takes: {accepts_pushes}"
        );
        let mut pushed = Vec::new();
        while let Some(promise) = promises.push_promise().await {
            let (request, response) = promise.unwrap().into_parts();
            let mut body = response.await.unwrap().into_body();
            let mut bytes = Vec::new();
            while let Some(data) = body.data().await {
                bytes.extend_from_slice(&data.unwrap());
            }
            pushed.push((request.uri().to_string(), bytes));
        }
        let expected = [
            (
                "http://www.test/a.css",
                &b"p { background: url(c.png) }"[..],
            ),
            ("http://www.test/b.png", b"b"),
        ];
        let expected = expected.map(|(url, body)| (url.to_owned(), body.to_vec()));
        assert_eq!(pushed, if accepts_pushes { &expected[..] } else { &[] });
    }
}
