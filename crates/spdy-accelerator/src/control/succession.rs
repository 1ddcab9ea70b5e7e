//! Replaces a running `spdy accelerate` without a gap: on SIGUSR2 it starts a second process of its program, as nginx and HAProxy
//! do, and ends when that one is ready.
//!
//! ```text
//!  the running process                                          its successor
//!    starts it, with a copy of each socket ─────────────────▶  configuration, certificates, origins: everything that can fail
//!    writes its queue, lends the folder of the cache  ◀─ GOOD
//!                                                     LENT ─▶  reads the stored heads, joins the cluster
//!    orders no certificates, accepts no connections  ◀─ READY
//!                                                    YOURS ─▶  accepts connections, orders certificates
//!    HTTP/3's sessions have ended                   closes ─▶  reads datagrams: a socket of UDP has one reader
//!    connections have ended, at most `drain_timeout` later
//! ```
//!
//! A failure before READY leaves the old process as it is; it reports the cause. Each message is one byte.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as SystemStream;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use command_fds::{CommandFdExt, FdMapping};
use sd_notify::NotifyState;
use spdy_net::latch::Latch;
use spdy_net::listen::inherited_sockets::{InheritedSockets, PREDECESSOR};
use spdy_net::listen::sockets::Sockets;
use spdy_proxy::proxy::Proxy;
use spdy_service::notice::Notices;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

/// Time for a successor to become ready: it reads the head of every file of the cache.
const START_TIMEOUT: Duration = Duration::from_secs(300);
/// How long to wait for the exit of a successor that closed its connection to this process, and how often to poll for it.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The first descriptor that is handed over (sd_listen_fds(3)).
const FIRST_FD: i32 = 3;

/// The successor's configuration is valid.
const MSG_CONFIG_OK: u8 = b'g';
/// The predecessor has released the folder of the cache.
const MSG_CACHE_RELEASED: u8 = b'l';
/// The successor is ready to accept connections.
const MSG_READY: u8 = b'r';
/// The predecessor lets the successor take over the connections.
const MSG_TAKE_OVER: u8 = b'y';

/// The connection to the process that started this one as its successor.
pub(crate) struct Predecessor(UnixStream);

impl Predecessor {
    /// The predecessor that passed its sockets in `handed`, if there is one.
    pub(crate) fn of(handed: &mut InheritedSockets) -> anyhow::Result<Option<Self>> {
        let Some(line) = handed.predecessor() else {
            return Ok(None);
        };
        Ok(Some(Self(tokio_stream(line)?)))
    }

    /// Reports that the configuration is valid, and requests the folder of the cache.
    pub(crate) async fn request_cache(&mut self) {
        self.request(MSG_CONFIG_OK).await;
    }

    /// Reports that nothing can fail any more, and requests the connections.
    pub(crate) async fn request_connections(&mut self) {
        self.request(MSG_READY).await;
    }

    /// Sends a message and waits for the reply. A predecessor that has ended needs none: its resources are free.
    async fn request(&mut self, word: u8) {
        if self.0.write_u8(word).await.is_ok() {
            let _ = self.0.read_u8().await;
        }
    }

    /// Set when it reads no datagrams any more.
    pub(crate) fn left(mut self) -> Latch {
        let left = Latch::new();
        let latch = left.clone();
        tokio::spawn(async move {
            let _ = self.0.read_u8().await;
            latch.set();
        });
        left
    }
}

/// Notifies the service manager, if there is one, that connections are accepted (sd_notify(3)).
pub(crate) fn notify_ready() {
    notify(&[NotifyState::Ready]);
}

fn notify(state: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(state) {
        tracing::warn!(%error, "cannot notify the service manager");
    }
}

/// Starts successors of this program.
pub(crate) struct Succession {
    signal: Signal,
    sockets: Sockets,
    /// A successor that is not ready yet.
    pending: Option<JoinHandle<anyhow::Result<Successor>>>,
}

impl Succession {
    /// Listens for SIGUSR2. A successor gets `sockets`.
    pub(crate) fn listen(sockets: Sockets) -> anyhow::Result<Self> {
        Ok(Self {
            signal: signal(SignalKind::user_defined2())?,
            sockets,
            pending: None,
        })
    }

    /// Completes when a successor has taken over. Prints a note for each that fails.
    pub(crate) async fn taken_over(&mut self, proxy: &Arc<Proxy>, notices: &Notices) -> Successor {
        loop {
            let followed = match &mut self.pending {
                None => {
                    if self.signal.recv().await.is_none() {
                        std::future::pending::<()>().await;
                    }
                    match Successor::start(&self.sockets) {
                        Ok(successor) => {
                            notices.info(format_args!(
                                "started process {} as the successor of this one",
                                successor.child.id()
                            ));
                            let prepared = successor.into_ready(proxy.clone());
                            self.pending = Some(tokio::spawn(prepared));
                            continue;
                        }
                        Err(error) => Err(error),
                    }
                }
                Some(coming) => {
                    let prepared = coming.await;
                    self.pending = None;
                    match prepared.context("the task that starts the successor panicked") {
                        Ok(Ok(successor)) => successor.take_over(proxy).await,
                        Ok(Err(error)) | Err(error) => Err(error),
                    }
                }
            };
            match followed {
                Ok(successor) => return successor,
                Err(error) => notices.error(
                    "the successor failed, so this process continues",
                    format_args!(": {error:#}"),
                ),
            }
        }
    }
}

