//! `spdy record` with Chromium.

mod failures;
mod recording;
