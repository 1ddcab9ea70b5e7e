"""Races: page loads over named networks, without a store."""

import json
import os
import warnings

import pandas as pd

from spdy_lab import program
from spdy_lab.experiment import IncompleteLoadsWarning
from spdy_lab.results import ordered


def race(pages=None, networks=None, protocols=None, *, runs=1, seed=1, options=None, spdy=None):
    """Load every page over every network by every protocol, and return the loads as a `pandas.DataFrame`.

    Defaults are those of ``spdy race``. Pages are shipped names, or replicas, ``.har`` or ``.warc`` files; networks are names, or
    settings such as ``"down=2mbit,up=384kbit,rtt=100ms"``. ``options`` has factors and their levels: ``{"tls": "1.2"}``.
    """
    words = ["race", "--json", "--runs", str(runs), "--seed", str(seed)]
    for network in _listed(networks):
        words += ["--network", network]
    if protocols is not None:
        words += ["--protocols", ",".join(_listed(protocols))]
    for factor, level in (options or {}).items():
        words += ["--set", f"{factor}={level}"]
    words += ["--", *_listed(pages)]
    code, stdout, stderr = program.output_of(program.find(spdy), words)
    loads = pd.DataFrame([json.loads(line) for line in program.text(stdout).splitlines()])
    # With exit code 1, some loads are incomplete, and all are printed.
    if code not in (0, 1) or loads.empty:
        raise program.ProgramError("race", code, stderr)
    loads = loads.rename(columns={"replica": "page"})
    for name in ("page", "protocol", "network"):
        loads[name] = ordered(loads[name])
    loads["failures"] = loads["failures"].map(lambda failures: "\n".join(map(_line, failures)) or None).astype("string")
    incomplete = int(loads["failures"].notna().sum())
    if incomplete:
        message = f"{incomplete} loads are incomplete: see the column failures"
        warnings.warn(message, IncompleteLoadsWarning, stacklevel=2)
    return loads


def _line(failure):
    return failure if isinstance(failure, str) else json.dumps(failure)


def _listed(values):
    if values is None:
        return []
    values = [values] if isinstance(values, (str, os.PathLike)) else values
    return [os.fspath(value) for value in values]
