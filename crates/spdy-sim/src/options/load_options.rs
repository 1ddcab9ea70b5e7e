//! The options of a load: every choice but page, protocol, network and seed.
//!
//! There are no hidden constants of an era. TLS version, initial window, concurrent streams and the other choices have a name here,
//! and a preset has a value for each of them.

use std::time::Duration;

use spdy_frame::compress::Compression;
use spdy_net::tls::TlsVersion;
use spdy_netem::profile::Era;

use crate::network::dns::NameLookups;
use crate::options::{Accelerator, Cache, Deployment, Push, Scheduler};

/// The smallest value of [`Options::data_frame_bytes`]: smaller frames would consist mostly of their heads.
pub const MIN_FRAME_BYTES: u32 = 64;
/// The largest value: the window that a client gives each stream.
pub const MAX_FRAME_BYTES: u32 = 1024 * 1024;
/// The largest value of [`Options::think_time_scale`].
pub const MAX_THINK_TIME_SCALE: f64 = 10.0;

/// Concurrent streams in the [laboratory of Lulic](Options::lulic), from a fit of its data.
pub const LULIC_STREAMS: u32 = 46;

/// Every choice of a load but page, protocol, network and seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Whether the load has a [qlog](crate::qlog::Qlog) of each QUIC connection. This changes nothing else.
    pub qlog: bool,
    /// The version of TLS. Over QUIC it is always 1.3.
    pub tls: TlsVersion,
    /// Whether a further connection to a host resumes an earlier TLS session (abbreviated handshake).
    pub tls_resumption: bool,
    /// Whether the key exchange is X25519 with ML-KEM, as in today's browsers and servers. Both hellos are then 1.1 kB longer. TLS 1.2
    /// does not have it.
    pub ml_kem: bool,
    /// TCP of both ends; `None` for that of the network.
    pub tcp_era: Option<Era>,
    /// Segments that a server may send before the first acknowledgement; `None` for the network's, or the era's. Over
    /// QUIC datagrams of 1,200 bytes.
    pub initial_window: Option<u32>,
    /// How the client resolves names.
    pub name_lookups: NameLookups,
    /// HTTP/1.1 connections to one host at a time.
    pub http1_connections: usize,
    /// Streams that a server allows a client to have open at the same time on one session (SPDY, h2, h3).
    pub max_concurrent_streams: u32,
    /// Compression of SPDY's header blocks; `Zlib(0)` is no compression.
    pub spdy_compression: Compression,
    /// The window of their compression, as a power of two; `None` for its default.
    pub spdy_window_bits: Option<u8>,
    /// Whether hosts with one recorded address share a session in TLS (SPDY, h2, h3). In virtual time the certificate covers every
    /// host; those of the recorded servers may not have done so.
    pub ip_pooling: bool,
    /// The resources that servers push, and that the client uses instead of requests (SPDY; over h2 the client accepts no pushes,
    /// like current browsers).
    pub push: Push,
    /// The hosts that speak the protocol under test. The client has connected to each host before: it has stored the protocol of
    /// each, and opens connections accordingly.
    pub deployment: Deployment,
    /// Whether requests have the priority of their kind. Else all have the lowest priority, and are sent in the order in which they
    /// were made. The client's own queue has the same order, which is the only one for HTTP/1.1.
    pub priorities: bool,
    /// The scheduler that delays requests of the page.
    pub scheduler: Scheduler,
    /// Whether the head of the document has hints for resources that the load event waits for and its text does not name
    /// ([`PageGraph::preload_candidates`](spdy_page::graph::PageGraph::preload_candidates)).
    pub hints: bool,
    /// The content of the client's cache before the load.
    pub cache: Cache,
    /// Whether a visit of several pages has a cache, names, TLS sessions and connections for each site, and frames of other sites have
    /// names, sessions and connections of their own, as browsers have since 2020. Else all share one of each. A site is the registrable
    /// domain of a host. Only presets set it.
    pub site_partitions: bool,
    /// Whether an accelerator is before the page's hosts. Then `push` and `hints` configure its pushes, and the hints in its
    /// responses or in a 103 before them (h2, h3), from stored responses and learned resources. Origins push nothing to it.
    pub accelerator: Accelerator,
    /// Round trip behind the access link, between the location of an accelerator and the origins. It is added to each request to an
    /// origin, by the client or by the accelerator.
    pub backhaul: Duration,
    /// Whether the accelerator fetches the resources that a page names as soon as it reads the page.
    pub prefetch: bool,
    /// Whether the URLs of proxied resources have the form of the accelerator's paper, `/HOST/PATH`, and not its own.
    pub paper_urls: bool,
    /// The largest DATA frame that servers send, from [`MIN_FRAME_BYTES`] to [`MAX_FRAME_BYTES`] bytes of body (SPDY, h2; the h2 client
    /// then accepts such frames).
    pub data_frame_bytes: u32,
    /// Recorded think times of servers are multiplied by this, from 0 (none) to [`MAX_THINK_TIME_SCALE`]
    /// ([`Replica::think_times`](spdy_page::replica::Replica::think_times)).
    pub think_time_scale: f64,
}

