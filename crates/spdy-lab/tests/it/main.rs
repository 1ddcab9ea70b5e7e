//! The lab: experiments, and reports about pages and accelerators.

mod audit;
mod doctor;
mod experiment;
mod shipped_pages;
