//! A replica: the recorded exchanges of a page, their bytes, and the WARC file that stores them.

pub mod archive;
pub(crate) mod filler;
pub mod freshness;
pub mod kind;
mod model;
pub mod observation;
pub mod partial_content;
pub mod think_time;
pub(crate) mod warc_record;

pub use model::{Exchange, Initiator, Kind, Replica};
pub use observation::{LargestPaint, Paints};

pub(crate) use model::without_fragment;
