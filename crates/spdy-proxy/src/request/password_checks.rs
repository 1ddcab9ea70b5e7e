//! Verifies passwords in threads of their own, a few at a time, so that requests with wrong ones cannot use all CPUs.
//!
//! ```text
//!  credentials ── verified before ──▶ allowed, without a hash
//!       │   ── the client made too many attempts, or too many wait ──▶ 429
//!       └──▶ queue ──▶ a thread, one for two CPUs ──▶ allowed, or 401
//! ```

use std::net::IpAddr;
use std::sync::Arc;
use std::thread;

use spdy_clock::Instant;
use tokio::sync::{Semaphore, oneshot};

use crate::passwords::basic_credentials::BasicCredentials;
use crate::passwords::password_file::PasswordFile;
use crate::sites::client_rate::ClientRateLimit;

/// Attempts of one client a second, saved up for five seconds. Only those count that need a hash.
const ATTEMPTS_PER_SECOND: u32 = 2;
/// Attempts that wait for a thread.
const MAX_WAITING: usize = 64;

/// The result of a check.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CheckResult {
    /// The password is right.
    Right,
    /// The user is unknown, or the password is wrong.
    Wrong,
    /// There are too many attempts.
    TooMany,
}

/// Limits of all checks of the program.
#[derive(Debug)]
pub(crate) struct PasswordChecks {
    attempts: ClientRateLimit,
    waiting: Arc<Semaphore>,
    threads: Arc<Semaphore>,
}

impl Default for PasswordChecks {
    fn default() -> Self {
        let cpus = thread::available_parallelism().map_or(1, usize::from);
        Self {
            attempts: ClientRateLimit::new(ATTEMPTS_PER_SECOND),
            waiting: Arc::new(Semaphore::new(MAX_WAITING)),
            threads: Arc::new(Semaphore::new((cpus / 2).max(1))),
        }
    }
}

impl PasswordChecks {
    /// Checks `credentials`, which must be right in each of `files`, for `client` at `now`.
    pub(crate) async fn check(
        &self,
        files: Vec<Arc<PasswordFile>>,
        credentials: BasicCredentials,
        client: Option<IpAddr>,
        now: Instant,
    ) -> CheckResult {
        if client.is_some_and(|client| !self.attempts.admits(client, now)) {
            return CheckResult::TooMany;
        }
        let Ok(_waiting) = self.waiting.try_acquire() else {
            return CheckResult::TooMany;
        };
        let permit = self.threads.clone().acquire_owned().await;
        let permit = permit.unwrap_or_else(|error| unreachable!("it is never closed: {error}"));
        let (result, finished) = oneshot::channel();
        let check = move || {
            let is_right = files
                .iter()
                .all(|file| file.knows(&credentials) || file.verify(&credentials));
            drop(permit);
            let _is_gone = result.send(is_right);
        };
        let thread = thread::Builder::new().name("password".to_owned());
        if let Err(error) = thread.spawn(check) {
            tracing::error!(%error, "cannot start a thread to verify a password");
            return CheckResult::TooMany;
        }
        match finished.await {
            Ok(true) => CheckResult::Right,
            Ok(false) | Err(_) => CheckResult::Wrong,
        }
    }
}
