//! The stores of responses: memory, the file of one object, and the interface of a shared tier.

pub mod memory_store;
pub mod object_file;
pub(crate) mod s3_fifo;
pub mod shared_tier;
