//! The certificates of the accelerator: by ACME, from files, or of a local authority.

pub(crate) mod acme;
pub(crate) mod certificate_files;
pub(crate) mod served_certificates;
mod time_text;
