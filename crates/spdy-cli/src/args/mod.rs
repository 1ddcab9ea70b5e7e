//! Options and values that the command lines of several commands share.

mod condition;
#[cfg(feature = "serve")]
mod header;
mod networks;
mod page_load;
pub(crate) mod parse;
mod replica;
#[cfg(feature = "serve")]
mod request;
#[cfg(feature = "serve")]
mod server_limits;

pub(crate) use condition::ConditionArgs;
#[cfg(feature = "serve")]
pub(crate) use header::BlockArgs;
pub(crate) use networks::{networks, retain_first};
pub(crate) use page_load::{PageLoadArgs, RaceChoiceArgs};
pub(crate) use replica::{open_all, open_replica};
#[cfg(feature = "serve")]
pub(crate) use request::RequestArgs;
#[cfg(feature = "serve")]
pub(crate) use server_limits::ServerLimitArgs;
