//! The server's application: the paths that the inputs request.

use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response};
use spdy::Body;

/// The answer to `request`.
pub(crate) async fn respond(request: Request<Body>) -> Response<Body> {
    match request.uri().path() {
        "/hold" => {
            let _unread = request;
            std::future::pending().await
        }
        "/big" => Response::new(Body::full(vec![b'b'; 200_000])),
        "/sink" => Response::new(sink(request.into_body())),
        _ => match request.into_body().collect_up_to(1 << 20).await {
            Ok(_) => Response::new(Body::from("ok\r\n")),
            // The request was cancelled, or its length is wrong: the response does not matter.
            Err(_) => Response::new(Body::empty()),
        },
    }
}

/// `go` at once, and when all was read its length.
fn sink(body: Body) -> Body {
    let go = stream::iter([Ok::<_, spdy::BoxError>(Bytes::from_static(b"go"))]);
    let length = stream::once(async move {
        let bytes = body.collect_up_to(1 << 20).await?;
        Ok(Bytes::from(bytes.len().to_string()))
    });
    Body::from_stream(futures_util::StreamExt::chain(go, length))
}
