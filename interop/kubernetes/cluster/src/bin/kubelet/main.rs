//! A small kubelet on `spdy-cri`: registers a node, runs the containers of its pods as processes of this machine, and serves exec,
//! attach and port-forward.
//!
//! ```text
//! KUBECONFIG=FILE kubelet FOLDER
//! ```
//!
//! The folder has `server.crt` and `server.key` for the streaming server, and `ca.crt`, which signed the API server's client
//! certificate. Pods get a working directory in `FOLDER/pods`. Images are ignored, and there is no isolation.

mod node;
mod pods;
#[path = "../../../../../../crates/spdy-cri/examples/local_commands/process.rs"]
mod process;
mod streaming;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use kube::Client;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use pods::Pods;

/// Time until all processes have ended: SIGKILL follows SIGHUP after a second (`process.rs`).
const STOP: Duration = Duration::from_millis(1500);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let folder = std::env::args_os().nth(1).context("expected a folder")?;
    let folder = PathBuf::from(folder);
    let client = Client::try_default().await.context("KUBECONFIG")?;
    let mut terminate = signal(SignalKind::terminate())?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let pods = Pods::new(folder.join("pods"));
    let acceptor = streaming::acceptor(&folder)?;
    let responder = streaming::responder(pods.clone());
    let serving = streaming::serve(listener, acceptor, responder.clone());
    node::register(&client, port).await.context("the node")?;
    tokio::select! {
        () = serving => {}
        watched = pods.watch(&client) => watched.context("the pods")?,
        _ = terminate.recv() => {}
    }
    responder.stop();
    sleep(STOP).await;
    Ok(())
}
