//! The requests for which the runtime creates a URL: the streaming requests of CRI.

use crate::error::RequestError;

/// The streams of a request.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct StreamOptions {
    /// The client writes.
    pub stdin: bool,
    /// The client reads.
    pub stdout: bool,
    /// The client reads stderr separately. Not with `tty`: a terminal has only one output.
    pub stderr: bool,
    /// The command runs on a terminal, whose size may change.
    pub tty: bool,
}

impl StreamOptions {
    /// CRI's rules.
    pub(crate) fn check(self) -> Result<(), RequestError> {
        if self.tty && self.stderr {
            return Err(RequestError::TerminalWithStderr);
        }
        if !self.stdin && !self.stdout && !self.stderr {
            return Err(RequestError::NoStreams);
        }
        Ok(())
    }
}

/// Run a command in a container.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ExecRequest {
    /// The container's id.
    pub container: String,
    /// Program and arguments; no shell.
    pub command: Vec<String>,
    /// The streams of the command.
    pub stream_options: StreamOptions,
}

/// Attach to the process that a container runs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct AttachRequest {
    /// The container's id.
    pub container: String,
    /// The streams of the process.
    pub stream_options: StreamOptions,
}

/// Forward ports of a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PortForwardRequest {
    /// The pod sandbox's id.
    pub sandbox: String,
    /// Ports that the client may request; empty for any. (Kubernetes leaves it empty with SPDY.)
    pub ports: Vec<u16>,
}
