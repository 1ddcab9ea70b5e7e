//! What a browser adds to the requests of a page: priorities, and connections opened ahead.

use std::collections::BTreeSet;

use http::{HeaderMap, Request as HttpRequest};
use spdy_client::client::Client;
use spdy_client::origin::Origin;
use spdy_frame::priority::Priority;
use spdy_net::priority::{HttpPriority, PRIORITY_HEADER};
use spdy_net::protocol::Protocol;
use spdy_page::replica::Exchange;

use crate::load::LoadDriver;
use crate::load::http_priority::priority_field;
use crate::load::recorded_request::uri_of;
use crate::options::{BACKUP_AFTER, CONNECTIONS_OF_NAVIGATION, Scheduler};
use crate::page_load::{Request, UrgencyPlan};

impl LoadDriver<'_> {
    /// Sets the priority of `request`, also in its `headers` if a browser would send it there.
    pub(super) fn set_priority(
        &self,
        request: &mut Request,
        headers: &mut HeaderMap,
        exchange: &Exchange,
    ) {
        if !self.options.priorities {
            request.priority = Priority::LOWEST;
            return;
        }
        let host = exchange.url.host_str().unwrap_or_default();
        let protocol = self.page.protocol_for(self.protocol, self.options, host);
        let has_priorities = matches!(protocol, Protocol::Http2 | Protocol::Http3);
        match (self.options.scheduler, request.urgency) {
            // Over HTTP/1.1 it is the order in which requests get a connection.
            (Scheduler::Chromium, Some(urgency))
                if has_priorities || protocol == Protocol::Http1 =>
            {
                let field = priority_field(exchange, urgency);
                let text = field.as_ref().and_then(|field| field.to_str().ok());
                let priority = text.map_or_else(HttpPriority::default, HttpPriority::parse);
                request.priority = Priority::new(priority.urgency);
                if has_priorities {
                    headers.extend(field.map(|field| (PRIORITY_HEADER, field)));
                }
            }
            // Its weights (RFC 7540) mean nothing to servers of RFC 9218.
            (Scheduler::Chromium49, _) if has_priorities => {
                request.priority = Priority::new(HttpPriority::default().urgency);
            }
            _ => {}
        }
    }

    /// Opens the connections that a browser opens for the navigation `http_request`.
    pub(super) fn preconnect_navigation<B>(&self, node: usize, http_request: &HttpRequest<B>) {
        if self.options.scheduler == Scheduler::None {
            return;
        }
        if let Ok(origin) = Origin::of_request(http_request) {
            let client = self.client_of(node);
            client.preconnect(&origin, CONNECTIONS_OF_NAVIGATION);
        }
    }

    /// The origin of `http_request` if it is the first one to it and a browser opens another connection when the first takes long:
    /// over TCP.
    pub(super) fn backup_origin<B>(
        &self,
        node: usize,
        http_request: &HttpRequest<B>,
    ) -> Option<Origin> {
        if self.options.scheduler == Scheduler::None {
            return None;
        }
        let origin = Origin::of_request(http_request).ok()?;
        let protocol = self
            .page
            .protocol_for(self.protocol, self.options, &origin.host);
        let is_separate = self.page.is_separate(node, self.options);
        let is_first = || self.record().origins.insert((origin.clone(), is_separate));
        (protocol != Protocol::Http3 && is_first()).then_some(origin)
    }

    /// Opens another connection of `client` to `origin` as soon as its name is known and requests have waited for its first one for
    /// [`BACKUP_AFTER`]. The time begins again if the name is not known yet.
    pub(super) async fn open_backup(&self, client: &Client, origin: &Origin) {
        loop {
            let due = self.runtime.now() + BACKUP_AFTER;
            self.runtime.sleep_until(due).await;
            if client.open_backup(origin) {
                return;
            }
        }
    }

    /// Opens the connections, and resolves the names, that the bytes `from` to `until` of the document of `node` ask for, as browsers
    /// do.
    pub(super) fn preconnect(&self, node: usize, from: u64, until: u64) {
        if self.options.scheduler == Scheduler::None || from >= until {
            return;
        }
        let hints = self.page.preconnects(node).iter();
        for hint in hints.filter(|hint| from < hint.at_byte && hint.at_byte <= until) {
            let uri = uri_of(&hint.url, self.protocol.is_secure());
            if let Some(Ok(origin)) = uri.ok().map(|uri| Origin::of(&uri)) {
                let without_credentials = hint.without_credentials;
                let origin = Origin {
                    without_credentials,
                    ..origin
                };
                match hint.is_only_name {
                    true => self.client_of(node).prefetch_name(&origin),
                    false => self.client_of(node).preconnect(&origin, 1),
                }
            }
        }
    }

    /// The hosts of `plan` that responded to earlier pages of the visit.
    pub(super) fn known_hosts(&self, plan: &UrgencyPlan) -> BTreeSet<usize> {
        let Some(visited) = self.visited.get() else {
            return BTreeSet::new();
        };
        let exchanges = &self.page.replica().exchanges;
        let nodes = self.page.graph().nodes.iter().enumerate();
        let is_known = |number: usize, exchange: usize| {
            let host = exchanges[exchange].url.host_str().unwrap_or_default();
            visited.has_responded(host, self.page.is_separate(number, self.options))
        };
        let known = nodes.filter(|(number, node)| is_known(*number, node.exchange));
        known.map(|(number, _)| plan.partition[number]).collect()
    }
}
