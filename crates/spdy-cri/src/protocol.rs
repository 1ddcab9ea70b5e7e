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
//! "Text" is empty after success; an exit code cannot be told then.

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

/// The protocol of port-forward, the only one there is.
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
    }
}
