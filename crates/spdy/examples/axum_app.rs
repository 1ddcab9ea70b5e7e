//! An axum application over SPDY/3.1, plain, by prior knowledge.
//!
//! ```text
//! cargo run -p spdy --example axum_app -- 127.0.0.1:6121
//! cargo run -p spdy --example get -- http://127.0.0.1:6121/hello/world
//! ```

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "127.0.0.1:6121".to_owned());
    let app = Router::new().route("/hello/{name}", get(hello));
    let listener = TcpListener::bind(&address).await?;
    loop {
        let (socket, _peer) = listener.accept().await?;
        socket.set_nodelay(true)?;
        tokio::spawn(spdy::tower::serve(socket, app.clone()));
    }
}

async fn hello(Path(name): Path<String>) -> String {
    format!("hello {name}\n")
}
