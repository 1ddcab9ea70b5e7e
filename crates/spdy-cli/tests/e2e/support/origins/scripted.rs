//! Origins on addresses of their own. They send the exact bytes that a test sets, and record the requests.
//!
//! ```text
//! name, scheme ──▶ 127.0.0.N, a free port ──▶ head of a request ──▶ the test's closure ──▶ steps: bytes, silence, a reset
//! ```

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;
use spdy_net::tls::certificates::{Identity, KeyKind, LocalCa};
use spdy_net::tls::pins::Pin;
use spdy_net::tls::{ServerTls, TlsOptions};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// Additional names in the site's certificate: all names of an alias zone, and another name in the site's own domain.
const NAMES: [&str; 2] = ["*.x.names-e.test", "img.site.test"];

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct OriginRequest {
    pub(crate) host: &'static str,
    pub(crate) target: String,
    /// Request line to blank line, in lower case.
    pub(crate) head: String,
}

/// One step of a response.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Send(Vec<u8>),
    /// Sends the bytes again and again, until the client closes the connection.
    Forever(Vec<u8>),
    /// Sends nothing more, until the client closes the connection.
    Stall,
    /// Resets the connection; with TLS it is only closed.
    Reset,
    /// Closes the connection.
    Close,
}

/// A complete response. Each field in `head` ends with CRLF; Content-Length is added.
pub(crate) fn complete_response(head: &str, body: &[u8]) -> Vec<Step> {
    let head = format!("HTTP/1.1 {head}Content-Length: {}\r\n\r\n", body.len());
    vec![Step::Send([head.as_bytes(), body].concat())]
}

/// The addresses of the origins.
#[derive(Clone, Debug)]
pub(crate) struct OriginAddresses(Vec<(&'static str, &'static str, SocketAddr)>);

impl OriginAddresses {
    /// `https://name:port`.
    pub(crate) fn origin(&self, name: &str) -> String {
        let (name, scheme, address) = self.find(name);
        format!("{scheme}://{name}:{}", address.port())
    }

    /// The address of `name`.
    pub(crate) fn address(&self, name: &str) -> SocketAddr {
        self.find(name).2
    }

    fn find(&self, name: &str) -> (&'static str, &'static str, SocketAddr) {
        let origin = self.0.iter().find(|(host, ..)| *host == name);
        *origin.unwrap_or_else(|| panic!("no origin {name}"))
    }

    /// Name and address of each origin.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, SocketAddr)> {
        self.0.iter().map(|(name, _, address)| (*name, *address))
    }
}

/// A CA, and the certificates that it signed.
pub(crate) struct TestCertificates {
    folder: tempfile::TempDir,
    identity: Identity,
    /// Hashes of the keys of the accelerator and of the origins, in the form of Chromium's option.
    pub(crate) pins: String,
}

impl TestCertificates {
    fn new(site: &[&str], names: &[&str]) -> Self {
        let authority = LocalCa::generate(KeyKind::EcdsaP256).expect("create a CA");
        let issue = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
            authority.issue(&names, &[]).expect("create a certificate")
        };
        let (site_identity, identity) = (issue(site), issue(names));
        let pin = |identity: &Identity| {
            let pem = identity.chain_pem();
            let chain =
                spdy_net::tls::certificates::certificates_from_pem(pem.as_bytes(), "a test's");
            let pin = Pin::of(&chain.expect("valid PEM")[0]).expect("valid certificate");
            pin.to_string().trim_start_matches("sha256//").to_owned()
        };
        let pins = format!("{},{}", pin(&site_identity), pin(&identity));
        let folder = tempfile::tempdir().expect("create a folder");
        for (name, text) in [
            ("authority.pem", authority.pem().to_owned()),
            ("chain.pem", site_identity.chain_pem()),
            ("key.pem", site_identity.key_pem()),
        ] {
            std::fs::write(folder.path().join(name), text).expect("write the file");
        }
        Self {
            folder,
            identity,
            pins,
        }
    }

    /// `authority.pem`, `chain.pem` or `key.pem`; the last two are the site's.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// The running origins. They stop when dropped.
pub(crate) struct Origins {
    pub(crate) addresses: OriginAddresses,
    pub(crate) certificates: TestCertificates,
    /// Names of the site in addition to that of its origin.
    pub(crate) second_names: Vec<&'static str>,
    requests: Arc<Mutex<Vec<OriginRequest>>>,
    connections: Arc<Mutex<Vec<&'static str>>>,
    _runtime: Runtime,
}

impl Origins {
    /// `hosts` are names and schemes; the first is the site's. `respond` returns the response to each request.
    pub(crate) fn start(
        hosts: &[(&'static str, &'static str)],
        respond: impl Fn(&OriginRequest, &OriginAddresses) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        Self::start_as(hosts, &[], respond)
    }

