//! Requests for an upgrade, and a client that sends one.

use http::Request;
use spdy::upgrade::{self, Limits, UpgradeError, Upgraded};
use tokio::io::DuplexStream;

use crate::support::runtime;

pub(crate) const EXEC: &[&str] = &["v4.channel.k8s.io", "v3.channel.k8s.io"];

pub(crate) fn exec_request() -> Request<()> {
    Request::post("http://kubelet:10250/exec/token?x=1")
        .header("authorization", "Bearer abc")
        .body(())
        .expect("a request")
}

pub(crate) async fn connect(
    io: DuplexStream,
    protocols: &[&str],
) -> Result<Upgraded<DuplexStream>, UpgradeError> {
    upgrade::connect(
        io,
        &exec_request(),
        protocols,
        Limits::default(),
        &runtime(),
    )
    .await
}

pub(crate) fn request(lines: &[&str]) -> Vec<u8> {
    let mut head = "POST /exec/t HTTP/1.1\r\nHost: h\r\n".to_owned();
    for line in lines {
        head += line;
        head += "\r\n";
    }
    (head + "\r\n").into_bytes()
}
