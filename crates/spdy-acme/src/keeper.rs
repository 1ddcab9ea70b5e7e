//! Certificates kept good: what is in the folder is shown from the start, what is not there or is due is ordered, and what comes
//! is shown from the next handshake on.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use futures_util::future::select;
use spdy::runtime::SharedRuntime;
use spdy_net::calendar::Calendar;
use spdy_net::certificates::Identity;
use spdy_net::identities::Identities;
use spdy_net::latch::Latch;
use tokio::sync::Semaphore;

use crate::authority::{Authority, Failure};
use crate::course::{Course, Next};
use crate::error::AcmeError;
use crate::facts::{Facts, shown};
use crate::folder::Folder;

/// Orders that are open at the same time.
const ORDERS_AT_ONCE: usize = 4;
/// How long a task sleeps at most: a machine may sleep as well, or be set to another hour.
const LONGEST_SLEEP: Duration = Duration::from_secs(60 * 60);

/// What became of a certificate, for whoever tells people.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// It was in the folder.
    Found {
        /// Its names.
        names: &'a [String],
        /// From when, and until when it is valid.
        validity: Range<SystemTime>,
        /// When it is renewed.
        due: SystemTime,
    },
    /// What was in the folder cannot be used.
    Unusable {
        /// The names that it was for.
        names: &'a [String],
        /// What is wrong with it.
        error: &'a AcmeError,
    },
    /// It is ordered.
    Ordered {
        /// Its names.
        names: &'a [String],
        /// There is none for them yet.
        is_first: bool,
    },
    /// It has come, and is shown.
    Issued {
        /// Its names.
        names: &'a [String],
        /// From when, and until when it is valid.
        validity: Range<SystemTime>,
        /// When it is renewed.
        due: SystemTime,
    },
    /// It has come, is shown, and cannot be kept: after a restart it is ordered again.
    Unkept {
        /// Its names.
        names: &'a [String],
        /// Why.
        error: &'a AcmeError,
    },
    /// It has not come.
    Failed {
        /// Its names.
        names: &'a [String],
        /// Why.
        error: &'a AcmeError,
        /// How long it is left alone now.
        again: Duration,
        /// Until when the one that is shown is valid; `None`: there is none.
        held: Option<SystemTime>,
    },
}

/// Told of every [`Event`].
pub type Tell = Arc<dyn Fn(&Event<'_>) + Send + Sync>;

/// What is to be kept.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The names of each certificate.
    pub certificates: Vec<Vec<String>>,
    /// A certificate is renewed when so much of its validity is left, in percent.
    pub left_percent: u8,
    /// Chance begins here.
    pub seed: u64,
}

/// How many orders there were.
#[derive(Debug, Default)]
pub struct Orders {
    /// Those that brought a certificate.
    pub issued: AtomicU64,
    /// Those that did not.
    pub failed: AtomicU64,
}

/// The certificates that are held, of all keepers that there were. Clones are the same ones.
#[derive(Clone, Debug)]
pub struct Certificates {
    identities: Identities,
    held: Arc<Mutex<BTreeMap<String, Held>>>,
    /// Name and end of one that is shown besides, and kept by somebody else.
    given: Arc<Mutex<Option<(String, SystemTime)>>>,
    /// What became of orders.
    pub orders: Arc<Orders>,
}

/// One, under the first of its names.
#[derive(Debug, Default)]
struct Held {
    identity: Option<(Identity, Facts)>,
    names: Vec<String>,
}

impl Certificates {
    /// None yet; what comes is shown as hosts of `identities`.
    #[must_use]
    pub fn new(identities: Identities) -> Self {
        Self {
            identities,
            held: Arc::default(),
            given: Arc::default(),
            orders: Arc::default(),
        }
    }

