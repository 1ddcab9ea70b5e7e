//! Keeps certificates valid: serves those in the folder from the start, orders missing or due ones, and serves a new one from the
//! next handshake on.

use std::any::Any;
use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt;
use futures_util::future::select;
use spdy::runtime::SharedRuntime;
use spdy_net::latch::Latch;
use spdy_net::tls::certificates::Identity;
use spdy_net::wall_clock::WallClock;
use tokio::sync::Semaphore;

use crate::acme_client::{Authority, OrderFailure};
use crate::certificates::{Certificates, LoadedCertificate};
use crate::error::AcmeError;
use crate::renewal_schedule::{NextAction, RenewalSchedule};
use crate::state_dir::StateDir;

/// Limit of concurrent orders.
const MAX_CONCURRENT_ORDERS: usize = 4;
/// Maximum sleep of a task: the machine may be suspended, or its clock may be set.
const MAX_SLEEP: Duration = Duration::from_secs(60 * 60);

/// What happened to a certificate, for logs and metrics.
#[derive(Debug)]
#[non_exhaustive]
pub enum RenewalEvent<'a> {
    /// The certificate was loaded from the folder.
    Loaded {
        /// Its names.
        names: &'a [String],
        /// Begin and end of the validity.
        validity: Range<SystemTime>,
        /// When it is renewed.
        due: SystemTime,
    },
    /// The certificate in the folder cannot be used.
    Unusable {
        /// The names of the certificate.
        names: &'a [String],
        /// The error.
        error: &'a AcmeError,
    },
    /// An order begins.
    Ordered {
        /// Its names.
        names: &'a [String],
        /// True if there is no certificate for the names yet.
        is_first: bool,
    },
    /// The certificate was issued and is served.
    Issued {
        /// Its names.
        names: &'a [String],
        /// Begin and end of the validity.
        validity: Range<SystemTime>,
        /// When it is renewed.
        due: SystemTime,
    },
    /// The certificate was issued and is served, but cannot be stored: after a restart it is ordered again.
    SaveFailed {
        /// Its names.
        names: &'a [String],
        /// The cause.
        error: &'a AcmeError,
    },
    /// The order failed.
    Failed {
        /// Its names.
        names: &'a [String],
        /// The cause.
        error: &'a AcmeError,
        /// Delay until the next attempt.
        again: Duration,
        /// When the current certificate expires; `None` if there is none.
        held: Option<SystemTime>,
    },
}

