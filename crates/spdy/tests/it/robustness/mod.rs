//! Peers, callers and transports that misbehave.

mod any_cut;
mod chaos;
mod hostile_peer;
mod many_tasks;
mod misuse;
mod odd_responses;
