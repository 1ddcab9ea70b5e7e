//! A network that connects only to addresses that origins may have.
//!
//! ```text
//!  resolve  host ──▶ a name? ──▶ the inner resolver ──▶ every answer allowed? ──▶ addresses
//!  connect  address and port ──▶ allowed? ──▶ the inner network
//! ```
//!
//! A name is refused if *any* of its answers is denied: an attacker could mix `127.0.0.1` among good addresses and wait
//! for a retry to use it. Connections go to an address, not to a name, so no second lookup can answer otherwise (DNS
//! rebinding). The address is checked again when connecting, because it may have another source: a literal, a configured list, an
//! answer that was cached before the rules changed. There is no UDP here, so no QUIC to origins.
//!
//! Refusals are errors of the kind `PermissionDenied` with a [`OriginDenial`] inside, and are counted by reason.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use spdy::runtime::BoxFuture;
use spdy_net::network::{BoxIo, Network, SharedNetwork};

use crate::address_rules::{AddressRules, OriginDenial};

/// A [`Network`] under [`AddressRules`].
#[derive(Clone)]
pub struct GuardedNetwork {
    rules: Arc<AddressRules>,
    names: SharedNetwork,
    connections: SharedNetwork,
    refusals: RefusalCounts,
}

/// Number of refusals by reason. Clones share the counts.
#[derive(Clone, Debug, Default)]
pub struct RefusalCounts(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl RefusalCounts {
    /// Refusals by reason, in the order of the reasons' names. The number of reasons is bounded: each is a constant.
    #[must_use]
    pub fn by_reason(&self) -> BTreeMap<&'static str, u64> {
        let counts = self.0.lock();
        counts.clone()
    }

    fn refuse(&self, what: impl Into<OriginDenial>, origin: &dyn std::fmt::Display) -> io::Error {
        let denied = what.into();
        let mut counts = self.0.lock();
        *counts.entry(denied.reason()).or_default() += 1;
        tracing::warn!(
            %origin,
            reason = denied.reason(),
            error = %denied,
            allowed_by = denied.allowed_by(),
            "connection to an origin denied"
        );
        io::Error::new(io::ErrorKind::PermissionDenied, denied)
    }
}

impl GuardedNetwork {
    /// Applies `rules` to `inner`. Logs the ranges that `rules` allow besides public addresses.
    #[must_use]
    pub fn new(inner: SharedNetwork, rules: AddressRules) -> Self {
        Self::with_names(inner.clone(), inner, rules)
    }

    /// The same, with a separate resolver.
    #[must_use]
    pub fn with_names(
        names: SharedNetwork,
        connections: SharedNetwork,
        rules: AddressRules,
    ) -> Self {
        if !rules.allow.is_empty() {
            let allow = &rules.allow;
            tracing::warn!(
                ?allow,
                "origins are allowed at addresses that are not public"
            );
        }
        Self {
            rules: Arc::new(rules),
            names,
            connections,
            refusals: RefusalCounts::default(),
        }
    }

    /// The same, but counts refusals in `refusals`, which may have counts of an earlier network.
    #[must_use]
    pub fn with_counts(mut self, refusals: RefusalCounts) -> Self {
        self.refusals = refusals;
        self
    }

    /// The rules.
    #[must_use]
    pub fn rules(&self) -> &AddressRules {
        &self.rules
    }

    /// What was refused so far.
    #[must_use]
    pub fn refusals(&self) -> &RefusalCounts {
        &self.refusals
    }
}

impl Network for GuardedNetwork {
    fn resolve(&self, host: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        if let Err(refused) = self.rules.check_host(host) {
            let refusal = self.refusals.refuse(refused, &host);
            return Box::pin(std::future::ready(Err(refusal)));
        }
        let (guard, host) = (self.clone(), host.to_owned());
        let looking_up = self.names.resolve(&host);
        Box::pin(async move {
            let addresses = looking_up.await?;
            for &address in &addresses {
                if let Err(denied) = guard.rules.check(address) {
                    return Err(guard.refusals.refuse(denied, &host));
                }
            }
            Ok(addresses)
        })
    }

    fn connect(&self, to: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        match self.rules.check_target(to) {
            Ok(()) => self.connections.connect(to),
            Err(denied) => {
                let refusal = self.refusals.refuse(denied, &to);
                Box::pin(std::future::ready(Err(refusal)))
            }
        }
    }
}
