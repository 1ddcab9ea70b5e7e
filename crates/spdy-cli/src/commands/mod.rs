//! The commands: a folder or file for each. `command.rs` of a folder has the arguments and runs the command. Some are in a build only
//! with a feature of their group: `serve`, `lab` or `accelerate`.

#[cfg(feature = "accelerate")]
pub(crate) mod accelerate;
#[cfg(feature = "serve")]
pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod doctor;
#[cfg(feature = "serve")]
pub(crate) mod fetch;
#[cfg(feature = "serve")]
pub(crate) mod inspect;
#[cfg(feature = "lab")]
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod race;
#[cfg(all(feature = "lab", unix))]
pub(crate) mod record;
pub(crate) mod replica;
#[cfg(feature = "serve")]
pub(crate) mod serve;
