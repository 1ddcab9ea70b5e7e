//! Fetches `http` URLs of one server over one session, all at once, and writes their bodies to stdout in order.
//!
//! ```text
//! cargo run -p spdy --example get -- http://127.0.0.1:6121/one http://127.0.0.1:6121/two
//! ```

use std::io::Write;

use http::{Request, Uri};
use spdy::{Body, Priority, client};
use tokio::net::TcpStream;

/// The longest body taken, bytes.
const BODY_LIMIT: usize = 64 * 1024 * 1024;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let urls = std::env::args()
        .skip(1)
        .map(|url| url.parse())
        .collect::<Result<Vec<Uri>, _>>()?;
    let server = urls
        .first()
        .and_then(Uri::host)
        .ok_or("usage: get URL...")?;
    let port = urls.first().and_then(Uri::port_u16).unwrap_or(80);
    let socket = TcpStream::connect((server, port)).await?;
    socket.set_nodelay(true)?;

    let (session, connection) = client::handshake(socket);
    connection.spawn();
    let mut responses = Vec::new();
    for url in &urls {
        responses.push(session.request(
            Request::get(url.clone()).body(Body::empty())?,
            Priority::HIGHEST,
        ));
    }
    for response in responses {
        let body = response
            .await?
            .into_body()
            .collect_up_to(BODY_LIMIT)
            .await?;
        std::io::stdout().write_all(&body)?;
    }
    session.shutdown();
    session.closed().await;
    Ok(())
}
