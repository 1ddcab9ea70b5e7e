//! Handles the signals to a running `spdy accelerate`: stop, start a successor, reload the configuration,
//! open the access log again.

use spdy_service::notice::Notices;
use spdy_service::signals::{OperatorSignal, StopSignals};
use tokio::time::{Instant, interval_at};

use super::reload::Reloader;
use super::succession::{Succession, Successor};
use crate::certificates::acme::Acme;
use crate::certificates::served_certificates::REREAD_INTERVAL;

/// Signals to this program. They are caught from the creation of this value on.
pub(crate) struct ControlLoop {
    signals: StopSignals,
    reloads: OperatorSignal,
    reopens: OperatorSignal,
}

impl ControlLoop {
    pub(crate) fn listen() -> anyhow::Result<Self> {
        Ok(Self {
            signals: StopSignals::listen()?,
            reloads: OperatorSignal::reload()?,
            reopens: OperatorSignal::reopen_logs()?,
        })
    }

    /// Handles signals until the program must end. Returns the successor if another process has taken over.
    pub(crate) async fn run(
        mut self,
        reloader: &Reloader<'_>,
        acme: &mut Acme,
        succession: &mut Succession,
        notices: &Notices,
    ) -> anyhow::Result<Option<Successor>> {
        let mut renewals = interval_at(Instant::now() + REREAD_INTERVAL, REREAD_INTERVAL);
        let issued = acme.issued.clone();
        loop {
            tokio::select! {
                ended = self.signals.any() => {
                    ended?;
                    notices.info("stopping");
                    return Ok(None);
                }
                successor = succession.taken_over(reloader.proxy, notices) => {
                    notices.info(format_args!("process {} has taken over, stopping", successor.id()));
                    return Ok(Some(successor));
                }
                () = self.reloads.next() => reloader.reload(acme),
                () = self.reopens.next() => reloader.access_log.reopen(),
                () = issued.notified() => reloader.update_host_names(acme),
                _ = renewals.tick() => reloader.renew_certificates(acme),
            }
        }
    }
}
