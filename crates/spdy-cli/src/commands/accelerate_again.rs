//! The configuration of `spdy accelerate`, read again while it runs: first all that can fail, then all that takes effect.

use std::net::SocketAddr;

use spdy::runtime::SharedRuntime;
use spdy_dns::zones::{SharedZones, Zones};
use spdy_net::certificates::LocalCa;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::sites::Sites;
use spdy_proxy::upstream::Upstream;

use crate::commands::accelerate::{self, Args};
use crate::commands::accelerate_acme::{self, Acme, Prepared, Rest};
use crate::commands::telemetry;
use crate::commands::{accelerate_origins, accelerate_setup};
use crate::printer::Printer;

/// What stays as it was when the program began.
#[derive(Clone, Copy)]
pub(super) struct Again<'a> {
    pub(super) args: &'a Args,
    pub(super) secret: &'a [u8],
    pub(super) authority: &'a LocalCa,
    pub(super) printer: &'a Printer,
}

impl Again<'_> {
    /// The certificate that is no authority's as it is to be from now on: made anew, or read again.
    pub(super) fn certificate(self, acme: &Acme) -> anyhow::Result<Rest> {
        let config = accelerate::read(self.args)?;
        let sites = accelerate_setup::compile(&config, self.secret)?;
        let identity = accelerate_setup::identity(&config, &sites, self.authority)?;
        acme.prepare_rest(&config, &identity)
    }

    /// All that may be other by the configuration of now. Where is listened stays.
    pub(super) fn configuration(
        self,
        zones: &SharedZones,
        listening: &[SocketAddr],
        acme: &Acme,
        runtime: &SharedRuntime,
    ) -> anyhow::Result<Renewed> {
        let config = accelerate::read(self.args)?;
        let sites = accelerate_setup::compile(&config, self.secret)?;
        let identity = accelerate_setup::identity(&config, &sites, self.authority)?;
        let names = accelerate_acme::certificates(&config, &sites)?;
        let own = accelerate_origins::own(&config, listening, self.printer);
        Ok(Renewed {
            certificates: acme.prepare(&config, names, &identity)?,
            zones: accelerate_setup::zones(&config)?,
            upstream: accelerate_origins::upstream(&config, &sites, zones, own, runtime)?,
            spans: accelerate_setup::telemetry(&config)?,
            sites,
        })
    }
}

/// What the configuration comes to when it is read again, and cannot fail any more.
pub(super) struct Renewed {
    sites: Sites,
    upstream: Upstream,
    certificates: Prepared,
    zones: Zones,
    /// Where spans are sent, for who sends them.
    pub(super) spans: Option<telemetry::Settings>,
}

impl Renewed {
    pub(super) fn take_effect(
        self,
        zones: &SharedZones,
        acme: &mut Acme,
        proxy: &Proxy,
        printer: &Printer,
    ) {
        // First: names are proven in them.
        zones.replace(self.zones);
        acme.commit(self.certificates);
        accelerate_setup::doubt(&self.sites, printer);
        proxy.replace(self.sites, self.upstream);
    }
}
