//! Handles the signals to a running `spdy accelerate`: stop, start a successor, reload the configuration.

use tokio::time::{Instant, interval_at};

use crate::commands::accelerate::acme::Acme;
use crate::commands::accelerate::again::Reloader;
use crate::commands::accelerate::certificates::REREAD_INTERVAL;
use crate::commands::accelerate::succession::{Succession, Successor};
use crate::commands::signals::{ReloadSignal, StopSignals};
use crate::printer::{DIM, Printer};

/// Signals to this program. They are caught from the creation of this value on.
pub(super) struct ControlLoop {
    signals: StopSignals,
    reloads: ReloadSignal,
}

impl ControlLoop {
    pub(super) fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            signals: StopSignals::listen()?,
            reloads: ReloadSignal::listen()?,
        })
    }

    /// Handles signals until the program must end. Returns the successor if another process has taken over.
    pub(super) async fn run(
        mut self,
        again: &Reloader<'_>,
        acme: &mut Acme,
        succession: &mut Succession,
        printer: &Printer,
    ) -> anyhow::Result<Option<Successor>> {
        let mut renewals = interval_at(Instant::now() + REREAD_INTERVAL, REREAD_INTERVAL);
        let came = acme.came.clone();
        loop {
            tokio::select! {
                ended = self.signals.any() => {
                    ended?;
                    printer.note(format_args!("{DIM}stopping{DIM:#}"));
                    return Ok(None);
                }
                successor = succession.taken_over(again.proxy, printer) => {
                    printer.note(format_args!(
                        "{DIM}process {} has taken over, stopping{DIM:#}",
                        successor.id()
                    ));
                    return Ok(Some(successor));
                }
                () = self.reloads.next() => again.reload(acme),
                () = came.notified() => again.update_host_names(acme),
                _ = renewals.tick() => again.renew_certificates(acme),
            }
        }
    }
}
