use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response, StatusCode};
use spdy::server::Pusher;
use spdy::{Body, BoxError, Priority};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::support::{OnDrop, Program, in_time, pattern};

const PROGRAM: &str = env!("CARGO_BIN_EXE_streaming-client");
const PIECE: Bytes = Bytes::from_static(&[b'x'; 16 * 1024]);

/// What the server reports to the test.
#[derive(Clone)]
struct Reports {
    uploaded: mpsc::UnboundedSender<Bytes>,
    dropped: mpsc::UnboundedSender<()>,
}

async fn answer(
    request: Request<Body>,
    download: Bytes,
    reports: Reports,
) -> Result<Body, BoxError> {
    Ok(match request.uri().path() {
        "/upload" => {
            let body = request.into_body().collect_up_to(1 << 30).await?;
            let answer = format!("received {} bytes", body.len());
            reports.uploaded.send(body)?;
            Body::from(answer)
        }
        "/download" => {
            let pieces: Vec<Bytes> = download
                .chunks(10_000)
                .map(|piece| download.slice_ref(piece))
                .collect();
            Body::from_stream(stream::iter(pieces.into_iter().map(Ok::<_, Infallible>)))
        }
        "/endless" => Body::from_stream(stream::unfold(OnDrop(reports.dropped), async |guard| {
            Some((Ok::<_, Infallible>(PIECE), guard))
        })),
        "/" => {
            let pusher = request
                .extensions()
                .get::<Pusher>()
                .ok_or("every request has a pusher")?;
            let style = Request::get(format!(
                "http://{}/style.css",
                request.uri().authority().ok_or("no host")?
            ))
            .body(())?;
            let pushed = pusher.push_response(
                &style,
                Priority::HIGHEST,
                Response::new(Body::from("b {}")),
            )?;
            tokio::spawn(pushed);
            Body::from("<link rel=stylesheet href=style.css>")
        }
        path => return Err(format!("unexpected request for {path}").into()),
    })
}

#[tokio::test]
async fn bodies_are_streamed_one_is_cancelled_and_a_push_is_used() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let download = Bytes::from(pattern(5_000_001));
    let (uploaded, mut uploads) = mpsc::unbounded_channel();
    let (dropped, mut body_dropped) = mpsc::unbounded_channel();
    let reports = Reports { uploaded, dropped };
    let server_download = download.clone();
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await?;
        let service = |request| {
            let answering = answer(request, server_download.clone(), reports.clone());
            async {
                Response::new(
                    answering
                        .await
                        .unwrap_or_else(|error| Body::from(error.to_string())),
                )
            }
        };
        spdy::server::serve(socket, service).await?;
        Ok::<_, BoxError>(())
    });

    // It uploads itself: a file of some megabytes.
    let target =
        std::env::temp_dir().join(format!("spdy-examples-download-{}", std::process::id()));
    let target_text = target.to_str().expect("a path of text");
    let (lines, status) = Program::start(PROGRAM, &[&base, PROGRAM, target_text])
        .end()
        .await;
    let file = std::fs::read(PROGRAM).expect("the program is a file");
    let downloaded = std::fs::read(&target).expect("the download was written");
    std::fs::remove_file(&target).expect("the download can be removed");

    assert!(status.success(), "{lines:#?}");
    assert_eq!(
        lines[0],
        format!(
            "upload: the server answered \"received {} bytes\"",
            file.len()
        )
    );
    assert_eq!(lines[1], "download: 5000001 bytes");
    assert!(
        lines[2].starts_with("endless: cancelled after "),
        "{}",
        lines[2]
    );
    assert_eq!(
        lines[3..],
        [
            "page: 36 bytes",
            "style sheet: 4 bytes, pushed on stream 2",
            "total: 4 requests on 1 connection"
        ]
    );
    assert!(downloaded == download, "the download differs");
    assert!(
        in_time(uploads.recv()).await.expect("an upload") == file,
        "the upload differs"
    );
    in_time(body_dropped.recv())
        .await
        .expect("the endless body is dropped");
}

#[tokio::test]
async fn an_error_of_the_server_ends_the_program_with_a_reason() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await?;
        let service = async |_| {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NOT_FOUND;
            response
        };
        spdy::server::serve(socket, service).await?;
        Ok::<_, BoxError>(())
    });
    let (lines, status) = Program::start(PROGRAM, &[&base, PROGRAM, "/dev/null"])
        .end()
        .await;
    assert!(!status.success());
    assert!(lines.is_empty(), "{lines:#?}");
}
