//! Options for how SPDY's header blocks are compressed.

/// How SPDY's header blocks are compressed.
#[derive(Debug, clap::Args)]
pub(crate) struct BlockArgs {
    /// Window of SPDY's header compression as a power of two: 11 (2 KiB a session) to 15 (32 KiB) [default: 13]
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u8).range(11..=15))]
    pub(crate) header_window: Option<u8>,
}
