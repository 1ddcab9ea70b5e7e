//! Our encoder stream or decoder stream: opened with its first bytes, written as far as QUIC accepts them.
//!
//! The stream that has bytes for it writes them at once, so that they leave before the section that needs them. A task of the
//! connection writes the rest.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, BufMut, BytesMut};
use spdy::runtime::BoxFuture;

use crate::code::Code;
use crate::control::{CONTROL_PRIORITY, critical_fault};
use crate::fault::Fault;

/// Limit of bytes that a peer's flow control may leave in the queue. One more ends the connection.
const MAX_QUEUE_BYTES: usize = 16 * 1024;

/// A stream of instructions.
pub(super) struct InstructionStream {
    connection: quinn::Connection,
    /// The type of the stream.
    kind: u8,
    opening: Option<BoxFuture<Result<quinn::SendStream, quinn::ConnectionError>>>,
    stream: Option<quinn::SendStream>,
    /// Completes when the peer stops the stream, or the connection is lost.
    stopped: Option<BoxFuture<bool>>,
    /// Bytes that QUIC has not accepted.
    queue: BytesMut,
    fault: Option<Fault>,
    /// Wakes the task that drives the stream.
    task: Waker,
}

impl InstructionStream {
    pub(super) fn new(connection: quinn::Connection, kind: u8) -> Self {
        Self {
            connection,
            kind,
            opening: None,
            stream: None,
            stopped: None,
            queue: BytesMut::new(),
            fault: None,
            task: Waker::noop().clone(),
        }
    }

    /// Sends `bytes`. Returns true if QUIC has accepted everything.
    pub(super) fn send(&mut self, bytes: &[u8]) -> bool {
        self.queue.extend_from_slice(bytes);
        let is_empty = self.flush().unwrap_or_else(|fault| {
            self.fault = Some(fault);
            self.task.wake_by_ref();
            false
        });
        if self.queue.len() > MAX_QUEUE_BYTES {
            let reason = format!("more than {MAX_QUEUE_BYTES} bytes of QPACK instructions wait");
            self.fault = Some(Fault::Connection(Code::EXCESSIVE_LOAD, reason));
            self.task.wake_by_ref();
        }
        is_empty
    }

    /// True if no bytes wait for QUIC.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Passes the queue to QUIC. Returns true if QUIC accepted all of it.
    fn flush(&mut self) -> Result<bool, Fault> {
        let task = self.task.clone();
        let mut cx = Context::from_waker(&task);
        while !self.queue.is_empty() {
            let Some(stream) = &mut self.stream else {
                let connection = self.connection.clone();
                let opening = self
                    .opening
                    .get_or_insert_with(|| Box::pin(async move { connection.open_uni().await }));
                let Poll::Ready(opened) = opening.as_mut().poll(&mut cx) else {
                    return Ok(false);
                };
                self.opening = None;
                self.open(opened?);
                continue;
            };
            let written = pin!(stream.write(&self.queue)).poll(&mut cx);
            match written {
                Poll::Ready(Ok(len)) => self.queue.advance(len),
                Poll::Ready(Err(quinn::WriteError::Stopped(_))) => {
                    return Err(critical_fault("stopped"));
                }
                Poll::Ready(Err(error)) => return Err(error.into()),
                Poll::Pending => return Ok(false),
            }
        }
        Ok(true)
    }

    fn open(&mut self, stream: quinn::SendStream) {
        let _ = stream.set_priority(CONTROL_PRIORITY); // fails only for a stream that is gone
        let stopped = stream.stopped();
        self.stopped = Some(Box::pin(async move { stopped.await.is_ok() }));
        self.task.wake_by_ref(); // it polls `stopped`
        self.stream = Some(stream);
        let instructions = self.queue.split();
        self.queue.put_u8(self.kind);
        self.queue.put_slice(&instructions);
    }

    /// Writes what is queued. Ready with the error of the connection.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Fault> {
        self.task.clone_from(cx.waker());
        if let Err(fault) = self.flush() {
            self.fault.get_or_insert(fault);
        }
        if let Some(stopped) = &mut self.stopped
            && let Poll::Ready(is_stopped) = stopped.as_mut().poll(cx)
        {
            self.stopped = None;
            if is_stopped {
                return Poll::Ready(critical_fault("stopped"));
            }
        }
        match self.fault.take() {
            // The connection's reader reports that, with its reason.
            None | Some(Fault::Lost(_)) => Poll::Pending,
            Some(fault) => Poll::Ready(fault),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loopback;
    use crate::quic::MAX_UNI_STREAMS;

    #[tokio::test]
    async fn instructions_that_the_peer_does_not_accept_have_a_limit() {
        let (client, _server) = loopback::pair().await;
        let mut open = Vec::new();
        for _ in 0..MAX_UNI_STREAMS {
            open.push(client.connection.open_uni().await.unwrap());
        }
        let mut stream = InstructionStream::new(client.connection.clone(), 0x03);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(!stream.send(&vec![0x40; MAX_QUEUE_BYTES]));
        assert!(stream.poll(&mut cx).is_pending());
        assert!(!stream.send(&[0x40]));
        let Poll::Ready(Fault::Connection(code, _)) = stream.poll(&mut cx) else {
            panic!("the queue has no limit");
        };
        assert_eq!(code, Code::EXCESSIVE_LOAD);
    }
}
