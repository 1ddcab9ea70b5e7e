//! An experiment folder, and the servers that experiments use.

#[cfg(unix)]
pub(crate) mod dask;
pub(crate) mod experiment_folder;
pub(crate) mod postgres;
