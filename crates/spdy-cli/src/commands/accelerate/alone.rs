//! Replaces `accelerate/succession.rs` on systems where no process hands sockets to another: no predecessor, no successor.

use std::convert::Infallible;
use std::sync::Arc;

use spdy_net::latch::Latch;
use spdy_net::listen::inherited_sockets::InheritedSockets;
use spdy_net::listen::sockets::Sockets;
use spdy_proxy::proxy::Proxy;

use crate::printer::Printer;

pub(super) struct Predecessor(Infallible);

impl Predecessor {
    pub(super) fn of(_: &mut InheritedSockets) -> anyhow::Result<Option<Self>> {
        Ok(None)
    }

    pub(super) async fn request_cache(&mut self) {
        match self.0 {}
    }

    pub(super) async fn request_connections(&mut self) {
        match self.0 {}
    }

    pub(super) fn left(self) -> Latch {
        match self.0 {}
    }
}

pub(super) fn notify_ready() {}

pub(super) struct Succession;

impl Succession {
    pub(super) fn listen(_: Sockets) -> anyhow::Result<Self> {
        Ok(Self)
    }

    pub(super) async fn taken_over(&mut self, _: &Arc<Proxy>, _: &Printer) -> Successor {
        std::future::pending().await
    }
}

pub(super) struct Successor(Infallible);

impl Successor {
    pub(super) fn id(&self) -> u32 {
        match self.0 {}
    }
}
