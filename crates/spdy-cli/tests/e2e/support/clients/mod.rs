//! Clients: raw bytes, a browser, and captures.

pub(crate) mod capture;
pub(crate) mod chromium;
pub(crate) mod raw_client;
pub(crate) mod raw_frames;
