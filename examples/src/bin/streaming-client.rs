//! Streams bodies with `spdy_client::Client` over SPDY/3.1: an upload, a download, a download that is cancelled, and a server push.
//!
//! ```sh
//! cargo run --manifest-path examples/Cargo.toml --bin streaming-client -- http://127.0.0.1:6121 upload.bin download.bin
//! ```
//!
//! It sends `upload.bin` to `/upload`, writes `/download` to `download.bin`, reads the beginning of `/endless`, and gets `/` with the
//! style sheet that the server pushes along. The test in `examples/tests` has such a server.

use std::env;
use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use spdy_client::tls::verify::Trust;
use spdy_client::tls::{ClientTls, TlsOptions};
use spdy_client::{
    Body, Client, Config, Priority, Protocol, PushInfo, PushLimits, SharedRuntime, SystemNetwork,
    Version,
};
use tokio::fs::File;
use tokio::io::AsyncWriteExt;
use tokio_util::io::ReaderStream;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Limit of a body that is collected in memory.
const MAX_BODY_BYTES: usize = 1 << 20;
/// Bytes of `/endless` after which the download is cancelled.
const ENOUGH_BYTES: usize = 256 * 1024;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [base, source, target] = arguments.as_slice() else {
        return Err("usage: streaming-client http://HOST:PORT UPLOAD_FILE DOWNLOAD_FILE".into());
    };
    let client = client()?;
    upload(&client, base, source).await?;
    download(&client, base, target).await?;
    cancel(&client, base).await?;
    push(&client, base).await?;
    let stats = client.stats();
    println!(
        "total: {} requests on {} connection",
        stats.requests, stats.connections
    );
    client.close().await;
    Ok(())
}

fn client() -> Result<Client, BoxError> {
    let mut config = Config::default();
    config.tls = Some(ClientTls::new(&Trust::default(), &TlsOptions::default())?);
    // Without TLS no protocol is negotiated. The default is HTTP/1.1.
    config.plain_protocol = Protocol::Spdy(Version::V31);
    config.connection.spdy.pushes = Some(PushLimits::default());
    Ok(Client::new(
        SharedRuntime::tokio(),
        Arc::new(SystemNetwork),
        config,
    ))
}

async fn send(
    client: &Client,
    method: Method,
    url: String,
    body: Body,
) -> Result<Response<Body>, BoxError> {
    let request = Request::builder().method(method).uri(&url).body(body)?;
    let response = client.send(request, Priority::HIGHEST).await?;
    match response.status() {
        StatusCode::OK => Ok(response),
        status => Err(format!("{url}: the server answered {status}, expected 200").into()),
    }
}

async fn get(client: &Client, url: String) -> Result<Response<Body>, BoxError> {
    send(client, Method::GET, url, Body::empty()).await
}

/// The file is read piece by piece, as the server gives credit.
async fn upload(client: &Client, base: &str, source: &str) -> Result<(), BoxError> {
    let body = Body::from_stream(ReaderStream::new(File::open(source).await?));
    let response = send(client, Method::POST, format!("{base}/upload"), body).await?;
    let answer = response.into_body().collect_up_to(MAX_BODY_BYTES).await?;
    println!(
        "upload: the server answered {:?}",
        String::from_utf8_lossy(&answer)
    );
    Ok(())
}

/// The server gets credit when the file has the bytes: a slow disk slows the server down.
async fn download(client: &Client, base: &str, target: &str) -> Result<(), BoxError> {
    let mut body = get(client, format!("{base}/download")).await?.into_body();
    let mut file = File::create(target).await?;
    let mut bytes = 0;
    while let Some(piece) = body.receive().await {
        let piece = piece?;
        file.write_all(&piece).await?;
        bytes += piece.len();
    }
    file.flush().await?;
    println!("download: {bytes} bytes");
    Ok(())
}

/// Dropping a body resets its stream. The session stays open.
async fn cancel(client: &Client, base: &str) -> Result<(), BoxError> {
    let mut body = get(client, format!("{base}/endless")).await?.into_body();
    let mut bytes = 0;
    while bytes < ENOUGH_BYTES {
        let piece = body.receive().await.ok_or("the endless body ended")??;
        bytes += piece.len();
    }
    drop(body);
    println!("endless: cancelled after {bytes} bytes");
    Ok(())
}

/// A request for a URL that was pushed gets the push as its response.
async fn push(client: &Client, base: &str) -> Result<(), BoxError> {
    let page = get(client, format!("{base}/")).await?.into_body();
    println!(
        "page: {} bytes",
        page.collect_up_to(MAX_BODY_BYTES).await?.len()
    );

    let style = get(client, format!("{base}/style.css")).await?;
    let how = match style.extensions().get::<PushInfo>() {
        Some(push) => format!("pushed on stream {}", push.id),
        None => "requested".to_owned(),
    };
    let bytes = style.into_body().collect_up_to(MAX_BODY_BYTES).await?.len();
    println!("style sheet: {bytes} bytes, {how}");
    for push in client.take_pushes() {
        println!(
            "cancelled the push of {}, which no request claimed",
            push.push.request().uri
        );
    }
    Ok(())
}
