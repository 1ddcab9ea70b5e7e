//! The versions of the protocol that exec and attach speak over their streams.
//!
//! | version | offered as | error stream | resize | |
//! | --- | --- | --- | --- | --- |
//! | 1 | `channel.k8s.io` | text | no | the server closes its half of stdin at once |
//! | 2 | `v2.channel.k8s.io` | text | no | stdin stays open both ways |
//! | 3 | `v3.channel.k8s.io` | text | yes | |
//! | 4 | `v4.channel.k8s.io` | JSON status, with the exit code | yes | the kubelet's best over SPDY |
//! | 5 | `v5.channel.k8s.io` | JSON status | yes | stdin can be closed alone: over SPDY it always could |
//!
//! "Text" is empty after success; it cannot carry an exit code.

/// A version of the protocol of exec and attach.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum RemoteCommand {
    /// `channel.k8s.io`.
    V1,
    /// `v2.channel.k8s.io`.
    V2,
    /// `v3.channel.k8s.io`: with resize.
    V3,
    /// `v4.channel.k8s.io`: with exit codes.
    V4,
    /// `v5.channel.k8s.io`: over SPDY the same as 4, which the kubelet therefore takes.
    V5,
}

impl RemoteCommand {
    /// All, the best first: what a client offers.
    pub const ALL: [Self; 5] = [Self::V5, Self::V4, Self::V3, Self::V2, Self::V1];

    /// Its name in `X-Stream-Protocol-Version`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V1 => "channel.k8s.io",
            Self::V2 => "v2.channel.k8s.io",
            Self::V3 => "v3.channel.k8s.io",
            Self::V4 => "v4.channel.k8s.io",
            Self::V5 => "v5.channel.k8s.io",
        }
    }

    /// The version of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }

    /// Whether a terminal has a resize stream.
    #[must_use]
    pub fn has_resize(self) -> bool {
        self >= Self::V3
    }

    /// Whether the error stream carries a JSON status, and with it the exit code.
    #[must_use]
    pub fn has_exit_code(self) -> bool {
        self >= Self::V4
    }
}

/// A sub-protocol of WebSocket that carries streams without SPDY, as the kubelet's streaming library serves
/// it; `base64` where messages are text.
///
/// A client that can close stdin alone needs version 5. The kubelet's library has it not; the API server
/// has it alone, and speaks SPDY to the kubelet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ChannelProtocol {
    /// `v5.channel.k8s.io`: a channel can be closed alone.
    V5,
    /// `v4.channel.k8s.io`: with exit codes.
    V4,
    /// `v4.base64.channel.k8s.io`.
    V4Base64,
    /// `channel.k8s.io`, and a client that names none; exec and attach alone.
    V1,
    /// `base64.channel.k8s.io`; exec and attach alone.
    V1Base64,
}

impl ChannelProtocol {
    /// All, the best first.
    pub const ALL: [Self; 5] = [Self::V5, Self::V4, Self::V4Base64, Self::V1, Self::V1Base64];

    /// Its name in `Sec-WebSocket-Protocol`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::V5 => "v5.channel.k8s.io",
            Self::V4 => "v4.channel.k8s.io",
            Self::V4Base64 => "v4.base64.channel.k8s.io",
            Self::V1 => "channel.k8s.io",
            Self::V1Base64 => "base64.channel.k8s.io",
        }
    }

    /// The sub-protocol with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|protocol| protocol.name() == name)
    }

    /// What its error channel carries. Sizes of a terminal have a channel in every version.
    #[must_use]
    pub fn version(self) -> RemoteCommand {
        match self {
            Self::V5 => RemoteCommand::V5,
            Self::V4 | Self::V4Base64 => RemoteCommand::V4,
            Self::V1 | Self::V1Base64 => RemoteCommand::V1,
        }
    }

    /// Whether messages are text.
    #[must_use]
    pub fn is_base64(self) -> bool {
        matches!(self, Self::V4Base64 | Self::V1Base64)
    }

    /// Whether a channel can be closed alone.
    #[must_use]
    pub fn has_close(self) -> bool {
        self == Self::V5
    }

    /// Whether it forwards ports.
    #[must_use]
    pub fn forwards_ports(self) -> bool {
        matches!(self, Self::V4 | Self::V4Base64)
    }
}

/// The protocol of port-forward over SPDY, the only one there is.
pub(crate) const PORT_FORWARD: &str = "portforward.k8s.io";
/// Header of a stream: what it is.
pub(crate) const STREAM_TYPE: &str = "streamtype";
/// Header of a port-forward's stream: the port, in decimal.
pub(crate) const PORT: &str = "port";
/// Header of a port-forward's stream: which data stream belongs to which error stream.
pub(crate) const REQUEST_ID: &str = "requestid";
/// Stream type: status at the end, from the server.
pub(crate) const ERROR: &str = "error";
/// Stream type: from the client.
pub(crate) const STDIN: &str = "stdin";
/// Stream type: from the server.
pub(crate) const STDOUT: &str = "stdout";
/// Stream type: from the server; not with a terminal.
pub(crate) const STDERR: &str = "stderr";
/// Stream type: sizes of the terminal, from the client.
pub(crate) const RESIZE: &str = "resize";
/// Stream type: a forwarded connection, both ways.
pub(crate) const DATA: &str = "data";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_has_its_own_name() {
        for version in RemoteCommand::ALL {
            assert_eq!(RemoteCommand::from_name(version.name()), Some(version));
        }
        assert_eq!(RemoteCommand::from_name("v6.channel.k8s.io"), None);
        for protocol in ChannelProtocol::ALL {
            assert_eq!(ChannelProtocol::from_name(protocol.name()), Some(protocol));
        }
    }
}
