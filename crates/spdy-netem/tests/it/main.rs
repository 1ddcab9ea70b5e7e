//! Links and TCP in virtual time, against arithmetic and RFCs.

mod closed_form;
mod handshake_and_close;
mod laws;
mod loss_recovery;
mod profiles;
mod support;
mod windows;
