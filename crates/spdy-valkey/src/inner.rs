//! What the tier's callers and its tasks have in common: who answers, what is purged, and the cluster.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::HeaderMap;
use parking_lot::{Mutex, MutexGuard};
use spdy_cache::body::Body;
use spdy_cache::key::Key;
use spdy_cache::object_file::OpenObject;
use spdy_cache::policy::Policy;
use spdy_cache::shared::{PurgeListener, PurgeTarget, PurgeVersion};
use spdy_cache::stored::Stored;
use tokio::sync::{Notify, Semaphore, watch};

use crate::config::{Config, ConfigError};
use crate::counters::Counters;
use crate::entry::{Entry, PurgeEvent, Writer};
use crate::forgotten::{DeleteSeq, PendingDeletes};
use crate::lanes::{StoreJob, WriteQueues};
use crate::names::{IndexKey, KeyNames, part_of};
use crate::outbox::Outbox;
use crate::parts::{HealthChange, PARTS, PartHealth};
use crate::purge_log::{LogRead, PurgeCheck, PurgeLog, PurgeSubject};
use crate::reach;
use crate::store::{Failure, PAGE, Store};

/// Requests that may wait for the tier; one more is a miss.
pub(crate) const MAX_READS: usize = 256;
/// Between two lines of the log that writes are refused: of nodes that are full some may not be.
const REFUSAL_LOG_INTERVAL: Duration = Duration::from_secs(60);
/// Bytes of the mark in front of what is kept.
pub(crate) const MARK_BYTES: usize = 16;

pub(crate) struct TierState {
    pub(crate) config: Config,
    pub(crate) names: KeyNames,
    pub(crate) store: Store,
    pub(crate) lanes: WriteQueues,
    pub(crate) counters: Counters,
    /// Wakes the keeper: a purge is to be told.
    pub(crate) wake: Notify,
    /// Purges that were told, by their number.
    pub(crate) told: watch::Sender<u64>,
    /// Whether the keeper has made its first round.
    pub(crate) begun: watch::Sender<bool>,
    me: Writer,
    ear: PurgeListener,
    parts: Mutex<PartHealth>,
    log: Mutex<PurgeLog>,
    heard: Mutex<LogPosition>,
    outbox: Mutex<Outbox>,
    forgotten: Mutex<PendingDeletes>,
    /// One at a time reads the log, or writes to it.
    talking: tokio::sync::Mutex<()>,
    reads: Semaphore,
    /// When it was last said that a write was refused.
    said_refused: Mutex<Option<Instant>>,
}

/// How far the ear has heard the log.
#[derive(Debug)]
struct LogPosition {
    /// In the log as it is.
    until: PurgeVersion,
    /// Before the program ended last, as it was told: it is still to be seen whether the log has that.
    before: Option<PurgeVersion>,
}

/// What became of a look.
enum ReadResult {
    /// An object, with what was known of purges when it was fetched.
    Whole(Box<(PurgeVersion, Stored, Body)>),
    Nothing,
    Broken(String),
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

impl TierState {
    pub(crate) fn new(
        config: Config,
        lanes: WriteQueues,
        heard: PurgeVersion,
        ear: PurgeListener,
    ) -> Result<Self, ConfigError> {
        let names = config.names()?;
        let mut me = Writer::default();
        getrandom::fill(&mut me)?;
        Ok(Self {
            store: Store::open(&config)?,
            config,
            names,
            lanes,
            counters: Counters::default(),
            wake: Notify::new(),
            told: watch::Sender::new(0),
            begun: watch::Sender::new(false),
            me,
            ear,
            parts: Mutex::new(PartHealth::new()),
            log: Mutex::default(),
            heard: Mutex::new(LogPosition {
                until: PurgeVersion::default(),
                before: (heard != PurgeVersion::default()).then_some(heard),
            }),
            outbox: Mutex::default(),
            forgotten: Mutex::default(),
            talking: tokio::sync::Mutex::new(()),
            reads: Semaphore::new(MAX_READS),
            said_refused: Mutex::default(),
        })
    }

    /// Whether a part may be asked.
    pub(crate) fn answers(&self, part: usize) -> bool {
        locked(&self.parts).answers(part)
    }

    /// Parts that may be asked. What nobody knows the purges of is not believed, and so there is none.
    pub(crate) fn answering(&self) -> usize {
        match self.mark() == PurgeVersion::default() {
            true => 0,
            false => locked(&self.parts).answering(),
        }
    }

    /// What is known of purges.
    pub(crate) fn mark(&self) -> PurgeVersion {
        locked(&self.log).last()
    }

    /// The last entry of the log that the ear has heard of, or need not.
    pub(crate) fn heard(&self) -> PurgeVersion {
        locked(&self.heard).until
    }

