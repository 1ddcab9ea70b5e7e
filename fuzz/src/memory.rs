//! What a door may hold, measured.

/// Runs `work`, which may hold `limit` bytes of heap at once beyond what it was given, and no more.
///
/// # Panics
///
/// If it held more.
pub fn at_most(limit: usize, work: impl FnOnce()) {
    let held = held_by(work);
    assert!(
        held <= limit,
        "{held} bytes were held, want {limit} at most"
    );
}

/// Bytes of heap that `work` held at once, at most.
pub fn held_by(work: impl FnOnce()) -> usize {
    allocation_counter::measure(work).bytes_max as usize
}
