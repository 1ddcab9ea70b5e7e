//! A site of four hosts on its own sockets that records each byte that it sends.
//!
//! ```text
//! a.test  http   127.0.0.1     the page: unusual gzip, chunks with extensions, a trailer, cookies, a POST, a truncated body
//! b.test  https  127.0.0.2     a style sheet with Brotli
//! c.test  http   127.0.0.3     the script; one response that is a 304 the second time, one that ends with the connection
//! d.test  https  127.0.0.4     a redirect with a body, a range
//! ```

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use spdy_net::protocol::Protocol;
use spdy_net::tls::certificates::Identity;
use spdy_net::tls::{ServerTls, TlsOptions};
use spdy_page::coding;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::support::certificate::CERTIFICATE;

/// One exchange, as the origin sent and received it.
#[derive(Clone, Debug)]
pub(crate) struct SentExchange {
    pub(crate) url: String,
    pub(crate) method: String,
    pub(crate) request_head: Vec<u8>,
    pub(crate) request_body: Vec<u8>,
    /// Status line to blank line.
    pub(crate) head: Vec<u8>,
    /// With its content coding, decoded from chunks.
    pub(crate) body: Vec<u8>,
}

/// A response of the origin.
struct Reply {
    head: String,
    body: Vec<u8>,
    /// The body with its framing.
    framed: Vec<u8>,
    /// Whether the connection is closed after it.
    closes: bool,
}

impl Reply {
    fn of(head: &str, body: &[u8]) -> Self {
        let head = format!("{head}Content-Length: {}\r\n\r\n", body.len());
        Self::framed(head, body, body.to_vec())
    }

    fn framed(head: String, body: &[u8], framed: Vec<u8>) -> Self {
        Self {
            head,
            body: body.to_vec(),
            framed,
            closes: false,
        }
    }
}

/// The running site. It stops when dropped.
pub(crate) struct RawOrigin {
    hosts: Hosts,
    exchanges: Arc<Mutex<Vec<SentExchange>>>,
    _runtime: Runtime,
}

/// Name, whether TLS is used, and address of each host.
#[derive(Clone, Debug)]
struct Hosts(Vec<(&'static str, bool, SocketAddr)>);

impl Hosts {
    fn origin(&self, name: &str) -> String {
        let host = self.0.iter().find(|(host_name, ..)| *host_name == name);
        let (_, secure, address) = host.expect("a known host");
        let scheme = if *secure { "https" } else { "http" };
        format!("{scheme}://{name}:{}", address.port())
    }
}

impl RawOrigin {
    pub(crate) fn start() -> Self {
        let runtime = Runtime::new().expect("create a runtime");
        let _within = runtime.enter();
        let names = [
            ("a.test", false),
            ("b.test", true),
            ("c.test", false),
            ("d.test", true),
        ];
        let mut hosts = Vec::new();
        let mut listeners = Vec::new();
        for (last, (name, secure)) in (1..).zip(names) {
            let listener = std::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, last], 0)))
                .expect("a free port on loopback");
            listener.set_nonblocking(true).expect("create a socket");
            let address = listener.local_addr().expect("a bound socket");
            hosts.push((name, secure, address));
            listeners.push(TcpListener::from_std(listener).expect("inside a runtime"));
        }
        let (hosts, exchanges) = (Hosts(hosts), Arc::new(Mutex::new(Vec::new())));
        let identity = Identity::from_files(&CERTIFICATE.chain, &CERTIFICATE.key)
            .expect("read the certificate");
        let tls = ServerTls::new(&identity, &[Protocol::Http1], &TlsOptions::default())
            .expect("a TLS configuration");
        for (listener, (name, secure)) in listeners.into_iter().zip(names) {
            let (hosts, exchanges, tls) = (hosts.clone(), Arc::clone(&exchanges), tls.clone());
            runtime.spawn(async move {
                while let Ok((socket, _)) = listener.accept().await {
                    let (hosts, exchanges, tls) =
                        (hosts.clone(), Arc::clone(&exchanges), tls.clone());
                    tokio::spawn(async move {
                        match secure {
                            false => serve_connection(socket, name, &hosts, &exchanges).await,
                            true => {
                                // A client that does not trust the certificate ends the handshake.
                                if let Ok((socket, _)) = tls.accept(Box::new(socket)).await {
                                    serve_connection(socket, name, &hosts, &exchanges).await;
                                }
                            }
                        }
                    });
                }
            });
        }
        Self {
            hosts,
            exchanges,
            _runtime: runtime,
        }
    }

    /// The URL of the page.
    pub(crate) fn url(&self) -> String {
        format!("{}/", self.hosts.origin("a.test"))
    }

    /// `HOST:PORT:ADDRESS` of each host.
    pub(crate) fn resolve(&self) -> Vec<String> {
        let of = |(name, _, address): &(&str, bool, SocketAddr)| {
            format!("{name}:{}:{}", address.port(), address.ip())
        };
        self.hosts.0.iter().map(of).collect()
    }

    /// All exchanges so far, by URL, and in order for each URL.
    pub(crate) fn exchanges(&self) -> Vec<SentExchange> {
        let mut exchanges = self.exchanges.lock().expect("no thread panicked").clone();
        exchanges
            .sort_by(|left, right| (&left.url, &left.method).cmp(&(&right.url, &right.method)));
        exchanges
    }
}

