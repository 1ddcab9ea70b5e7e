//! The factors of experiments.
//!
//! A factor is a field of [`Options`](spdy_sim::options::Options) or a setting of a network, written as in `spdy race` and
//! [`spdy_netem::profile`], so that an experiment has no second syntax for either. `factor_level.rs` parses their levels.

use std::fmt;

/// A factor of an experiment. A cell's key has them in this order.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Factor {
    /// A network by name or by settings; further factors change it.
    Network,
    /// Rate in both directions.
    Rate,
    /// Rate to the client.
    Down,
    /// Rate from the client.
    Up,
    /// Round-trip propagation delay.
    Rtt,
    /// Delay of each pass of a pipe: the round trip is twice this for each pass.
    Delay,
    /// Random delay of a packet.
    Jitter,
    /// Whether jitter may reorder packets.
    Reorder,
    /// Packet loss in both directions.
    Loss,
    /// Packet loss from the client.
    LossUp,
    /// Packet loss to the client.
    LossDown,
    /// Mean number of packets lost in a row.
    Burst,
    /// Size of a pipe's queue.
    Queue,
    /// Two pipes, or one for both directions.
    Pipe,
    /// Passes of a packet through a shared pipe.
    Passes,
    /// Period of the timer that serves the pipes.
    Tick,
    /// Preset of the options below.
    Preset,
    /// TCP of both ends.
    Tcp,
    /// Segments that a server sends before the first acknowledgement.
    InitialWindow,
    /// The version of TLS.
    Tls,
    /// Whether TLS sessions are resumed.
    Resumption,
    /// Whether the key exchange includes ML-KEM.
    MlKem,
    /// How names are resolved.
    Dns,
    /// HTTP/1.1 connections per host.
    Connections,
    /// Concurrent streams of a session.
    Streams,
    /// Compression of SPDY's header blocks.
    Compression,
    /// Window of that compression.
    HeaderWindow,
    /// Whether hosts at one address share a session.
    IpPooling,
    /// The resources that servers push.
    Push,
    /// Whether the page's own host serves the resources of other hosts.
    Fold,
    /// The hosts that speak the protocol.
    Deploy,
    /// Whether requests have priorities.
    Priorities,
    /// The scheduler that delays a page's requests.
    Scheduler,
    /// Whether the head of the document has hints for resources that its text does not name.
    Hints,
    /// Number of hosts for the page's own resources.
    Shard,
    /// The content of the client's cache before a load.
    Cache,
    /// The largest DATA frame that servers send.
    Frame,
    /// Whether an accelerator is before the page's hosts.
    Accelerator,
    /// Round trip behind the access link.
    Backhaul,
    /// Whether the accelerator fetches the resources of a page before a client requests them.
    Prefetch,
    /// The form of URLs of proxied resources.
    Urls,
    /// How much of the recorded think times of servers is replayed.
    Think,
    /// Whether the pages are one visit, and the pause between two.
    Visit,
    /// The clock.
    Clock,
    /// The program that serves the page.
    Server,
}

/// The part of a cell that a factor changes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FactorKind {
    /// A whole network.
    Base,
    /// A setting of a network, by this name.
    Setting(&'static str),
    /// A setting that is computed from several.
    Delay,
    /// An option of a load.
    Choice,
}

impl Factor {
    /// All factors, in their order.
    pub const ALL: [Self; 45] = [
        Self::Network,
        Self::Rate,
        Self::Down,
        Self::Up,
        Self::Rtt,
        Self::Delay,
        Self::Jitter,
        Self::Reorder,
        Self::Loss,
        Self::LossUp,
        Self::LossDown,
        Self::Burst,
        Self::Queue,
        Self::Pipe,
        Self::Passes,
        Self::Tick,
        Self::Preset,
        Self::Tcp,
        Self::InitialWindow,
        Self::Tls,
        Self::Resumption,
        Self::MlKem,
        Self::Dns,
        Self::Connections,
        Self::Streams,
        Self::Compression,
        Self::HeaderWindow,
        Self::IpPooling,
        Self::Push,
        Self::Fold,
        Self::Deploy,
        Self::Priorities,
        Self::Scheduler,
        Self::Hints,
        Self::Shard,
        Self::Cache,
        Self::Frame,
        Self::Accelerator,
        Self::Backhaul,
        Self::Prefetch,
        Self::Urls,
        Self::Think,
        Self::Visit,
        Self::Clock,
        Self::Server,
    ];

