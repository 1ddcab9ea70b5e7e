//! Long bodies on their way to origins: of all connections to one origin they hold so many and no more.
//!
//! A body that is here before its origin is asked holds a connection for as long as that takes. One that is longer than its
//! [beginning](crate::client_body::BEGINNING) comes at its client's pace, and holds a connection for as long as the client likes to
//! make it: with as many of them as there are connections nobody else would be served.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use spdy::body::{Body, BoxError};
use spdy_client::origin::Origin;
use tokio::sync::OwnedSemaphorePermit;

use crate::seats::Seats;

/// The seats of long bodies, by origin.
#[derive(Debug)]
pub(crate) struct Uploads {
    most: usize,
    seats: Seats<Origin>,
}

impl Uploads {
    /// So many at a time to one origin.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            seats: Seats::default(),
        }
    }

    /// A seat for a body to `origin`, once one is free.
    pub(crate) async fn seat(&self, origin: &Origin) -> OwnedSemaphorePermit {
        self.seats.seat(origin.clone(), self.most).await
    }
}

/// A body that has a seat until it ends.
pub(crate) fn seated(body: Body, seat: OwnedSemaphorePermit) -> Body {
    Body::wrap(Seated {
        body,
        seat: Some(seat),
    })
}

struct Seated {
    body: Body,
    seat: Option<OwnedSemaphorePermit>,
}

impl http_body::Body for Seated {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) || self.body.is_end_stream() {
            self.seat = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