    /// The part that has the log.
    pub(crate) fn log_part(&self) -> usize {
        part_of(&self.names.log())
    }

    /// A part was asked for something.
    pub(crate) fn asked<T>(&self, part: usize, outcome: &Result<T, Failure>) {
        let failure = outcome.as_ref().err();
        let was_answered = failure.is_none_or(Failure::was_answered);
        locked(&self.parts).asked(part, was_answered);
        self.log_health_change(failure);
    }

    /// Parts were probed.
    pub(crate) fn probed(&self, outcomes: &[(usize, Result<(), Failure>)]) {
        let mut parts = locked(&self.parts);
        for (part, outcome) in outcomes {
            let failure = outcome.as_ref().err();
            parts.probed(*part, failure.is_none_or(Failure::was_answered));
        }
        drop(parts);
        let mut failures = outcomes
            .iter()
            .filter_map(|(_, outcome)| outcome.as_ref().err());
        self.log_health_change(failures.next_back());
    }

    fn log_health_change(&self, failure: Option<&Failure>) {
        let (news, answering) = {
            let mut parts = locked(&self.parts);
            (parts.news(), parts.answering())
        };
        match news {
            Some(HealthChange::Gone) => {
                let why =
                    failure.map_or_else(|| "it does not answer".to_owned(), Failure::to_string);
                tracing::warn!(%why, answering, "the shared tier is gone, or a part of it: going on without");
                let faults = reach::faults(self.config.clone());
                tokio::spawn(async move {
                    for (node, why) in faults.await {
                        tracing::warn!(node, why, "a node of the shared tier cannot be asked");
                    }
                });
            }
            // As loud as its counterpart: who was told of the one waits for the other.
            Some(HealthChange::Back) => tracing::warn!("the shared tier is back"),
            None => {}
        }
    }

    /// A node refused to write, or did not.
    pub(crate) fn wrote<T>(&self, outcome: &Result<T, Failure>) {
        let Err(Failure::Refused(why)) = outcome else {
            return;
        };
        let (mut said, now) = (locked(&self.said_refused), Instant::now());
        if said.is_none_or(|said| now.duration_since(said) >= REFUSAL_LOG_INTERVAL) {
            *said = Some(now);
            tracing::warn!(%why, "the shared tier takes no more, or a part of it");
        }
    }

