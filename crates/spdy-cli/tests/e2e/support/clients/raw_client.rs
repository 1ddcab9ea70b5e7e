//! An HTTP/1.1 client that sends bytes unchanged and detects incomplete responses.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use spdy_testkit::wait::WAIT_LIMIT;

/// While a response has fewer bytes, it is checked for completeness after each read.
const EAGER_CHECK_BYTES: usize = 1 << 16;

/// A response that is not read yet.
pub(crate) struct PendingResponse(TcpStream);

impl PendingResponse {
    /// Sends `bytes` to `server`.
    pub(crate) fn begin(server: SocketAddr, bytes: &[u8]) -> Self {
        Self::try_begin(server, bytes).expect("connect")
    }

    /// Like [`begin`](Self::begin), for a server that may be gone.
    pub(crate) fn try_begin(server: SocketAddr, bytes: &[u8]) -> std::io::Result<Self> {
        let mut socket = TcpStream::connect(server)?;
        socket.set_read_timeout(Some(WAIT_LIMIT))?;
        // The server may respond and close the connection before all of it is sent.
        let _ = socket.write_all(bytes);
        Ok(Self(socket))
    }

    /// Reads the first response up to the end of the connection, or its first `max_len` bytes.
    pub(crate) fn end(mut self, max_len: usize) -> RawResponse {
        let mut bytes = Vec::new();
        let mut buffer = vec![0; 1 << 18];
        while bytes.len() < max_len {
            // A reset also ends the response; the bytes before it count.
            match self.0.read(&mut buffer) {
                Ok(len @ 1..) => bytes.extend_from_slice(&buffer[..len]),
                _ => break,
            }
            // Does not wait for a server that keeps the connection open after a small response.
            if bytes.len() < EAGER_CHECK_BYTES && RawResponse::of(&bytes).has_ended() {
                break;
            }
        }
        RawResponse::of(&bytes)
    }
}

/// A response.
#[derive(Clone, Debug, Default)]
pub(crate) struct RawResponse {
    /// 0 if there is no response.
    pub(crate) status: u16,
    /// Status line to blank line.
    pub(crate) head: String,
    /// Decoded from chunks.
    pub(crate) body: Vec<u8>,
    /// Whether the response is complete, as far as the client can see.
    pub(crate) is_complete: bool,
}

impl RawResponse {
    fn of(bytes: &[u8]) -> Self {
        let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            return Self::default();
        };
        let head = String::from_utf8_lossy(&bytes[..at + 4]).into_owned();
        let status = head.get(9..12).and_then(|code| code.parse().ok());
        let rest = &bytes[at + 4..];
        let mut response = Self {
            status: status.unwrap_or(0),
            body: rest.to_vec(),
            is_complete: true,
            head,
        };
        if let Some(length) = response.field("content-length") {
            response.is_complete = length.parse() == Ok(rest.len());
        } else if response.field("transfer-encoding").is_some() {
            (response.body, response.is_complete) = decode_chunks(rest);
        }
        response
    }

    /// Whether the response's own framing says that it is complete.
    fn has_ended(&self) -> bool {
        let length_fields = ["content-length", "transfer-encoding"];
        self.is_complete && length_fields.iter().any(|name| self.field(name).is_some())
    }

    /// The first field of that name.
    pub(crate) fn field(&self, name: &str) -> Option<String> {
        let mut lines = self.head.lines().skip(1);
        lines.find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field
                .eq_ignore_ascii_case(name)
                .then(|| value.trim().to_owned())
        })
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// The decoded body in `rest`, and whether it has the last chunk.
fn decode_chunks(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(at) = rest.windows(2).position(|two| two == b"\r\n") else {
            return (body, false);
        };
        let len = std::str::from_utf8(&rest[..at]).ok();
        let len = len.and_then(|len| usize::from_str_radix(len.split(';').next()?.trim(), 16).ok());
        rest = &rest[at + 2..];
        match len {
            Some(0) => return (body, true),
            Some(len) if rest.len() >= len + 2 => {
                body.extend_from_slice(&rest[..len]);
                rest = &rest[len + 2..];
            }
            _ => {
                body.extend_from_slice(rest);
                return (body, false);
            }
        }
    }
}
