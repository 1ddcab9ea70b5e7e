//! An accelerator that learns resources, clients that teach it, and the pushes and hints that the next client gets.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response, StatusCode, response};
use spdy::body::Body;
use spdy::client::PushLimits;
use spdy_frame::priority::Priority;
use spdy_frame::version::Version;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::interim::interim_responses::InterimResponses;
use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;
use tokio::sync::Semaphore;

use crate::support::wire::Between;

pub(crate) const SPDY: Protocol = Protocol::Spdy(Version::V31);
pub(crate) const HOME: &str = "http://www.site.test";

pub(crate) const PAGE: &str =
    "<!DOCTYPE html><link rel=stylesheet href=/a.css><script src=/b.js></script><img src=/c.png>";

/// Enough networks to outvote the visitors of a test, and not as many as bring a control view.
pub(crate) const PLANTERS: u8 = 9;

pub(crate) const DOCUMENT: [(&str, &str); 3] = [
    ("sec-fetch-dest", "document"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-site", "none"),
];

pub(crate) const IMAGE: [(&str, &str); 3] = [
    ("sec-fetch-dest", "image"),
    ("sec-fetch-mode", "no-cors"),
    ("sec-fetch-site", "same-origin"),
];

/// An answer of the origin: content type, `Cache-Control` and other fields, body.
pub(crate) fn page(
    path: &str,
    has_session: bool,
) -> (
    &'static str,
    Vec<(&'static str, &'static str)>,
    &'static str,
) {
    let cached = ("cache-control", "max-age=600");
    let tag = ("etag", "\"1\"");
    match path {
        "/" => ("text/html", vec![cached], PAGE),
        "/judged" => ("text/html", vec![("cache-control", "no-cache"), tag], PAGE),
        "/judged/public" => (
            "text/html",
            vec![("cache-control", "public, no-cache"), tag],
            PAGE,
        ),
        "/judged/lifetime" => (
            "text/html",
            vec![("cache-control", "public, max-age=0, must-revalidate"), tag],
            PAGE,
        ),
        "/with-sheet" => (
            "text/html",
            vec![cached],
            "<!DOCTYPE html><link rel=stylesheet href=/in-language.css>",
        ),
        "/account" => ("text/html", vec![("cache-control", "private")], PAGE),
        "/by-cookie" => (
            "text/html",
            vec![("cache-control", "public, max-age=600"), ("vary", "cookie")],
            match has_session {
                true => "<!DOCTYPE html><link rel=stylesheet href=/of-alice.css>",
                false => "<!DOCTYPE html>who are you?",
            },
        ),
        "/logout" => ("text/html", vec![("cache-control", "no-store")], "good bye"),
        "/stored.html" => ("text/html", vec![cached], "another page"),
        "/a.css" => (
            "text/css",
            vec![cached],
            "@font-face { font-family: F; src: url(/f.woff2?v=4.7) } p { background: url(/d.png) }",
        ),
        "/b.js" => ("text/javascript", vec![cached], "document.title = 'a'"),
        "/f.woff2" => ("font/woff2", vec![cached], "a font"),
        "/private.png" => ("image/png", vec![("cache-control", "private")], "one's own"),
        _ => ("image/png", vec![cached], "a picture"),
    }
}

/// A page and a sheet whose text has the `Accept-Language` of the request in a URL.
pub(crate) fn in_language(request: &Request<Body>) -> Option<Response<Body>> {
    let language = request.headers().get("accept-language");
    let language = language.map_or("en", |value| value.to_str().expect("ASCII"));
    let (kind, text) = match request.uri().path() {
        "/in-language" => (
            "text/html",
            format!("<!DOCTYPE html><link rel=stylesheet href=\"/i18n/{language}.css\">"),
        ),
        "/in-language.css" => (
            "text/css",
            format!("p {{ background: url(\"/i18n/{language}.png\") }}"),
        ),
        _ => return None,
    };
    let response = Response::builder()
        .header("content-type", kind)
        .header("cache-control", "max-age=600")
        .header("vary", "accept-language");
    Some(
        response
            .body(Body::from(text.into_bytes()))
            .expect("a response"),
    )
}

pub(crate) async fn origin(request: Request<Body>, gate: Arc<Semaphore>) -> Response<Body> {
    if let Some(response) = in_language(&request) {
        return response;
    }
    if request.headers().contains_key("x-refused") {
        let response = Response::builder().status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE);
        return response.body(Body::empty()).expect("a response");
    }
    let has_session = request.headers().contains_key("cookie");
    let (kind, fields, body) = page(request.uri().path(), has_session);
    let mut response = Response::builder().header("content-type", kind);
    for (name, value) in fields {
        response = response.header(name, value);
    }
    if request.headers().contains_key("if-none-match") {
        gate.acquire()
            .await
            .expect("the semaphore is never closed")
            .forget();
        response = response.status(StatusCode::NOT_MODIFIED);
        return response.body(Body::empty()).expect("a response");
    }
    let body = Body::full(Bytes::from_static(body.as_bytes()));
    response.body(body).expect("a response")
}

/// An accelerator before the origin, and how many visitors it had.
pub(crate) struct Stage {
    pub(crate) between: Between,
    pub(crate) visitors: u8,
}

