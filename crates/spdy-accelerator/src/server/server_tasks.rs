//! The server tasks of `spdy accelerate`: one for each listener, from the first accepted connection until the program ends.

use spdy_net::latch::Latch;
use spdy_net::listen::ListenOptions;
use spdy_service::listen::BoundListener;
use tokio::task::JoinSet;

use super::admin_listener::AdminHandler;
use super::connection::ConnectionContext;
use super::listeners::Listeners;
use crate::control::succession::Successor;

/// The tasks that accept and serve connections.
pub(crate) struct ServerTasks {
    stop: Latch,
    /// HTTP/3. A successor reads datagrams once these have ended.
    over_quic: JoinSet<()>,
    rest: JoinSet<()>,
    /// Set when the predecessor no longer reads datagrams.
    datagrams: Option<Latch>,
}

impl ServerTasks {
    /// Starts a task for each of `listeners`: for clients (with `served` and `options`), for the operator, and for DNS. If another
    /// program still reads datagrams, HTTP/3 starts when `datagrams` is set.
    pub(crate) fn start(
        listeners: Listeners,
        served: &ConnectionContext,
        operator: Option<AdminHandler>,
        options: &ListenOptions,
        datagrams: Option<Latch>,
    ) -> Self {
        let mut serving = Self {
            stop: served.stop.clone(),
            over_quic: JoinSet::new(),
            rest: JoinSet::new(),
            datagrams,
        };
        for bound in listeners.clients {
            serving.open(bound, served, options);
        }
        let stop = &serving.stop;
        if let Some((listener, operator)) = listeners.operator.zip(operator) {
            let runtime = served.runtime.clone();
            serving
                .rest
                .spawn(operator.serve(listener, runtime, stop.clone()));
        }
        if let Some(names) = listeners.names {
            serving.rest.spawn(names.run(stop.clone()));
        }
        serving
    }

    fn open(&mut self, bound: BoundListener, served: &ConnectionContext, options: &ListenOptions) {
        let served = served.at(&bound);
        if let Some(listener) = bound.quic {
            let served = served.clone();
            self.over_quic
                .spawn(served.listen_for_quic(listener, options.clone()));
        }
        if let (Some(socket), Some(free)) = (bound.pending_quic_socket, &self.datagrams) {
            let served = served.clone();
            self.over_quic.spawn(served.serve_quic_after_handover(
                socket,
                free.clone(),
                options.clone(),
            ));
        }
        if let Some(listener) = bound.tcp {
            self.rest
                .spawn(served.listen_for_tcp(listener, options.clone()));
        }
    }

    /// Stops accepting. Completes when every connection has ended or its drain timeout has passed. The successor reads datagrams
    /// when HTTP/3 has ended here.
    pub(crate) async fn end(mut self, successor: Option<Successor>) {
        self.stop.set();
        while self.over_quic.join_next().await.is_some() {}
        if let (Some(_), Some(datagrams)) = (&successor, &self.datagrams) {
            // The predecessor may still read them.
            datagrams.wait().await;
        }
        drop(successor); // the datagrams are its own
        while self.rest.join_next().await.is_some() {}
    }
}
