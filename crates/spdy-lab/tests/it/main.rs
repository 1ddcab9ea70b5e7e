//! The lab: page loads, races and experiments in virtual time.

mod accelerator;
mod doctor;
mod experiment;
mod model;
mod network;
mod page_load;
mod race;
