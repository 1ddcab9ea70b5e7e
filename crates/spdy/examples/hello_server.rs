//! Answers every request over plain TCP, by prior knowledge of SPDY/3.1.
//!
//! ```text
//! cargo run -p spdy --example hello_server -- 127.0.0.1:6121
//! cargo run -p spdy --example get -- http://127.0.0.1:6121/world
//! ```

use http::{Request, Response};
use spdy::{Body, SharedRuntime, TokioRuntime, Version, server};
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:6121".to_owned());
    let listener = TcpListener::bind(&address).await?;
    let runtime = SharedRuntime::new(TokioRuntime::start());
    loop {
        let (socket, _peer) = listener.accept().await?;
        socket.set_nodelay(true)?;
        tokio::spawn(server::serve(
            socket,
            server::Builder::new(Version::V31),
            runtime.clone(),
            hello,
        ));
    }
}

async fn hello(request: Request<Body>) -> Response<Body> {
    let name = request.uri().path().trim_start_matches('/');
    Response::new(Body::from(format!("hello {name}\n").into_bytes()))
}
