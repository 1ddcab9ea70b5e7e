//! The end of every `--help`: examples and exit codes.

/// Examples, a line each and indented by two, followed by the exit codes that all commands share.
macro_rules! examples {
    ($($line:literal)+) => {
        concat!(
            "Examples:\n",
            $("  ", $line, "\n",)+
            "\nExit codes:\n",
            "  0  done\n",
            "  1  failed: the reason is on stderr or in the results\n",
            "  2  usage: invalid command line or settings file, or a file that does not exist",
        )
    };
}
pub(crate) use examples;
