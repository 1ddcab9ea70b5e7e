//! Measurements of page loads: experiments of many cells, the stores of their results, and comparisons with real time and with papers.
//!
//! Pages load in virtual time by `spdy-sim`. [`experiment`] varies factors over many cells, [`store`] has the results, and [`stats`]
//! summarizes them. [`claims`] compares loads with statements of papers about SPDY; [`lulic`] has the data of one of them. [`doctor`]
//! tests changes that could make a page faster, and [`audit`] predicts the effect of an accelerator. [`calibrate`] compares virtual
//! time with the kernel's TCP, and [`live`] does the same load in real time. [`network_spec`] parses the networks of all of them.
//!
//! `docs/explanation/virtual-time.md` explains how we measure.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

#[cfg(feature = "full")]
pub mod audit;
#[cfg(all(feature = "full", target_os = "linux"))]
pub mod calibrate;
#[cfg(feature = "full")]
pub mod claims;
pub mod doctor;
pub mod experiment;
#[cfg(all(feature = "full", target_os = "linux"))]
pub mod live;
pub mod lulic;
pub mod network_spec;
#[cfg_attr(not(feature = "full"), allow(dead_code))] // claims need the rest
mod pages;
pub mod stats;
#[cfg(feature = "full")]
pub mod store;
