"""Fixtures: the program of the variable ``SPDY``, and a small experiment that is run once."""

import os
import stat

import matplotlib
import pytest

import spdy_lab

matplotlib.use("agg")

#: 2 pages, 2 protocols and 2 losses, 6 runs of each; over a network without loss all runs are equal.
SMALL = {
    "name": "small",
    "seed": 7,
    "runs": 6,
    "pages": ["lulic-bing", "mineki"],
    "protocols": ["http", "spdy"],
    "factors": {"network": "cable", "loss": ["0", "2%"]},
}


@pytest.fixture(scope="session")
def spdy():
    """The path of the program under test."""
    return os.environ["SPDY"]


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """The store of `SMALL`."""
    return spdy_lab.run(SMALL, folder=tmp_path_factory.mktemp("small"), progress=False)


@pytest.fixture(scope="session")
def results(store):
    """The loads of `SMALL`."""
    return store.read()


@pytest.fixture
def script(tmp_path):
    """Writes a shell script that acts as the program, and returns its path."""

    def write(body):
        path = tmp_path / "spdy-script"
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    return write
