//! What `spdy fetch --push accept` does with pushes: claimed by a request they are its answer; the others are
//! read too, after the last request.

use std::time::Duration;

use futures_util::StreamExt;
use http_body_util::BodyExt;
use spdy::body::{Body, BoxError};
use spdy_client::client::UnclaimedPush;

use super::request::Destination;
use super::result::{FetchResult, PushReport};
use super::transfer::receive;

/// Default timeout of a push.
const PUSH_TIMEOUT: Duration = Duration::from_secs(60);

/// A body that fails at its first byte past `most`; its stream is then cancelled.
fn limit_body(body: Body, most: u64) -> Body {
    let mut remaining = most;
    let pieces = body.into_data_stream().map(move |piece| {
        let piece = piece?;
        remaining = remaining
            .checked_sub(piece.len() as u64)
            .ok_or_else(|| BoxError::from("unclaimed pushes exceed the limit (--push-bytes)"))?;
        Ok::<_, BoxError>(piece)
    });
    Body::from_stream(pieces)
}

/// Reads a push that no request claimed: at most `most` bytes, within `limit`.
pub(crate) async fn read(
    offered: UnclaimedPush,
    destination: &Destination,
    most: u64,
    limit: Option<Duration>,
) -> FetchResult {
    let UnclaimedPush {
        connection,
        route,
        push,
        ..
    } = offered;
    let mut fetched = FetchResult::of_push(&push.request().uri, connection, &route);
    let report = PushReport {
        stream: push.id().value(),
        associated_to: push.associated_to().value(),
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
        Err(_) => Err(format!("timeout after {limit:?}")),
    };
    fetched.error = outcome.err();
    fetched.pushed = Some(report);
    fetched
}
