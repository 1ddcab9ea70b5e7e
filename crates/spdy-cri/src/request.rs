//! The streaming requests of CRI: exec, attach and port-forward.

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

/// A request for streams to a container or a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum StreamingRequest {
    /// Run a command.
    Exec(ExecRequest),
    /// Attach to the container's process.
    Attach(AttachRequest),
    /// Forward ports.
    PortForward(PortForwardRequest),
}

impl StreamingRequest {
    /// CRI's rules.
    pub(crate) fn check(&self) -> Result<(), RequestError> {
        let (target, stream_options) = match self {
            Self::Exec(request) => (&request.container, Some(request.stream_options)),
            Self::Attach(request) => (&request.container, Some(request.stream_options)),
            Self::PortForward(request) => (&request.sandbox, None),
        };
        if let Some(stream_options) = stream_options {
            stream_options.check()?;
        }
        match self {
            Self::Exec(request) if request.command.is_empty() => Err(RequestError::NoCommand),
            _ if target.is_empty() => Err(RequestError::MissingTarget),
            _ => Ok(()),
        }
    }

    /// The first segment of its path in a URL with a token.
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            Self::Exec(_) => "exec",
            Self::Attach(_) => "attach",
            Self::PortForward(_) => "portforward",
        }
    }
}

impl From<ExecRequest> for StreamingRequest {
    fn from(request: ExecRequest) -> Self {
        Self::Exec(request)
    }
}

impl From<AttachRequest> for StreamingRequest {
    fn from(request: AttachRequest) -> Self {
        Self::Attach(request)
    }
}

impl From<PortForwardRequest> for StreamingRequest {
    fn from(request: PortForwardRequest) -> Self {
        Self::PortForward(request)
    }
}
