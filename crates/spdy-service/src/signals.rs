//! Signals to stop and to reload.

use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The exit code after a second signal, as shells report Ctrl-C.
const INTERRUPTED: i32 = 130;

/// Returns a flag that the first signal to stop sets, for commands that end with what they have. `on_signal` runs then. The second
/// signal ends the program at once.
///
/// # Errors
///
/// The system rejects the handler or the thread.
pub fn stop_flag(on_signal: impl FnOnce() + Send + 'static) -> anyhow::Result<Arc<AtomicBool>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut signals = runtime.block_on(async { StopSignals::listen() })?;
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    // It waits for as long as the program lives.
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            if runtime.block_on(signals.any()).is_err() {
                return;
            }
            flag.store(true, Ordering::Relaxed);
            on_signal();
            if runtime.block_on(signals.any()).is_ok() {
                process::exit(INTERRUPTED);
            }
        })?;
    Ok(stop)
}

/// The signals that stop the program. They are caught from the creation of this value on.
#[derive(Debug)]
pub struct StopSignals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl StopSignals {
    /// Starts to catch the signals.
    ///
    /// # Errors
    ///
    /// The system rejects the handler.
    #[cfg(unix)]
    pub fn listen() -> anyhow::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Signals are caught when [`any`](Self::any) is called.
    ///
    /// # Errors
    ///
    /// None on this system.
    #[cfg(not(unix))]
    pub fn listen() -> anyhow::Result<Self> {
        Ok(Self {})
    }

    /// Completes at Ctrl-C or at a termination signal of the system.
    ///
    /// # Errors
    ///
    /// The signal cannot be caught.
    #[cfg(unix)]
    pub async fn any(&mut self) -> anyhow::Result<()> {
        tokio::select! {
            biased;
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        Ok(())
    }

    #[cfg(not(unix))]
    pub async fn any(&mut self) -> anyhow::Result<()> {
        Ok(tokio::signal::ctrl_c().await?)
    }

    /// Whether a signal has arrived that is not handled yet.
    #[cfg(unix)]
    pub async fn is_pending(&mut self) -> bool {
        tokio::select! {
            biased;
            received = self.any() => received.is_ok(),
            () = tokio::task::yield_now() => false,
        }
    }
}

/// A signal of the operator to a running program. Only Unix has them.
#[derive(Debug)]
pub struct OperatorSignal {
    #[cfg(unix)]
    signal: tokio::signal::unix::Signal,
}

impl OperatorSignal {
    /// Starts to catch SIGHUP, the signal to reload the configuration.
    ///
    /// # Errors
    ///
    /// The system rejects the handler.
    pub fn reload() -> anyhow::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            signal: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?,
        })
    }

    /// Starts to catch SIGUSR1, the signal to open log files again.
    ///
    /// # Errors
    ///
    /// The system rejects the handler.
    pub fn reopen_logs() -> anyhow::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            signal: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::user_defined1())?,
        })
    }

    /// Completes when the signal arrives.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        let received = self.signal.recv().await.is_some();
        #[cfg(not(unix))]
        let received = false;
        if !received {
            std::future::pending::<()>().await;
        }
    }
}
