//! Imports of Chromium's logs: a real one, and small ones with one defect each.
//!
//! `samples.rs` has the logs. `log.rs` tests what a log alone has, `devtools.rs` what DevTools messages add.

mod devtools;
mod log;
mod samples;
