//! An HTTP/1.1 origin without TLS with WebSockets, by tungstenite: an empty page, and a few targets with fixed behaviour.
//!
//! ```text
//!  /echo      accepts the protocol `chat` if it is offered, echoes messages, and closes the WebSocket after the message `enough`
//!  /refused   403
//!  any other  a page
//! ```

use std::io::{BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use tungstenite::handshake::derive_accept_key;
use tungstenite::protocol::frame::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{Role, WebSocket};
use tungstenite::{Error, Message};

use crate::support::origins::echo::ReceivedRequest;

/// The message after which the origin closes a WebSocket.
pub(crate) const ENOUGH: &str = "enough";
/// The close code that it sends then.
pub(crate) const ENOUGH_CODE: u16 = 4002;

/// An origin that listens until the test process ends.
#[derive(Clone)]
pub(crate) struct SocketOrigin {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
}

impl SocketOrigin {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
        let origin = Self {
            address: listener.local_addr().expect("a bound socket"),
            requests: Arc::default(),
        };
        let server = origin.clone();
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let server = server.clone();
                // A client that disconnects early is no error.
                thread::spawn(move || _ = server.serve(&socket));
            }
        });
        origin
    }

    /// Requests for `target` so far.
    pub(crate) fn requests_to(&self, target: &str) -> Vec<ReceivedRequest> {
        let mut requests = self.requests.lock().expect("no thread panicked").clone();
        requests.retain(|request| request.target() == target);
        requests
    }

    fn serve(&self, socket: &TcpStream) -> Result<(), Error> {
        let mut reader = BufReader::new(socket);
        while let Some(request) = ReceivedRequest::read(&mut reader)? {
            self.requests
                .lock()
                .expect("no thread panicked")
                .push(request.clone());
            let mut writer = socket;
            let key = request.values("sec-websocket-key");
            match (request.target().as_str(), key.first()) {
                ("/echo", Some(key)) => {
                    let offered = request.values("sec-websocket-protocol").join(",");
                    let is_offered = offered.split(',').any(|protocol| protocol.trim() == "chat");
                    let chosen = if is_offered {
                        "Sec-WebSocket-Protocol: chat\r\n"
                    } else {
                        ""
                    };
                    let accept = derive_accept_key(key.as_bytes());
                    write!(
                        writer,
                        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                         Sec-WebSocket-Accept: {accept}\r\n{chosen}\r\n"
                    )?;
                    let early = reader.buffer().to_vec();
                    return echo(WebSocket::from_partially_read(
                        socket,
                        early,
                        Role::Server,
                        None,
                    ));
                }
                ("/refused", _) => {
                    write!(
                        writer,
                        "HTTP/1.1 403 Forbidden\r\nContent-Length: 3\r\n\r\nno\n"
                    )?;
                }
                _ => {
                    let page = "<!doctype html><title>sockets</title><link rel=icon href='data:,'>";
                    let length = page.len();
                    write!(
                        writer,
                        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n{page}"
                    )?;
                }
            }
        }
        Ok(())
    }
}

fn echo(mut socket: WebSocket<&TcpStream>) -> Result<(), Error> {
    loop {
        let message = socket.read()?;
        if message == Message::text(ENOUGH) {
            let code = CloseCode::from(ENOUGH_CODE);
            let reason = "enough messages".into();
            socket.close(Some(CloseFrame { code, reason }))?;
        } else if message.is_text() || message.is_binary() {
            socket.send(message)?;
        }
    }
}
