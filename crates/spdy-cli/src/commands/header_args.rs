//! How SPDY's header blocks are written: options of every command that writes some.

use spdy_frame::compress::Compression;

/// How much header compression remembers.
#[derive(Debug, clap::Args)]
pub(crate) struct BlockArgs {
    /// How far back SPDY's header compression looks, as a power of two: 11 (2 KiB a session) to 15 (32 KiB) [default: 13, or 15 for a level of zlib]
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u8).range(11..=15))]
    pub(crate) header_window: Option<u8>,
}

/// Reads `masked` or a level.
pub(crate) fn parse_compression(text: &str) -> Result<Compression, String> {
    match (text, text.parse()) {
        ("masked", _) => Ok(Compression::CrimeSafe),
        (_, Ok(level @ 0..=9)) => Ok(Compression::Zlib(level)),
        _ => Err("want masked, or a level from 0 to 9".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_compression_is_masked_or_a_level() {
        assert_eq!(parse_compression("masked"), Ok(Compression::CrimeSafe));
        assert_eq!(parse_compression("0"), Ok(Compression::Zlib(0)));
        assert!(parse_compression("10").is_err());
    }
}
