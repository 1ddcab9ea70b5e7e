//! The clock, the timers and the tasks of a run in virtual time: [`Executor`], and [`SimRuntime`] as its handle.
//!
//! ```text
//! executor.rs         polls tasks; without a ready task it sets the clock to the next timer
//! executor_state.rs   state shared with its handles: the clock, the timers, spawned tasks
//! timers.rs           every event of a run in one heap, in the order of time
//! sim_runtime.rs      the handle: spdy's Runtime for async code, timers for the network
//! epoch.rs            the wall time at which a run begins
//! ```

mod epoch;
mod executor;
mod executor_state;
mod sim_runtime;
mod timers;

pub use executor::{Executor, ExecutorLimits, StallError};
pub use sim_runtime::SimRuntime;

pub(crate) use epoch::WALL_EPOCH;
pub(crate) use timers::{TimerKey, TimerTarget};