/// Called for every [`RenewalEvent`].
pub type EventHandler = Arc<dyn Fn(&RenewalEvent<'_>) + Send + Sync>;

/// The certificates to keep valid.
#[derive(Clone, Debug)]
pub struct RenewalConfig {
    /// The names of each certificate.
    pub certificates: Vec<Vec<String>>,
    /// Names that must not delay the others: if no certificate has them, one is ordered without them.
    pub optional_names: BTreeSet<String>,
    /// A certificate is renewed when this percentage of its validity remains.
    pub renew_at_percent_left: u8,
    /// Seed of the random delays.
    pub seed: u64,
}

/// Keeps certificates valid until it is dropped.
#[derive(Debug)]
pub struct Renewer {
    stop: Latch,
}

impl Drop for Renewer {
    fn drop(&mut self) {
        self.stop.set();
    }
}

/// The state that the tasks of all certificates share.
#[derive(Clone)]
struct RenewalContext {
    certificates: Certificates,
    folder: StateDir,
    authority: Arc<dyn Authority>,
    calendar: WallClock,
    runtime: SharedRuntime,
    order_permits: Arc<Semaphore>,
    on_event: EventHandler,
}

/// The task of one certificate.
struct RenewalTask {
    common: RenewalContext,
    names: Vec<String>,
    /// The names without the optional ones.
    own: Vec<String>,
    schedule: RenewalSchedule,
}

impl Renewer {
    /// Serves the configured certificates that `folder` has, and orders the others from `authority`. Unusable files
    /// are reported, and their certificates are ordered.
    ///
    /// # Panics
    ///
    /// If `wall_clock` has no wall-clock time.
    #[must_use]
    pub fn start(
        config: &RenewalConfig,
        certificates: &Certificates,
        folder: &StateDir,
        authority: Arc<dyn Authority>,
        (wall_clock, runtime): (WallClock, &SharedRuntime),
        on_event: &EventHandler,
    ) -> Self {
        let common = RenewalContext {
            certificates: certificates.clone(),
            folder: folder.clone(),
            authority,
            calendar: wall_clock,
            runtime: runtime.clone(),
            order_permits: Arc::new(Semaphore::new(MAX_CONCURRENT_ORDERS)),
            on_event: on_event.clone(),
        };
        certificates.set_managed(&config.certificates);
        let stop = Latch::new();
        let is_own = |name: &&String| !config.optional_names.contains(*name);
        for (number, names) in (0..).zip(&config.certificates) {
            let mut task = RenewalTask {
                common: common.clone(),
                names: names.clone(),
                own: names.iter().filter(is_own).cloned().collect(),
                schedule: RenewalSchedule::new(
                    config.renew_at_percent_left,
                    config.seed.wrapping_add(number),
                ),
            };
            task.load();
            let stop = stop.clone();
            runtime.spawn(Box::pin(async move {
                // The stop is polled first: a certificate that arrives at the same time is not served.
                select(stop.wait(), Box::pin(task.run())).await;
            }));
        }
        Self { stop }
    }
}

impl RenewalTask {
    fn now(&self) -> SystemTime {
        let now = self.common.calendar.now(&self.common.runtime);
        now.unwrap_or_else(|| panic!("{:?} has no wall-clock time", self.common.calendar))
    }

    fn first(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    fn emit(&self, event: &RenewalEvent<'_>) {
        (self.common.on_event)(event);
    }

    /// Loads the certificate that is stored in the folder.
    fn load(&mut self) {
        let now = self.now();
        let RenewalContext {
            certificates,
            folder,
            ..
        } = &self.common;
        let saved = folder.load_certificate(self.first());
        let stored = saved.and_then(|saved| {
            let loaded = saved.map(|saved| certificates.load_managed(saved, folder));
            loaded.transpose()
        });
        let facts = match stored {
            Ok(None) => return,
            Ok(Some(stored)) => certificates.set_stored(self.first(), stored),
            Err(error) => {
                let names = &self.names;
                return self.emit(&RenewalEvent::Unusable {
                    names,
                    error: &error,
                });
            }
        };
        // The names or the validity do not match the configuration: it is served until the new one arrives.
        if let Err(error) = facts.check(&self.names, now) {
            tracing::debug!(%error, "the stored certificate is unusable");
            return;
        }
        self.schedule.found(now, &facts.validity);
        self.emit(&RenewalEvent::Loaded {
            names: &self.names,
            validity: facts.validity,
            due: self.schedule.due(),
        });
    }

    async fn run(mut self) {
        loop {
            let now = self.now();
            match self.schedule.next(now) {
                NextAction::Wait(until) => {
                    let wait = until.duration_since(now).unwrap_or_default();
                    let runtime = &self.common.runtime;
                    let wake = runtime.now() + wait.min(MAX_SLEEP);
                    runtime.sleep_until(wake).await;
                }
                NextAction::Order => self.order().await,
                NextAction::FetchRenewalInfo => self.fetch_renewal_info().await,
            }
        }
    }

    async fn order(&mut self) {
        let common = self.common.clone();
        let place = common.order_permits.acquire().await;
        let held = common.certificates.current(self.first());
        self.emit(&RenewalEvent::Ordered {
            names: &self.names,
            is_first: held.is_none(),
        });
        let result = self.order_and_install(&self.names, held.as_ref()).await;
        let now = self.now();
        let orders = &common.certificates.orders;
        match result {
            Ok(validity) => {
                self.schedule.record_issued(now, &validity);
                orders.issued.fetch_add(1, Ordering::Relaxed);
                self.emit(&RenewalEvent::Issued {
                    names: &self.names,
                    validity,
                    due: self.schedule.due(),
                });
            }
            Err(OrderFailure { error, rest }) => {
                self.schedule.record_failure(now, rest);
                orders.failed.fetch_add(1, Ordering::Relaxed);
                self.emit(&RenewalEvent::Failed {
                    names: &self.names,
                    error: &error,
                    again: self.schedule.due().duration_since(now).unwrap_or_default(),
                    held: held.as_ref().map(|held| held.facts.validity.end),
                });
                self.order_required_names(held.as_ref()).await;
            }
        }
        drop(place);
    }

    /// Orders a certificate without the optional names if there is no valid certificate for the others. The certificate with all
    /// names remains due.
    async fn order_required_names(&self, held: Option<&LoadedCertificate>) {
        let now = self.now();
        let is_good = held.is_some_and(|held| {
            let facts = &held.facts;
            facts.check(&self.own, now).is_ok() && !self.schedule.is_overdue(now, &facts.validity)
        });
        if is_good || self.own.is_empty() || self.own.len() == self.names.len() {
            return;
        }
        let orders = &self.common.certificates.orders;
        let names = &self.own;
        self.emit(&RenewalEvent::Ordered {
            names,
            is_first: held.is_none(),
        });
        match self.order_and_install(names, held).await {
            Ok(validity) => {
                orders.issued.fetch_add(1, Ordering::Relaxed);
                self.emit(&RenewalEvent::Issued {
                    names,
                    validity,
                    due: self.schedule.due(),
                });
            }
            Err(OrderFailure { error, .. }) => {
                orders.failed.fetch_add(1, Ordering::Relaxed);
                let again = self.schedule.due().duration_since(self.now());
                self.emit(&RenewalEvent::Failed {
                    names,
                    error: &error,
                    again: again.unwrap_or_default(),
                    held: held.map(|held| held.facts.validity.end),
                });
            }
        }
    }

    async fn order_and_install(
        &self,
        names: &[String],
        held: Option<&LoadedCertificate>,
    ) -> Result<Range<SystemTime>, OrderFailure> {
        let failed = |error| OrderFailure { error, rest: None };
        let ordered = catch_panic(async {
            let leaf = held.and_then(|held| held.identity.chain.first());
            let authority = &self.common.authority;
            let identity = authority.order(names.to_vec(), leaf.cloned()).await?;
            self.take(names, identity).map_err(failed)
        });
        ordered.await.map_err(failed)?
    }

    /// Serves and stores the new certificate.
    fn take(&self, names: &[String], identity: Identity) -> Result<Range<SystemTime>, AcmeError> {
        let RenewalContext {
            certificates,
            folder,
            ..
        } = &self.common;
        let issued = certificates.load_managed(identity, folder)?;
        issued.facts.check(names, self.now())?;
        let validity = issued.facts.validity.clone();
        certificates.set(self.first(), issued.clone());
        // The file has some kilobytes and is written once in months, so waiting for the disk is short.
        if let Err(error) = folder.save_certificate(self.first(), &issued.identity) {
            self.emit(&RenewalEvent::SaveFailed {
                names,
                error: &error,
            });
        }
        Ok(validity)
    }

    async fn fetch_renewal_info(&mut self) {
        let held = self.common.certificates.current(self.first());
        let leaf = held.and_then(|held| held.identity.chain.into_iter().next());
        let advice = match leaf {
            Some(leaf) => catch_panic(self.common.authority.renewal_info(leaf)).await,
            None => Ok(None),
        };
        let now = self.now();
        match advice {
            Ok(Some(advice)) => {
                self.schedule
                    .record_renewal_info(now, &advice.window, advice.again);
            }
            Ok(None) => self.schedule.record_no_renewal_info(now),
            Err(error) => {
                tracing::warn!(%error, "no renewal information");
                self.schedule.record_no_renewal_info(now);
            }
        }
    }
}

/// Runs `work`, which calls much third-party code, and returns its result. If it panics, the task continues; otherwise the
/// certificate would never be renewed again. The panic message is printed to stderr, like any other.
async fn catch_panic<T>(work: impl Future<Output = T>) -> Result<T, AcmeError> {
    let done = AssertUnwindSafe(work).catch_unwind().await;
    done.map_err(|panic| AcmeError::Panicked(panic_message(&*panic)))
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a reason").to_owned()
}
