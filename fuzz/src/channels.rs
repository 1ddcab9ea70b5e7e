//! The parser of channels over a plain WebSocket (`spdy-cri/src/channels`): exec and port-forward of Kubernetes without
//! SPDY, with raw or base64 payloads.
//!
//! The codec is private to the crate, so this target reaches it as a client does: through the public server, with a
//! valid request and arbitrary frames.
//!
//! - How the bytes are split does not change the handler's input before its client leaves.
//! - The channels deliver no more bytes than they received.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Waker};

use futures_util::future::join;
use spdy_cri::{
    AttachRequest, ChannelProtocol, Config, Connection, ExecRequest, ExitCode, Handler,
    HandlerError, PortForwardRequest, StreamOptions, StreamingServer, Streams, TerminalSize,
};

use crate::choices::Choices;
use crate::io::{Script, runtime};
use crate::memory;

/// Ports that are forwarded at once.
const PORTS: [u16; 2] = [80, 443];

/// Serves the wire as the frames of a client, whole and split.
pub fn check(input: &[u8]) {
    let (mut choices, wire) = Choices::split(input);
    let protocol = choices.pick(&ChannelProtocol::ALL);
    let forwards = choices.flag() && protocol.forwards_ports();
    let message_bytes = choices.pick(&[64 * 1024, 100]);
    // The buffers of HTTP and WebSocket, and a message of which only the length arrived.
    memory::at_most(512 * 1024 + message_bytes + 80 * wire.len(), || {
        let whole: &[&[u8]] = if wire.is_empty() { &[] } else { &[wire] };
        let whole = serve(whole, protocol, forwards, message_bytes);
        let bytes = whole.stdin.len() + whole.ports.values().map(Vec::len).sum::<usize>();
        assert!(
            bytes <= wire.len(),
            "the handler received {bytes} bytes, expected at most {}",
            wire.len()
        );
        let cut = serve(&choices.cut(wire), protocol, forwards, message_bytes);
        let same = whole.agrees_with(&cut);
        assert!(
            same,
            "split input gives {cut:?}, whole input gives {whole:?}"
        );
    });
}

/// The input of a handler.
#[derive(Debug, Default, Eq, PartialEq)]
struct HandlerLog {
    stdin: Vec<u8>,
    sizes: Vec<TerminalSize>,
    ports: BTreeMap<u16, Vec<u8>>,
    /// How the reading of bytes ended, in their order.
    ends: BTreeMap<u16, Result<(), String>>,
}

impl HandlerLog {
    /// True if both received the same input, up to the shorter one: a client that leaves drops its handler, which may lack
    /// the last input.
    fn agrees_with(&self, other: &Self) -> bool {
        let begin_alike = |some: &[u8], more: &[u8]| some.iter().zip(more).all(|(a, b)| a == b);
        let port = |heard: &Self, port| heard.ports.get(port).cloned().unwrap_or_default();
        begin_alike(&self.stdin, &other.stdin)
            && self.sizes.iter().zip(&other.sizes).all(|(a, b)| a == b)
            && PORTS
                .iter()
                .all(|at| begin_alike(&port(self, at), &port(other, at)))
            && self.ends.iter().all(|(at, end)| {
                let other = other.ends.get(at);
                other.is_none_or(|other| other.is_ok() == end.is_ok())
            })
    }
}

/// A handler that logs its input, and echoes it.
#[derive(Clone, Default)]
struct LoggingHandler(Arc<Mutex<HandlerLog>>);

impl LoggingHandler {
    fn note(&self, note: impl FnOnce(&mut HandlerLog)) {
        note(&mut self.0.lock().expect("no thread panicked"));
    }
}

