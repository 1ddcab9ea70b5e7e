//! Checks paths of files that a command writes.

use std::path::Path;

use crate::outcome::Usage;

/// Rejects an `output` that is also the `input`, which it would overwrite.
pub(crate) fn check_output_differs(input: &Path, output: &Path) -> anyhow::Result<()> {
    let same = match (input.canonicalize(), output.canonicalize()) {
        (Ok(input), Ok(output)) => input == output,
        _ => false, // does not exist yet, or no file: a shipped name
    };
    if same {
        let (input, output) = (input.display(), output.display());
        return Err(Usage(format!(
            "{output} is also the input ({input}): use another file"
        ))
        .into());
    }
    Ok(())
}

/// A name for the files of a load.
pub(crate) fn run_name(page: &str, protocol: &str, network: &str, number: u64) -> String {
    let is_odd = |c: char| !(c.is_ascii_alphanumeric() || ".,=".contains(c));
    let [page, network] = [page, network].map(|name| name.replace(is_odd, "-"));
    format!("{page}-{protocol}-{network}-{number}")
}
