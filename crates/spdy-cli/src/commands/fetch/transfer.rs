//! One URL of `spdy fetch`: its redirects, the output of its body, and its report.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::BodyExt;
use sha2::{Digest, Sha256};
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_client::client::Client;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use spdy_frame::priority::Priority;

use super::redirect::redirect_request;
use super::request::{Destination, FetchRequest};
use super::result::{FetchResult, milliseconds};
use crate::output::Printer;

/// Bytes of all bodies together that may wait for their turn on stdout.
const MAX_WAITING_BYTES: usize = 256 * 1024 * 1024;

/// A URL that is being fetched.
pub(crate) struct Transfer {
    fetched: JoinHandle<FetchResult>,
    /// Pieces for stdout. A body that waits for its turn must not fill the session's window, because that would block
    /// the body that has its turn. So the channel is unbounded, and too many bytes in it are an error.
    pieces: mpsc::UnboundedReceiver<Bytes>,
    waiting: BufferedBytes,
    has_turn: Arc<AtomicBool>,
}

/// Bytes that wait for stdout. Clones share the count.
#[derive(Clone, Debug, Default)]
pub(crate) struct BufferedBytes(Arc<AtomicUsize>);

/// Sends one body to stdout.
struct StdoutSink {
    pieces: mpsc::UnboundedSender<Bytes>,
    waiting: BufferedBytes,
    has_turn: Arc<AtomicBool>,
}

impl StdoutSink {
    /// Queues a piece. The transfer that has its turn is read only as fast as stdout accepts it, since both run on one
    /// thread. The other transfers share a limit of `MAX_WAITING_BYTES`.
    fn send(&self, piece: Bytes) -> Result<(), String> {
        let before = self.waiting.0.fetch_add(piece.len(), Ordering::Relaxed);
        let too_much = before.saturating_add(piece.len()) > MAX_WAITING_BYTES;
        if too_much && !self.has_turn.load(Ordering::Relaxed) {
            self.waiting.0.fetch_sub(piece.len(), Ordering::Relaxed);
            return Err(format!(
                "more than {MAX_WAITING_BYTES} bytes wait to be written to stdout: use --output-dir"
            ));
        }
        let _ = self.pieces.send(piece); // the receiver may be gone
        Ok(())
    }
}

impl Transfer {
    /// Starts the transfer; `limit` is the time for all of it.
    pub(crate) fn start(
        order: FetchRequest,
        client: &Client,
        runtime: &SharedRuntime,
        limit: Option<Duration>,
        waiting: &BufferedBytes,
    ) -> Self {
        let (sender, pieces) = mpsc::unbounded_channel();
        let (waiting, has_turn) = (waiting.clone(), Arc::default());
        let stdout = StdoutSink {
            pieces: sender,
            waiting: waiting.clone(),
            has_turn: Arc::clone(&has_turn),
        };
        // Sent here, not in the task, so that requests go in the order of the arguments.
        let began = runtime.now();
        let first = client.send(order.request(), Priority::HIGHEST);
        let (client, runtime) = (client.clone(), runtime.clone());
        let fetched = tokio::spawn(async move {
            let mut fetched = FetchResult::of(&order.url);
            let fetching = fetch(&order, first, &client, &stdout, &mut fetched);
            let outcome = match limit {
                None => fetching.await,
                Some(limit) => match tokio::time::timeout(limit, fetching).await {
                    Ok(outcome) => outcome,
                    Err(_) => Err(format!("timeout after {limit:?}")),
                },
            };
            fetched.error = outcome.err();
            if let Some(timings) = &mut fetched.timings_ms {
                timings.total = milliseconds((began, runtime.now()));
            }
            fetched
        });
        Self {
            fetched,
            pieces,
            waiting,
            has_turn,
        }
    }

