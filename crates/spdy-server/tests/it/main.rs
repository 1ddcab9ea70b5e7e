//! A site in memory: its responses, pushes and hints.

mod directory;
mod every_protocol;
mod push;
mod push_laws;
mod recorded_ranges;
mod responses;
mod support;
