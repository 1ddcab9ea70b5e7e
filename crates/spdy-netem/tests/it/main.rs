//! Links and TCP in virtual time, compared with calculations and RFCs.

mod closed_form;
mod handshake_and_close;
mod laws;
mod loss_recovery;
mod profiles;
mod queues;
mod support;
mod traces;
mod windows;
