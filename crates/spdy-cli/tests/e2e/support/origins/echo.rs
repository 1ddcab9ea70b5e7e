//! An HTTP/1.1 origin without TLS that reads each request completely, records it, and describes it in its response.
//!
//! ```text
//!  GET /a?b HTTP/1.1          200, Cache-Control as configured
//!  host: site.test      ──▶   "GET /a?b of site.test, 0 bytes"
//! ```

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// One received request.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReceivedRequest {
    /// Request line to blank line.
    pub(crate) head: Vec<u8>,
    /// Decoded from chunks.
    pub(crate) body: Vec<u8>,
}

impl ReceivedRequest {
    /// Reads the next request of a connection; `None` at the end.
    pub(crate) fn read(reader: &mut impl BufRead) -> std::io::Result<Option<Self>> {
        let mut request = Self::default();
        while !request.head.ends_with(b"\r\n\r\n") {
            if reader.read_until(b'\n', &mut request.head)? == 0 {
                return Ok(None);
            }
        }
        request.body = read_body(reader, &request)?;
        Ok(Some(request))
    }

    /// The word of the request line at `index`: method, target, version.
    fn word(&self, index: usize) -> String {
        let line = self.head.split(|byte| *byte == b'\r').next();
        let mut words = line.unwrap_or_default().split(|byte| *byte == b' ');
        String::from_utf8_lossy(words.nth(index).unwrap_or_default()).into_owned()
    }

    /// The target of the request line.
    pub(crate) fn target(&self) -> String {
        self.word(1)
    }

    /// All values of a field, one for each line of the head.
    pub(crate) fn values(&self, name: &str) -> Vec<String> {
        let head = String::from_utf8_lossy(&self.head);
        let fields = head.split("\r\n").skip(1);
        let fields = fields.filter_map(|line| line.split_once(':'));
        fields
            .filter(|(field, _)| field.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
            .collect()
    }

    /// The body of the response.
    fn echo(&self) -> String {
        let (method, target, host) = (self.word(0), self.target(), self.values("host").join("+"));
        format!("{method} {target} of {host}, {} bytes", self.body.len())
    }
}

/// An origin that listens until the test process ends.
#[derive(Clone)]
pub(crate) struct EchoOrigin {
    pub(crate) address: SocketAddr,
    requests: Arc<Mutex<Vec<ReceivedRequest>>>,
    cache_control: &'static str,
    delay: Duration,
}

impl EchoOrigin {
    /// Sends `cache_control` with each response, after `delay`.
    pub(crate) fn start(cache_control: &'static str, delay: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
        let origin = Self {
            address: listener.local_addr().expect("a bound socket"),
            requests: Arc::default(),
            cache_control,
            delay,
        };
        let server = origin.clone();
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let server = server.clone();
                // A client that disconnects early is no error.
                thread::spawn(move || _ = server.serve_connection(&socket));
            }
        });
        origin
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.lock().expect("no thread panicked").clone()
    }

    fn serve_connection(&self, socket: &TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(socket);
        while let Some(request) = ReceivedRequest::read(&mut reader)? {
            let text = request.echo();
            let length = text.len();
            self.requests
                .lock()
                .expect("no thread panicked")
                .push(request);
            thread::sleep(self.delay);
            let kind = "application/octet-stream";
            let control = self.cache_control;
            let response = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nCache-Control: {control}\r\n\
                 Content-Length: {length}\r\n\r\n{text}"
            );
            let mut writer = socket;
            writer.write_all(response.as_bytes())?;
        }
        Ok(())
    }
}

fn read_body(reader: &mut impl BufRead, request: &ReceivedRequest) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    if request.values("transfer-encoding").is_empty() {
        let length = request.values("content-length");
        let length: u64 = length
            .first()
            .map_or(Ok(0), |length| length.parse())
            .unwrap_or(0);
        reader.take(length).read_to_end(&mut body)?;
        return Ok(body);
    }
    loop {
        let mut size = String::new();
        reader.read_line(&mut size)?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(std::io::Error::other)?;
        reader.take(size).read_to_end(&mut body)?;
        let mut end = String::new();
        reader.read_line(&mut end)?;
        if size == 0 {
            return Ok(body);
        }
    }
}