    /// The newest answer under `key`, as far as it is to be had in time.
    pub(crate) async fn find(
        &self,
        key: &Key,
        asked: &HeaderMap,
        policy: &Policy,
    ) -> Option<(Stored, Body)> {
        let place = self.names.place(key.url());
        if !self.answers(place.part) || self.is_delete_pending(&place) {
            return None;
        }
        let Ok(_seat) = self.reads.try_acquire() else {
            self.counters.unanswered.fetch_add(1, Ordering::Relaxed);
            return None;
        };
        let look = self.look(&place, key, asked, policy);
        let timeout = self.config.timeout;
        let until = tokio::time::Instant::now() + timeout;
        let late = |_| Err(Failure::Late(timeout));
        let found = tokio::time::timeout_at(until, look)
            .await
            .unwrap_or_else(late);
        self.asked(place.part, &found);
        let counters = &self.counters;
        let (counter, found) = match found {
            Ok(ReadResult::Whole(found)) => {
                let (mark, stored, body) = *found;
                let subject = PurgeSubject::new(key, stored.headers(), place.part);
                match self.check_purges_until(until, mark, &subject).await {
                    PurgeCheck::Good if !self.is_delete_pending(&place) => {
                        (&counters.hits, Some((stored, body)))
                    }
                    PurgeCheck::Good | PurgeCheck::Purged => (&counters.purged, None),
                    PurgeCheck::Later => (&counters.unanswered, None),
                }
            }
            Ok(ReadResult::Nothing) => (&counters.misses, None),
            Ok(ReadResult::Broken(why)) => {
                tracing::warn!(%why, index = place.index, "an object of the shared tier is broken");
                self.forget(&place);
                (&counters.broken, None)
            }
            Err(failure) => {
                tracing::debug!(%failure, "the shared tier was asked in vain");
                (&counters.unanswered, None)
            }
        };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    async fn look(
        &self,
        place: &IndexKey,
        key: &Key,
        asked: &HeaderMap,
        policy: &Policy,
    ) -> Result<ReadResult, Failure> {
        let kept = self.store.index(place).await?;
        let mut newest = None;
        for (name, bytes) in &kept {
            let object = match opened(policy, bytes) {
                Ok((_, object)) => object,
                Err(why) => return Ok(ReadResult::Broken(why)),
            };
            // Others have other rules, and the same URL.
            if object.key == *key && object.stored.is_for(asked) {
                newest = newest.max(Some((object.stored.times().received, name)));
            }
        }
        let Some((_, name)) = newest else {
            return Ok(ReadResult::Nothing);
        };
        let Some(bytes) = self.store.object(&place.object(name)).await? else {
            return Ok(ReadResult::Nothing);
        };
        let whole = opened(policy, &bytes).and_then(|(mark, object)| {
            let file = &bytes[MARK_BYTES..];
            match object.layout.file_len() == file.len() as u64 {
                true => Ok((
                    mark,
                    object.body(file).map_err(|error| error.to_string())?,
                    object,
                )),
                false => Err(format!(
                    "{} bytes, want {}",
                    file.len(),
                    object.layout.file_len()
                )),
            }
        });
        let (mark, body, object) = match whole {
            Ok(whole) => whole,
            Err(why) => return Ok(ReadResult::Broken(why)),
        };
        if object.key != *key || !object.stored.is_for(asked) {
            return Ok(ReadResult::Broken("another object".to_owned()));
        }
        Ok(ReadResult::Whole(Box::new((mark, object.stored, body))))
    }

    /// What to think of what was fetched when so much was known.
    pub(crate) fn judge(&self, mark: PurgeVersion, subject: &PurgeSubject<'_>) -> PurgeCheck {
        match locked(&self.outbox).means(subject) {
            true => PurgeCheck::Purged,
            false => locked(&self.log).judge(mark, subject),
        }
    }

    /// The same, with what the log has by now, if that is wanted and is to be had `until` then. It may be in another part than
    /// the object, and is answered for by that one.
    async fn check_purges_until(
        &self,
        until: tokio::time::Instant,
        mark: PurgeVersion,
        subject: &PurgeSubject<'_>,
    ) -> PurgeCheck {
        let first = self.judge(mark, subject);
        let part = self.log_part();
        if first != PurgeCheck::Later || !self.answers(part) {
            return first;
        }
        // Whoever wrote it knew of a purge that is news to us: it may be about others.
        let Ok(talking) = tokio::time::timeout_at(until, self.talking.lock()).await else {
            return first;
        };
        // Who waits behind another may have been told by it.
        if self.judge(mark, subject) == PurgeCheck::Later {
            let late = |_| Err(Failure::Late(self.config.timeout));
            let read = tokio::time::timeout_at(until, self.read_log()).await;
            let read = read.unwrap_or_else(late);
            self.asked(part, &read);
            if read.is_err() {
                return PurgeCheck::Later;
            }
        }
        drop(talking);
        match self.judge(mark, subject) {
            // It is of a log that nobody has.
            PurgeCheck::Later => PurgeCheck::Purged,
            judgement => judgement,
        }
    }

    /// Puts a purge where the keeper finds it.
    pub(crate) fn purge(&self, what: PurgeEvent) {
        locked(&self.outbox).push(what);
        self.wake.notify_one();
    }

    /// The number of the last purge.
    pub(crate) fn purges(&self) -> u64 {
        locked(&self.outbox).count()
    }

    /// Hands to its lane what `keep` makes of the turn; `false` if too much waits there.
    pub(crate) fn keep(&self, place: &IndexKey, keep: impl FnOnce(DeleteSeq) -> StoreJob) -> bool {
        // Held, so that turns are in the order of the lane.
        let forgotten = locked(&self.forgotten);
        self.lanes.keep(place, keep(forgotten.last()))
    }

    /// Nothing that is kept at `place` is to be found, from now on.
    pub(crate) fn forget(&self, place: &IndexKey) {
        let mut forgotten = locked(&self.forgotten);
        let has_room = forgotten.add(place);
        let turn = forgotten.last();
        let is_queued = self.lanes.forget(place, turn);
        forgotten.queued(place, turn, is_queued);
        if !has_room {
            // Before the others that made way are believed again.
            let part = u8::try_from(place.part).expect("there are few");
            locked(&self.outbox).push_part_reset(part);
            self.wake.notify_one();
        }
    }

    fn is_delete_pending(&self, place: &IndexKey) -> bool {
        locked(&self.forgotten).has(place)
    }

    /// When it was forgotten, if it is.
    pub(crate) fn turn(&self, place: &IndexKey) -> Option<DeleteSeq> {
        locked(&self.forgotten).turn(place)
    }

    /// Whether it was forgotten after that turn.
    pub(crate) fn is_deleted_since(&self, place: &IndexKey, turn: DeleteSeq) -> bool {
        self.turn(place).is_some_and(|forgotten| forgotten > turn)
    }

    /// What was forgotten then could not be let go of, and is in no lane any more.
    pub(crate) fn is_left_out(&self, place: &IndexKey, turn: DeleteSeq) {
        locked(&self.forgotten).queued(place, turn, false);
    }

    /// Lets go of what was forgotten in that turn, or before; `false` if that cannot be done now.
    pub(crate) async fn let_go(&self, place: &IndexKey, turn: DeleteSeq) -> bool {
        if self.turn(place).is_none() {
            return true;
        }
        if !self.answers(place.part) {
            return false;
        }
        let outcome = self.store.let_go(place).await;
        self.asked(place.part, &outcome);
        self.wrote(&outcome);
        if outcome.is_ok() {
            locked(&self.forgotten).remove(place, turn);
        }
        outcome.is_ok()
    }

    /// Hands those that could not be let go of to their lanes again, as far as they may be asked.
    pub(crate) fn requeue_deletes(&self) {
        for part in (0..PARTS).filter(|part| self.answers(*part)) {
            let mut forgotten = locked(&self.forgotten);
            for (place, turn) in forgotten.left_out(part) {
                let is_queued = self.lanes.forget(&place, turn);
                forgotten.queued(&place, turn, is_queued);
            }
        }
    }

    /// Tells the others what waits to be told, and hears what they told.
    pub(crate) async fn talk(&self) -> Result<(), Failure> {
        let _talking = self.talking.lock().await;
        self.read_log().await?;
        while let Some(what) = { locked(&self.outbox).next() } {
            let entry = Entry { by: self.me, what };
            let outcome = self.store.tell(&self.names.log(), &entry).await;
            self.wrote(&outcome);
            outcome?;
            // It waits until it is known by the log: what it means is not believed in between.
            self.read_log().await?;
            let told = locked(&self.outbox).mark_sent(&entry.what, Instant::now());
            if let Some(told) = told {
                self.told.send_replace(told);
            }
        }
        Ok(())
    }

    /// Reads the log to its end. One at a time.
    async fn read_log(&self) -> Result<(), Failure> {
        let name = self.names.log();
        if let Some(before) = { locked(&self.heard).before } {
            let page = self.store.log(&name, before).await?;
            let has_it = page.first().is_some_and(|(mark, _)| *mark == before);
            if !has_it {
                // What was told behind it is in a log that is lost, or in what this one has forgotten.
                (self.ear)(&PurgeTarget::everything(), true);
            }
            let mut heard = locked(&self.heard);
            heard.before = None;
            if has_it {
                heard.until = before;
            }
        }
        let mut has_begun = false;
        loop {
            let last = self.mark();
            let page = self.store.log(&name, last).await?;
            let read = { locked(&self.log).read(&page) };
            match read {
                LogRead::GoesOn(news) => self.hear(news),
                LogRead::Again => continue,
                LogRead::Nothing if has_begun => return Err(Failure::Forgetful),
                LogRead::Nothing => {
                    has_begun = true;
                    let (by, what) = (self.me, PurgeEvent::Begin);
                    self.store.tell(&name, &Entry { by, what }).await?;
                    continue;
                }
                LogRead::Another(news) => {
                    tracing::warn!(
                        "the shared tier has lost its purges: telling again what was told of late"
                    );
                    locked(&self.outbox).tell_again(Instant::now());
                    self.wake.notify_one();
                    locked(&self.heard).until = PurgeVersion::default();
                    self.hear(news);
                }
                LogRead::Missed(news) => {
                    if news.first().is_none_or(|(first, _)| *first > self.heard()) {
                        // What is not known may have been about anything.
                        (self.ear)(&PurgeTarget::everything(), true);
                    }
                    self.hear(news);
                }
            }
            if page.len() < PAGE {
                return Ok(());
            }
        }
    }

    /// Tells the ear what of `news` it has not heard, and what is not from here.
    fn hear(&self, news: &[(PurgeVersion, Entry)]) {
        let until = self.heard();
        for (mark, entry) in news {
            if let (PurgeEvent::Purged { meant, soft }, true) = (&entry.what, entry.by != self.me)
                && *mark > until
            {
                (self.ear)(meant, *soft);
            }
        }
        if let Some((last, _)) = news.last() {
            let mut heard = locked(&self.heard);
            heard.until = heard.until.max(*last);
        }
    }
}

/// The mark and the head in front of what is kept.
fn opened(policy: &Policy, bytes: &Bytes) -> Result<(PurgeVersion, OpenObject), String> {
    let (mark, file) = bytes.split_first_chunk::<MARK_BYTES>().ok_or("too short")?;
    let object = OpenObject::decode(policy, file).map_err(|error| error.to_string())?;
    Ok((PurgeVersion(u128::from_be_bytes(*mark)), object))
}
