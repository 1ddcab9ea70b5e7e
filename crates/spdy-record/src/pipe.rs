//! The DevTools protocol over two pipes: JSON messages, each ended by a NUL.
//!
//! ```text
//! ours  {"id":7,"method":"Page.navigate","params":{…},"sessionId":"…"}␀
//! its   {"id":7,"result":{…},"sessionId":"…"}␀          the answer
//! its   {"method":"Network.requestWillBeSent","params":{…},"sessionId":"…"}␀
//! ```

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};

use crate::error::RecordError;

/// Bytes that are read at a time.
const READ: usize = 64 << 10;

/// One message of the browser.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// All of it.
    pub(crate) text: String,
    /// What it is.
    pub(crate) head: Head,
}

/// What every message says of itself.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Head {
    /// The command that it answers.
    pub(crate) id: Option<u64>,
    /// The event that it tells.
    pub(crate) method: Option<String>,
    /// The frame or worker that it is of; none for the browser itself.
    pub(crate) session_id: Option<String>,
}

/// Both pipes.
#[derive(Debug)]
pub(crate) struct Pipe {
    to: ChildStdin,
    from: ChildStdout,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that were looked through for a NUL.
    scanned: usize,
    last_id: u64,
    message_bytes: usize,
}

impl Pipe {
    pub(crate) fn new(to: ChildStdin, from: ChildStdout, message_bytes: usize) -> Self {
        Self {
            to,
            from,
            buffer: Vec::new(),
            scanned: 0,
            last_id: 0,
            message_bytes,
        }
    }

    /// Sends a command, and gives the id that its answer will have; `None` if the browser does not listen any more.
    pub(crate) async fn send(
        &mut self,
        session: Option<&str>,
        method: &str,
        params: &Value,
    ) -> Option<u64> {
        self.last_id += 1;
        let mut command = json!({"id": self.last_id, "method": method, "params": params});
        if let Some(session) = session {
            command["sessionId"] = session.into();
        }
        let mut text = command.to_string().into_bytes();
        text.push(0);
        self.to.write_all(&text).await.ok()?;
        self.to.flush().await.ok()?;
        Some(self.last_id)
    }

    /// The next message; `None` once the browser has closed its side. May be dropped and called again: nothing is lost.
    ///
    /// # Errors
    ///
    /// [`RecordError::Message`] if it is too long.
    pub(crate) async fn next(&mut self) -> Result<Option<Message>, RecordError> {
        loop {
            let end = self.buffer[self.scanned..]
                .iter()
                .position(|&byte| byte == 0);
            if let Some(end) = end {
                let message: Vec<u8> = self.buffer.drain(..=self.scanned + end).collect();
                self.scanned = 0;
                let text = String::from_utf8_lossy(&message[..message.len() - 1]).into_owned();
                // What is no message has no head, and nobody looks at it.
                let head = serde_json::from_str(&text).unwrap_or_default();
                return Ok(Some(Message { text, head }));
            }
            self.scanned = self.buffer.len();
            if self.scanned > self.message_bytes {
                let limit = self.message_bytes;
                return Err(RecordError::Message { limit });
            }
            self.buffer.reserve(READ);
            match self.from.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return Ok(None),
                Ok(_) => {}
            }
        }
    }
}
