//! Replaces `succession.rs` on systems where no process hands sockets to another: no predecessor, no successor.

use std::convert::Infallible;
use std::sync::Arc;

use spdy_net::latch::Latch;
use spdy_net::listen::inherited_sockets::InheritedSockets;
use spdy_net::listen::sockets::Sockets;
use spdy_proxy::proxy::Proxy;
use spdy_service::notice::Notices;

pub(crate) struct Predecessor(Infallible);

impl Predecessor {
    pub(crate) fn of(_: &mut InheritedSockets) -> anyhow::Result<Option<Self>> {
        Ok(None)
    }

    pub(crate) async fn request_cache(&mut self) {
        match self.0 {}
    }

    pub(crate) async fn request_connections(&mut self) {
        match self.0 {}
    }

    pub(crate) fn left(self) -> Latch {
        match self.0 {}
    }
}

pub(crate) fn notify_ready() {}

pub(crate) struct Succession;

impl Succession {
    pub(crate) fn listen(_: Sockets) -> anyhow::Result<Self> {
        Ok(Self)
    }

    pub(crate) async fn taken_over(&mut self, _: &Arc<Proxy>, _: &Notices) -> Successor {
        std::future::pending().await
    }
}

pub(crate) struct Successor(Infallible);

impl Successor {
    pub(crate) fn id(&self) -> u32 {
        match self.0 {}
    }
}
