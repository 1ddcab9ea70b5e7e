//! Sends one request to the collector, and classifies its response (*OTLP/HTTP Response*).

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode, Uri};
use parking_lot::RwLock;
use spdy::Body;
use spdy::runtime::SharedRuntime;
use spdy_client::client::{Client, Config};
use spdy_frame::priority::Priority;
use spdy_net::network::SystemNetwork;
use spdy_net::protocol::Protocol;

use super::otlp;
use super::settings::Settings;

/// The longest answer that is read, bytes.
const ANSWER_BYTES: usize = 64 * 1024;
/// The idle timeout of an HTTP/1.1 connection without a stated one: many collectors close theirs after five seconds.
const IDLE: Duration = Duration::from_secs(4);

/// Why spans were not accepted.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub(super) enum ExportError {
    /// There was no response.
    #[error("{0}")]
    NoResponse(String),
    /// The response has an error status.
    #[error("response status {status}")]
    Status {
        /// The status.
        status: StatusCode,
        /// The delay of its Retry-After.
        retry_after: Option<Duration>,
    },
}

impl ExportError {
    /// Whether the collector may accept the same spans later (*Retryable Response Codes*).
    pub(super) fn is_transient(&self) -> bool {
        match self {
            Self::NoResponse(_) => true,
            Self::Status { status, .. } => matches!(status.as_u16(), 429 | 502 | 503 | 504),
        }
    }

    /// The delay before a retry, if the collector sent one.
    pub(super) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::NoResponse(_) => None,
            Self::Status { retry_after, .. } => *retry_after,
        }
    }
}

/// A collector.
#[derive(Debug)]
pub(super) struct OtlpClient {
    client: Client,
    uri: Uri,
    headers: RwLock<HeaderMap>,
    timeout: Duration,
}

impl OtlpClient {
    pub(super) fn new(settings: &Settings, runtime: &SharedRuntime) -> Self {
        let within = Some(settings.timeout);
        let mut config = Config::default();
        config.protocols = vec![Protocol::Http2, Protocol::Http1];
        config.http1_connections = 1;
        config.tls = Some(settings.tls.clone());
        config.connect_timeout = within;
        config.head_timeout = within;
        config.body_timeout = within;
        config.http1_idle_timeout = Some(IDLE);
        Self {
            client: Client::new(runtime.clone(), std::sync::Arc::new(SystemNetwork), config),
            uri: settings.uri.clone(),
            headers: RwLock::new(settings.headers.clone()),
            timeout: settings.timeout,
        }
    }

    /// Its URL.
    pub(super) fn uri(&self) -> &Uri {
        &self.uri
    }

    /// Sends `headers` with every later request.
    pub(super) fn set_headers(&self, headers: HeaderMap) {
        *self.headers.write() = headers;
    }

    /// Sends `spans`, a message of OTLP, and returns how many of them the collector rejected, and why.
    pub(super) async fn send(&self, spans: Bytes) -> Result<(usize, String), ExportError> {
        let mut request = Request::new(Body::full(spans));
        *request.method_mut() = Method::POST;
        request.uri_mut().clone_from(&self.uri);
        let headers = request.headers_mut();
        headers.clone_from(&self.headers.read());
        headers.insert(
            CONTENT_TYPE,
            HeaderValue::from_static("application/x-protobuf"),
        );
        let exchange = async {
            let response = self.client.send(request, Priority::LOWEST).await;
            let response = response.map_err(|error| ExportError::NoResponse(error.to_string()))?;
            if let Some(failure) = failure(&response) {
                return Err(failure);
            }
            // The status already confirms that it accepted them, even if the body fails.
            let answer = response.into_body().collect_up_to(ANSWER_BYTES).await;
            Ok(otlp::rejected(&answer.unwrap_or_default()))
        };
        match tokio::time::timeout(self.timeout, exchange).await {
            Ok(answered) => answered,
            Err(_) => {
                let reason = format!("no response within {:?}", self.timeout);
                Err(ExportError::NoResponse(reason))
            }
        }
    }

    /// Ends the connections to it.
    pub(super) async fn close(&self) {
        self.client.close().await;
    }
}

fn failure(response: &Response<Body>) -> Option<ExportError> {
    let status = response.status();
    if status.is_success() {
        return None;
    }
    // A date is also valid, but is ignored: the retry then happens soon.
    let after = response.headers().get(RETRY_AFTER);
    let after = after.and_then(|after| after.to_str().ok()?.trim().parse().ok());
    Some(ExportError::Status {
        status,
        retry_after: after.map(Duration::from_secs),
    })
}