    /// Writes the rest of the body to stdout and returns the result.
    pub(crate) async fn finish(mut self, printer: &Printer) -> anyhow::Result<FetchResult> {
        self.has_turn.store(true, Ordering::Relaxed);
        while let Some(piece) = self.pieces.recv().await {
            printer.bytes(&piece)?;
            self.waiting.0.fetch_sub(piece.len(), Ordering::Relaxed);
        }
        Ok(self.fetched.await?)
    }
}

type ResponseFuture = spdy::runtime::BoxFuture<Result<Response<Body>, spdy_client::error::Error>>;

async fn fetch(
    order: &FetchRequest,
    first: ResponseFuture,
    client: &Client,
    stdout: &StdoutSink,
    fetched: &mut FetchResult,
) -> Result<(), String> {
    let mut order = order.clone();
    let mut response = first.await.map_err(|error| error.to_string())?;
    for followed in 0.. {
        let Some(next) = redirect_request(&order, &response)? else {
            break;
        };
        if followed == order.redirects {
            return Err(format!("more than {followed} redirects"));
        }
        drop(response);
        order = next;
        fetched.final_url = Some(order.url.to_string());
        let sent = client.send(order.request(), Priority::HIGHEST).await;
        response = sent.map_err(|error| error.to_string())?;
    }
    let (head, body) = response.into_parts();
    fetched.note(&head);
    if order.print_head {
        stdout.send(head_text(&head).into())?;
    }
    let stdout = |piece| stdout.send(piece);
    receive(body, &order.destination, stdout, fetched).await
}

/// Writes the body to its destination, and computes its size and hash.
pub(crate) async fn receive(
    mut body: Body,
    destination: &Destination,
    stdout: impl Fn(Bytes) -> Result<(), String>,
    fetched: &mut FetchResult,
) -> Result<(), String> {
    let mut file = match destination {
        Destination::File(path) | Destination::NewFile(path) => {
            let to_message =
                |error: std::io::Error| format!("cannot write {}: {error}", path.display());
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder).map_err(to_message)?;
            }
            let made = match destination {
                Destination::NewFile(_) => File::create_new(path),
                _ => File::create(path),
            };
            Some((made.map_err(to_message)?, path))
        }
        Destination::Stdout | Destination::Discard => None,
    };
    let mut hash = Sha256::new();
    let mut outcome = Ok(());
    while let Some(frame) = body.frame().await {
        let data = match frame {
            Ok(frame) => match frame.into_data() {
                Ok(data) => data,
                Err(_) => continue, // trailers
            },
            Err(error) => {
                outcome = Err(format!(
                    "the body ended after {} bytes: {error}",
                    fetched.bytes
                ));
                break;
            }
        };
        fetched.bytes += data.len() as u64;
        hash.update(&data);
        match (&mut file, destination) {
            (Some((file, path)), _) => file
                .write_all(&data)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?,
            (None, Destination::Stdout) => stdout(data)?,
            (None, _) => {}
        }
    }
    fetched.sha256 = Some(
        hash.finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
    );
    outcome
}

/// A response head as HTTP/1.1 text, for any protocol.
fn head_text(head: &http::response::Parts) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {}\r\n", head.status).into_bytes();
    for (name, value) in &head.headers {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"\r\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_that_wait_for_stdout_are_buffered_up_to_a_limit() {
        let waiting = BufferedBytes::default();
        let body = || {
            let (pieces, receiver) = mpsc::unbounded_channel();
            let (waiting, has_turn) = (waiting.clone(), Arc::default());
            let sink = StdoutSink {
                pieces,
                waiting,
                has_turn,
            };
            (sink, receiver)
        };
        let ((first, _a), (second, _b)) = (body(), body());
        first.has_turn.store(true, Ordering::Relaxed);
        let piece = |len| Bytes::from(vec![0; len]);
        second.send(piece(MAX_WAITING_BYTES - 1)).unwrap();
        first.send(piece(1)).unwrap();
        first
            .send(piece(1))
            .expect("the first body is written at once");
        assert!(second.send(piece(1)).is_err());
    }
}
