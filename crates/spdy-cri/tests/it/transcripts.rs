//! Recorded connections of Kubernetes, each side replayed to ours: every frame is what spdystream's
//! own framer decoded, and every channel reads as it was meant.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use spdy::client::OpenOptions;
use spdy::upgrade::{self, Channel, Limits};
use spdy::{Direction, Frame, HeaderBlock, Observe, ObservedFrame};
use spdy_cri::Config;
use spdy_cri::client::{self, Options};
use spdy_cri::tunnel::Tunnel;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::support::{PIPES, dial, exec, fake_runtime, post, runtime};

#[derive(Deserialize)]
struct Transcript {
    name: String,
    frames: Option<Sides>,
}

#[derive(Deserialize)]
struct Sides {
    c2s: Vec<Expected>,
    s2c: Vec<Expected>,
}

/// A frame, as spdystream's framer read it.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Expected {
    r#type: String,
    stream: u32,
    flags: u8,
    bytes: usize,
    headers: BTreeMap<String, Vec<String>>,
    status: u32,
    last_good: u32,
}

/// The output of a side: its control frames in order, and the DATA of each stream with its FIN.
#[derive(Debug, Default, PartialEq)]
struct SideLog {
    control: Vec<String>,
    data: BTreeMap<u32, (usize, bool)>,
}

