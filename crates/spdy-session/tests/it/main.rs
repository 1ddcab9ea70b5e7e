//! Tests of the session machine: against hand-written frames, and two machines against each other in virtual time.

mod finish_and_reset;
mod flow_control;
mod goaway;
mod hostile;
mod laws;
mod limits;
mod observer;
mod ping;
mod priority;
mod push;
mod receive_windows;
mod recorded_connections;
mod settings;
mod streams;
mod support;
mod version_detection;
mod window_growth;
