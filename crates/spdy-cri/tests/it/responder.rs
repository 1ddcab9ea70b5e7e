//! A kubelet's own server: URLs without a token, from [`PodRequest::parse_kubelet`] to [`Responder`].

use std::convert::Infallible;
use std::future::ready;

use http::{Response, StatusCode};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use spdy::upgrade::UpgradeError;
use spdy_cri::client::{self, Options};
use spdy_cri::{
    ClientError, Config, ExitCode, PodCall, PodRequest, Responder, StartError, StreamOptions,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::support::process::text;
use crate::support::{FakeRuntime, PIPES, echo_port, post, runtime};

/// Dials a kubelet that has one pod, `default/web`, with the container `c1`.
fn dial(responder: &Responder<FakeRuntime>) -> DuplexStream {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let responder = responder.clone();
    let service = service_fn(move |request| {
        let response = match PodRequest::parse_kubelet(request.uri()) {
            Ok(pod) => {
                let id = pod.container.clone().unwrap_or_else(|| pod.pod.clone());
                responder.respond(request, pod.into_request(id))
            }
            Err(error) => {
                let mut response = Response::new(error.to_string());
                *response.status_mut() = StatusCode::BAD_REQUEST;
                response
            }
        };
        ready(Ok::<_, Infallible>(response))
    });
    let http = http1::Builder::new().serve_connection(TokioIo::new(far), service);
    tokio::spawn(http.with_upgrades());
    near
}

fn kubelet() -> Responder<FakeRuntime> {
    Responder::new(FakeRuntime::default(), Config::default(), runtime())
}

/// The URL of a call in the pod, as the API server requests it.
fn url(call: PodCall) -> String {
    let container = match call {
        PodCall::PortForward { .. } => None,
        _ => Some("c1".to_owned()),
    };
    let request = PodRequest {
        namespace: "default".to_owned(),
        pod: "web".to_owned(),
        pod_uid: None,
        container,
        call,
    };
    let path = request.kubelet_url().expect("exec names its container");
    format!("http://kubelet:10250{path}")
}

fn exec_url(command: &[&str], stream_options: StreamOptions) -> String {
    url(PodCall::Exec {
        command: command.iter().map(|&word| word.to_owned()).collect(),
        stream_options,
    })
}

#[tokio::test]
async fn exec_needs_no_token_and_its_url_works_again() {
    let kubelet = kubelet();
    let url = exec_url(&["fail", "7"], PIPES);
    for _ in 0..2 {
        let (io, options) = (dial(&kubelet), Options::default());
        let started = client::exec(io, &post(&url), PIPES, options, runtime()).await;
        let mut process = started.expect("a process");
        assert_eq!(text(process.stderr.take()).await, "failing as asked\n");
        assert_eq!(process.wait().await.expect("a status"), ExitCode(7));
    }
}

#[tokio::test]
async fn attach_and_port_forward_need_no_token() {
    let kubelet = kubelet();
    let attach = url(PodCall::Attach {
        stream_options: PIPES,
    });
    let (io, options) = (dial(&kubelet), Options::default());
    let attached = client::attach(io, &post(&attach), PIPES, options, runtime()).await;
    let mut process = attached.expect("a process");
    let mut stdin = process.stdin.take().expect("the stream was requested");
    stdin.write_all(b"hello").await.expect("written");
    stdin.shutdown().await.expect("an end");
    assert_eq!(text(process.stdout.take()).await, "hello");

    let forward = url(PodCall::PortForward { ports: Vec::new() });
    let (io, options) = (dial(&kubelet), Options::default());
    let opened = client::port_forward(io, &post(&forward), options, runtime()).await;
    let forward = opened.expect("a session");
    let connected = forward.connect(echo_port().await).await;
    let mut forwarded = connected.expect("a connection");
    let connection = &mut forwarded.data;
    connection.write_all(b"ping").await.expect("written");
    connection.shutdown().await.expect("an end");
    let mut reply = String::new();
    let read = connection.read_to_string(&mut reply).await;
    read.expect("the port echoes");
    assert_eq!(reply, "ping");
}

#[tokio::test]
async fn an_invalid_request_gets_400_with_the_reason() {
    let kubelet = kubelet();
    let no_streams = exec_url(&["both"], StreamOptions::default());
    let cases = [
        (no_streams, "none of stdin, stdout and stderr"),
        (exec_url(&[], PIPES), "no command"),
        ("http://kubelet:10250/exec/web".to_owned(), "invalid path"),
    ];
    for (url, reason) in cases {
        let (io, options) = (dial(&kubelet), Options::default());
        match client::exec(io, &post(&url), PIPES, options, runtime()).await {
            Err(ClientError::Upgrade(error @ UpgradeError::Refused { .. })) => {
                let error = error.to_string();
                assert!(error.contains("400") && error.contains(reason), "{error}");
            }
            other => panic!("{url}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn one_more_session_than_the_limit_gets_503() {
    let mut config = Config::default();
    config.max_connections = 1;
    let kubelet = Responder::new(FakeRuntime::default(), config, runtime());
    let url = exec_url(&["wait"], PIPES);
    let start = || {
        let (io, options) = (dial(&kubelet), Options::default());
        let url = post(&url);
        async move { client::exec(io, &url, PIPES, options, runtime()).await }
    };
    let first = start().await.expect("the only place");
    match start().await {
        Err(ClientError::Upgrade(UpgradeError::Refused { status, .. })) => {
            assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        }
        other => panic!("{other:?}"),
    }
    drop(first);
    // The place is free when the server has noticed.
    while start().await.is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_request_after_stop_gets_503() {
    let kubelet = kubelet();
    kubelet.stop();
    let (io, options) = (dial(&kubelet), Options::default());
    let url = post(&exec_url(&["wait"], PIPES));
    match client::exec(io, &url, PIPES, options, runtime()).await {
        Err(ClientError::Upgrade(UpgradeError::Refused { status, .. })) => {
            assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn stop_ends_the_sessions() {
    let kubelet = kubelet();
    let url = exec_url(&["wait"], PIPES);
    let (io, options) = (dial(&kubelet), Options::default());
    let started = client::exec(io, &post(&url), PIPES, options, runtime()).await;
    let process = started.expect("a process");
    kubelet.stop();
    process.wait().await.expect_err("there is no status");
}

#[test]
fn a_start_error_has_the_text_of_runc_and_the_exit_code_of_a_shell() {
    let missing = || std::io::ErrorKind::NotFound.into();
    let cases = [
        (
            StartError::new("lss", missing()),
            r#"exec: "lss": executable file not found in $PATH"#,
            127,
        ),
        (
            StartError::new("/bin/lss", missing()),
            r#"exec: "/bin/lss": no such file or directory"#,
            127,
        ),
        (
            StartError::new("/etc", std::io::ErrorKind::PermissionDenied.into()),
            r#"exec: "/etc": permission denied"#,
            126,
        ),
    ];
    for (error, text, code) in cases {
        assert_eq!(error.to_string(), text);
        assert_eq!(error.exit_code(), ExitCode(code));
    }
}
