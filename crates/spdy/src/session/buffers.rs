//! Read and write buffers that sessions share.
//!
//! A session needs buffers for reading and writing while its driver runs. Before the driver sleeps, both are usually empty. So the
//! buffers belong to the thread that runs the driver: no batch allocates, and a session whose driver sleeps has no buffers, which
//! matters with ten thousand sessions.

use std::cell::RefCell;
use std::thread::LocalKey;

use bytes::BytesMut;

/// Spare buffers of each kind per thread. A session that stops within a frame or a write keeps its buffer, and returns it later.
const MAX_SPARE_BUFFERS: usize = 4;

/// Maximum size of a spare buffer, bytes; a frame may be longer.
const MAX_SPARE_BYTES: usize = 128 * 1024;

type SpareBuffers = RefCell<Vec<BytesMut>>;

/// Buffers of one kind.
pub(crate) struct Buffers(&'static LocalKey<SpareBuffers>);

/// Received bytes that were not consumed. Streams may share the buffer, so a returned buffer may still be in use by them.
pub(crate) const READ: Buffers = {
    thread_local!(static READ: SpareBuffers = const { RefCell::new(Vec::new()) });
    Buffers(&READ)
};

/// Bytes to write.
pub(crate) const WRITE: Buffers = {
    thread_local!(static WRITE: SpareBuffers = const { RefCell::new(Vec::new()) });
    Buffers(&WRITE)
};

/// Drops the spare buffers of this thread.
pub(crate) fn drop_spares() {
    for kind in [READ, WRITE] {
        // A thread that ends drops them anyway.
        let _ = kind.0.try_with(RefCell::take);
    }
}

impl Buffers {
    /// Gives `buffer` the memory of a spare buffer, if it has none.
    pub(crate) fn acquire(&self, buffer: &mut BytesMut) {
        if buffer.capacity() == 0
            && let Ok(Some(spare)) = self.0.try_with(|spare| spare.borrow_mut().pop())
        {
            *buffer = spare;
        }
    }

    /// Stores the memory of `buffer` as a spare, if it is empty.
    pub(crate) fn release(&self, buffer: &mut BytesMut) {
        if !buffer.is_empty() {
            return;
        }
        let buffer = std::mem::take(buffer);
        // A buffer whose last byte was consumed has a capacity of 0, but still owns memory.
        if buffer.capacity() == 0 || buffer.capacity() > MAX_SPARE_BYTES {
            return;
        }
        // A thread that ends needs no spare buffers.
        let _ = self.0.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < MAX_SPARE_BUFFERS {
                spare.push(buffer);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use bytes::Buf;

    use super::*;

    #[test]
    fn a_returned_buffer_is_reused_by_the_next_session() {
        let mut one = BytesMut::with_capacity(1000);
        let memory = one.as_ptr();
        WRITE.release(&mut one);
        assert_eq!(one.capacity(), 0);
        let mut other = BytesMut::new();
        WRITE.acquire(&mut other);
        assert_eq!((other.as_ptr(), other.len()), (memory, 0));
    }

    /// Regression: an idle session kept such a buffer, a kilobyte after a response of that length.
    #[test]
    fn a_buffer_consumed_to_its_last_byte_is_freed() {
        let mut full = BytesMut::from(&[0; 1000][..]);
        full.advance(1000);
        let memory = full.as_ptr();
        WRITE.release(&mut full);
        assert_ne!(full.as_ptr(), memory);
    }

    #[test]
    fn dropped_spare_buffers_are_not_reused() {
        for kind in [READ, WRITE] {
            kind.release(&mut BytesMut::with_capacity(1000));
        }
        drop_spares();
        for kind in [READ, WRITE] {
            let mut other = BytesMut::new();
            kind.acquire(&mut other);
            assert_eq!(other.capacity(), 0);
        }
    }

    #[test]
    fn buffers_in_use_or_too_large_are_not_reused() {
        let mut used = BytesMut::from(&b"used"[..]);
        READ.release(&mut used);
        assert_eq!(used, "used");
        READ.acquire(&mut used);
        assert_eq!(used, "used");
        let mut large = BytesMut::with_capacity(MAX_SPARE_BYTES + 1);
        READ.release(&mut large);
        assert_eq!(large.capacity(), 0);
        READ.acquire(&mut large);
        assert_eq!(large.capacity(), 0);
        for _ in 0..2 * MAX_SPARE_BUFFERS {
            READ.release(&mut BytesMut::with_capacity(1));
        }
        assert_eq!(READ.0.with_borrow(Vec::len), MAX_SPARE_BUFFERS);
    }
}
