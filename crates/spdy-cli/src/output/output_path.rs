//! Checks paths of files that a command writes.

use std::fs::{self, OpenOptions};
use std::path::Path;

use anyhow::Context;

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

/// Checks that a file can be written, before the work whose result it will hold. An existing file keeps its content.
pub(crate) fn check_writable(path: &Path) -> anyhow::Result<()> {
    let is_new = !path.exists();
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    if is_new {
        fs::remove_file(path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    Ok(())
}
