//! The options of a load: every choice but page, protocol, network and seed.
//!
//! There are no hidden constants of an era: TLS version, initial window, streams at once and the rest stand
//! here by name, and a preset is nothing but values for them.

use std::time::Duration;

use spdy_frame::compress::Compression;
use spdy_net::tls::TlsVersion;
use spdy_netem::profile::Era;

use crate::network::dns::NameLookups;
use crate::options::{Accelerator, Cache, Deployment, Push, Scheduler};

/// The smallest value of [`Options::data_frame_bytes`]: below, heads outweigh what they carry in no time.
pub const MIN_FRAME_BYTES: u32 = 64;
/// The largest: as much as a client lets a stream send unasked.
pub const MAX_FRAME_BYTES: u32 = 1024 * 1024;

/// Streams at once in the [laboratory of Lulic](Options::lulic), from a fit of its data.
pub const LULIC_STREAMS: u32 = 46;

/// Every choice of a load but page, protocol, network and seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// The one version of TLS that is spoken; over QUIC it is 1.3, whatever stands here.
    pub tls: TlsVersion,
    /// Whether a further connection to a host takes up an earlier TLS session (abbreviated handshake).
    pub tls_resumption: bool,
    /// Whether keys are agreed on by ML-KEM beside X25519, as browsers and servers of today do: both hellos are 1.1 kB longer. TLS 1.2
    /// does not know it.
    pub ml_kem: bool,
    /// TCP of both ends; `None` for that of the network.
    pub tcp_era: Option<Era>,
    /// Segments that a server may send before the first acknowledgement; `None` for the network's, or the era's. Over
    /// QUIC datagrams of 1,200 bytes.
    pub initial_window: Option<u32>,
    /// How the client learns addresses.
    pub name_lookups: NameLookups,
    /// HTTP/1.1 connections to one host at a time.
    pub http1_connections: usize,
    /// Streams that a server lets a client have open at once on one session (SPDY, h2, h3).
    pub max_concurrent_streams: u32,
    /// How SPDY's header blocks are compressed; `Zlib(0)` is not at all.
    pub spdy_compression: Compression,
    /// How far back their compression looks, as a power of two; `None` for its default.
    pub spdy_window_bits: Option<u8>,
    /// Whether hosts that were recorded at one address share a session in TLS (SPDY, h2, h3). The certificate of
    /// virtual time covers every host; those of the recorded servers may not have.
    pub ip_pooling: bool,
    /// What servers push, and the client answers its requests with (SPDY; over h2 the client takes no pushes, as browsers of
    /// today).
    pub push: Push,
    /// Which hosts speak the protocol under test. The client is one that has been there before: it knows what to expect
    /// of each, and opens connections accordingly.
    pub deployment: Deployment,
    /// Whether requests have the priority of their kind; else all have the lowest, and what came first goes first. It orders
    /// also the client's own queue, which is all that HTTP/1.1 has.
    pub priorities: bool,
    /// What holds requests back that the page wants.
    pub scheduler: Scheduler,
    /// Whether the head of the document hints at what load waits for and its text does not name
    /// ([`PageGraph::preload_candidates`](spdy_page::graph::PageGraph::preload_candidates)).
    pub hints: bool,
    /// What the client has before the load.
    pub cache: Cache,
    /// Whether the accelerator stands before the page's hosts. Then `push` is what it pushes of what it has and learned, and `hints`
    /// those that its answers bear, or a 103 before them (h2, h3); origins push nothing to it.
    pub accelerator: Accelerator,
    /// Round trip behind the access link, between where an accelerator stands and the origins: who asks an origin, be it the
    /// client or the accelerator, pays it beside whatever else lies between.
    pub backhaul: Duration,
    /// Whether the accelerator fetches what a page names as soon as it reads it.
    pub prefetch: bool,
    /// Whether the accelerator writes URLs of what it moves as in its paper, `/HOST/PATH`, not in the form of its own.
    pub paper_urls: bool,
    /// The largest DATA frame that servers send, from [`MIN_FRAME_BYTES`] to [`MAX_FRAME_BYTES`] bytes of body (SPDY, h2, whose client
    /// then takes such frames).
    pub data_frame_bytes: u32,
}

impl Default for Options {
    /// Browsers and servers of today: TLS 1.3 with resumption, the network's TCP, a resolver that must be
    /// asked, six connections, a hundred streams.
    fn default() -> Self {
        Self {
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
            accelerator: Accelerator::Off,
            backhaul: Duration::ZERO,
            prefetch: true,
            paper_urls: false,
            data_frame_bytes: 16_384,
        }
    }
}

impl Options {
    /// Names of the presets, for [`preset`](Self::preset).
    pub const PRESETS: [&str; 2] = ["today", "lulic"];

    /// A preset by its name; `None` if there is none of that name.
    #[must_use]
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "today" => Some(Self::default()),
            "lulic" => Some(Self::lulic()),
            _ => None,
        }
    }

    /// The laboratory of Lulic 2013 (Ubuntu with Apache 2.2 and `mod_spdy`, Chromium 30): TLS 1.2 with tickets,
    /// Linux of 2013, host names in a file, plain zlib for header blocks.
    ///
    /// One value is not from the paper but from a fit of its data (`Parameters::FITTED` of `spdy-lab/src/lulic`): 46 streams at once,
    /// where `mod_spdy` would have allowed 100. `docs/measurements/lulic.md` has its effect.
    #[must_use]
    pub fn lulic() -> Self {
        Self {
            tls: TlsVersion::Tls12,
            tls_resumption: true,
            ml_kem: false,
            tcp_era: Some(Era::Y2013),
            initial_window: None,
            name_lookups: NameLookups::Known,
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
            accelerator: Accelerator::Off,
            backhaul: Duration::ZERO,
            prefetch: true,
            paper_urls: false,
            data_frame_bytes: 16_384,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_there_and_no_other() {
        for name in Options::PRESETS {
            assert!(Options::preset(name).is_some(), "{name}");
        }
        assert_eq!(Options::preset("today"), Some(Options::default()));
        assert_eq!(Options::preset("tomorrow"), None);
    }
}