impl Stage {
    pub(crate) fn start() -> Self {
        Self::behind(Arc::new(Semaphore::new(1000)))
    }

    /// A request that validates a page waits for `gate`.
    pub(crate) fn behind(gate: Arc<Semaphore>) -> Self {
        let mut between = Between::start("---[site.rewrite]\n");
        between.serve_origin(move |request| origin(request, gate.clone()));
        Self {
            between,
            visitors: 0,
        }
    }

    pub(crate) async fn connect(
        &self,
        from: IpAddr,
        protocol: Protocol,
        accepts_pushes: bool,
    ) -> Connection {
        let server = ServerOptions::default();
        let (io, _) = self.between.client_at(from, protocol, server);
        let mut options = ClientOptions::default();
        options.spdy.pushes = accepts_pushes.then(PushLimits::default);
        let io: BoxIo = Box::new(io);
        let runtime = &self.between.runtime;
        let connection = Connection::start(io, protocol, 0, &options, runtime).await;
        connection.expect("a connection")
    }

    pub(crate) async fn get(
        &self,
        client: &Connection,
        target: &str,
        fields: &[(&'static str, &'static str)],
    ) -> response::Parts {
        let request = request(target, fields);
        let response = async {
            let response = client.send(request, Priority::new(1)).await;
            let (head, body) = response.expect("a response").into_parts();
            body.collect_up_to(1 << 20)
                .await
                .expect("the body is complete");
            head
        };
        let head = self.between.wait(response).await.0;
        // A response is stored shortly after its reader has it.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        head
    }

    /// Clients at these addresses view `page`, and request `targets` in its name, each client on a connection of its own.
    pub(crate) async fn plant(
        &self,
        from: impl IntoIterator<Item = IpAddr>,
        page: &str,
        targets: &[&str],
        fields: &[(&'static str, &'static str)],
    ) {
        for address in from {
            let client = self.connect(address, SPDY, false).await;
            self.get(&client, page, &[("accept", "text/html")]).await;
            let referer = format!("{HOME}{page}").leak();
            let fields = [fields, &[("referer", &*referer)]].concat();
            for target in targets {
                self.get(&client, target, &fields).await;
            }
        }
    }

    /// The pushes and hints that visitors without cookies get for `target`: over SPDY with and without pushes, and over HTTP/2.
    /// URLs in order.
    pub(crate) async fn offered(&mut self, target: &str) -> Vec<String> {
        self.offered_to(target, &[]).await
    }

    /// The same for visitors that send these fields.
    pub(crate) async fn offered_to(
        &mut self,
        target: &str,
        fields: &[(&'static str, &'static str)],
    ) -> Vec<String> {
        let fields = [&DOCUMENT[..], fields].concat();
        let mut offered = Vec::new();
        for (protocol, accepts_pushes) in [(SPDY, true), (SPDY, false), (Protocol::Http2, false)] {
            self.visitors += 1;
            let from = IpAddr::from([203, 0, self.visitors, 1]);
            let client = self.connect(from, protocol, accepts_pushes).await;
            let (heads, mut interim) = InterimResponses::channel();
            let mut request = request(target, &fields);
            request
                .headers_mut()
                .insert("accept", HeaderValue::from_static("text/html"));
            request.extensions_mut().insert(heads);
            let response = self
                .between
                .wait(client.send(request, Priority::HIGHEST))
                .await
                .0;
            let (head, body) = response.expect("a response").into_parts();
            body.collect_up_to(1 << 20)
                .await
                .expect("the body is complete");
            offered.extend(links(&head.headers));
            while let Ok(early) = interim.try_recv() {
                offered.extend(links(&early.headers));
            }
            let pushes = client.take_pushes();
            offered.extend(pushes.iter().map(|push| push.request().uri.to_string()));
        }
        offered.sort();
        offered.dedup();
        offered
    }
}

pub(crate) fn request(target: &str, fields: &[(&'static str, &'static str)]) -> Request<Body> {
    let mut request = Request::new(Body::empty());
    let url = match target.starts_with('/') {
        true => format!("{HOME}{target}"),
        false => target.to_owned(),
    };
    *request.uri_mut() = url.parse().expect("a URL");
    for &(name, value) in fields {
        let name = HeaderName::from_static(name);
        request
            .headers_mut()
            .insert(name, HeaderValue::from_static(value));
    }
    request
}

pub(crate) fn links(headers: &http::HeaderMap) -> Vec<String> {
    let links = headers.get_all("link").iter();
    let url = |link: &HeaderValue| {
        let link = link.to_str().expect("ASCII");
        link.split(['<', '>']).nth(1).unwrap_or_default().to_owned()
    };
    links.map(url).collect()
}

/// One client in each of so many networks.
pub(crate) fn networks(count: u8) -> impl Iterator<Item = IpAddr> {
    (0..count).map(|n| IpAddr::from([198, 51, n, 1]))
}

/// The resources that the page names and cannot be drawn without.
pub(crate) const NAMED: [&str; 4] = [
    "/a.css",
    "/b.js",
    "http://www.site.test/a.css",
    "http://www.site.test/b.js",
];

pub(crate) const STRANGE: (&str, &str) = ("accept-language", "../logout?confirm=1#");
