//! Certificates by ACME, in time that a test turns on.

mod authority;
mod renewal;
mod renewal_schedule;