    /// Like [`start`](Self::start), for a site that also has `second_names`: they are in the certificates, and its origin serves
    /// them.
    pub(crate) fn start_as(
        hosts: &[(&'static str, &'static str)],
        second_names: &[&'static str],
        respond: impl Fn(&OriginRequest, &OriginAddresses) -> Vec<Step> + Send + Sync + 'static,
    ) -> Self {
        let runtime = Runtime::new().expect("create a runtime");
        let _within = runtime.enter();
        let mut addresses = Vec::new();
        let mut listeners = Vec::new();
        for (last, &(name, scheme)) in (1..).zip(hosts) {
            let listener = std::net::TcpListener::bind(SocketAddr::from(([127, 0, 0, last], 0)))
                .expect("a free port on loopback");
            listener.set_nonblocking(true).expect("create a socket");
            addresses.push((name, scheme, listener.local_addr().expect("a bound socket")));
            listeners.push(TcpListener::from_std(listener).expect("inside a runtime"));
        }
        let addresses = OriginAddresses(addresses);
        let names: Vec<_> = hosts.iter().map(|(name, _)| *name).collect();
        let site_names = [&names[..1], second_names, &NAMES].concat();
        let certificates = TestCertificates::new(&site_names, &[&names, second_names].concat());
        let tls = ServerTls::new(
            &certificates.identity,
            &[Protocol::Http1],
            &TlsOptions::default(),
        );
        let tls = tls.expect("a TLS configuration");
        let server = OriginServer {
            respond: Arc::new(respond),
            addresses: addresses.clone(),
            requests: Arc::default(),
        };
        let requests = server.requests.clone();
        let connections = Arc::<Mutex<Vec<_>>>::default();
        for (listener, &(host, scheme)) in listeners.into_iter().zip(hosts) {
            let (server, tls, connections) = (server.clone(), tls.clone(), connections.clone());
            runtime.spawn(async move {
                while let Ok((socket, _)) = listener.accept().await {
                    connections.lock().expect("no thread panicked").push(host);
                    let (server, tls) = (server.clone(), tls.clone());
                    tokio::spawn(async move {
                        if scheme == "http" {
                            return server.serve(host, socket).await;
                        }
                        // A client that does not trust the certificate ends the handshake.
                        if let Ok((socket, _)) = tls.accept(Box::new(socket)).await {
                            server.serve(host, socket).await;
                        }
                    });
                }
            });
        }
        Self {
            addresses,
            certificates,
            second_names: second_names.to_vec(),
            requests,
            connections,
            _runtime: runtime,
        }
    }

    /// The requests to all origins so far.
    pub(crate) fn requests(&self) -> Vec<OriginRequest> {
        self.requests.lock().expect("no thread panicked").clone()
    }

    /// Connections that were opened to `host` so far.
    pub(crate) fn connections(&self, host: &str) -> usize {
        let connections = self.connections.lock().expect("no thread panicked");
        connections.iter().filter(|name| **name == host).count()
    }
}

type Respond = dyn Fn(&OriginRequest, &OriginAddresses) -> Vec<Step> + Send + Sync;

#[derive(Clone)]
struct OriginServer {
    respond: Arc<Respond>,
    addresses: OriginAddresses,
    requests: Arc<Mutex<Vec<OriginRequest>>>,
}

/// A connection that can be reset.
trait Socket: AsyncRead + AsyncWrite + Unpin {
    fn reset(self);
}

impl Socket for TcpStream {
    fn reset(self) {
        let _ = self.set_zero_linger();
    }
}

impl Socket for BoxIo {
    fn reset(self) {}
}

impl OriginServer {
    /// Reads and discards the body of a request; `false` if it is incomplete.
    async fn discard_body(
        &self,
        socket: &mut impl Socket,
        buffer: &mut Vec<u8>,
        head: &str,
    ) -> bool {
        let head = head.to_ascii_lowercase();
        let length = head.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
        let is_chunked = head.contains("transfer-encoding: chunked");
        loop {
            let len = match length {
                _ if is_chunked => buffer.windows(5).position(|five| five == b"0\r\n\r\n"),
                Some(len) => (buffer.len() >= len).then_some(len),
                None => Some(0),
            };
            if let Some(len) = len {
                buffer.drain(..len + if is_chunked { 5 } else { 0 });
                return true;
            }
            if !matches!(socket.read_buf(buffer).await, Ok(1..)) {
                return false;
            }
        }
    }

    /// Responds to requests until the client closes the connection or a step does.
    async fn serve(&self, host: &'static str, mut socket: impl Socket) {
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
            let head: Vec<u8> = buffer.drain(..head_len).collect();
            let head = String::from_utf8_lossy(&head).into_owned();
            if !self.discard_body(&mut socket, &mut buffer, &head).await {
                return;
            }
            let target = head.split(' ').nth(1);
            let request = OriginRequest {
                host,
                target: target.unwrap_or_default().to_owned(),
                head: head.to_ascii_lowercase(),
            };
            // Recorded before the client can see the response.
            self.requests
                .lock()
                .expect("no thread panicked")
                .push(request.clone());
            for step in (self.respond)(&request, &self.addresses) {
                match step {
                    Step::Send(bytes) => {
                        if socket.write_all(&bytes).await.is_err() || socket.flush().await.is_err()
                        {
                            return;
                        }
                    }
                    Step::Forever(bytes) => while socket.write_all(&bytes).await.is_ok() {},
                    Step::Stall => {
                        // Waits for the client to close the connection. The timeout only prevents that a test hangs.
                        let mut rest = Vec::new();
                        let closed = socket.read_to_end(&mut rest);
                        let _ = tokio::time::timeout(Duration::from_secs(60), closed).await;
                        return;
                    }
                    Step::Reset => return socket.reset(),
                    Step::Close => {
                        let _ = socket.shutdown().await;
                        return;
                    }
                }
            }
        }
    }
}
