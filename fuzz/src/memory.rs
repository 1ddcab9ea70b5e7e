//! Measures how much memory a target holds.

/// Runs `work`, which may hold at most `limit` bytes of heap at once in addition to its arguments.
///
/// # Panics
///
/// If it holds more.
pub fn at_most(limit: usize, work: impl FnOnce()) {
    let held = held_by(work);
    assert!(
        held <= limit,
        "{held} bytes of heap were held, limit {limit}"
    );
}

/// Peak number of heap bytes that `work` holds.
pub fn held_by(work: impl FnOnce()) -> usize {
    allocation_counter::measure(work).bytes_max as usize
}