    /// Tells with the others until when `identity` is valid, which somebody else keeps: one out of a file.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub fn tell_of(&self, identity: Option<&Identity>) -> Result<(), AcmeError> {
        let facts = identity.map(usable).transpose()?;
        let given = facts.map(|facts| {
            let name = facts.names.into_iter().next();
            (name.unwrap_or_default(), facts.validity.end)
        });
        *self.given.lock().unwrap_or_else(PoisonError::into_inner) = given;
        Ok(())
    }

    /// Until when each certificate is valid, by the first of its names; `None`: it has not come yet.
    #[must_use]
    pub fn expiries(&self) -> Vec<(String, Option<SystemTime>)> {
        let given = self.given.lock().unwrap_or_else(PoisonError::into_inner);
        let given = given
            .iter()
            .map(|(name, until)| (name.clone(), Some(*until)));
        let held = self.lock();
        let expiry = |held: &Held| held.identity.as_ref().map(|(_, facts)| facts.validity.end);
        let held = held.iter().map(|(name, held)| (name.clone(), expiry(held)));
        held.chain(given).collect()
    }

    /// None any more.
    pub fn clear(&self) {
        self.want(&[]);
        let shown = self.show_held();
        shown.expect("nothing can always be shown");
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on these are meant, and no others.
    fn want(&self, certificates: &[Vec<String>]) {
        let mut held = self.lock();
        let wanted = certificates.iter().filter_map(|names| {
            let mut one = held.remove(names.first()?).unwrap_or_default();
            one.names.clone_from(names);
            Some((names.first()?.clone(), one))
        });
        *held = wanted.collect();
    }

    /// Shows `identity` for those of its names that are wanted.
    fn show(&self, first: &str, identity: Identity, facts: Facts) -> Result<(), AcmeError> {
        let mut held = self.lock();
        let Some(one) = held.get_mut(first) else {
            return Ok(()); // it is wanted no longer
        };
        let before = one.identity.replace((identity, facts));
        let hosts = hosts(&held);
        if let Err(error) = self.identities.replace_hosts(&hosts) {
            if let Some(one) = held.get_mut(first) {
                one.identity = before;
            }
            return Err(error.into());
        }
        Ok(())
    }

    /// Shows what is held, and nothing else.
    fn show_held(&self) -> Result<(), AcmeError> {
        let hosts = hosts(&self.lock());
        Ok(self.identities.replace_hosts(&hosts)?)
    }

    fn facts(&self, first: &str) -> Option<(Identity, Facts)> {
        self.lock().get(first)?.identity.clone()
    }
}

fn hosts(held: &BTreeMap<String, Held>) -> Vec<(String, Identity)> {
    let mut hosts = Vec::new();
    for one in held.values() {
        let Some((identity, facts)) = &one.identity else {
            continue;
        };
        let covered = one.names.iter().filter(|name| facts.covers(name));
        hosts.extend(covered.map(|name| (name.clone(), identity.clone())));
    }
    hosts
}

/// Keeps certificates as long as it lives.
#[derive(Debug)]
pub struct Keeper {
    stop: Latch,
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.stop.set();
    }
}

/// What every certificate's task has.
#[derive(Clone)]
struct Common {
    certificates: Certificates,
    folder: Folder,
    authority: Arc<dyn Authority>,
    calendar: Calendar,
    runtime: SharedRuntime,
    places: Arc<Semaphore>,
    tell: Tell,
}

/// One certificate's.
struct Task {
    common: Common,
    names: Vec<String>,
    course: Course,
}

impl Keeper {
    /// Shows what `folder` has of what is `wanted`, and orders the rest of `authority`.
    ///
    /// # Errors
    ///
    /// What is held cannot be shown.
    ///
    /// # Panics
    ///
    /// If the `calendar` does not know the hour.
    pub fn start(
        wanted: &Wanted,
        certificates: &Certificates,
        folder: &Folder,
        authority: Arc<dyn Authority>,
        (calendar, runtime): (Calendar, &SharedRuntime),
        tell: &Tell,
    ) -> Result<Self, AcmeError> {
        let common = Common {
            certificates: certificates.clone(),
            folder: folder.clone(),
            authority,
            calendar,
            runtime: runtime.clone(),
            places: Arc::new(Semaphore::new(ORDERS_AT_ONCE)),
            tell: tell.clone(),
        };
        certificates.want(&wanted.certificates);
        let mut tasks = Vec::new();
        for (number, names) in (0..).zip(&wanted.certificates) {
            let mut task = Task {
                common: common.clone(),
                names: names.clone(),
                course: Course::new(wanted.left_percent, wanted.seed.wrapping_add(number)),
            };
            task.find();
            tasks.push(task);
        }
        certificates.show_held()?;
        let stop = Latch::new();
        for task in tasks {
            let stop = stop.clone();
            runtime.spawn(Box::pin(async move {
                // The stop first: what came at the same moment is not shown any more.
                select(stop.wait(), Box::pin(task.run())).await;
            }));
        }
        Ok(Self { stop })
    }
}

impl Task {
    fn now(&self) -> SystemTime {
        let now = self.common.calendar.now(&self.common.runtime);
        now.unwrap_or_else(|| panic!("{:?} does not know the hour", self.common.calendar))
    }

    fn first(&self) -> &str {
        self.names.first().map_or("", String::as_str)
    }

    fn tell(&self, event: &Event<'_>) {
        (self.common.tell)(event);
    }

