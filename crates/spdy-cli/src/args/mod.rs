//! Options and values that the command lines of several commands share.

mod condition;
mod header;
mod networks;
mod page_load;
pub(crate) mod parse;
mod replica;
mod request;
mod server_limits;

pub(crate) use condition::ConditionArgs;
pub(crate) use header::BlockArgs;
pub(crate) use networks::{networks, retain_first};
pub(crate) use page_load::{PageLoadArgs, RaceChoiceArgs};
pub(crate) use replica::{open_all, open_replica};
pub(crate) use request::RequestArgs;
pub(crate) use server_limits::ServerLimitArgs;
