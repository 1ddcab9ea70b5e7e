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
    pub(crate) fn replace(&self, sites: Sites, upstream: Upstream) {
        let mut former = self.sites.write();
        sites.copy_state_from(&former);
        *former = Arc::new(sites);
        drop(former);
        let mut current = self.upstream.write();
        *current = Arc::new(upstream);
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

    pub(crate) fn upstream(&self) -> Arc<Upstream> {
        let upstream = self.upstream.read();
        upstream.clone()
    }

    /// Closes all connections to origins gracefully.
    pub async fn close(&self) {
        self.upstream().close().await;
    }
}
