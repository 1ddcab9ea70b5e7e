//! The operator's door of `spdy accelerate`: who may come in, and how one connection there is served.

use std::sync::Arc;

use http::Request;
use prometheus_client::registry::Registry;
use spdy::Body;
use spdy::runtime::SharedRuntime;
use spdy_net::latch::Latch;
use spdy_net::listen::{ListenOptions, Listener};
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;
use spdy_proxy::admin::Admin;
use spdy_proxy::config::Config;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::token::Token;

use crate::commands::accelerate::served::conduct;
use crate::commands::accelerate::setup;
use crate::commands::serve_metrics;

/// What an operator may see and do. Clones are of the same.
#[derive(Clone)]
pub(super) struct Operator(Arc<Admin>);

impl Operator {
    /// Who shows `token` looks after `proxy`; `metrics` are for anybody who comes here.
    pub(super) fn new(token: &str, proxy: &Arc<Proxy>, metrics: Arc<Registry>) -> Self {
        let metrics = move |request: &Request<Body>| serve_metrics::answer(&metrics, request);
        let token = Token::new(token);
        Self(Arc::new(Admin::new(
            proxy.clone(),
            token,
            Arc::new(metrics),
        )))
    }

    /// Who shows `token` from now on looks after it.
    pub(super) fn set_token(&self, token: &str) {
        self.0.set_token(Token::new(token));
    }

    /// Serves whoever comes to `listener`, until the stop.
    pub(super) async fn serve(self, listener: Listener, runtime: SharedRuntime, stop: Latch) {
        let options = ListenOptions {
            admission: serve_metrics::admission(),
            ..ListenOptions::default()
        };
        let ended = stop.clone();
        let serve = move |io, _, seat| {
            let (admin, runtime, ended) = (self.0.clone(), runtime.clone(), ended.clone());
            async move {
                let options = ServerOptions {
                    seat,
                    ..ServerOptions::default()
                };
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

/// What an operator has to show, if there is a door for one.
pub(super) fn token(config: &Config) -> anyhow::Result<Option<String>> {
    let admin = config.admin.as_ref();
    let token = admin.map(|admin| setup::token(&admin.token_file));
    token.transpose()
}