/// Responds to requests until the client closes the connection.
async fn serve_connection(
    mut socket: impl AsyncRead + AsyncWrite + Unpin,
    host: &'static str,
    hosts: &Hosts,
    exchanges: &Mutex<Vec<SentExchange>>,
) {
    let mut buffer = Vec::new();
    loop {
        let head_len = loop {
            if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if !matches!(socket.read_buf(&mut buffer).await, Ok(1..)) {
                return;
            }
        };
        let request_head: Vec<u8> = buffer.drain(..head_len).collect();
        let text = String::from_utf8_lossy(&request_head).to_ascii_lowercase();
        let length = text.split("content-length: ").nth(1);
        let length = length
            .and_then(|rest| rest.lines().next()?.parse().ok())
            .unwrap_or(0);
        while buffer.len() < length {
            if !matches!(socket.read_buf(&mut buffer).await, Ok(1..)) {
                return;
            }
        }
        let request_body: Vec<u8> = buffer.drain(..length).collect();
        let line = String::from_utf8_lossy(&request_head);
        let mut words = line.split(' ');
        let (method, target) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        let reply = reply(host, method, target, &text, hosts);
        // Recorded before the client can see the response.
        exchanges
            .lock()
            .expect("no thread panicked")
            .push(SentExchange {
                url: format!("{}{target}", hosts.origin(host)),
                method: method.to_owned(),
                request_head: request_head.clone(),
                request_body,
                head: reply.head.clone().into_bytes(),
                body: reply.body,
            });
        let wire = [reply.head.as_bytes(), &reply.framed].concat();
        if socket.write_all(&wire).await.is_err() || reply.closes {
            let _ = socket.shutdown().await;
            return;
        }
    }
}

const SHEET: &str =
    "p { color: teal } /* a sheet that is worth a coding, a sheet that is worth a coding */";
const BIG: &[u8] = b"0123456789";
const PIXEL: &[u8] = b"\x89PNG\r\n\x1a\n no picture, but a body";

