//! The admin listener of `spdy accelerate`: its credentials, and how it serves one connection.

use std::sync::Arc;

use http::Request;
use prometheus_client::registry::Registry;
use spdy::Body;
use spdy::runtime::SharedRuntime;
use spdy_acme::certificates::Certificates;
use spdy_net::latch::Latch;
use spdy_net::listen::allowed_hosts::AllowedHosts;
use spdy_net::listen::{ListenOptions, Listener};
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;
use spdy_proxy::admin::handler::Admin;
use spdy_proxy::config::{AdminConfig, Config};
use spdy_proxy::proxy::Proxy;
use spdy_proxy::token::Token;
use spdy_service::metrics;

use super::connection::conduct;
use crate::setup;

/// Answers the requests of an operator. Clones share the state.
#[derive(Clone)]
pub(crate) struct AdminHandler(Arc<Admin>);

impl AdminHandler {
    /// Answers for `proxy` to requests with the token of `credentials`; `metrics` are for every request to an allowed host. The dashboard
    /// shows when `certificates` expire.
    pub(crate) fn new(
        credentials: Credentials,
        proxy: &Arc<Proxy>,
        metrics: Arc<Registry>,
        certificates: Certificates,
    ) -> Self {
        let metrics = move |request: &Request<Body>| metrics::answer(&metrics, request);
        let Credentials { token, hosts } = credentials;
        let admin = Admin::new(proxy.clone(), Token::new(&token), Arc::new(metrics));
        let admin = admin.with_certificates(Arc::new(move || certificates.expiries()));
        admin.set_hosts(hosts);
        Self(Arc::new(admin))
    }

    /// Requires these credentials from now on.
    pub(crate) fn set_credentials(&self, Credentials { token, hosts }: Credentials) {
        self.0.set_token(Token::new(&token));
        self.0.set_hosts(hosts);
    }

    /// Serves the connections of `listener` until `stop`.
    pub(crate) async fn serve(self, listener: Listener, runtime: SharedRuntime, stop: Latch) {
        let mut options = ListenOptions::default();
        options.admission = metrics::admission();
        let ended = stop.clone();
        let serve = move |io, _, slot| {
            let (admin, runtime, ended) = (self.0.clone(), runtime.clone(), ended.clone());
            async move {
                let mut options = ServerOptions::default();
                options.slot = slot;
                let serving = spdy_net::serve::serve_connection(
                    io,
                    admin,
                    &[Protocol::Http1],
                    None,
                    &options,
                    &runtime,
                    &ended,
                );
                conduct(serving.await)
            }
        };
        listener.run(options, stop, serve).await;
    }
}

/// Requirements for a request to the admin listener.
pub(crate) struct Credentials {
    token: String,
    hosts: AllowedHosts,
}

impl Credentials {
    /// The listener that `config` describes, if there is one.
    pub(crate) fn read(config: &Config) -> anyhow::Result<Option<Self>> {
        let of = |admin: &AdminConfig| {
            anyhow::Ok(Self {
                token: setup::token(&admin.token_file)?,
                hosts: AllowedHosts::new(&admin.names),
            })
        };
        config.admin.as_ref().map(of).transpose()
    }
}
