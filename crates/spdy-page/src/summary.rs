//! The numbers that `replica show` prints first.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;

use crate::head;
use crate::replica::{Kind, Replica};

/// A replica in numbers.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Summary {
    /// The replica's name.
    pub name: String,
    /// Its origin and licence.
    pub source: String,
    /// The URL of the page's own document.
    pub url: String,
    /// When it was recorded, if the recording has it.
    pub recorded: Option<Timestamp>,
    /// Number of exchanges.
    pub exchanges: usize,
    /// Bytes of bodies as transferred.
    pub body_bytes: u64,
    /// Bodies that are filler, and their bytes.
    pub filler: (usize, u64),
    /// Bytes of all request heads, and of all response heads.
    pub head_bytes: (u64, u64),
    /// Hosts in the order of their first exchange.
    pub hosts: Vec<HostSummary>,
    /// Kinds that occur, in the order of [`Kind::ALL`]: exchanges and body bytes of each.
    pub kinds: Vec<(Kind, usize, u64)>,
    /// From the start of the load to DOMContentLoaded, as recorded.
    pub dom_content_loaded: Option<Duration>,
    /// From the start of the load to the load event, as recorded.
    pub load: Option<Duration>,
}

/// One host of a replica.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct HostSummary {
    /// Name, with the port if it is not the scheme's default.
    pub host: String,
    /// Addresses that responded, in the order of their first exchange.
    pub addresses: Vec<IpAddr>,
    /// Exchanges with it.
    pub exchanges: usize,
    /// Bytes of bodies from it, as transferred.
    pub body_bytes: u64,
}

impl Summary {
    /// The numbers of `replica`.
    ///
    /// # Panics
    ///
    /// If [`Replica::start`] is not the index of an exchange.
    pub fn of(replica: &Replica) -> Self {
        let mut summary = Self {
            name: replica.name.clone(),
            source: replica.source.clone(),
            url: replica.document().url.to_string(),
            recorded: replica.recorded,
            exchanges: replica.exchanges.len(),
            body_bytes: 0,
            filler: (0, 0),
            head_bytes: (0, 0),
            hosts: Vec::new(),
            kinds: Vec::new(),
            dom_content_loaded: replica.dom_content_loaded,
            load: replica.load,
        };
        let mut kinds = Kind::ALL.map(|kind| (kind, 0, 0));
        let (mut place_of, mut answered) = (HashMap::new(), HashSet::new());
        for exchange in &replica.exchanges {
            let bytes = exchange.body.len() as u64;
            summary.body_bytes += bytes;
            summary.head_bytes.0 += exchange.request_head.len() as u64;
            summary.head_bytes.1 += exchange.response_head.len() as u64;
            if !exchange.body_is_real {
                summary.filler.0 += 1;
                summary.filler.1 += bytes;
            }
            for (kind, count, total) in &mut kinds {
                if *kind == exchange.kind {
                    *count += 1;
                    *total += bytes;
                }
            }
            let host = head::authority(&exchange.url);
            let place = *place_of.entry(host.clone()).or_insert_with(|| {
                summary.hosts.push(HostSummary {
                    host,
                    addresses: Vec::new(),
                    exchanges: 0,
                    body_bytes: 0,
                });
                summary.hosts.len() - 1
            });
            let host = &mut summary.hosts[place];
            host.exchanges += 1;
            host.body_bytes += bytes;
            if let Some(address) = exchange
                .address
                .filter(|&address| answered.insert((place, address)))
            {
                host.addresses.push(address);
            }
        }
        summary.kinds = kinds
            .into_iter()
            .filter(|&(_, count, _)| count > 0)
            .collect();
        summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_portal_in_numbers() {
        let summary = Summary::of(&crate::builtin::portal());
        assert_eq!(
            (summary.exchanges, summary.hosts.len(), summary.filler),
            (44, 7, (0, 0))
        );
        let kinds: Vec<_> = summary
            .kinds
            .iter()
            .map(|&(kind, count, _)| (kind, count))
            .collect();
        assert_eq!(
            kinds,
            [
                (Kind::Document, 1),
                (Kind::Stylesheet, 1),
                (Kind::Image, 42)
            ]
        );
        assert_eq!(
            summary
                .kinds
                .iter()
                .map(|&(_, _, bytes)| bytes)
                .sum::<u64>(),
            summary.body_bytes
        );
        assert_eq!(
            summary
                .hosts
                .iter()
                .map(|host| host.body_bytes)
                .sum::<u64>(),
            summary.body_bytes
        );
        assert!(
            summary
                .hosts
                .iter()
                .all(|host| host.addresses.len() == 1 && host.exchanges >= 6)
        );
    }
}
