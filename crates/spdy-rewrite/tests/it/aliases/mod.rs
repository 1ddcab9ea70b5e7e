//! Hosts that have a name of their own in the site's domain.

mod exchanges;
mod names;
mod pages;
