//! The parsers of network profiles (`spdy-netem/src/profile`), a line from the command line or a file, and of traces (`trace.rs`). The first
//! line of the input is a profile, the rest is the content of each trace that it names.
//!
//! - A printed profile parses to the same profile, and prints the same again.

use spdy_netem::profile::Profile;
use spdy_netem::trace::Trace;

use crate::memory;

/// Parses the input as a profile and prints it.
pub fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else {
        return;
    };
    let (line, content) = text.split_once('\n').unwrap_or((text, ""));
    let read_trace = |name: &str| Trace::parse(name, content).map_err(|error| error.to_string());
    memory::at_most(16 * 1024 + 64 * text.len(), || {
        let read = Profile::parse(line, &read_trace);
        let Ok(profile) = read else {
            // Every error has a message.
            assert!(!read.unwrap_err().to_string().is_empty());
            return;
        };
        for printed in [profile.to_string(), profile.settings()] {
            let back = match Profile::parse(&printed, &read_trace) {
                Ok(back) => back,
                Err(error) => panic!("{text:?} prints as {printed:?}, which is rejected: {error}"),
            };
            assert_eq!(back.path, profile.path, "{text:?} prints as {printed:?}");
            assert_eq!(back.tcp(), profile.tcp(), "{text:?} prints as {printed:?}");
            assert_eq!(back.settings(), profile.settings(), "{text:?}");
        }
    });
}
