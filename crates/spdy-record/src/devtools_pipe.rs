//! The DevTools protocol over two pipes: JSON messages, each ended by a NUL.
//!
//! ```text
//! ours  {"id":7,"method":"Page.navigate","params":{…},"sessionId":"…"}␀
//! its   {"id":7,"result":{…},"sessionId":"…"}␀          the response
//! its   {"method":"Network.requestWillBeSent","params":{…},"sessionId":"…"}␀
//! ```

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, ChildStdout};

use crate::error::RecordError;

/// Bytes of one read.
const READ: usize = 64 << 10;

/// One message of the browser.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// The whole text.
    pub(crate) text: String,
    /// Its common fields.
    pub(crate) head: Head,
}

/// The common fields of messages.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Head {
    /// The command of a response.
    pub(crate) id: Option<u64>,
    /// The name of an event.
    pub(crate) method: Option<String>,
    /// Its frame or worker; `None` for the browser itself.
    pub(crate) session_id: Option<String>,
}

/// Both pipes.
#[derive(Debug)]
pub(crate) struct Pipe {
    to: ChildStdin,
    from: ChildStdout,
    buffer: Vec<u8>,
    /// Bytes of `buffer` that contain no NUL.
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

    /// Sends a command, and returns the id of its response; `None` if the browser no longer reads.
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

    /// The next message; `None` once the browser has closed its side. Cancel safe.
    ///
    /// # Errors
    ///
    /// [`RecordError::Message`] if it is too long.
    pub(crate) async fn next(&mut self) -> Result<Option<Message>, RecordError> {
        loop {
            let unread = &self.buffer[self.scanned..];
            let end = unread.iter().position(|&byte| byte == 0);
            let len = self.scanned + end.unwrap_or(unread.len());
            if len > self.message_bytes {
                let limit = self.message_bytes;
                return Err(RecordError::Message { limit });
            }
            if end.is_some() {
                let message: Vec<u8> = self.buffer.drain(..=len).collect();
                self.scanned = 0;
                let text = String::from_utf8_lossy(&message[..len]).into_owned();
                // Text that is not a message gets an empty head, which matches nothing.
                let head = serde_json::from_str(&text).unwrap_or_default();
                return Ok(Some(Message { text, head }));
            }
            self.scanned = len;
            self.buffer.reserve(READ);
            match self.from.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return Ok(None),
                Ok(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use tokio::process::{Child, Command};

    use super::*;

    /// A fake browser that prints `output`, and then echoes its input.
    fn browser(output: &str, message_bytes: usize) -> (Child, Pipe) {
        let mut command = Command::new("sh");
        let command = command.args(["-c", "printf \"$1\"; exec cat", "sh", output]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command
            .kill_on_drop(true)
            .spawn()
            .expect("a shell can be started");
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let (to, from) = (
            to.expect("the stream is a pipe"),
            from.expect("the stream is a pipe"),
        );
        (child, Pipe::new(to, from, message_bytes))
    }

    fn run<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime
            .expect("the runtime can be created")
            .block_on(future)
    }

    #[test]
    fn messages_end_at_a_nul_and_a_command_has_its_own_number() {
        run(async {
            let output = r#"{"id":7}\0{"method":"A.b","sessionId":"s"}\0none\0"#;
            let (_child, mut pipe) = browser(output, 100);
            let mut next = async || pipe.next().await.unwrap().unwrap();
            let (answer, event, none) = (next().await, next().await, next().await);
            assert_eq!(answer.head.id, Some(7));
            assert_eq!(event.head.method.as_deref(), Some("A.b"));
            assert_eq!(event.head.session_id.as_deref(), Some("s"));
            assert_eq!((&none.text[..], none.head.id), ("none", None));

            for id in 1..3 {
                let sent = pipe.send(Some("s"), "C.d", &json!({"e": 1})).await;
                assert_eq!(sent, Some(id));
                let echoed = pipe.next().await.unwrap().unwrap();
                let expected =
                    json!({"id": id, "method": "C.d", "params": {"e": 1}, "sessionId": "s"});
                assert_eq!(
                    serde_json::from_str::<Value>(&echoed.text).unwrap(),
                    expected
                );
            }
        });
    }

    #[test]
    fn a_message_one_byte_past_the_limit_is_refused_with_and_without_an_end() {
        run(async {
            for (output, fits) in [("12345\\0", true), ("123456\\0", false), ("123456", false)] {
                let (_child, mut pipe) = browser(output, 5);
                let message = pipe.next().await;
                let refused = matches!(message, Err(RecordError::Message { limit: 5 }));
                assert_eq!(!refused, fits, "{output}");
            }
        });
    }
}
