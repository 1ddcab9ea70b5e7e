//! Reads all unidirectional streams of the peer (RFC 9114 §6.2).
//!
//! ```text
//!   00 | SETTINGS .. | GOAWAY, PRIORITY_UPDATE, ..      the control stream: once, and never closed
//!   01 a push: none is allowed       02, 03 QPACK: instructions of the encoder and of the decoder, once each
//!   others: refused with STOP_SENDING
//! ```

use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use futures_util::stream::FuturesUnordered;
use octets::Octets;
use parking_lot::Mutex;

use crate::code::Code;
use crate::compression::HeaderCompression;
use crate::control::control_stream::{ControlEvent, read_control_stream};
use crate::control::qpack_streams::{read_qpack_decoder, read_qpack_encoder};
use crate::fault::Fault;
use crate::flood_budget::FloodBudget;
use crate::role::Role;

/// Reads every unidirectional stream of the peer, and calls `on` with its events, until a fault occurs.
pub(crate) async fn read_uni_streams(
    connection: quinn::Connection,
    role: Role,
    floods: Option<FloodBudget>,
    compression: HeaderCompression,
    on: impl Fn(ControlEvent) + Send + Sync,
) -> Fault {
    let seen = Arc::new(Mutex::new([false; 3]));
    let mut open = FuturesUnordered::new();
    let mut accepted = Box::pin(futures_util::stream::unfold(connection, |it| async {
        Some((it.accept_uni().await, it))
    }));
    loop {
        let next = match select(accepted.next(), pin!(next_of(&mut open))).await {
            Either::Left((stream, _)) => stream.unwrap_or(Err(quinn::ConnectionError::Reset)),
            Either::Right((Err(fault), _)) => return fault,
            Either::Right((Ok(()), _)) => continue,
        };
        match next {
            Ok(stream) => open.push(read_uni_stream(
                stream,
                role,
                seen.clone(),
                floods.clone(),
                &compression,
                &on,
            )),
            Err(lost) => return lost.into(),
        }
    }
}

/// Waits for the next stream that ends. Does not complete while there is no stream.
async fn next_of<F: Future>(open: &mut FuturesUnordered<F>) -> F::Output {
    match open.next().await {
        Some(ended) => ended,
        None => std::future::pending().await,
    }
}

/// Reads one stream to its end.
async fn read_uni_stream(
    mut stream: quinn::RecvStream,
    role: Role,
    seen: Arc<Mutex<[bool; 3]>>,
    floods: Option<FloodBudget>,
    compression: &HeaderCompression,
    on: &impl Fn(ControlEvent),
) -> Result<(), Fault> {
    let Some(kind) = read_varint(&mut stream).await? else {
        return count(&floods); // ended before its type arrived
    };
    let once = |which: usize| {
        let mut seen = seen.lock();
        match std::mem::replace(&mut seen[which], true) {
            false => Ok(()),
            true => {
                let reason = format!("second stream of type {kind}");
                Err(Fault::Connection(Code::STREAM_CREATION_ERROR, reason))
            }
        }
    };
    match (kind, role) {
        (0x00, _) => {
            once(0)?;
            read_control_stream(stream, role, floods, on).await
        }
        (0x01, Role::Client) => {
            let reason = "push stream, but no push is allowed".to_owned();
            Err(Fault::Connection(Code::ID_ERROR, reason))
        }
        (0x01, Role::Server) => {
            let reason = "push stream from a client".to_owned();
            Err(Fault::Connection(Code::STREAM_CREATION_ERROR, reason))
        }
        (0x02, _) => {
            once(1)?;
            read_qpack_encoder(stream, floods, compression).await
        }
        (0x03, _) => {
            once(2)?;
            read_qpack_decoder(stream, floods, compression).await
        }
        _ => {
            count(&floods)?;
            let _ = stream.stop(Code::STREAM_CREATION_ERROR.wire());
            Ok(())
        }
    }
}

/// Reads the integer at the start of a stream; `None` if the stream ends within it.
async fn read_varint(stream: &mut quinn::RecvStream) -> Result<Option<u64>, Fault> {
    let mut bytes = [0; 8];
    let mut len = 0;
    loop {
        if let Ok(value) = Octets::with_slice(&bytes[..len]).get_varint() {
            return Ok(Some(value));
        }
        // One byte at a time: the reader of that stream type needs the following bytes.
        match stream.read(&mut bytes[len..=len]).await {
            Ok(Some(1)) => len += 1,
            Ok(_) | Err(quinn::ReadError::Reset(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Counts a frame or chunk that carries nothing.
fn count(floods: &Option<FloodBudget>) -> Result<(), Fault> {
    floods.as_ref().map_or(Ok(()), FloodBudget::empty_frame)
}
