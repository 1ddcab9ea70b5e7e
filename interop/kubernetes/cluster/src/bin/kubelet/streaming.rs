//! The streaming server: TLS with client certificates, the kubelet's URLs, and a handler for the containers of [`Pods`].

use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use spdy::{SharedRuntime, TokioRuntime};
use spdy_cri::{
    AttachRequest, Config, Connection, ExecRequest, ExitCode, Handler, HandlerError, PodRequest,
    Responder, Streams,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::pods::{Pods, Stdios, id};
use crate::process;

/// Longest time for a TLS handshake, and for the head of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// TLS with the certificate in `folder`, for clients with a certificate of its authority.
pub(crate) fn acceptor(folder: &Path) -> anyhow::Result<TlsAcceptor> {
    let certificate = |name: &str| {
        let file = folder.join(name);
        CertificateDer::from_pem_file(&file).with_context(|| file.display().to_string())
    };
    let key = PrivateKeyDer::from_pem_file(folder.join("server.key"))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(certificate("ca.crt")?)?;
    let clients = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients.build()?)
        .with_single_cert(vec![certificate("server.crt")?], key)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// A responder for the containers of `pods`.
pub(crate) fn responder(pods: Pods) -> Responder<PodHandler> {
    let runtime = SharedRuntime::new(TokioRuntime::start());
    Responder::new(PodHandler(pods), Config::default(), runtime)
}

/// Serves all connections.
pub(crate) async fn serve(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    responder: Responder<PodHandler>,
) {
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (acceptor, responder) = (acceptor.clone(), responder.clone());
        tokio::spawn(serve_connection(socket, acceptor, responder));
    }
}

async fn serve_connection(
    socket: TcpStream,
    acceptor: TlsAcceptor,
    responder: Responder<PodHandler>,
) {
    let _ = socket.set_nodelay(true);
    let Ok(Ok(io)) = timeout(TIMEOUT, acceptor.accept(socket)).await else {
        return; // no TLS, or a client without a certificate
    };
    let service =
        service_fn(|request| std::future::ready(Ok::<_, Infallible>(answer(&responder, request))));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(TIMEOUT)
        .serve_connection(TokioIo::new(io), service);
    let _ = connection.with_upgrades().await;
}

/// Finds the container of a kubelet's URL.
fn answer(responder: &Responder<PodHandler>, request: Request<Incoming>) -> Response<String> {
    let refuse = |status, text: String| {
        let mut response = Response::new(format!("{text}\n"));
        *response.status_mut() = status;
        response
    };
    let pod = match PodRequest::parse_kubelet(request.uri()) {
        Ok(pod) => pod,
        Err(error) => return refuse(StatusCode::NOT_FOUND, error.to_string()),
    };
    let pods = &responder.handler().0;
    let (id, exists) = match &pod.container {
        Some(container) => {
            let id = id(&pod.namespace, &pod.pod, container);
            let exists = pods.container(&id).is_some();
            (id, exists)
        }
        None => (pod.pod.clone(), pods.is_running(&pod.namespace, &pod.pod)),
    };
    match exists {
        true => responder.respond(request, pod.into_request(id)),
        false => refuse(StatusCode::NOT_FOUND, format!("{id} does not run")),
    }
}

/// Exec, attach and port-forward in pods.
pub(crate) struct PodHandler(Pods);

impl Handler for PodHandler {
    async fn exec(&self, request: ExecRequest, streams: Streams) -> Result<ExitCode, HandlerError> {
        let container = self.0.container(&request.container);
        let container = container.ok_or("the container has ended")?;
        let tty = request.stream_options.tty;
        process::run(&request.command, &container.folder, tty, streams).await
    }

    async fn attach(&self, request: AttachRequest, streams: Streams) -> Result<(), HandlerError> {
        let container = self.0.container(&request.container);
        let container = container.ok_or("the container has ended")?;
        let stdio = container.stdio.try_lock();
        let mut stdio = stdio.map_err(|_| "another client is attached")?;
        let Stdios {
            stdin,
            stdout,
            stderr,
        } = &mut *stdio;
        let stdin_ends = container.stdin_once && streams.stdin.is_some();
        let input = async {
            copy(streams.stdin, stdin.as_mut()).await;
            if stdin_ends {
                *stdin = None;
            }
            std::future::pending().await
        };
        let output = async {
            tokio::join!(
                copy(stdout.as_mut(), streams.stdout),
                copy(stderr.as_mut(), streams.stderr)
            );
        };
        tokio::select! {
            () = input => {}
            () = output => {}
        }
        Ok(())
    }

    async fn port_forward(
        &self,
        _: String,
        port: u16,
        mut connection: Connection,
    ) -> Result<(), HandlerError> {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).await?;
        tokio::io::copy_bidirectional(&mut connection, &mut socket).await?;
        Ok(())
    }
}

/// Copies to the end of `from`; an error ends it as well.
async fn copy(from: Option<impl AsyncRead + Unpin>, to: Option<impl AsyncWrite + Unpin>) {
    if let (Some(mut from), Some(mut to)) = (from, to) {
        let _ = tokio::io::copy(&mut from, &mut to).await;
    }
}
