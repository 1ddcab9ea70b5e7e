//! Sessions on smol: no part of the library needs tokio's runtime.

use std::time::Duration;

use http::{Request, Response};
use smol::net::{TcpListener, TcpStream};
use spdy::runtime::BoxFuture;
use spdy::{Body, Instant, Priority, Runtime, SharedRuntime, client, server};
use tokio_util::compat::FuturesAsyncReadCompatExt;

/// As in the README.
struct Smol(std::time::Instant);

impl Runtime for Smol {
    fn now(&self) -> Instant {
        Instant::ZERO + self.0.elapsed()
    }
    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        let timer = smol::Timer::at(self.0 + (deadline - Instant::ZERO));
        Box::pin(async {
            timer.await;
        })
    }
    fn spawn(&self, task: BoxFuture<()>) {
        smol::spawn(task).detach();
    }
}

#[test]
fn client_and_server_run_on_smol() {
    smol::block_on(async {
        let runtime = SharedRuntime::new(Smol(std::time::Instant::now()));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let server_runtime = runtime.clone();
        let serving = smol::spawn(async move {
            let (socket, _) = listener.accept().await.expect("a client");
            // Timers of the session, and a response that a task finishes.
            let builder = server::Builder::default()
                .keepalive(Some(Duration::from_millis(1)), Duration::from_secs(60));
            let service = |request: Request<Body>| async {
                let body = request.into_body().collect_up_to(1 << 20).await;
                Response::new(Body::from(body.expect("the body is complete")))
            };
            builder
                .serve(socket.compat(), server_runtime, service)
                .await
        });

        let socket = TcpStream::connect(address).await.expect("a server");
        let (session, connection) = client::Builder::default().handshake(socket.compat(), runtime);
        connection.spawn();
        let sent = vec![b'x'; 300_000];
        let request = Request::post(format!("http://{address}/"))
            .body(Body::from(sent.clone()))
            .expect("a valid URL");
        let response = session
            .request(request, Priority::HIGHEST)
            .await
            .expect("a response");
        let echo = response.into_body().collect_up_to(1 << 20).await;
        assert!(echo.expect("the body is complete") == sent);
        session.ping().await.expect("an answer");
        session.shutdown();
        session.closed().await;
        serving.await.expect("the session ends in order");
    });
}