impl Handler for LoggingHandler {
    async fn exec(&self, _: ExecRequest, streams: Streams) -> Result<ExitCode, HandlerError> {
        let (mut stdin, mut stdout) = (streams.stdin, streams.stdout);
        let typed = async {
            let stdin = stdin.as_mut().expect("the stream was requested");
            let ended = loop {
                match stdin.receive().await {
                    Some(Ok(bytes)) => {
                        self.note(|heard| heard.stdin.extend_from_slice(&bytes));
                        if let Some(stdout) = &mut stdout {
                            let _ = stdout.send(bytes).await; // the connection may be lost by then
                        }
                    }
                    Some(Err(error)) => break Err(error.to_string()),
                    None => break Ok(()),
                }
            };
            self.note(|heard| drop(heard.ends.insert(0, ended)));
        };
        let mut resize = streams.resize;
        let resized = async {
            while let Some(size) = resize
                .as_mut()
                .expect("the stream was requested")
                .next()
                .await
            {
                self.note(|heard| heard.sizes.push(size));
            }
        };
        join(typed, resized).await;
        Ok(ExitCode(7))
    }

    async fn attach(&self, _: AttachRequest, _: Streams) -> Result<(), HandlerError> {
        unreachable!("attach is not requested")
    }

    async fn port_forward(
        &self,
        _: String,
        port: u16,
        mut connection: Connection,
    ) -> Result<(), HandlerError> {
        let ended = loop {
            match connection.receive().await {
                Some(Ok(bytes)) => {
                    self.note(|heard| {
                        let came = heard.ports.entry(port).or_default();
                        came.extend_from_slice(&bytes);
                    });
                    let _ = connection.send(bytes).await; // the connection may be lost by then
                }
                Some(Err(error)) => break Err(error.to_string()),
                None => break Ok(()),
            }
        };
        self.note(|heard| drop(heard.ends.insert(port, ended)));
        Ok(())
    }
}

/// The input of the handler for a client that sends a valid request, then `pieces`, and stays.
fn serve(
    pieces: &[&[u8]],
    protocol: ChannelProtocol,
    forwards: bool,
    message_bytes: usize,
) -> HandlerLog {
    let listener = LoggingHandler::default();
    let mut config = Config::default();
    config.message_bytes = message_bytes;
    let server = StreamingServer::new(listener.clone(), "http://a.test", config, runtime());
    let server = server.expect("a base URL");
    let url = if forwards {
        server.port_forward_url(PortForwardRequest {
            sandbox: "s".to_owned(),
            ports: PORTS.to_vec(),
        })
    } else {
        server.exec_url(ExecRequest {
            container: "c".to_owned(),
            command: vec!["cat".to_owned()],
            stream_options: StreamOptions {
                stdin: true,
                stdout: true,
                stderr: false,
                tty: true,
            },
        })
    };
    let url = url.expect("a URL");
    let head = format!(
        "GET {} HTTP/1.1\r\nhost: a.test\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
         sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\
         sec-websocket-protocol: {}\r\n\r\n",
        &url["http://a.test".len()..],
        protocol.name()
    );
    let all: Vec<&[u8]> = std::iter::once(head.as_bytes())
        .chain(pieces.iter().copied())
        .collect();
    let serving = pin!(server.serve_connection(Script::new(&all).without_end()));
    // Every poll reads a piece, and the bytes are passed on within a few polls.
    poll_times(serving, 4 * all.len() + 64);
    let mut heard = listener.0.lock().expect("no thread panicked");
    std::mem::take(&mut heard)
}

/// Polls `work` up to `turns` times.
fn poll_times(mut work: std::pin::Pin<&mut impl Future<Output = ()>>, turns: usize) {
    // hyper uses tokio's timers; none of them fires during a poll.
    static TIMERS: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    let timers = TIMERS.get_or_init(|| {
        let mut timers = tokio::runtime::Builder::new_current_thread();
        timers.enable_time().build().expect("a runtime")
    });
    let _entered = timers.enter();
    let mut cx = Context::from_waker(Waker::noop());
    for _ in 0..turns {
        if work.as_mut().poll(&mut cx).is_ready() {
            return;
        }
    }
}
