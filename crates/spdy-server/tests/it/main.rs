//! A site in memory: its responses, pushes and hints.

mod directory;
mod every_protocol;
mod literal_heads;
mod push;
mod push_laws;
mod recorded_ranges;
mod responses;
