//! How SPDY's header blocks are written: options of every command that writes some.

use http::HeaderName;
use spdy_frame::compress::Compression;
use spdy_frame::secrets::Secrets;

use crate::commands::Usage;

/// What else is secret, and how much is remembered.
#[derive(Debug, clap::Args)]
pub(crate) struct BlockArgs {
    /// A header whose values are secrets too, as those of cookie and authorization are: SPDY's compression matches them whole or not at all. May be given several times; names of the first line, such as :path, count
    #[arg(long = "secret-header", value_name = "NAME", value_parser = parse_name)]
    secret_headers: Vec<String>,

    /// How far back SPDY's header compression looks, as a power of two: 11 (2 KiB a session) to 15 (32 KiB) [default: 13, or 15 for a level of zlib]
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u8).range(11..=15))]
    pub(crate) header_window: Option<u8>,
}

/// How blocks are compressed, and what in them is secret.
#[derive(Debug, clap::Args)]
pub(crate) struct HeaderArgs {
    /// How SPDY compresses headers: masked (a secret matches the whole of itself or nothing), or a level of plain zlib, 0 to 9
    #[arg(long, value_name = "HOW", default_value = "masked", value_parser = parse_compression)]
    pub(crate) compression: Compression,

    #[command(flatten)]
    pub(crate) blocks: BlockArgs,
}

impl HeaderArgs {
    /// What is secret.
    pub(crate) fn secrets(&self) -> Result<Secrets, Usage> {
        self.blocks.secrets(self.compression)
    }
}

impl BlockArgs {
    /// What is secret in blocks that are compressed so. Plain zlib knows no secrets: it is not asked to keep some.
    pub(crate) fn secrets(&self, compression: Compression) -> Result<Secrets, Usage> {
        if let (Compression::Zlib(level), [name, ..]) = (compression, &self.secret_headers[..]) {
            let why =
                format!("zlib at level {level} keeps no secret: {name} wants --compression masked");
            return Err(Usage(why));
        }
        Ok(Secrets::default().and(self.secret_headers.iter().cloned()))
    }
}

/// Reads `masked` or a level.
pub(crate) fn parse_compression(text: &str) -> Result<Compression, String> {
    match (text, text.parse()) {
        ("masked", _) => Ok(Compression::Masked),
        (_, Ok(level @ 0..=9)) => Ok(Compression::Zlib(level)),
        _ => Err("want masked, or a level from 0 to 9".to_owned()),
    }
}

fn parse_name(text: &str) -> Result<String, String> {
    let name = text.strip_prefix(':').unwrap_or(text);
    match name.parse::<HeaderName>() {
        Ok(_) => Ok(text.to_ascii_lowercase()),
        Err(_) => Err(format!("{text:?} is no header name")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_compression_is_masked_or_a_level() {
        assert_eq!(parse_compression("masked"), Ok(Compression::Masked));
        assert_eq!(parse_compression("0"), Ok(Compression::Zlib(0)));
        assert!(parse_compression("10").is_err());
    }

    #[test]
    fn a_secret_header_is_one_more_and_plain_zlib_keeps_none() {
        let names = ["X-Token", ":path"].map(|name| parse_name(name).expect("a name"));
        let args = BlockArgs {
            secret_headers: names.to_vec(),
            header_window: None,
        };
        let secrets = args.secrets(Compression::Masked).expect("they are kept");
        let all: Vec<_> = secrets.names().collect();
        assert!(all.ends_with(&["x-token", ":path"]), "{all:?}");
        assert!(all.contains(&"cookie"), "{all:?}");
        assert!(args.secrets(Compression::Zlib(9)).is_err());
        for text in ["", ":", "a b", "a:"] {
            assert!(parse_name(text).is_err(), "{text:?}");
        }
    }
}
