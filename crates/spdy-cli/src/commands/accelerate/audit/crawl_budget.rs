//! The budget of a crawl: bytes of bodies in memory, and time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use spdy::body::Body;
use tokio::time::Instant;

/// Bytes of all bodies.
pub(crate) const MAX_BYTES: usize = 256 << 20;
/// Time for the whole page; resources that arrive later are left out.
pub(crate) const MAX_TIME: Duration = Duration::from_secs(120);

/// The limits, and what is left of them.
#[derive(Debug)]
pub(crate) struct Budget {
    pub(crate) most_bytes: usize,
    pub(crate) most_time: Duration,
    left: AtomicUsize,
    end: Instant,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(MAX_BYTES, MAX_TIME)
    }
}

impl Budget {
    pub(crate) fn new(bytes: usize, time: Duration) -> Self {
        Self {
            most_bytes: bytes,
            most_time: time,
            left: AtomicUsize::new(bytes),
            end: Instant::now() + time,
        }
    }

    pub(crate) fn end(&self) -> Instant {
        self.end
    }

    /// Whether nothing more may be fetched.
    pub(crate) fn is_spent(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0
    }

    /// Reads `body` of up to `limit` bytes, and charges it to the budget. A body that does not fit ends the crawl.
    pub(crate) async fn collect(&self, mut body: Body, limit: usize) -> anyhow::Result<Bytes> {
        let mut all = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(anyhow::Error::from_boxed)?.into_data() else {
                continue;
            };
            if all.len() + data.len() > limit {
                // What is thrown away takes no room.
                self.left.fetch_add(all.len(), Ordering::Relaxed);
                anyhow::bail!("body is longer than {limit} bytes");
            }
            let less = |left: usize| left.checked_sub(data.len());
            let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
            if self.left.fetch_update(set, get, less).is_err() {
                self.left.store(0, Ordering::Relaxed);
                anyhow::bail!("the page is larger than the limit");
            }
            all.extend_from_slice(&data);
        }
        Ok(all.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bodies_share_the_bytes_of_the_page_and_one_past_them_ends_it() {
        let budget = Budget::new(10, MAX_TIME);
        let fetch = |bytes: usize| budget.collect(Body::from(vec![0; bytes]), 6);
        assert_eq!(fetch(6).await.unwrap().len(), 6);
        let error = fetch(7).await.unwrap_err().to_string();
        assert_eq!(error, "body is longer than 6 bytes");
        assert!(!budget.is_spent(), "a refused body uses no budget");
        assert_eq!(fetch(3).await.unwrap().len(), 3);
        assert!(fetch(2).await.is_err() && budget.is_spent());
    }
}
