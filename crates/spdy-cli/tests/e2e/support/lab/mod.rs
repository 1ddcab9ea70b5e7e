//! An experiment's folder, and what runs it.

#[cfg(unix)]
pub(crate) mod dask;
pub(crate) mod experiment_folder;
pub(crate) mod postgres;