impl SideLog {
    fn of(frames: &[Expected]) -> Self {
        let mut log = Self::default();
        for frame in frames {
            let Expected {
                stream,
                status,
                last_good,
                ..
            } = frame;
            let headers: Vec<_> = frame
                .headers
                .iter()
                .map(|(name, values)| (name.to_lowercase(), values.join("\0")))
                .collect();
            match frame.r#type.as_str() {
                "Data" => {
                    let (bytes, fin) = log.data.entry(*stream).or_default();
                    *bytes += frame.bytes;
                    *fin |= frame.flags & 1 != 0;
                }
                "SynStream" | "SynReply" => log
                    .control
                    .push(format!("{} {stream} {headers:?}", frame.r#type)),
                "RstStream" => log.control.push(format!("RstStream {stream} {status}")),
                "GoAway" => log.control.push(format!("GoAway {last_good} {status}")),
                "" => {} // cut short by the client
                other => panic!("{other}"),
            }
        }
        log
    }
}

/// Records the received bytes.
#[derive(Default)]
struct Listener(Mutex<SideLog>);

impl Observe for Listener {
    fn seen(&self, frame: &ObservedFrame<'_>) {
        if frame.direction != Direction::Received {
            return;
        }
        let mut log = self.0.lock().expect("one thread");
        let mut headers: Vec<(String, String)> = Vec::new();
        for (name, value) in frame.headers.into_iter().flat_map(HeaderBlock::iter) {
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
            headers.push((text(name), text(value)));
        }
        headers.sort();
        match frame.frame {
            Frame::Data(data) => {
                let (bytes, fin) = log.data.entry(data.stream_id.value()).or_default();
                *bytes += data.payload.len();
                *fin |= data.fin;
            }
            Frame::SynStream(syn) => {
                let id = syn.stream_id.value();
                log.control.push(format!("SynStream {id} {headers:?}"));
            }
            Frame::SynReply(reply) => {
                let id = reply.stream_id.value();
                log.control.push(format!("SynReply {id} {headers:?}"));
            }
            Frame::RstStream(reset) => {
                let (id, status) = (reset.stream_id.value(), reset.status.0);
                log.control.push(format!("RstStream {id} {status}"));
            }
            Frame::GoAway(goaway) => {
                let status = goaway.status.map_or(0, |status| status.0);
                log.control
                    .push(format!("GoAway {} {status}", goaway.last_good.value()));
            }
            other => panic!("{other:?}"),
        }
    }
}

fn transcripts() -> Vec<Transcript> {
    serde_json::from_slice(&read("frames.json")).expect("frames.json")
}

fn read(name: &str) -> Vec<u8> {
    let path = format!(
        "{}/../../vectors/kubernetes/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Splits the HTTP head off.
fn without_head(bytes: &[u8]) -> (&[u8], &[u8]) {
    let end = bytes
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .expect("a head")
        + 4;
    bytes.split_at(end)
}

const OFFERS: [&str; 2] = ["v4.channel.k8s.io", "portforward.k8s.io"];

/// A server's session over `io` to its end; every stream is answered and read.
async fn serve<T: AsyncRead + AsyncWrite + Unpin + Send + 'static>(io: T) -> SideLog {
    let listener = Arc::new(Listener::default());
    let builder = upgrade::server_builder().observer(listener.clone());
    let (mut accept, connection) = builder.handshake(io, runtime());
    connection.spawn();
    let mut open = Vec::new();
    while let Some(incoming) = accept.next().await {
        open.extend(incoming.accept_raw(&HeaderBlock::new()));
    }
    drop(open);
    std::mem::take(&mut listener.0.lock().expect("one thread"))
}

#[tokio::test]
async fn our_server_reads_recorded_client_go_with_any_split() {
    for Transcript { name, frames } in transcripts() {
        let Some(frames) = frames else { continue };
        let recorded = read(&format!("{name}.c2s.bin"));
        for size in [1, 5, recorded.len()] {
            let (mut near, far) = tokio::io::duplex(64 * 1024);
            let server_task = tokio::spawn(async move {
                let offer = upgrade::read_request(far, Limits::default(), &runtime())
                    .await
                    .expect("a request");
                let upgraded = offer.accept(&OFFERS).await.expect("a switch");
                serve(upgraded.into_io()).await
            });
            let (mut from, mut to) = tokio::io::split(&mut near);
            let write = async {
                for piece in recorded.chunks(size) {
                    to.write_all(piece).await.expect("written");
                }
                to.shutdown().await.expect("an end");
            };
            let mut response = Vec::new();
            let ((), read_result) = tokio::join!(write, from.read_to_end(&mut response));
            read_result.expect("an end");
            let log = server_task.await.expect("no panic");
            assert_eq!(log, SideLog::of(&frames.c2s), "{name} in pieces of {size}");
        }
    }
}

#[tokio::test]
async fn our_client_reads_the_recorded_kubelet() {
    for Transcript { name, frames } in transcripts() {
        let Some(frames) = frames else { continue };
        let recorded = read(&format!("{name}.s2c.bin"));
        let (head, bytes) = without_head(&recorded);
        let (near, mut far) = tokio::io::duplex(256 * 1024);
        far.write_all(head).await.expect("room");
        let request = post("http://kubelet/exec/token");
        let upgraded = upgrade::connect(near, &request, &OFFERS, Limits::default(), &runtime())
            .await
            .expect("a switch");
        let listener = Arc::new(Listener::default());
        let builder = upgrade::client_builder().observer(listener.clone());
        let (session, connection) = builder.handshake(upgraded.into_io(), runtime());
        connection.spawn();
        let mut channels = Vec::new();
        for frame in frames
            .c2s
            .iter()
            .filter(|frame| frame.r#type == "SynStream")
        {
            let block = HeaderBlock::from_iter([("streamtype", "any")]);
            let stream = session
                .open(block, OpenOptions::default())
                .await
                .expect("a stream");
            assert_eq!(stream.id().value(), frame.stream);
            channels.push(Channel::new(stream));
        }
        // The request, and then the first of our frames: now the kubelet may answer.
        let (mut buffer, mut request_bytes) = ([0; 1024], Vec::new());
        while without_head_len(&request_bytes) == 0 {
            let len = far.read(&mut buffer).await.expect("a request");
            request_bytes.extend_from_slice(&buffer[..len]);
        }
        far.write_all(bytes).await.expect("room");
        for (channel, frame) in channels.iter_mut().zip(1..) {
            let stream = 2 * frame - 1;
            let mut data = Vec::new();
            channel
                .read_to_end(&mut data)
                .await
                .expect("an end, by FIN or CANCEL");
            let expected_log = SideLog::of(&frames.s2c);
            let expected_len = expected_log.data.get(&stream).map_or(0, |data| data.0);
            assert_eq!(data.len(), expected_len, "{name} stream {stream}");
        }
        far.shutdown().await.expect("an end");
        session.closed().await;
        let log = std::mem::take(&mut *listener.0.lock().expect("one thread"));
        assert_eq!(log, SideLog::of(&frames.s2c), "{name}");
    }
}

/// Bytes behind the HTTP head, if it is all there.
fn without_head_len(bytes: &[u8]) -> usize {
    match bytes.windows(4).any(|four| four == b"\r\n\r\n") {
        true => without_head(bytes).1.len(),
        false => 0,
    }
}

#[tokio::test]
async fn our_tunnel_reads_recorded_client_go_over_websocket() {
    let recorded = read("ws_portforward.c2s.bin");
    let (head, bytes) = without_head(&recorded);
    assert!(String::from_utf8_lossy(head).contains("SPDY/3.1+portforward.k8s.io"));
    for size in [1, bytes.len()] {
        let (mut near, far) = tokio::io::duplex(64 * 1024);
        let server_task = tokio::spawn(async move { serve(Tunnel::server(far).await).await });
        for piece in bytes.chunks(size) {
            near.write_all(piece).await.expect("written");
        }
        near.shutdown().await.expect("an end");
        let log = server_task.await.expect("no panic");
        let kinds: Vec<_> = ["error", "data"]
            .iter()
            .map(|kind| {
                log.control
                    .iter()
                    .any(|frame| frame.contains(&format!("\"streamtype\", \"{kind}\"")))
            })
            .collect();
        assert_eq!(kinds, [true, true], "{log:?}");
        assert!(
            log.data.values().any(|data| *data == (2000, true)),
            "{log:?}"
        );
    }
}

/// The bytes that client-go sent through `cat`, by WebSocket to the API server's translator.
const HELLO: &[u8] = b"hello over SPDY\n";

#[tokio::test]
async fn our_server_sends_the_same_websocket_bytes_as_the_api_server() {
    let (client_bytes, server_bytes) = (read("ws_exec.c2s.bin"), read("ws_exec.s2c.bin"));
    let (head, messages) = without_head(&client_bytes);
    let head = String::from_utf8_lossy(head);
    // Its own close answers the server's.
    let (messages, close) = messages.split_at(messages.len() - 8);
    for size in [1, messages.len()] {
        let server = fake_runtime(Config::default());
        let url = server.exec_url(exec(&["cat"], PIPES)).expect("a URL");
        let (_, path) = url.split_at(url.find("/exec/").expect("a path"));
        let mut io = dial(&server);
        let head = head.replace("/ws/exec?cmd=cat", path);
        io.write_all(head.as_bytes()).await.expect("written");
        for piece in messages.chunks(size) {
            io.write_all(piece).await.expect("written");
        }
        let mut response = Vec::new();
        while !response.ends_with(b"\x88\x02\x03\xe8") {
            response.push(io.read_u8().await.expect("a close"));
        }
        io.write_all(close).await.expect("written");
        io.read_to_end(&mut response).await.expect("an end");
        let (head, messages) = without_head(&response);
        let head = String::from_utf8_lossy(head).to_lowercase();
        for line in String::from_utf8_lossy(without_head(&server_bytes).0).lines() {
            // The key of the answer is in the letters of base64.
            assert!(head.contains(&line.to_lowercase()), "{line:?} in {head:?}");
        }
        assert_eq!(
            messages,
            without_head(&server_bytes).1,
            "in pieces of {size}"
        );
    }
}

#[tokio::test]
async fn our_client_reads_the_recorded_api_server_over_websocket() {
    let server_bytes = read("ws_exec.s2c.bin");
    let (head, messages) = without_head(&server_bytes);
    for size in [1, messages.len()] {
        let (near, mut far) = tokio::io::duplex(64 * 1024);
        let head = String::from_utf8_lossy(head).into_owned();
        let messages = messages.to_vec();
        let server_task = tokio::spawn(async move {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(far.read_u8().await.expect("a head"));
            }
            let request = String::from_utf8(request).expect("text");
            let mut lines = request.lines().filter_map(|line| line.split_once(": "));
            let key = lines.find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-key"));
            let accept_key = derive_accept_key(key.expect("a key").1.as_bytes());
            let head = head.replace("l2av7rxFoP5KO43NSdYrIW7+yP0=", &accept_key);
            far.write_all(head.as_bytes()).await.expect("written");
            for piece in messages.chunks(size) {
                far.write_all(piece).await.expect("written");
            }
            far
        });
        let request = post("http://api/exec");
        let options = Options::default();
        let mut process = client::exec_in_websocket(near, &request, PIPES, options, runtime())
            .await
            .expect("a process");
        let far = server_task.await.expect("no panic");
        let mut output = Vec::new();
        let mut stdout = process.stdout.take().expect("the stream was requested");
        stdout.read_to_end(&mut output).await.expect("an end");
        assert_eq!(output, HELLO);
        assert!(process.wait().await.expect("a status").is_success());
        drop(far);
    }
}
