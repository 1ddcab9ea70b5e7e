//! The ACME client: executes an order, from the account to the certificate chain (RFC 8555 §7).
//!
//! ```text
//!  account ──▶ order ──▶ each name: already proven, or publish a proof and request its validation
//!    │           └─▶ ready ──▶ a key and a CSR ──▶ valid ──▶ the chain
//!    └ stored in the folder, created if there is none
//! ```

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::{Either, select};
use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, ChallengeType, Error, Identifier,
    NewOrder, Order, OrderStatus,
};
use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_client::client::{Client, Config};
use spdy_net::network::SharedNetwork;
use spdy_net::protocol::Protocol;
use spdy_net::tls::ClientTls;
use spdy_net::tls::certificates::{Identity, certificates_from_pem};

use crate::account::Accounts;
use crate::error::AcmeError;
use crate::settings::{authority_error, is_problem};
use crate::state_dir::StateDir;
use crate::transport::Transport;

pub use crate::settings::AcmeSettings;

/// Timeout of an order. An authority validates from several places, and waits until they know the names.
pub const ORDER_TIMEOUT: Duration = Duration::from_secs(180);
/// Interval between two polls of an order: the first, and the maximum.
const POLL_INTERVAL: Range<Duration> = Duration::from_millis(250)..Duration::from_secs(8);
/// Timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Signs certificates.
pub trait Authority: Send + Sync + 'static {
    /// Orders a certificate for `names`, which replaces `held` if there is one.
    fn order(
        &self,
        names: Vec<String>,
        held: Option<CertificateDer<'static>>,
    ) -> BoxFuture<Result<Identity, OrderFailure>>;

    /// The suggested time to renew `held` (RFC 9773); `None` without a suggestion.
    fn renewal_info(&self, held: CertificateDer<'static>) -> BoxFuture<Option<RenewalInfo>>;
}

/// A failed order.
#[derive(Debug)]
pub struct OrderFailure {
    /// The error.
    pub error: AcmeError,
    /// How long to wait before the next request, if the authority states it.
    pub rest: Option<Duration>,
}

/// The suggested renewal of a certificate.
#[derive(Clone, Debug)]
pub struct RenewalInfo {
    /// Renew at some time in this range.
    pub window: Range<SystemTime>,
    /// When to poll again.
    pub again: Duration,
}

/// An authority that speaks ACME.
#[derive(Clone)]
pub struct AcmeClient(Arc<Inner>);

impl std::fmt::Debug for AcmeClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Acme").field(&self.0.settings).finish()
    }
}

struct Inner {
    settings: AcmeSettings,
    accounts: Accounts,
    client: Client,
    runtime: SharedRuntime,
}

impl AcmeClient {
    /// An authority that is reached over `network` and authenticated by `tls`.
    #[must_use]
    pub fn new(
        settings: AcmeSettings,
        folder: StateDir,
        tls: ClientTls,
        network: SharedNetwork,
        runtime: SharedRuntime,
    ) -> Self {
        let mut config = Config::default();
        config.protocols = vec![Protocol::Http2, Protocol::Http1];
        config.tls = Some(tls);
        config.connect_timeout = Some(REQUEST_TIMEOUT);
        config.head_timeout = Some(REQUEST_TIMEOUT);
        config.body_timeout = Some(REQUEST_TIMEOUT);
        Self(Arc::new(Inner {
            client: Client::new(runtime.clone(), network, config),
            accounts: Accounts::new(folder),
            settings,
            runtime,
        }))
    }
}

impl Authority for AcmeClient {
    fn order(
        &self,
        names: Vec<String>,
        held: Option<CertificateDer<'static>>,
    ) -> BoxFuture<Result<Identity, OrderFailure>> {
        let inner = self.0.clone();
        Box::pin(async move {
            let transport = inner.transport();
            let deadline = inner.runtime.now() + ORDER_TIMEOUT;
            let late = inner.runtime.sleep_until(deadline);
            let ordering = Box::pin(inner.order(&transport, &names, held));
            let ordered = match select(ordering, late).await {
                Either::Left((ordered, _)) => ordered,
                Either::Right(_) => Err(AcmeError::Timeout(ORDER_TIMEOUT)),
            };
            ordered.map_err(|error| OrderFailure {
                error,
                rest: transport.rest(),
            })
        })
    }

