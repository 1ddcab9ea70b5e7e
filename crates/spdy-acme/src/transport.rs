//! How an authority is reached: by our own client, over HTTP/2 or HTTP/1.1.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use spdy::body::Body;
use spdy_client::client::Client;
use spdy_frame::priority::Priority;

/// The longest answer that is read: a chain of certificates is some thousands.
const MAX_ANSWER: usize = 1 << 20;

/// Clones are the same one.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    client: Client,
    /// How long the authority wanted to be left alone when it refused last.
    rest: Arc<Mutex<Option<Duration>>>,
}

impl Transport {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            rest: Arc::default(),
        }
    }

    /// How long the authority wanted to be left alone, if it did since this was asked last.
    pub(crate) fn take_rest(&self) -> Option<Duration> {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        rest.take()
    }

    fn note(&self, response: &Response<Body>) {
        let refused = [
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::SERVICE_UNAVAILABLE,
        ];
        if refused.contains(&response.status()) {
            let told = response.headers().get(header::RETRY_AFTER);
            let told = told.and_then(|told| retry_after(told.to_str().ok()?, SystemTime::now()));
            *self.rest.lock().unwrap_or_else(PoisonError::into_inner) = told;
        }
    }
}

/// Seconds, or an hour (RFC 9110 §10.2.3).
fn retry_after(told: &str, now: SystemTime) -> Option<Duration> {
    if let Ok(seconds) = told.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let hour = httpdate::parse_http_date(told).ok()?;
    hour.duration_since(now).ok()
}

impl HttpClient for Transport {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let this = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = match body.collect().await {
                Ok(body) => body.to_bytes(),
                Err(never) => match never {},
            };
            let body = match body.is_empty() {
                true => Body::empty(),
                false => Body::full(body),
            };
            let sent = this
                .client
                .send(Request::from_parts(parts, body), Priority::HIGHEST);
            let response = sent.await.map_err(|error| Error::Other(error.into()))?;
            this.note(&response);
            let (parts, body) = response.into_parts();
            let body = body.collect_up_to(MAX_ANSWER).await.map_err(Error::Other)?;
            Ok(BytesResponse {
                parts,
                body: Box::new(body),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn a_rest_is_seconds_or_an_hour() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_770);
        for (told, rest) in [
            ("120", Some(120)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(7)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", None),
            ("soon", None),
        ] {
            assert_eq!(
                retry_after(told, now),
                rest.map(Duration::from_secs),
                "{told}"
            );
        }
    }
}
