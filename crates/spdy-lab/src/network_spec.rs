//! Networks as text, with the trace files that the text names.

use std::fs::File;
use std::io::{self, Read as _};

use spdy_netem::profile::{Profile, ProfileError};
use spdy_netem::trace::Trace;

/// Maximum length of a trace file: the maximum number of lines with the longest times.
const MAX_TRACE_BYTES: u64 = 128 * 1024 * 1024;

/// The network that `spec` names or describes. A trace file of it is relative to the working directory.
///
/// # Errors
///
/// An unknown name or setting, or a trace file that cannot be read or is not a trace.
pub fn parse_network(spec: &str) -> Result<Profile, ProfileError> {
    Profile::parse(spec, &read_trace)
}

fn read_trace(file: &str) -> Result<Trace, String> {
    let text = read_text(file).map_err(|error| format!("cannot read the file: {error}"))?;
    Trace::parse(file, &text).map_err(|error| error.to_string())
}

fn read_text(file: &str) -> io::Result<String> {
    let mut text = String::new();
    let mut limited = File::open(file)?.take(MAX_TRACE_BYTES + 1);
    limited.read_to_string(&mut text)?;
    if text.len() as u64 > MAX_TRACE_BYTES {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::experiment::factor::Factor;

    /// The text may come from a store, and a store must not decide which files are read.
    #[test]
    fn the_network_of_an_experiment_reads_no_file() {
        let error = Factor::Network
            .check("lte,down=trace:/dev/zero")
            .unwrap_err();
        let expected = "trace:/dev/zero: expected a rate: no file is read here";
        assert!(error.contains(expected), "{error}");
        assert_eq!(Factor::Network.check("lte,queue=codel"), Ok(()));
    }

    #[test]
    fn a_trace_is_read_from_its_file_and_errors_name_file_and_line() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).expect("the folder is writable");
            path.to_str().expect("its name is UTF-8").to_owned()
        };
        let good = file("good.down", "0\n10\n");
        let spec = format!("down=trace:{good},up=1mbit,rtt=40ms");
        let network = parse_network(&spec).expect("the trace is valid");
        assert_eq!(network.path.down.mean_bps(), 2 * 1_504 * 8 * 100);
        assert_eq!(network.to_string(), spec);

        let bad = file("bad.down", "0\nten\n");
        let error = parse_network(&format!("lte,down=trace:{bad}")).unwrap_err();
        let expected = format!("trace:{bad}: line 2: found \"ten\", expected a time");
        assert!(error.to_string().contains(&expected), "{error}");

        let absent = format!("{good}.absent");
        let error = parse_network(&format!("lte,up=trace:{absent}")).unwrap_err();
        let expected = format!("trace:{absent}: cannot read the file: No such file");
        assert!(error.to_string().contains(&expected), "{error}");
    }
}
