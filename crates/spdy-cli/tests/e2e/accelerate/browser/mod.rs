//! Pages through the accelerator in Chromium.

mod aliases;
mod four_domains;
mod hints;
mod images;
mod planted_requests;
mod policies;
