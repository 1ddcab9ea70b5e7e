//! A semaphore for each key: a limited number of permits, for which tasks wait.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The semaphores, by key. A key without a permit holder or waiter has none.
#[derive(Debug)]
pub(crate) struct KeyedSemaphore<K>(Mutex<BTreeMap<K, Arc<Semaphore>>>);

impl<K> Default for KeyedSemaphore<K> {
    fn default() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }
}

impl<K: Ord> KeyedSemaphore<K> {
    /// One of `most` permits for `key`, once one is free. All holders and waiters of a key pass the same `most`.
    pub(crate) async fn acquire(&self, key: K, most: usize) -> OwnedSemaphorePermit {
        let semaphore = {
            let mut semaphores = self.0.lock();
            semaphores.retain(|_, semaphore| Arc::strong_count(semaphore) > 1);
            let semaphore = semaphores.entry(key);
            let semaphore = semaphore.or_insert_with(|| Arc::new(Semaphore::new(most)));
            semaphore.clone()
        };
        let permit = semaphore.acquire_owned().await;
        permit.unwrap_or_else(|error| unreachable!("the semaphore is never closed: {error}"))
    }
}