impl Drop for Succession {
    fn drop(&mut self) {
        if let Some(coming) = &self.pending {
            coming.abort();
        }
    }
}

/// A program that follows this one. Dropping it before it has taken over kills it; dropping it later lets it read datagrams.
pub(crate) struct Successor {
    child: Child,
    line: UnixStream,
    has_taken_over: bool,
}

impl Successor {
    /// Starts the same program with the same arguments, and with `sockets`.
    fn start(sockets: &Sockets) -> anyhow::Result<Self> {
        if std::process::id() == 1 {
            bail!(
                "process 1 cannot be replaced, because all processes end with it: start a second container instead"
            );
        }
        let (line, theirs) = SystemStream::pair()?;
        let mut handed = vec![OwnedFd::from(theirs)];
        handed.extend(sockets.copies()?);
        let mut arguments = std::env::args_os();
        let program = arguments.next().unwrap_or_else(|| OsString::from("spdy"));
        let mut names = vec!["socket"; handed.len()];
        names[0] = PREDECESSOR;
        let mut command = Command::new(&program);
        command
            .args(arguments)
            .stdin(Stdio::null())
            .env("LISTEN_FDS", handed.len().to_string())
            .env("LISTEN_FDNAMES", names.join(":"))
            // The process ID is not available before the start.
            .env_remove("LISTEN_PID")
            .env_remove("LISTEN_FDS_FIRST_FD");
        let handed = (FIRST_FD..)
            .zip(handed)
            .map(|(child_fd, parent_fd)| FdMapping {
                parent_fd,
                child_fd,
            });
        command.fd_mappings(handed.collect())?;
        let started = command.spawn();
        let what = program.display();
        Ok(Self {
            child: started.with_context(|| format!("cannot start {what}"))?,
            line: tokio_stream(line)?,
            has_taken_over: false,
        })
    }

    /// Completes when the successor is ready to take over.
    async fn into_ready(mut self, proxy: Arc<Proxy>) -> anyhow::Result<Self> {
        let mut is_lent = false;
        let prepared =
            tokio::time::timeout(START_TIMEOUT, self.prepare(&proxy, &mut is_lent)).await;
        let reason = match prepared {
            Ok(Ok(())) => return Ok(self),
            Ok(Err(error)) => error,
            Err(_) => anyhow::anyhow!("not ready after {} s", START_TIMEOUT.as_secs()),
        };
        let id = self.child.id();
        drop(self);
        if is_lent {
            reattach_cache(&proxy).await?;
        }
        Err(reason.context(format!("process {id}")))
    }

    async fn prepare(&mut self, proxy: &Proxy, is_lent: &mut bool) -> anyhow::Result<()> {
        self.expect_message(MSG_CONFIG_OK).await?;
        if let Some(disk) = proxy.cache.disk() {
            *is_lent = true;
            disk.lend().await.context("cannot release the disk cache")?;
        }
        self.line.write_u8(MSG_CACHE_RELEASED).await?;
        self.expect_message(MSG_READY).await
    }

    async fn expect_message(&mut self, expected: u8) -> anyhow::Result<()> {
        match self.line.read_u8().await {
            Ok(found) if found == expected => Ok(()),
            Ok(found) => bail!(
                "unexpected message: expected {:?}, found {:?}",
                char::from(expected),
                char::from(found)
            ),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                match tokio::time::timeout(EXIT_TIMEOUT, self.ended()).await {
                    Ok(status) => bail!("ended with {}; its messages are above", status?),
                    Err(_) => bail!("closed the control socket but did not exit"),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn ended(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Lets the successor accept connections.
    async fn take_over(mut self, proxy: &Proxy) -> anyhow::Result<Self> {
        if let Err(error) = self.line.write_u8(MSG_TAKE_OVER).await {
            let id = self.child.id();
            drop(self);
            reattach_cache(proxy).await?;
            return Err(error).with_context(|| format!("process {id}"));
        }
        self.has_taken_over = true;
        notify(&[NotifyState::MainPid(self.child.id())]);
        Ok(self)
    }

    /// Its process ID.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        if !self.has_taken_over {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Takes back the folder of the cache, if there is one, from a program that has ended.
async fn reattach_cache(proxy: &Proxy) -> anyhow::Result<()> {
    if let Some(disk) = proxy.cache.disk() {
        let taken = disk.take_back().await;
        taken.context("cannot reopen the disk cache, so it is off")?;
    }
    Ok(())
}

fn tokio_stream(stream: SystemStream) -> io::Result<UnixStream> {
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}
