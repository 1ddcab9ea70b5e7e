//! A gRPC call over HTTP/2 and HTTP/3 to an origin that speaks HTTP/2 without TLS: messages in both directions, and trailers.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use spdy::body::{Body, BoxError};
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy_client::client::{Client, Config};
use spdy_frame::priority::Priority;
use spdy_net::latch::Latch;
use spdy_net::listen::{ListenOptions, Listener};
use spdy_net::network::SystemNetwork;
use spdy_net::protocol::Protocol;
use spdy_net::serve::{ServerOptions, serve_connection};
use spdy_net::tls::certificates::certificates_from_pem;
use spdy_net::tls::verify::Trust;
use spdy_net::tls::{ClientTls, TlsOptions};
use spdy_testkit::wait::WAIT_LIMIT;
use tokio::sync::mpsc;

use crate::support::accelerator::program::Accelerator;

const SITE: &str = "www.site.test";

type Frames = mpsc::Sender<Result<Frame<Bytes>, BoxError>>;

fn stream() -> (Frames, Body) {
    let (frames, mut received) = mpsc::channel(4);
    let read = futures_util::stream::poll_fn(move |cx| received.poll_recv(cx));
    (frames, Body::wrap(StreamBody::new(read)))
}

/// Sends each message back, and then the status.
async fn service(request: Request<Body>) -> Response<Body> {
    let mut body = request.into_body();
    let (frames, echo) = stream();
    tokio::spawn(async move {
        while let Some(Ok(frame)) = body.frame().await {
            if frames.send(Ok(frame)).await.is_err() {
                return;
            }
        }
        let mut status = HeaderMap::new();
        status.insert("grpc-status", HeaderValue::from_static("0"));
        let _is_gone = frames.send(Ok(Frame::trailers(status))).await;
    });
    let response = Response::builder().header("content-type", "application/grpc");
    response.body(echo).expect("a response")
}

/// Starts the origin, which speaks HTTP/2 only.
fn origin() -> SocketAddr {
    let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = Listener::bind(loopback).expect("loopback has a free port");
    let address = listener.address();
    let stop = Latch::new();
    let serving = listener.run(
        ListenOptions::default(),
        stop.clone(),
        move |io, _, slot| {
            let stop = stop.clone();
            async move {
                let mut options = ServerOptions::default();
                options.slot = slot;
                let runtime = SharedRuntime::new(TokioRuntime::start());
                let (handler, protocols) = (Arc::new(service), [Protocol::Http2]);
                let served =
                    serve_connection(io, handler, &protocols, None, &options, &runtime, &stop);
                let _ = served.await;
            }
        },
    );
    tokio::spawn(serving);
    address
}

#[test]
fn a_call_streams_both_ways_over_http2_and_http3() {
    let runtime = tokio::runtime::Runtime::new().expect("create a runtime");
    let address = runtime.block_on(async { origin() });
    let accelerator = Accelerator::start(&format!(
        "[listen]\ntls = ['127.0.0.1:0']\n[[site]]\nnames = ['{SITE}']\norigin = 'http://{address}'\n\
         [[site.paths]]\npath = '/chat.Chat/'\ngrpc = true\n"
    ));
    let pem = std::fs::read(accelerator.authority()).expect("read the certificate");
    let trust = Trust::only(certificates_from_pem(&pem, "a test's").expect("valid PEM"));
    let tls = ClientTls::new(&trust, &TlsOptions::default()).expect("a TLS configuration");
    for protocol in [Protocol::Http2, Protocol::Http3] {
        let call = async {
            let mut config = Config::default();
            config.protocols = vec![protocol];
            config.tls = Some(tls.clone());
            config.resolve = vec![(SITE.to_owned(), None, [127, 0, 0, 1].into())];
            let runtime = SharedRuntime::new(TokioRuntime::start());
            let client = Client::new(runtime, Arc::new(SystemNetwork), config);
            let url = format!("https://{SITE}:{}/chat.Chat/Echo", accelerator.tls().port());
            let (messages, body) = stream();
            let request = Request::post(url)
                .header("content-type", "application/grpc")
                .header("te", "trailers");
            let request = request.body(body).expect("a request");
            let response = client.send(request, Priority::HIGHEST).await;
            let mut echo = response.expect("a response").into_body();
            for text in ["one", "two"] {
                let sent = messages.send(Ok(Frame::data(text.into()))).await;
                sent.expect("the body is read");
                let frame = echo.frame().await.expect("a frame").expect("no error");
                assert_eq!(frame.into_data().expect("a message"), text, "{protocol}");
            }
            drop(messages);
            let rest = echo.collect().await.expect("the body is complete");
            let trailers = rest.trailers().expect("trailers");
            assert_eq!(trailers["grpc-status"], "0", "{protocol}");
        };
        let limited = async { tokio::time::timeout(WAIT_LIMIT, call).await };
        runtime.block_on(limited).expect("the call ends in time");
    }
}
