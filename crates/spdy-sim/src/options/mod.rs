//! The options of a load: TLS version, initial window, concurrent streams and all other choices.

mod accelerator;
mod client_cache;
mod deployment;
mod load_options;
mod push;
mod race_protocol;
mod scheduler;

pub use accelerator::{Accelerator, UnknownAccelerator};

pub use client_cache::{Cache, MAX_REVISIT_DELAY, UnknownCache};

pub use deployment::{Deployment, UnknownDeployment, is_same_site, site_of};

pub use load_options::{
    LULIC_STREAMS, MAX_FRAME_BYTES, MAX_THINK_TIME_SCALE, MIN_FRAME_BYTES, Options,
};

pub use push::{Push, UnknownPush};

pub use race_protocol::{RaceProtocol, UnknownRaceProtocol};

pub(crate) use scheduler::{BACKUP_AFTER, CONNECTIONS_OF_NAVIGATION};
pub use scheduler::{Scheduler, UnknownScheduler};