impl Default for Options {
    /// Current browsers and servers: TLS 1.3 with resumption, the network's TCP, a resolver, six connections, a hundred streams.
    fn default() -> Self {
        Self {
            qlog: false,
            tls: TlsVersion::Tls13,
            tls_resumption: true,
            ml_kem: false,
            tcp_era: None,
            initial_window: None,
            name_lookups: NameLookups::RoundTrip,
            http1_connections: 6,
            max_concurrent_streams: 100,
            spdy_compression: Compression::CrimeSafe,
            spdy_window_bits: None,
            ip_pooling: false,
            push: Push::No,
            deployment: Deployment::All,
            priorities: true,
            scheduler: Scheduler::None,
            hints: false,
            cache: Cache::Cold,
            site_partitions: true,
            accelerator: Accelerator::Off,
            backhaul: Duration::ZERO,
            prefetch: true,
            paper_urls: false,
            data_frame_bytes: 16_384,
            think_time_scale: 1.0,
        }
    }
}

impl Options {
    /// Names of the presets, for [`preset`](Self::preset).
    pub const PRESETS: [&str; 3] = ["today", "lulic", "chromium-49"];

    /// The preset `name`; `None` if it does not exist.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "today" => Some(Self::default()),
            "lulic" => Some(Self::lulic()),
            "chromium-49" => Some(Self::chromium_49()),
            _ => None,
        }
    }

    /// The laboratory of Lulic 2013 (Ubuntu with Apache 2.2 and `mod_spdy`, Chromium 30): TLS 1.2 with tickets,
    /// Linux of 2013, host names in a file, plain zlib for header blocks.
    /// One value is not from the paper but from a fit of its data (`Parameters::FITTED` of `spdy-lab/src/lulic`): 46 concurrent
    /// streams, where `mod_spdy` would have allowed 100. `docs/measurements/lulic.md` has its effect.
    #[must_use]
    pub fn lulic() -> Self {
        Self {
            qlog: false,
            tls: TlsVersion::Tls12,
            tls_resumption: true,
            ml_kem: false,
            tcp_era: Some(Era::Y2013),
            initial_window: None,
            name_lookups: NameLookups::HostsFile,
            http1_connections: 6,
            max_concurrent_streams: LULIC_STREAMS,
            spdy_compression: Compression::Zlib(9),
            spdy_window_bits: None,
            ip_pooling: false,
            push: Push::No,
            deployment: Deployment::All,
            priorities: true,
            scheduler: Scheduler::None,
            hints: false,
            cache: Cache::Cold,
            site_partitions: false,
            accelerator: Accelerator::Off,
            backhaul: Duration::ZERO,
            prefetch: true,
            paper_urls: false,
            data_frame_bytes: 16_384,
            think_time_scale: 1.0,
        }
    }

    /// Chromium 49 with servers of today, as `spdy lab browse` loads pages with it. `docs/measurements/chromium-49.md` compares both.
    ///
    /// Its TLS is 1.2, but with False Start, which takes the round trips of 1.3. Its header blocks have the smallest window that any
    /// client of SPDY used, and private values as literals, like those of [`Compression::CrimeSafe`].
    #[must_use]
    pub fn chromium_49() -> Self {
        Self {
            spdy_window_bits: Some(11),
            scheduler: Scheduler::Chromium49,
            site_partitions: false,
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_name_exists_and_no_other() {
        for name in Options::PRESETS {
            assert!(Options::preset(name).is_some(), "{name}");
        }
        assert_eq!(Options::preset("today"), Some(Options::default()));
        assert_eq!(Options::preset("tomorrow"), None);
    }
}
