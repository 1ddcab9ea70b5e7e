//! Size of the congestion window: CUBIC or Reno, and the end of slow start.

pub(crate) mod algorithm;
pub(crate) mod cubic;
pub(crate) mod hystart;
pub(crate) mod window;
