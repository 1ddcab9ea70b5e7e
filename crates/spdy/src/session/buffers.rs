//! Buffers that sessions lend each other.
//!
//! A session needs room to read and to write while its driver runs, and mostly has taken in the one and got
//! rid of the other before it rests. So the room belongs to the thread that runs it: no batch allocates, and
//! of ten thousand sessions those that wait hold none.

use std::cell::RefCell;
use std::thread::LocalKey;

use bytes::BytesMut;

/// Spare buffers of a thread, of each kind: sessions that stop in the middle of a frame or of a write hold
/// on to theirs, and return them later.
const MAX_SPARE_BUFFERS: usize = 4;

/// Largest spare buffer, bytes; a frame may be longer.
const MAX_SPARE_BYTES: usize = 128 * 1024;

type SpareBuffers = RefCell<Vec<BytesMut>>;

/// Buffers of one kind.
pub(crate) struct Buffers(&'static LocalKey<SpareBuffers>);

/// What came and was not taken in. Streams may share it, so a buffer that comes back may still be theirs.
pub(crate) const READ: Buffers = {
    thread_local!(static READ: SpareBuffers = const { RefCell::new(Vec::new()) });
    Buffers(&READ)
};

/// What is to be written.
pub(crate) const WRITE: Buffers = {
    thread_local!(static WRITE: SpareBuffers = const { RefCell::new(Vec::new()) });
    Buffers(&WRITE)
};

impl Buffers {
    /// Gives `buffer` a spare buffer's memory, if it has none.
    pub(crate) fn acquire(&self, buffer: &mut BytesMut) {
        if buffer.capacity() == 0
            && let Ok(Some(spare)) = self.0.try_with(|spare| spare.borrow_mut().pop())
        {
            *buffer = spare;
        }
    }

    /// Stores the memory of `buffer` as a spare, if it is empty.
    pub(crate) fn release(&self, buffer: &mut BytesMut) {
        if !buffer.is_empty() || buffer.capacity() == 0 {
            return;
        }
        let buffer = std::mem::take(buffer);
        if buffer.capacity() > MAX_SPARE_BYTES {
            return;
        }
        // A thread that ends has no use for it.
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