    /// Takes up what was there before.
    fn find(&mut self) {
        let now = self.now();
        let kept = self.common.folder.certificate(self.first());
        let found = kept.and_then(|kept| {
            let Some(identity) = kept else {
                return Ok(None);
            };
            let facts = usable(&identity)?;
            let certificates = &self.common.certificates;
            certificates.show(self.first(), identity, facts.clone())?;
            Ok(Some(facts))
        });
        match found {
            Ok(None) => {}
            // Other names than it was made for, or too late: it is shown for what it is good for, until another comes.
            Ok(Some(facts)) if !self.is_enough(&facts, now) => {}
            Ok(Some(Facts { validity, .. })) => {
                self.course.found(now, &validity);
                self.tell(&Event::Found {
                    names: &self.names,
                    validity,
                    due: self.course.due(),
                });
            }
            Err(error) => self.tell(&Event::Unusable {
                names: &self.names,
                error: &error,
            }),
        }
    }

    fn is_enough(&self, facts: &Facts, now: SystemTime) -> bool {
        facts.validity.end > now && self.names.iter().all(|name| facts.covers(name))
    }

    async fn run(mut self) {
        loop {
            let now = self.now();
            match self.course.next(now) {
                Next::Wait(until) => {
                    let wait = until.duration_since(now).unwrap_or_default();
                    let runtime = &self.common.runtime;
                    let wake = runtime.now() + wait.min(LONGEST_SLEEP);
                    runtime.sleep_until(wake).await;
                }
                Next::Order => self.order().await,
                Next::Ask => self.ask().await,
            }
        }
    }

    async fn order(&mut self) {
        let common = self.common.clone();
        let place = common.places.acquire().await;
        let held = common.certificates.facts(self.first());
        self.tell(&Event::Ordered {
            names: &self.names,
            is_first: held.is_none(),
        });
        let leaf = held.as_ref().and_then(|(held, _)| held.chain.first());
        let ordered = common.authority.order(self.names.clone(), leaf.cloned());
        let came = match ordered.await {
            Ok(identity) => self.take(&identity).map_err(|error| (error, None)),
            Err(Failure { error, rest }) => Err((error, rest)),
        };
        drop(place);
        let now = self.now();
        match came {
            Ok(validity) => {
                self.course.issued(now, &validity);
                common
                    .certificates
                    .orders
                    .issued
                    .fetch_add(1, Ordering::Relaxed);
                self.tell(&Event::Issued {
                    names: &self.names,
                    validity,
                    due: self.course.due(),
                });
            }
            Err((error, rest)) => {
                self.course.failed(now, rest);
                common
                    .certificates
                    .orders
                    .failed
                    .fetch_add(1, Ordering::Relaxed);
                self.tell(&Event::Failed {
                    names: &self.names,
                    error: &error,
                    again: self.course.due().duration_since(now).unwrap_or_default(),
                    held: held.map(|(_, facts)| facts.validity.end),
                });
            }
        }
    }

    /// Shows and keeps what came.
    fn take(&self, identity: &Identity) -> Result<Range<SystemTime>, AcmeError> {
        let facts = usable(identity)?;
        if !self.is_enough(&facts, self.now()) {
            let (names, validity) = (facts.names.join(", "), shown(&facts.validity));
            let why = format!("it is for {names}, from {validity}");
            return Err(AcmeError::Certificate { why });
        }
        let (certificates, validity) = (&self.common.certificates, facts.validity.clone());
        certificates.show(self.first(), identity.clone(), facts)?;
        // Some kilobytes, once in months: nobody waits long for the disk here.
        let folder = &self.common.folder;
        if let Err(error) = folder.keep_certificate(self.first(), identity) {
            self.tell(&Event::Unkept {
                names: &self.names,
                error: &error,
            });
        }
        Ok(validity)
    }

    async fn ask(&mut self) {
        let held = self.common.certificates.facts(self.first());
        let leaf = held.and_then(|(held, _)| held.chain.into_iter().next());
        let advice = match leaf {
            Some(leaf) => self.common.authority.advice(leaf).await,
            None => None,
        };
        let now = self.now();
        match advice {
            Some(advice) => self.course.advised(now, &advice.window, advice.again),
            None => self.course.unadvised(now),
        }
    }
}

/// What the leaf says.
fn usable(identity: &Identity) -> Result<Facts, AcmeError> {
    let leaf = identity.chain.first();
    let leaf = leaf.ok_or_else(|| AcmeError::Certificate {
        why: "an empty chain".to_owned(),
    })?;
    Facts::of(leaf)
}
