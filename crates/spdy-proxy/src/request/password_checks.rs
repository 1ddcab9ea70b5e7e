//! Verifies passwords in separate threads, a few at a time, so that requests with wrong ones cannot use all CPUs.
//!
//! ```text
//!  credentials ── verified before ──▶ allowed, without a hash
//!       │   ── the client's same credentials are being checked ──▶ the same result
//!       │   ── the client made too many attempts ──▶ 429
//!       │   ── a hash that takes no time (SHA-1) ──▶ allowed, or 401, at once
//!       └──▶ a queue in which clients take turns (passwords/check_queue.rs) ──▶ a thread, one for two CPUs ──▶ allowed, or 401
//!                  │ too many wait, or it waits too long ──▶ 503
//! ```

use std::net::IpAddr;
use std::sync::Arc;
use std::thread;

use futures_util::future::{Either, select};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::passwords::basic_credentials::BasicCredentials;
use crate::passwords::check_queue::{CheckQueue, MAX_WAIT, QueueError, Turn};
use crate::passwords::password_file::PasswordFile;
use crate::sites::client_rate::{ClientRateLimit, source};

/// Attempts of one client a second, saved up for five seconds. Only those count that need a hash.
const ATTEMPTS_PER_SECOND: u32 = 2;

/// The result of a check.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CheckResult {
    /// The password is right.
    Right,
    /// The user is unknown, or the password is wrong.
    Wrong,
    /// The client makes too many attempts.
    TooMany,
    /// All clients together make too many.
    Busy,
}

/// Limits of all checks of the program.
#[derive(Debug)]
pub(crate) struct PasswordChecks {
    attempts: ClientRateLimit,
    queue: Arc<CheckQueue>,
    pending: Arc<Mutex<Vec<PendingCheck>>>,
}

/// The credentials that a client sent, and the files in which they must be right.
#[derive(Debug)]
struct Attempt {
    client: Option<IpAddr>,
    files: Vec<Arc<PasswordFile>>,
    credentials: BasicCredentials,
}

impl PartialEq for Attempt {
    fn eq(&self, other: &Self) -> bool {
        let mut files = self.files.iter().zip(&other.files);
        self.client == other.client
            && self.credentials == other.credentials
            && self.files.len() == other.files.len()
            && files.all(|(own, other)| Arc::ptr_eq(own, other))
    }
}

/// An attempt that waits or is being checked. Requests with the same credentials get its result: a page may make many at once.
#[derive(Debug)]
struct PendingCheck {
    attempt: Arc<Attempt>,
    result: watch::Receiver<Option<CheckResult>>,
}

/// Removes its pending check when it is dropped. Without a result, another request with the same credentials makes the attempt.
struct CheckGuard {
    attempt: Arc<Attempt>,
    pending: Arc<Mutex<Vec<PendingCheck>>>,
    result: watch::Sender<Option<CheckResult>>,
}

impl Drop for CheckGuard {
    fn drop(&mut self) {
        let mut pending = self.pending.lock();
        pending.retain(|check| !Arc::ptr_eq(&check.attempt, &self.attempt));
    }
}

impl Default for PasswordChecks {
    fn default() -> Self {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        Self::with_threads((cpus / 2).max(1))
    }
}

impl PasswordChecks {
    fn with_threads(threads: usize) -> Self {
        Self {
            attempts: ClientRateLimit::new(ATTEMPTS_PER_SECOND),
            queue: CheckQueue::new(threads),
            pending: Arc::default(),
        }
    }

    /// Checks `credentials`, which must be right in each of `files`, for the client at `from`.
    pub(crate) async fn check(
        &self,
        clock: &Clock,
        files: Vec<Arc<PasswordFile>>,
        credentials: BasicCredentials,
        from: Option<IpAddr>,
    ) -> CheckResult {
        let attempt = Arc::new(Attempt {
            client: from.map(source),
            files,
            credentials,
        });
        loop {
            let mut result = match self.begin(&attempt) {
                Ok(guard) => return self.lead(clock, guard, from).await,
                Err(result) => result,
            };
            if let Ok(result) = result.wait_for(Option::is_some).await
                && let Some(result) = *result
            {
                return result;
            }
            // The client that made the attempt has left.
        }
    }

    /// Begins `attempt`.
    ///
    /// # Errors
    ///
    /// The result of the same attempt, which is pending.
    fn begin(
        &self,
        attempt: &Arc<Attempt>,
    ) -> Result<CheckGuard, watch::Receiver<Option<CheckResult>>> {
        let mut pending = self.pending.lock();
        if let Some(same) = pending.iter().find(|check| check.attempt == *attempt) {
            return Err(same.result.clone());
        }
        let (sender, receiver) = watch::channel(None);
        pending.push(PendingCheck {
            attempt: attempt.clone(),
            result: receiver,
        });
        Ok(CheckGuard {
            attempt: attempt.clone(),
            pending: self.pending.clone(),
            result: sender,
        })
    }

