//! Certificates by ACME and from files.

#[cfg(unix)]
mod acme;
#[cfg(unix)]
mod clients;
#[cfg(unix)]
mod files;
#[cfg(unix)]
mod wildcards;
