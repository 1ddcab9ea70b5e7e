//! Upgrades a request to another protocol than HTTP (RFC 9110 §7.8), on a separate connection outside the pool.

use std::time::Duration;

use futures_util::future::{Either, select};
use http::{HeaderMap, Request, Response, StatusCode};
use spdy::body::Body;
use spdy_net::http1::upgrade::{self, UpgradeResponse};
use spdy_net::network::BoxIo;

use crate::client::Client;
use crate::connect::Connector;
use crate::error::{Error, TimeoutPhase};
use crate::exchange_body::{BodyTimeout, leased_body};
use crate::origin::Origin;

/// The result of requesting another protocol.
pub enum UpgradeOutcome {
    /// 101, and the connection after it. Check the head: the server may have switched to another protocol than requested.
    Upgraded(Response<()>, BoxIo),
    /// Any other response.
    Declined(Response<Body>),
}

impl UpgradeOutcome {
    /// The status of the response.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Upgraded(head, _) => head.status(),
            Self::Declined(response) => response.status(),
        }
    }

    /// The headers of the response.
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        match self {
            Self::Upgraded(head, _) => head.headers(),
            Self::Declined(response) => response.headers(),
        }
    }
}

impl std::fmt::Debug for UpgradeOutcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Upgraded(head, _) => f.debug_tuple("Yes").field(head).finish(),
            Self::Declined(response) => f.debug_tuple("No").field(&response.status()).finish(),
        }
    }
}

impl Client {
    /// Sends `request` over HTTP/1.1 on a separate connection. Its URI must be absolute, and its `Connection` and `Upgrade` headers
    /// must name another protocol. It is never retried.
    ///
    /// # Errors
    ///
    /// The connection failed, or there was no response within the configured timeouts.
    pub async fn upgrade(&self, request: Request<Body>) -> Result<UpgradeOutcome, Error> {
        let origin = Origin::of(request.uri())?;
        let connector = self.connector();
        let (config, runtime) = (&connector.config, &connector.runtime);
        let connecting = Box::pin(connector.connect_unpooled(&origin));
        let after = config.connect_timeout;
        let io = with_timeout(
            connector,
            &origin,
            TimeoutPhase::Connection,
            after,
            connecting,
        )
        .await??;
        let exchange = upgrade::request_upgrade(io, request, &config.connection, runtime);
        let after = config.head_timeout;
        let answer = with_timeout(
            connector,
            &origin,
            TimeoutPhase::Response,
            after,
            Box::pin(exchange),
        )
        .await?;
        let answer = answer.map_err(|source| Error::Exchange {
            origin: origin.clone(),
            source,
        })?;
        Ok(match answer {
            UpgradeResponse::Upgraded(head, io) => UpgradeOutcome::Upgraded(head, io),
            UpgradeResponse::Declined(response) => {
                let body_timeout = config.body_timeout;
                let body_timeout =
                    body_timeout.map(|after| BodyTimeout::new(runtime.clone(), after, origin));
                UpgradeOutcome::Declined(response.map(|body| leased_body(body, None, body_timeout)))
            }
        })
    }
}

/// The output of `waited`, unless it takes longer than `after`.
async fn with_timeout<T>(
    connector: &Connector,
    origin: &Origin,
    phase: TimeoutPhase,
    after: Option<Duration>,
    waited: impl Future<Output = T> + Unpin,
) -> Result<T, Error> {
    let Some(after) = after else {
        return Ok(waited.await);
    };
    let runtime = &connector.runtime;
    match select(waited, runtime.sleep_until(runtime.now() + after)).await {
        Either::Left((output, _)) => Ok(output),
        Either::Right(_) => Err(Error::TimedOut {
            phase,
            origin: origin.clone(),
            after,
        }),
    }
}
