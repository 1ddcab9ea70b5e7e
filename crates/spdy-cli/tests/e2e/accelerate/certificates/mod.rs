//! Certificates by ACME and from files.

#[cfg(unix)]
mod acme;
mod clients;
#[cfg(unix)]
mod files;
#[cfg(unix)]
mod wildcards;