    /// Checks the attempt of `guard`, of a client at `from`.
    async fn lead(&self, clock: &Clock, guard: CheckGuard, from: Option<IpAddr>) -> CheckResult {
        let attempt = guard.attempt.clone();
        if attempt.is_known() {
            return guard.finish(CheckResult::Right);
        }
        let now = clock.now();
        if from.is_some_and(|client| !self.attempts.admits(client, now)) {
            return guard.finish(CheckResult::TooMany);
        }
        if attempt.is_cheap() {
            return guard.finish(attempt.verify());
        }
        let turn = match self.queue.join(attempt.client) {
            Ok(turn) => turn,
            Err(QueueError::TooMany) => return guard.finish(CheckResult::TooMany),
            Err(QueueError::Busy) => return guard.finish(CheckResult::Busy),
        };
        let timeout = clock.runtime.sleep_until(now + MAX_WAIT);
        let Either::Left((Ok(turn), _)) = select(turn, timeout).await else {
            return guard.finish(CheckResult::Busy);
        };
        let mut result = guard.result.subscribe();
        if let Err(error) = spawn_check(guard, turn) {
            tracing::error!(%error, "cannot start a thread to verify a password");
            return CheckResult::Busy;
        }
        let result = result.wait_for(Option::is_some).await;
        // Without a result, the check has panicked.
        result
            .ok()
            .and_then(|result| *result)
            .unwrap_or(CheckResult::Wrong)
    }
}

/// Checks the attempt of `guard` in a thread. It has its `turn` and its result even if the client leaves.
fn spawn_check(guard: CheckGuard, turn: Turn) -> std::io::Result<thread::JoinHandle<()>> {
    let check = move || {
        let result = guard.attempt.verify();
        guard.finish(result);
        drop(turn);
    };
    thread::Builder::new()
        .name("password".to_owned())
        .spawn(check)
}

impl CheckGuard {
    /// Gives `result` to all requests that wait for it.
    fn finish(self, result: CheckResult) -> CheckResult {
        self.result.send_replace(Some(result));
        result
    }
}

impl Attempt {
    /// Whether the credentials were verified before in each file.
    fn is_known(&self) -> bool {
        self.files.iter().all(|file| file.knows(&self.credentials))
    }

    /// Whether [`verify`](Self::verify) takes no time.
    fn is_cheap(&self) -> bool {
        let user = &self.credentials.user;
        self.files.iter().all(|file| file.is_cheap(user))
    }

    fn verify(&self) -> CheckResult {
        let credentials = &self.credentials;
        let mut files = self.files.iter();
        match files.all(|file| file.knows(credentials) || file.verify(credentials)) {
            true => CheckResult::Right,
            false => CheckResult::Wrong,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use spdy::runtime::SharedRuntime;
    use spdy_net::wall_clock::WallClock;

    use super::*;

    /// Users with the password `secret`, by bcrypt and by SHA-1.
    const USERS: &str = "alice:$2b$05$fPt4pBp/KDVTYaiUBDzZJ.Q8y.2T0iWP/PQzvSNdj6wAAOLO1TWbC\n\
                         bob:{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ=\n";

    fn users() -> Vec<Arc<PasswordFile>> {
        let folder = tempfile::tempdir().expect("create a folder");
        let path = folder.path().join("users");
        std::fs::write(&path, USERS).expect("write the file");
        vec![Arc::new(PasswordFile::read(&path).expect("a valid file"))]
    }

    fn credentials(user: &str, password: &str) -> BasicCredentials {
        BasicCredentials {
            user: user.to_owned(),
            password: password.into(),
        }
    }

    /// No thread is free: SHA-1 needs none, and bcrypt waits for a limited time.
    #[tokio::test]
    async fn cheap_hash_waits_for_no_thread_and_others_for_a_limited_time() {
        let time = spdy_testkit::clock::Clock::default();
        let clock = Clock::new(SharedRuntime::new(time.clone()), WallClock::System);
        let (checks, files) = (PasswordChecks::with_threads(0), users());
        let check = |user, password, client| {
            let from = Some(IpAddr::from([192, 0, 2, client]));
            checks.check(&clock, files.clone(), credentials(user, password), from)
        };
        for (password, expected) in [
            ("secret", CheckResult::Right),
            ("secre", CheckResult::Wrong),
        ] {
            assert_eq!(check("bob", password, 1).await, expected);
        }
        let begun = clock.now();
        let mut waiting = Box::pin(check("alice", "secret", 1));
        let early = MAX_WAIT - Duration::from_secs(1);
        for (until, expected) in [(early, None), (MAX_WAIT, Some(CheckResult::Busy))] {
            let passing = Box::pin(time.advance(until - (clock.now() - begun)));
            let result = match select(waiting.as_mut(), passing).await {
                Either::Left((result, _)) => Some(result),
                Either::Right(_) => None,
            };
            // The timer has fired, and the check has not been polled since.
            let result = match (result, expected) {
                (None, Some(_)) => Some(waiting.as_mut().await),
                (result, _) => result,
            };
            assert_eq!(result, expected, "after {until:?}");
        }
        // The same credentials wait together, and a client has two attempts at a time.
        let all = ["1", "1", "2", "3"].map(|password| check("alice", password, 2));
        let all = futures_util::future::join_all(all);
        let (results, ()) = futures_util::future::join(all, time.advance(MAX_WAIT)).await;
        let (busy, many) = (CheckResult::Busy, CheckResult::TooMany);
        assert_eq!(results, [busy, busy, busy, many]);
    }
}
