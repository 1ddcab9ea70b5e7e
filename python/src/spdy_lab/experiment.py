"""Runs experiments."""

import contextlib
import dataclasses
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import tomllib
import warnings

from spdy_lab import program

#: First line of the experiment files that `run` writes, and may write again.
WRITTEN = "# Written by spdy_lab.run."
#: Seconds between two looks at the store for the progress.
LOOK_EVERY_S = 1.0


class IncompleteLoadsWarning(UserWarning):
    """Some loads did not get all of their page, or their link was never as requested: see `failures` and `invalid`."""


@dataclasses.dataclass(frozen=True)
class Store:
    """Results of an experiment: a file, or a schema of PostgreSQL named by a URL."""

    location: str
    #: Path of the program that wrote it.
    spdy: str | None = dataclasses.field(default=None, repr=False)

    def read(self):
        """Return the loads as a `pandas.DataFrame`: `spdy_lab.read`."""
        from spdy_lab.results import read

        return read(self)


def run(
    experiment=None,
    *,
    name=None,
    seed=None,
    runs=None,
    pages=None,
    protocols=None,
    factors=None,
    folder=".",
    store=None,
    jobs=None,
    progress=True,
    spdy=None,
):
    """Run an experiment, and return its store. Loads that the store already has are not repeated.

    The experiment is a dict with the keys of an experiment file, the text of such a file, its path, or the name of a shipped
    experiment (``"lulic"``). Without it, the keys are arguments: ``run(name="loss", pages=["portal"], factors={"network": "cable",
    "loss": ["0", "1%"]})``. A dict, a text and arguments are written to ``NAME.toml`` in ``folder``, which is also where relative
    pages are.

    ``store`` is a path or a ``postgres://`` URL; the default is ``NAME.db`` in ``folder``. ``jobs`` is the number of threads.

    Raises `ProgramError` with the program's message if the experiment is invalid or cannot be run.
    """
    keys = dict(name=name, seed=seed, runs=runs, pages=pages, protocols=protocols, factors=factors)
    keys = {key: value for key, value in keys.items() if value is not None}
    if experiment is not None and keys:
        raise TypeError(f"expected an experiment or its keys, found both: {', '.join(keys)}")
    path = program.find(spdy)
    folder = pathlib.Path(folder)
    file, name = _file(keys if experiment is None else experiment, folder)
    location = str(folder / f"{name}.db") if store is None else os.fspath(store)
    words = ["lab", "run", "--json", "--store", location]
    if jobs is not None:
        words += ["--jobs", str(jobs)]
    _load(path, [*words, "--", file], name, location, progress)
    return Store(location, path)


def _file(experiment, folder):
    """The file or shipped name that the program gets, and the experiment's name."""
    if isinstance(experiment, str) and ("\n" in experiment or "=" in experiment):
        text = experiment
    elif isinstance(experiment, (str, os.PathLike)):
        file = pathlib.Path(experiment)
        if not file.is_file():
            return os.fspath(experiment), file.stem
        return str(file), _name(file.read_text(encoding="utf-8"), file.stem)
    else:
        text = to_toml(experiment)
    name = _name(text, None)
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9._-]+", name):
        raise ValueError(f"expected a name of letters, digits, '-', '_' and '.' for the experiment, found {name!r}")
    file = folder / f"{name}.toml"
    if file.exists() and not file.read_text(encoding="utf-8").startswith(WRITTEN):
        raise FileExistsError(f"{file} was not written by spdy_lab.run: give its path to run it, or use another name")
    file.write_text(f"{WRITTEN}\n{text}", encoding="utf-8")
    return str(file), name


def _name(text, default):
    # The program reports what is wrong with a text, with its line.
    with contextlib.suppress(tomllib.TOMLDecodeError):
        return tomllib.loads(text).get("name", default)
    found = re.search(r"^name\s*=\s*[\"']([^\"']+)", text, re.MULTILINE)
    return found[1] if found else default


def to_toml(experiment):
    """Return the text of the experiment file with these keys."""
    keys = dict(experiment)
    factors = keys.pop("factors", {})
    lines = [f"{key} = {_value(value)}" for key, value in keys.items()]
    lines += ["", "[factors]", *(f"{_key(name)} = {_value(levels)}" for name, levels in factors.items())]
    return "\n".join(lines) + "\n"


def _key(name):
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)


def _value(value):
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    if hasattr(value, "tolist"):  # NumPy and pandas
        return _value(value.tolist())
    if isinstance(value, (list, tuple, range)):
        return f"[{', '.join(map(_value, value))}]"
    raise TypeError(f"expected text, a number, a boolean or a list of them in an experiment, found {value!r}")


def _load(path, words, name, location, progress):
    process = program.start(path, words)
    ended = threading.Event()
    if progress:
        thread = threading.Thread(target=_show_progress, args=(name, location, ended), daemon=True)
        thread.start()
    try:
        stdout, stderr = process.communicate()
    except KeyboardInterrupt:
        # The first signal ends the run in order: complete cells are stored.
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=60)
        process.kill()
        raise
    finally:
        ended.set()
        if progress:
            thread.join()
    stderr = program.text(stderr)
    cells = [json.loads(line) for line in program.text(stdout).splitlines()]
    incomplete, invalid = (sum(cell[key] for cell in cells) for key in ("failed", "invalid"))
    # The program prints the cells once all are stored: an exit code of 1 is then about their loads.
    if process.returncode != 0 and not (process.returncode == 1 and incomplete + invalid > 0):
        raise program.ProgramError("lab run", process.returncode, stderr)
    if progress and stderr:
        print(stderr, end="", file=sys.stderr)
    if incomplete + invalid > 0:
        warnings.warn(
            f"{name}: {incomplete} loads are incomplete and {invalid} do not count: see the columns failures and invalid",
            IncompleteLoadsWarning,
            stacklevel=3,
        )


def _show_progress(name, location, ended):
    start, done, shown = time.monotonic(), "", False
    while not ended.wait(LOOK_EVERY_S):
        done = _stored(location) or done
        _print_progress(name, done, start, "")
        shown = True
    if shown:
        _print_progress(name, _stored(location) or done, start, "\n")


def _print_progress(name, done, start, end):
    print(f"\r{name}: {done}{time.monotonic() - start:.0f} s", end=end, file=sys.stderr, flush=True)


def _stored(location):
    """How many loads a file has; empty for PostgreSQL, and while the file does not exist or is locked."""
    with contextlib.suppress(sqlite3.Error, OSError):
        uri = f"{pathlib.Path(location).resolve(strict=True).as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=0)) as connection:
            (done,) = connection.execute("SELECT count(*) FROM results").fetchone()
            (all_loads,) = connection.execute("SELECT runs * cells FROM plan").fetchone()
            return f"{done} of {all_loads} loads, "
    return ""
