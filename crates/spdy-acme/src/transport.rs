//! Sends requests to the authority with this project's client, over HTTP/2 or HTTP/1.1.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::future::{Either, select};
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body_util::BodyExt;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use parking_lot::Mutex;
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_client::client::Client;
use spdy_frame::priority::Priority;

use crate::renewal_schedule::MAX_RETRY_AFTER;

/// Maximum size of a response: a certificate chain has some thousand bytes.
const MAX_RESPONSE_BYTES: usize = 1 << 20;
/// Timeout of a request including its response, even if that makes progress.
const EXCHANGE_TIMEOUT: Duration = Duration::from_secs(120);

/// The transport of one order. Clones share its state.
#[derive(Clone, Debug)]
pub(crate) struct Transport {
    client: Client,
    runtime: SharedRuntime,
    /// The scheme of the directory. All URLs are requested with this scheme, so never without TLS if the directory has TLS.
    scheme: Arc<str>,
    /// `Retry-After` of the last rejection by the authority.
    rest: Arc<Mutex<Option<Duration>>>,
}

impl Transport {
    pub(crate) fn new(client: Client, scheme: &str, runtime: SharedRuntime) -> Self {
        Self {
            client,
            runtime,
            scheme: scheme.into(),
            rest: Arc::default(),
        }
    }

    /// `Retry-After` of the last rejection by the authority, if any.
    pub(crate) fn rest(&self) -> Option<Duration> {
        *self.rest.lock()
    }

    fn record_retry_after(&self, response: &Response<Body>) {
        let refused = [
            StatusCode::TOO_MANY_REQUESTS,
            StatusCode::SERVICE_UNAVAILABLE,
        ];
        if refused.contains(&response.status()) {
            let retry_after = response.headers().get(header::RETRY_AFTER);
            *self.rest.lock() = retry_after
                .and_then(|value| parse_retry_after(value.to_str().ok()?, SystemTime::now()));
        }
    }
}

/// Parses the delay of a `Retry-After` value: seconds, or a date (RFC 9110 §10.2.3).
fn parse_retry_after(value: &str, now: SystemTime) -> Option<Duration> {
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    date.duration_since(now).ok()
}

/// Limits `Retry-After` to [`MAX_RETRY_AFTER`]: instant-acme adds it to the current time, which overflows for `u64::MAX` seconds.
fn limit_retry_after(headers: &mut HeaderMap, now: SystemTime) {
    let Some(value) = headers.remove(header::RETRY_AFTER) else {
        return;
    };
    let rest = value
        .to_str()
        .ok()
        .and_then(|value| parse_retry_after(value, now));
    if let Some(rest) = rest {
        let seconds = rest.min(MAX_RETRY_AFTER).as_secs();
        headers.insert(header::RETRY_AFTER, seconds.into());
    }
}

impl Transport {
    async fn exchange(self, request: Request<Body>) -> Result<BytesResponse, Error> {
        let sent = self.client.send(request, Priority::HIGHEST);
        let response = sent.await.map_err(|error| Error::Other(error.into()))?;
        self.record_retry_after(&response);
        let (mut parts, body) = response.into_parts();
        limit_retry_after(&mut parts.headers, SystemTime::now());
        let body = body
            .collect_up_to(MAX_RESPONSE_BYTES)
            .await
            .map_err(Error::Other)?;
        Ok(BytesResponse {
            parts,
            body: Box::new(body),
        })
    }
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
            if parts.uri.scheme_str() != Some(&this.scheme) {
                let (expected, found) = (&this.scheme, &parts.uri);
                let message =
                    format!("expected a URL of {expected} like the directory, found {found}");
                return Err(Error::Other(message.into()));
            }
            let runtime = this.runtime.clone();
            let late = runtime.sleep_until(runtime.now() + EXCHANGE_TIMEOUT);
            let exchange = Box::pin(this.exchange(Request::from_parts(parts, body)));
            match select(exchange, late).await {
                Either::Left((answer, _)) => answer,
                Either::Right(_) => {
                    let seconds = EXCHANGE_TIMEOUT.as_secs();
                    let message = format!("the response is incomplete after {seconds} s");
                    Err(Error::Other(message.into()))
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn huge_retry_after_is_capped_and_invalid_ignored() {
        for (value, expected) in [
            ("120", Some("120")),
            ("18446744073709551615", Some("86400")),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some("86400")),
            ("18446744073709551616", None),
            ("soon", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(
                header::RETRY_AFTER,
                value.parse().expect("the value is a valid header value"),
            );
            limit_retry_after(&mut headers, UNIX_EPOCH);
            let actual = headers.get(header::RETRY_AFTER);
            let actual = actual.map(|actual| actual.to_str().expect("the value is ASCII"));
            assert_eq!(actual, expected, "{value}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_date() {
        let now = UNIX_EPOCH + Duration::from_secs(784_111_770);
        for (value, expected) in [
            ("120", Some(120)),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Some(7)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", None),
            ("soon", None),
        ] {
            assert_eq!(
                parse_retry_after(value, now),
                expected.map(Duration::from_secs),
                "{value}"
            );
        }
    }
}
