//! A handler that runs commands of this machine instead of containers.

mod process;

use std::path::PathBuf;

use spdy_cri::{AttachRequest, Connection, ExecRequest, ExitCode, Handler, HandlerError, Streams};
use tokio::net::TcpStream;

/// Exec runs commands in `directory`, attach joins `cat`, and port-forward reaches ports of localhost.
pub(crate) struct LocalCommands {
    pub(crate) directory: PathBuf,
}

impl Handler for LocalCommands {
    async fn exec(&self, request: ExecRequest, streams: Streams) -> Result<ExitCode, HandlerError> {
        let tty = request.stream_options.tty;
        process::run(&request.command, &self.directory, tty, streams).await
    }

    async fn attach(&self, request: AttachRequest, streams: Streams) -> Result<(), HandlerError> {
        let tty = request.stream_options.tty;
        process::run(&["cat".to_owned()], &self.directory, tty, streams).await?;
        Ok(())
    }

    async fn port_forward(
        &self,
        _: String,
        port: u16,
        mut connection: Connection,
    ) -> Result<(), HandlerError> {
        let mut socket = TcpStream::connect(("127.0.0.1", port)).await?;
        tokio::io::copy_bidirectional(&mut connection, &mut socket).await?;
        Ok(())
    }
}