    /// Its name in an experiment and in keys.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Network => "network",
            Self::Rate => "rate",
            Self::Down => "down",
            Self::Up => "up",
            Self::Rtt => "rtt",
            Self::Delay => "delay",
            Self::Jitter => "jitter",
            Self::Reorder => "reorder",
            Self::Loss => "loss",
            Self::LossUp => "loss_up",
            Self::LossDown => "loss_down",
            Self::Burst => "burst",
            Self::Queue => "queue",
            Self::Pipe => "pipe",
            Self::Passes => "passes",
            Self::Tick => "tick",
            Self::Preset => "preset",
            Self::Tcp => "tcp",
            Self::InitialWindow => "initial_window",
            Self::Tls => "tls",
            Self::Resumption => "resumption",
            Self::MlKem => "ml_kem",
            Self::Dns => "dns",
            Self::Connections => "connections",
            Self::Streams => "streams",
            Self::Compression => "compression",
            Self::HeaderWindow => "header_window",
            Self::IpPooling => "ip_pooling",
            Self::Push => "push",
            Self::Fold => "fold",
            Self::Deploy => "deploy",
            Self::Priorities => "priorities",
            Self::Scheduler => "scheduler",
            Self::Hints => "hints",
            Self::Shard => "shard",
            Self::Cache => "cache",
            Self::Frame => "frame",
            Self::Accelerator => "accelerator",
            Self::Backhaul => "backhaul",
            Self::Prefetch => "prefetch",
            Self::Urls => "urls",
            Self::Think => "think",
            Self::Visit => "visit",
            Self::Clock => "clock",
            Self::Server => "server",
        }
    }

    /// The factor with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|factor| factor.name() == name)
    }

    pub(super) const fn kind(self) -> FactorKind {
        match self {
            Self::Network => FactorKind::Base,
            Self::Delay => FactorKind::Delay,
            Self::Rate
            | Self::Down
            | Self::Up
            | Self::Rtt
            | Self::Jitter
            | Self::Reorder
            | Self::Loss
            | Self::LossUp
            | Self::LossDown
            | Self::Burst
            | Self::Queue
            | Self::Pipe
            | Self::Passes
            | Self::Tick => FactorKind::Setting(self.name()),
            Self::Preset
            | Self::Tcp
            | Self::InitialWindow
            | Self::Tls
            | Self::Resumption
            | Self::MlKem
            | Self::Dns
            | Self::Connections
            | Self::Streams
            | Self::Compression
            | Self::HeaderWindow
            | Self::IpPooling
            | Self::Push
            | Self::Fold
            | Self::Deploy
            | Self::Priorities
            | Self::Scheduler
            | Self::Hints
            | Self::Shard
            | Self::Cache
            | Self::Frame
            | Self::Accelerator
            | Self::Backhaul
            | Self::Prefetch
            | Self::Urls
            | Self::Think
            | Self::Visit
            | Self::Clock
            | Self::Server => FactorKind::Choice,
        }
    }

    /// True if it is an option of a load alone, outside an experiment too.
    pub(super) fn is_load_option(self) -> bool {
        self.kind() == FactorKind::Choice && !matches!(self, Self::Clock | Self::Server)
    }

    /// The setting of a network that its level is, if it is a setting by itself.
    pub(crate) const fn setting(self) -> Option<&'static str> {
        match self.kind() {
            FactorKind::Setting(name) => Some(name),
            FactorKind::Base | FactorKind::Delay | FactorKind::Choice => None,
        }
    }
}

impl fmt::Display for Factor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_factor_name_parses() {
        for (at, factor) in Factor::ALL.into_iter().enumerate() {
            assert_eq!(Factor::named(factor.name()), Some(factor));
            assert_eq!(factor as usize, at, "{factor} is out of order");
        }
        assert_eq!(Factor::named("bandwith"), None);
    }
}
