//! Commands on stores of loads: show, compare, merge, import and export.

pub(crate) mod compare;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod merge;
pub(crate) mod show;
mod summary_table;

use spdy_lab::store::error::StoreError;
use spdy_lab::store::location::Location;
use spdy_lab::store::open::Store;

use crate::outcome::Usage;

/// Opens the store that the command line names; it is a wrong command line if there is none.
pub(crate) fn open_store(location: &Location) -> anyhow::Result<Store> {
    Store::open(location).map_err(|error| match error {
        StoreError::Missing { .. } => Usage(error.to_string()).into(),
        other => other.into(),
    })
}
