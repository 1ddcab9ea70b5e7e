//! The body of a request, which remembers whether its client failed to send it: what then goes wrong is not the origin's fault.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use spdy::body::{Body, BoxError};

/// Whether a body ended before its end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Broken(Arc<AtomicBool>);

impl Broken {
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// `body`, and what tells whether it broke.
pub(crate) fn watched(body: Body) -> (Body, Broken) {
    let broken = Broken::default();
    let watched = match body.is_end_stream() {
        true => body,
        false => Body::wrap(ClientBody {
            body,
            broken: broken.clone(),
        }),
    };
    (watched, broken)
}

struct ClientBody {
    body: Body,
    broken: Broken,
}

impl http_body::Body for ClientBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        if let Some(Err(_)) = &frame {
            self.broken.0.store(true, Ordering::Relaxed);
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