    fn renewal_info(&self, held: CertificateDer<'static>) -> BoxFuture<Option<RenewalInfo>> {
        let inner = self.0.clone();
        Box::pin(async move {
            let identifier = CertificateIdentifier::try_from(&held).ok()?;
            let transport = inner.transport();
            let opened = inner.accounts.open(&inner.settings, &transport).await;
            let (account, _) = opened.ok()?;
            let advised = account.renewal_info(&identifier).await;
            let (info, again) = advised
                .inspect_err(|error| tracing::debug!(%error, "no renewal information"))
                .ok()?;
            let window = info.suggested_window;
            Some(RenewalInfo {
                window: window.start.into()..window.end.into(),
                again,
            })
        })
    }
}

impl Inner {
    /// A transport for one order, so that the `Retry-After` of one order does not affect others.
    fn transport(&self) -> Transport {
        let scheme = self.settings.directory.scheme();
        Transport::new(self.client.clone(), scheme, self.runtime.clone())
    }

    async fn order(
        &self,
        transport: &Transport,
        names: &[String],
        held: Option<CertificateDer<'static>>,
    ) -> Result<Identity, AcmeError> {
        let (account, account_file) = self.accounts.open(&self.settings, transport).await?;
        let ordered = self.order_with(&account, names, held).await;
        if let Err(AcmeError::Account { .. }) = ordered {
            self.accounts.archive(&account_file).await;
        }
        ordered
    }

    async fn order_with(
        &self,
        account: &Account,
        names: &[String],
        held: Option<CertificateDer<'static>>,
    ) -> Result<Identity, AcmeError> {
        let mut order = self.new_order(account, names, held.as_ref()).await?;
        let shown = self.show_challenges(&mut order, names).await?;
        let status = self
            .until(&mut order, |status| status != OrderStatus::Pending)
            .await?;
        if status == OrderStatus::Invalid {
            return Err(self.failure_reason(&mut order).await);
        }
        drop(shown);
        let (key, request) = request(names)?;
        let finalized = order.finalize_csr(&request).await;
        finalized.map_err(|error| self.authority_error("a certificate", error))?;
        let is_over = |status| matches!(status, OrderStatus::Valid | OrderStatus::Invalid);
        self.until(&mut order, is_over).await?;
        let chain = order.certificate().await;
        let chain = chain.map_err(|error| self.authority_error("a certificate", error))?;
        let chain = chain
            .ok_or_else(|| AcmeError::Order("valid, but has no certificate chain".to_owned()))?;
        let chain = certificates_from_pem(chain.as_bytes(), self.settings.directory.as_str())?;
        Ok(Identity { chain, key })
    }

    async fn new_order(
        &self,
        account: &Account,
        names: &[String],
        held: Option<&CertificateDer<'static>>,
    ) -> Result<Order, AcmeError> {
        let names: Vec<_> = names.iter().cloned().map(Identifier::Dns).collect();
        let build_order = || match &self.settings.profile {
            Some(profile) => NewOrder::new(&names).profile(profile),
            None => NewOrder::new(&names),
        };
        let to_error = |error| self.authority_error("a new order", error);
        if let Some(replaced) = held.and_then(|held| CertificateIdentifier::try_from(held).ok()) {
            match account.new_order(&build_order().replaces(replaced)).await {
                // Some authorities do not support replacing, or not of this certificate. A rate limit would apply to the second
                // order too.
                Err(error) if !is_problem(&error, "rateLimited") => {
                    tracing::debug!(%error, "cannot mark the order as a replacement");
                }
                ordered => return ordered.map_err(to_error),
            }
        }
        account.new_order(&build_order()).await.map_err(to_error)
    }

