//! One-time tokens: created for a request, valid for one use and a limited time.
//!
//! The caller supplies clock and randomness. Tokens have 128 random bits, so that guessing one is
//! infeasible.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::time::Duration;

use data_encoding::BASE64URL_NOPAD;
use spdy::Instant;

/// Random bytes of a token.
pub(crate) const RANDOM_BYTES: usize = 16;

/// Requests that wait for their client, by token.
pub(crate) struct Tokens<R> {
    lifetime: Duration,
    limit: usize,
    /// The key in `waiting` for each token.
    numbers: HashMap<String, u64>,
    /// In the order of creation, which is also that of expiry.
    waiting: BTreeMap<u64, PendingRequest<R>>,
    next: u64,
}

struct PendingRequest<R> {
    token: String,
    until: Instant,
    request: R,
}

/// The limit of tokens is reached.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Full;

/// Without the tokens: each of them allows a command.
impl<R> fmt::Debug for Tokens<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens")
            .field("pending", &self.numbers.len())
            .finish_non_exhaustive()
    }
}

impl<R> Tokens<R> {
    pub(crate) fn new(lifetime: Duration, limit: usize) -> Self {
        Self {
            lifetime,
            limit,
            numbers: HashMap::new(),
            waiting: BTreeMap::new(),
            next: 0,
        }
    }

    /// Creates a token for `request`, valid for `lifetime` from `now`.
    pub(crate) fn insert(
        &mut self,
        now: Instant,
        random: [u8; RANDOM_BYTES],
        request: R,
    ) -> Result<String, Full> {
        self.remove_expired(now);
        if self.waiting.len() >= self.limit {
            return Err(Full);
        }
        let token = BASE64URL_NOPAD.encode(&random);
        let number = self.next;
        self.next += 1;
        let until = now + self.lifetime;
        let entry = PendingRequest {
            token: token.clone(),
            until,
            request,
        };
        self.waiting.insert(number, entry);
        if let Some(twin) = self.numbers.insert(token.clone(), number) {
            self.waiting.remove(&twin); // the same 128 random bits were generated twice
        }
        Ok(token)
    }

    /// Takes the request of `token`, which cannot be used again.
    pub(crate) fn take(&mut self, now: Instant, token: &str) -> Option<R> {
        self.remove_expired(now);
        let number = self.numbers.remove(token)?;
        Some(self.waiting.remove(&number)?.request)
    }

    fn remove_expired(&mut self, now: Instant) {
        while let Some(first) = self.waiting.first_entry()
            && first.get().until <= now
        {
            let expired = first.remove();
            self.numbers.remove(&expired.token);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn tokens(limit: usize) -> Tokens<&'static str> {
        Tokens::new(MINUTE, limit)
    }

    #[test]
    fn a_token_can_be_used_once() {
        let mut tokens = tokens(2);
        let token = tokens
            .insert(Instant::ZERO, [1; 16], "a")
            .expect("the limit is not reached");
        assert_eq!(tokens.take(Instant::ZERO, "other"), None);
        assert_eq!(tokens.take(Instant::ZERO, &token), Some("a"));
        assert_eq!(tokens.take(Instant::ZERO, &token), None);
    }

    #[test]
    fn a_token_expires_at_the_end_of_its_lifetime() {
        let mut tokens = tokens(2);
        let moment = Duration::from_nanos(1);
        let (first, second) = ([1; 16], [2; 16]);
        let first = tokens
            .insert(Instant::ZERO, first, "a")
            .expect("the limit is not reached");
        let second = tokens
            .insert(Instant::ZERO, second, "b")
            .expect("the limit is not reached");
        assert_eq!(
            tokens.take(Instant::ZERO + (MINUTE - moment), &first),
            Some("a")
        );
        assert_eq!(tokens.take(Instant::ZERO + MINUTE, &second), None);
    }

    #[test]
    fn one_more_than_the_limit_is_refused_until_one_is_used_or_expires() {
        let mut tokens = tokens(2);
        let token = tokens
            .insert(Instant::ZERO, [1; 16], "a")
            .expect("the limit is not reached");
        tokens
            .insert(Instant::ZERO, [2; 16], "b")
            .expect("the limit is not reached");
        assert_eq!(tokens.insert(Instant::ZERO, [3; 16], "c"), Err(Full));
        tokens.take(Instant::ZERO, &token);
        tokens
            .insert(Instant::ZERO, [3; 16], "c")
            .expect("the limit is not reached");
        assert_eq!(tokens.insert(Instant::ZERO, [4; 16], "d"), Err(Full));
        let later = Instant::ZERO + MINUTE;
        tokens
            .insert(later, [4; 16], "d")
            .expect("the other tokens expired");
        assert_eq!((tokens.waiting.len(), tokens.numbers.len()), (1, 1));
    }
}
