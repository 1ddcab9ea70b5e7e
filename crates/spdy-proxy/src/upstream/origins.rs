//! The configured sites and the connections to their origins. Both are replaced when the configuration is read again.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use http::{HeaderMap, request};
use parking_lot::RwLock;
use spdy_net::handler::RequestInfo;
use spdy_net::listen::trusted_proxies::TrustedProxies;

use crate::request::client_origin::request_authority;
use crate::request::forgeable_headers::FromTrustedProxy;
use crate::request::forwarded::{self, is_secure};
use crate::sites::site::Site;
use crate::sites::site_table::Sites;
use crate::upstream::client::Upstream;

/// The sites, and how their origins are contacted.
#[derive(Debug)]
pub struct Origins {
    sites: RwLock<Arc<Sites>>,
    upstream: RwLock<Arc<Upstream>>,
}

impl Origins {
    pub(crate) fn new(sites: Sites, upstream: Upstream) -> Self {
        Self {
            sites: RwLock::new(Arc::new(sites)),
            upstream: RwLock::new(Arc::new(upstream)),
        }
    }

    /// Requests that come from now on use `sites` and `upstream`. Pending requests are not affected.
    ///
    /// `apply` changes what else follows from the sites, such as quotas. The sites are locked meanwhile: no request finds sites whose
    /// quotas do not apply yet, and concurrent calls cannot leave the quotas of one with the sites of the other.
    pub(crate) fn replace(&self, mut sites: Sites, upstream: Upstream, apply: impl FnOnce(&Sites)) {
        let mut current_sites = self.sites.write();
        sites.copy_state_from(&current_sites);
        apply(&sites);
        *current_sites = Arc::new(sites);
        let mut current_upstream = self.upstream.write();
        *current_upstream = Arc::new(upstream);
    }

    /// Pages that are rewritten from now on use no alias in `names`, which browsers would refuse, and all other aliases. Gives whether
    /// `names` has changed.
    pub fn withhold_aliases(&self, names: &BTreeSet<String>) -> bool {
        let mut sites = self.sites.write();
        let is_new = sites.withheld() != names;
        if is_new {
            *sites = Arc::new(sites.without_aliases(names));
        }
        is_new
    }

    /// The current sites.
    #[must_use]
    pub fn sites(&self) -> Arc<Sites> {
        let sites = self.sites.read();
        sites.clone()
    }

    /// The site that `head` is for.
    pub(crate) fn site_for(&self, head: &request::Parts) -> Option<Arc<Site>> {
        self.site_named(request_authority(head)?)
    }

    fn site_named(&self, authority: &str) -> Option<Arc<Site>> {
        let sites = self.sites.read();
        sites.find(authority).cloned()
    }

    pub(crate) fn site_or_alias(&self, authority: &str) -> Option<Arc<Site>> {
        let sites = self.sites.read();
        sites.find_with_aliases(authority).cloned()
    }

    /// The client's address, where `from` may be a proxy in front. If that proxy is trusted, `head` is marked as its request, and
    /// `RequestInfo::secure` is set to what the proxy states.
    pub(crate) fn resolve_client(
        &self,
        from: Option<IpAddr>,
        head: &mut request::Parts,
    ) -> Option<IpAddr> {
        let from = from?;
        let Some(in_front) = self.trusted_proxy(from) else {
            return Some(from);
        };
        let arrival: Option<&mut RequestInfo> = head.extensions.get_mut();
        if let (Some(arrival), Some(secure)) = (arrival, is_secure(&head.headers)) {
            arrival.secure = secure;
        }
        head.extensions.insert(FromTrustedProxy);
        Some(forwarded::client(&in_front, from, &head.headers))
    }

    /// The client that sent `headers`, where `from` may be a proxy in front.
    pub(crate) fn client_of_malformed(&self, from: IpAddr, headers: &HeaderMap) -> IpAddr {
        let in_front = self.trusted_proxy(from);
        in_front.map_or(from, |in_front| forwarded::client(&in_front, from, headers))
    }

    /// The trusted proxies, if `from` is one of them and forwards the client's address with each request.
    fn trusted_proxy(&self, from: IpAddr) -> Option<Arc<TrustedProxies>> {
        let sites = self.sites.read();
        let in_front = sites.trusted_proxies();
        in_front.forwards_requests(from).then(|| in_front.clone())
    }

    /// The current connections to origins.
    #[must_use]
    pub fn upstream(&self) -> Arc<Upstream> {
        let upstream = self.upstream.read();
        upstream.clone()
    }

    /// Closes all connections to origins gracefully.
    pub async fn close(&self) {
        self.upstream().close().await;
    }
}

#[cfg(test)]
mod tests {
    use spdy::runtime::SharedRuntime;
    use spdy_net::network::{SharedNetwork, SystemNetwork};
    use spdy_rewrite::rules::capability::Keys;

    use super::*;
    use crate::config::Config;

    fn configured(site: &str) -> (Sites, Upstream) {
        let text = format!("[[site]]\nnames = ['{site}']\norigin = 'http://origin.test'");
        let config = Config::parse(&text).expect("a valid configuration");
        let keys = Keys::from_secrets(&[7; 32], None).expect("a secret of 32 bytes");
        let sites = Sites::compile(&config, &keys).expect("valid sites");
        let network: SharedNetwork = Arc::new(SystemNetwork);
        let runtime = SharedRuntime::tokio();
        let upstream = Upstream::new(
            &config.upstream,
            None,
            &sites,
            network.clone(),
            network,
            &runtime,
        );
        (sites, upstream)
    }

    #[tokio::test]
    async fn no_request_finds_new_sites_before_their_quotas_apply() {
        let (sites, upstream) = configured("a.test");
        let origins = Origins::new(sites, upstream);
        let (sites, upstream) = configured("b.test");
        let mut applied = Vec::new();
        origins.replace(sites, upstream, |sites| {
            assert!(origins.sites.try_read().is_none(), "requests wait");
            applied.extend(sites.all().map(|site| site.name.clone()));
        });
        assert_eq!(applied, ["b.test"]);
        assert!(origins.site_named("a.test").is_none());
        assert!(origins.site_named("b.test").is_some());
    }
}
