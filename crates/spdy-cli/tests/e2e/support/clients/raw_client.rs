//! A client of HTTP/1.1 that sends bytes as they are, and knows a whole answer from half of one.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use spdy_testkit::wait::WAIT_LIMIT;

/// Bytes up to which each piece of an answer is looked at for its end.
const EAGER_CHECK_BYTES: usize = 1 << 16;

/// An answer that is on its way.
pub(crate) struct PendingResponse(TcpStream);

impl PendingResponse {
    /// Sends `bytes` to `server`.
    pub(crate) fn begin(server: SocketAddr, bytes: &[u8]) -> Self {
        Self::try_begin(server, bytes).expect("connect")
    }

    /// The same, to a server that may be gone.
    pub(crate) fn try_begin(server: SocketAddr, bytes: &[u8]) -> std::io::Result<Self> {
        let mut socket = TcpStream::connect(server)?;
        socket.set_read_timeout(Some(WAIT_LIMIT))?;
        // An answer may come, and the connection end, before all of it is sent.
        let _ = socket.write_all(bytes);
        Ok(Self(socket))
    }

    /// The first response as far as it comes, or its first `max_len` bytes.
    pub(crate) fn end(mut self, max_len: usize) -> RawResponse {
        let mut bytes = Vec::new();
        let mut piece = vec![0; 1 << 18];
        while bytes.len() < max_len {
            // A reset is as good an end as any; what came before it counts.
            match self.0.read(&mut piece) {
                Ok(len @ 1..) => bytes.extend_from_slice(&piece[..len]),
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

/// What came back.
#[derive(Clone, Debug, Default)]
pub(crate) struct RawResponse {
    /// 0 where there is no answer at all.
    pub(crate) status: u16,
    /// Status line to blank line.
    pub(crate) head: String,
    /// Without chunks.
    pub(crate) body: Vec<u8>,
    /// The response is complete, as far as the client can see.
    pub(crate) is_whole: bool,
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
            is_whole: true,
            head,
        };
        if let Some(length) = response.field("content-length") {
            response.is_whole = length.parse() == Ok(rest.len());
        } else if response.field("transfer-encoding").is_some() {
            (response.body, response.is_whole) = unchunked(rest);
        }
        response
    }

    /// Whether nothing can follow, by its own word.
    fn has_ended(&self) -> bool {
        let length_fields = ["content-length", "transfer-encoding"];
        self.is_whole && length_fields.iter().any(|name| self.field(name).is_some())
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

/// The body in `rest`, and whether its last chunk is there.
fn unchunked(mut rest: &[u8]) -> (Vec<u8>, bool) {
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
