//! Answers every request over plain TCP, by prior knowledge of SPDY/3.1. Ctrl-C ends it in order: GOAWAY to
//! every client, what is being answered is answered, and then the program ends.
//!
//! ```text
//! cargo run -p spdy --example hello_server -- 127.0.0.1:6121
//! cargo run -p spdy --example get -- http://127.0.0.1:6121/world
//! ```

use http::{Request, Response};
use spdy::{Body, server};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:6121".to_owned());
    let listener = TcpListener::bind(&address).await?;
    let (stop, stopped) = watch::channel(false);
    let mut sessions = JoinSet::new();
    loop {
        let (socket, _peer) = tokio::select! {
            accepted = listener.accept() => accepted?,
            signal = tokio::signal::ctrl_c() => break signal?,
            Some(_ended) = sessions.join_next() => continue,
        };
        socket.set_nodelay(true)?;
        let mut stopped = stopped.clone();
        sessions.spawn(server::serve_until(socket, hello, async move {
            let _ = stopped.wait_for(|stopped| *stopped).await;
        }));
    }
    stop.send_replace(true);
    sessions.join_all().await;
    Ok(())
}

async fn hello(request: Request<Body>) -> Response<Body> {
    let name = request.uri().path().trim_start_matches('/');
    Response::new(Body::from(format!("hello {name}\n").into_bytes()))
}
