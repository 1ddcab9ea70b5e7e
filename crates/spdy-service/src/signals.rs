//! Signals to stop and to reload.

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

/// The signal to reload the configuration. Only Unix has one.
#[derive(Debug)]
pub struct ReloadSignal {
    #[cfg(unix)]
    hangup: tokio::signal::unix::Signal,
}

impl ReloadSignal {
    /// Starts to catch the signal.
    ///
    /// # Errors
    ///
    /// The system rejects the handler.
    pub fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            hangup: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup())?,
        })
    }

    /// Completes when the signal arrives.
    pub async fn next(&mut self) {
        #[cfg(unix)]
        let received = self.hangup.recv().await.is_some();
        #[cfg(not(unix))]
        let received = false;
        if !received {
            std::future::pending::<()>().await;
        }
    }
}
