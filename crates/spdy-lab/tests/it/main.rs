//! The lab: experiments, and what they say of pages and accelerators.

mod audit;
mod doctor;
mod experiment;
mod shipped_pages;