    /// Publishes the proof for each of `names` that needs one.
    async fn show_challenges(
        &self,
        order: &mut Order,
        names: &[String],
    ) -> Result<Vec<crate::challenge::ActiveChallenge>, AcmeError> {
        let method = &self.settings.way;
        let mut shown = Vec::new();
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization =
                authorization.map_err(|error| self.authority_error("an authorization", error))?;
            let name = authorization.identifier().to_string();
            // Otherwise an authority could publish TXT records at any name of our zones.
            if !names
                .iter()
                .any(|ordered| without_wildcard(ordered) == without_wildcard(&name))
            {
                return Err(AcmeError::UnexpectedName(name));
            }
            match authorization.status {
                AuthorizationStatus::Pending => {}
                AuthorizationStatus::Valid => continue, // it was proven recently
                other => return Err(AcmeError::Order(format!("{other:?} for {name}"))),
            }
            let offered = authorization
                .challenges
                .iter()
                .map(|challenge| challenge_name(&challenge.r#type))
                .collect::<Vec<_>>()
                .join(", ");
            let Some(mut challenge) = authorization.challenge(method.kind()) else {
                return Err(AcmeError::ChallengeNotOffered {
                    name,
                    expected: method.challenge(),
                    offered,
                });
            };
            let authorized = challenge.key_authorization();
            shown.push(method.start(
                without_wildcard(&name),
                &challenge.token,
                authorized.as_str(),
            )?);
            let result = challenge.set_ready().await;
            result.map_err(|error| self.authority_error("a challenge", error))?;
        }
        Ok(shown)
    }

    /// Polls the order until `is_it` returns true for its status.
    async fn until(
        &self,
        order: &mut Order,
        is_it: impl Fn(OrderStatus) -> bool,
    ) -> Result<OrderStatus, AcmeError> {
        let mut wait = POLL_INTERVAL.start;
        loop {
            let refreshed = order.refresh().await;
            let status = refreshed
                .map_err(|error| self.authority_error("its order", error))?
                .status;
            if is_it(status) {
                return Ok(status);
            }
            let runtime = &self.runtime;
            runtime.sleep_until(runtime.now() + wait).await;
            wait = (wait * 2).min(POLL_INTERVAL.end);
        }
    }

    /// The reason why an order is invalid, if the authority states one.
    async fn failure_reason(&self, order: &mut Order) -> AcmeError {
        let challenge = self.settings.way.challenge();
        let mut authorizations = order.authorizations();
        while let Some(Ok(mut authorization)) = authorizations.next().await {
            if authorization.refresh().await.is_err() {
                continue;
            }
            let challenge_error = authorization
                .challenges
                .iter()
                .find_map(|challenge| challenge.error.as_ref());
            if let Some(problem) = challenge_error {
                return AcmeError::ChallengeFailed {
                    name: authorization.identifier().to_string(),
                    challenge,
                    reason: problem.to_string(),
                };
            }
        }
        match &order.state().error {
            Some(problem) => AcmeError::Order(problem.to_string()),
            None => AcmeError::Order("invalid".to_owned()),
        }
    }

    fn authority_error(&self, what: &'static str, source: Error) -> AcmeError {
        authority_error(&self.settings, what, source)
    }
}

/// The name of a challenge type in ACME.
fn challenge_name(kind: &ChallengeType) -> &str {
    match kind {
        ChallengeType::Http01 => "http-01",
        ChallengeType::Dns01 => "dns-01",
        ChallengeType::TlsAlpn01 => "tls-alpn-01",
        ChallengeType::Unknown(other) => other,
        _ => "another",
    }
}

/// Creates a new key for the certificate, and a certificate request that it signs.
fn request(names: &[String]) -> Result<(PrivateKeyDer<'static>, Vec<u8>), AcmeError> {
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = DistinguishedName::new(); // all names are subject alternative names
    let request = params.serialize_request(&key)?;
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a generated key is valid");
    Ok((key, request.der().to_vec()))
}

/// The name to validate: for a wildcard, the name without `*.`.
fn without_wildcard(name: &str) -> &str {
    name.strip_prefix("*.").unwrap_or(name)
}
