//! What `spdy fetch --push accept` does with pushes: claimed by a request they are its answer; the others are
//! read too, after the last request.

use std::time::Duration;

use futures_util::StreamExt;
use http_body_util::BodyExt;
use serde::Serialize;
use spdy::body::{Body, BoxError};
use spdy::client::PushInfo;
use spdy_client::client::UnclaimedPush;

use crate::commands::fetch_transfer::{Destination, FetchResult, receive};
use crate::commands::frame_text::format_count;
use crate::printer::{BOLD, DIM};

/// Default timeout of a push.
const PUSH_TIMEOUT: Duration = Duration::from_secs(60);

/// How a response was pushed.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct PushReport {
    /// Its stream.
    stream: u32,
    /// The stream of the request that it came beside.
    beside: u32,
    /// A request was answered by it.
    claimed: bool,
}

impl PushReport {
    /// Of the response to a request; `None` if the server was asked.
    pub(super) fn of(head: &http::response::Parts) -> Option<Self> {
        let pushed: &PushInfo = head.extensions.get()?;
        Some(Self {
            stream: pushed.id.value(),
            beside: pushed.associated_to.value(),
            claimed: true,
        })
    }

    /// What a person is told of it.
    pub(super) fn line(self, fetched: &FetchResult) -> String {
        let claimed = if self.claimed {
            "claimed"
        } else {
            "not claimed"
        };
        format!(
            "{BOLD}pushed{BOLD:#} {} {DIM}on stream {} beside {}, {}, {claimed}{DIM:#}",
            fetched.url,
            self.stream,
            self.beside,
            format_count(fetched.bytes, "byte"),
        )
    }
}

/// A body that fails with its first byte past `most`; its stream is cancelled then.
fn limit_body(body: Body, most: u64) -> Body {
    let mut left = most;
    let pieces = body.into_data_stream().map(move |piece| {
        let piece = piece?;
        left = left.checked_sub(piece.len() as u64).ok_or_else(|| {
            BoxError::from("pushes that no request claims may bring no more (--push-bytes)")
        })?;
        Ok::<_, BoxError>(piece)
    });
    Body::from_stream(pieces)
}

/// Reads a push that no request claimed: `most` bytes of it, in no more than `limit`.
pub(super) async fn read(
    offered: UnclaimedPush,
    destination: &Destination,
    most: u64,
    limit: Option<Duration>,
) -> FetchResult {
    let UnclaimedPush {
        connection,
        route,
        push,
    } = offered;
    let mut fetched = FetchResult::of_push(&push.request().uri, connection, &route);
    let beside = PushReport {
        stream: push.id().value(),
        beside: push.associated_to().value(),
        claimed: false,
    };
    let reading = async {
        let response = push.response().await.map_err(|error| error.to_string())?;
        let (head, body) = response.into_parts();
        fetched.note(&head);
        receive(
            limit_body(body, most),
            destination,
            |_| Ok(()),
            &mut fetched,
        )
        .await
    };
    let limit = limit.unwrap_or(PUSH_TIMEOUT);
    let outcome = match tokio::time::timeout(limit, reading).await {
        Ok(outcome) => outcome,
        Err(_) => Err(format!("not done within {limit:?}")),
    };
    fetched.error = outcome.err();
    fetched.pushed = Some(beside);
    fetched
}