fn reply(host: &str, method: &str, target: &str, request: &str, hosts: &Hosts) -> Reply {
    let [a, b, c, d] = ["a.test", "b.test", "c.test", "d.test"].map(|name| hosts.origin(name));
    let open = "Access-Control-Allow-Origin: *\r\n";
    match (host, method, target) {
        ("a.test", "GET", "/") => {
            let page = format!(
                "<!doctype html><title>four hosts</title><link rel=stylesheet href={b}/style.css>\
                 <script src={c}/script.js></script><img src={d}/logo.png><img src=/gone.png>\
                 <img src=http://127.0.0.1:1/refused.png><p>hello</p>"
            );
            let body = odd_gzip(page.as_bytes());
            let head = "HTTP/1.1 200 Fine, thanks\r\ncontent-TYPE:   text/html; charset=utf-8  \r\n\
                 Set-Cookie: a=1\r\nset-cookie: b=2; Path=/\r\nX-Dup: 1\r\nx-dup:2\r\nX-Empty:\r\n\
                 X-Folded: one\r\n  two\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n";
            Reply::framed(head.to_owned(), &body, odd_chunks(&body))
        }
        ("b.test", "GET", "/style.css") => {
            let body = coding::encode(SHEET.as_bytes(), "br", None).expect("br is supported");
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/css\r\nContent-Encoding: br\r\n\
                 {open}"
            );
            Reply::of(&head, &body)
        }
        ("c.test", "GET", "/script.js") => {
            let script = format!(
                "fetch('{c}/again').then(r => r.text()).then(() => fetch('{c}/again', {{cache: 'no-cache'}}));\
                 fetch('{a}/post?x=1', {{method: 'POST', body: 'a body\\n'}}).then(r => r.text());\
                 fetch('{d}/big', {{headers: {{Range: 'bytes=2-5'}}}}).then(r => r.text());\
                 fetch('{c}/to-the-end').then(r => r.text());\
                 fetch('{c}/nothing').then(r => r.text());\
                 fetch('{a}/cut').then(r => r.text()).catch(() => 0);"
            );
            Reply::of(
                "HTTP/1.1 200 OK\r\nContent-Type: text/javascript\r\n",
                script.as_bytes(),
            )
        }
        ("d.test", "GET", "/logo.png") => {
            let head = format!("HTTP/1.1 302 Over There\r\nLocation: {c}/real.png\r\n");
            Reply::of(&head, b"an ignored body")
        }
        ("c.test", "GET", "/real.png") => Reply::of(
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Type: image/png\r\n",
            PIXEL,
        ),
        ("a.test", "POST", "/post?x=1") => {
            let head = format!("HTTP/1.1 201 Created\r\n{open}Content-Type: text/plain\r\n");
            Reply::of(&head, b"thank you")
        }
        ("d.test", "GET", "/big") if request.contains("range: bytes=2-5") => {
            let head = format!(
                "HTTP/1.1 206 Partial Content\r\n{open}Content-Range: bytes 2-5/10\r\nContent-Type: text/plain\r\n"
            );
            Reply::of(&head, &BIG[2..=5])
        }
        ("c.test", "GET", "/again") if request.contains("if-none-match: \"again\"") => {
            let head =
                format!("HTTP/1.1 304 Still The Same\r\nETag: \"again\"\r\n{open}X-New: 1\r\n\r\n");
            Reply::framed(head, b"", Vec::new())
        }
        ("c.test", "GET", "/again") => Reply::of(
            &format!(
                "HTTP/1.1 200 OK\r\nETag: \"again\"\r\nCache-Control: no-cache\r\n{open}Content-Type: text/plain\r\n"
            ),
            b"a revalidated body",
        ),
        ("c.test", "GET", "/to-the-end") => Reply {
            closes: true,
            ..Reply::framed(
                format!(
                    "HTTP/1.1 200 OK\r\n{open}Connection: close\r\nContent-Type: text/plain\r\n\r\n"
                ),
                b"until the connection ends",
                b"until the connection ends".to_vec(),
            )
        },
        ("c.test", "GET", "/nothing") => Reply::framed(
            format!("HTTP/1.1 204 No Content\r\n{open}\r\n"),
            b"",
            Vec::new(),
        ),
        ("a.test", "GET", "/cut") => Reply {
            closes: true,
            ..Reply::framed(
                format!("HTTP/1.1 200 OK\r\n{open}Content-Length: 100\r\n\r\n"),
                b"a truncated body",
                b"a truncated body".to_vec(),
            )
        },
        _ => Reply::of(
            "HTTP/1.1 404 Not Here\r\nContent-Type: text/plain\r\n",
            b"no",
        ),
    }
}

/// gzip with unusual header fields: an extra field, name, comment, time, and an unknown operating system.
fn odd_gzip(text: &[u8]) -> Vec<u8> {
    let plain = coding::encode(text, "gzip", None).expect("gzip is supported");
    // The usual header has ten bytes; FEXTRA, FNAME and FCOMMENT announce what follows it.
    let header = b"\x1f\x8b\x08\x1c\x01\x02\x03\x04\x00\xfe\x04\x00spdypage.html\0odd on purpose\0";
    [&header[..], &plain[10..]].concat()
}

/// Chunks of odd sizes with extensions, and a trailer.
fn odd_chunks(body: &[u8]) -> Vec<u8> {
    let (first, rest) = body.split_at(5);
    let head = format!("{:X};last=\"yes; no\"\r\n", rest.len());
    let end = b"\r\n000;end\r\nX-Trailer: checked\r\nx-trailer: twice\r\n\r\n";
    [
        b"5;ext=1\r\n",
        first,
        b"\r\n",
        head.as_bytes(),
        rest,
        &end[..],
    ]
    .concat()
}
