//! What the tests share: the program, its peers, test files and origins.

pub(crate) mod accelerator;
pub(crate) mod certificate;
pub(crate) mod clients;
pub(crate) mod files;
pub(crate) mod json_output;
pub(crate) mod lab;
pub(crate) mod origins;
pub(crate) mod peers;
pub(crate) mod program;
pub(crate) mod site;
#[cfg(target_os = "linux")]
pub(crate) mod unprivileged;
