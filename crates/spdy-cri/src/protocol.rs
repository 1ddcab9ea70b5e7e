//! The protocol versions of exec and attach.
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
    /// `v5.channel.k8s.io`: over SPDY the same as 4, which the kubelet therefore uses.
    V5,
}

impl RemoteCommand {
    /// All versions, in order of preference: what a client offers.
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

    /// The version with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }

    /// True if a terminal has a resize stream.
    #[must_use]
    pub fn has_resize(self) -> bool {
        self >= Self::V3
    }

    /// True if the error stream carries a JSON status, which has the exit code.
    #[must_use]
    pub fn has_exit_code(self) -> bool {
        self >= Self::V4
    }
}

/// A sub-protocol of WebSocket for streams without SPDY, as in the kubelet's streaming library; with `base64` messages are text.
///
/// A client that must close stdin alone needs version 5. The kubelet's library does not support it. The API server supports only
/// version 5, and uses SPDY to the kubelet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ChannelProtocol {
    /// `v5.channel.k8s.io`: single channels can be closed.
    V5,
    /// `v4.channel.k8s.io`: with exit codes.
    V4,
    /// `v4.base64.channel.k8s.io`.
    V4Base64,
    /// `channel.k8s.io`, also for a client that sends no name; only for exec and attach.
    V1,
    /// `base64.channel.k8s.io`; only for exec and attach.
    V1Base64,
}

impl ChannelProtocol {
    /// All sub-protocols, in order of preference.
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

    /// The version that defines the content of its error channel. Terminal sizes have a channel in every version.
    #[must_use]
    pub fn version(self) -> RemoteCommand {
        match self {
            Self::V5 => RemoteCommand::V5,
            Self::V4 | Self::V4Base64 => RemoteCommand::V4,
            Self::V1 | Self::V1Base64 => RemoteCommand::V1,
        }
    }

    /// True if messages are text.
    #[must_use]
    pub fn is_base64(self) -> bool {
        matches!(self, Self::V4Base64 | Self::V1Base64)
    }

    /// True if single channels can be closed.
    #[must_use]
    pub fn has_close(self) -> bool {
        self == Self::V5
    }

    /// True if it supports port-forward.
    #[must_use]
    pub fn forwards_ports(self) -> bool {
        matches!(self, Self::V4 | Self::V4Base64)
    }
}

/// The only protocol of port-forward over SPDY.
pub(crate) const PORT_FORWARD: &str = "portforward.k8s.io";
/// Header of a stream: its type.
pub(crate) const STREAM_TYPE: &str = "streamtype";
/// Header of a port-forward's stream: the port, in decimal.
pub(crate) const PORT: &str = "port";
/// Header of a port-forward stream: the ID that joins a data stream and its error stream.
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
/// Stream type: a forwarded connection, in both directions.
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
