"""Finds the program ``spdy``, checks its version, and runs its commands."""

import functools
import os
import shutil
import subprocess

#: Major and minor version of the programs whose command line and stores this package knows.
SUPPORTED = "0.1"


class ProgramError(Exception):
    """A command of ``spdy`` failed. ``code`` is its exit code, and ``stderr`` what it printed there."""

    def __init__(self, command, code, stderr):
        self.code = code
        self.stderr = stderr.strip()
        super().__init__(f"spdy {command} failed with exit code {code}: {self.stderr or 'no message on stderr'}")


class ProgramNotFoundError(Exception):
    """The program ``spdy`` does not exist, or cannot be run."""


class VersionError(Exception):
    """The program is not ``spdy``, or has a version that this package does not know."""


def find(spdy=None):
    """Return the path of the program: ``spdy`` if given, else the variable ``SPDY``, else ``spdy`` in ``PATH``."""
    name, source = (spdy, "the argument spdy") if spdy else (os.environ.get("SPDY"), "the variable SPDY")
    if not name:
        name, source = "spdy", "PATH"
    path = shutil.which(os.fspath(name))
    if path is None:
        raise ProgramNotFoundError(
            f"no program {str(name)!r} (from {source}): put spdy into PATH, or its path into the variable SPDY or the argument spdy"
        )
    path = os.path.abspath(path)
    check_version(path)
    return path


@functools.lru_cache
def check_version(path):
    """Raise `VersionError` unless the program has a supported version."""
    try:
        output = subprocess.run(
            [path, "--version"], stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace"
        )
    except OSError as error:
        raise ProgramNotFoundError(f"cannot run {path}: {error.strerror}") from error
    name, _, version = output.stdout.strip().partition(" ")
    if name != "spdy" or not f"{version}.".startswith(f"{SUPPORTED}."):
        found = output.stdout.strip() or output.stderr.strip() or "no output"
        raise VersionError(f"{path} --version: expected spdy {SUPPORTED}, found {found[:200]!r}")


def start(path, words):
    """Start a command whose output is piped."""
    return subprocess.Popen(
        [path, "--color", "never", *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Ctrl-C in a terminal signals the whole process group; the caller decides when the program gets it.
        start_new_session=True,
    )


def output_of(path, words):
    """Run a command to its end, and return its exit code, its stdout as bytes, and its stderr."""
    with start(path, words) as process:
        try:
            stdout, stderr = process.communicate()
        except BaseException:
            process.kill()
            raise
    return process.returncode, stdout, text(stderr)


def text(output):
    """Output of the program as text."""
    return output.decode("utf-8", "replace")
