"""Compares levels of a factor, with the statistics of ``spdy lab compare``."""

import numpy as np
import pandas as pd

from spdy_lab import resampling
from spdy_lab.experiment import Store
from spdy_lab.results import factor_columns, levels_of, ordered, read, source

#: Names of measures on the program's command line: the columns that they add up, a label, and its unit.
MEASURES = {
    "load": (["load_ms"], "load time", "ms"),
    "dcl": (["dom_content_loaded_ms"], "time to DOMContentLoaded", "ms"),
    "tow": (["time_on_wire_ms"], "time on the wire", "ms"),
    "bytes": (["bytes_up", "bytes_down"], "bytes on the wire", "B"),
    "packets": (["packets_up", "packets_down"], "packets", ""),
    "connections": (["connections"], "connections", ""),
}


def measured(results, measure):
    """Return the values of a measure: one of `MEASURES`, or a column of numbers."""
    columns = MEASURES[measure][0] if measure in MEASURES else [measure]
    for name in columns:
        if name not in results or not pd.api.types.is_numeric_dtype(results[name].dtype):
            expected = ", ".join(MEASURES)
            raise ValueError(f"unknown measure {measure!r}: expected {expected}, or a column of numbers")
    return results[columns].astype(float).sum(axis=1, skipna=False)


def label(measure):
    """Return a measure's label for an axis, and its unit."""
    if measure in MEASURES:
        return MEASURES[measure][1:]
    return measure.removesuffix("_ms").replace("_", " "), "ms" if measure.endswith("_ms") else ""


def compare(results, factor, baseline, measure="load"):
    """Return the ratio of each level of a factor to the level ``baseline``, for each combination of the other factors.

    ``results`` is a store, or its rows by `read`. ``factor`` is a factor of the plan, ``"protocol"``, ``"page"``, or a column that you
    added: to compare two stores, concatenate their rows with a column that has the store's name.

    Columns: the factors; `baseline` and `value`, the two medians; `ratio` with its 95 % interval, `low` to `high`; `paired`, `runs`
    and `baseline_runs`; `failed`, the number of incomplete loads in both.

    If the runs of both levels have the same seeds (as those of protocols have), they had the same random numbers. They are then paired,
    and the ratio is the median of the pairs' ratios. Otherwise it is the ratio of the medians. Intervals are by resampling
    (percentile bootstrap). Runs that do not count (`invalid`) are left out, and so are cells without a value or with a median of 0.
    """
    if isinstance(results, Store):
        results = read(results)
    values = measured(results, measure)
    table = pd.DataFrame(
        {
            "cell": results["cell"].astype(str),
            "run": results["run"],
            "seed": results["seed"],
            "value": values,
            "failed": results["failures"].notna(),
        }
    )
    keys = table["cell"].unique()
    levels = {key: levels_of(key) for key in keys}
    if any(factor in of_cell for of_cell in levels.values()):
        table["level"] = table["cell"].map({key: of_cell.get(factor) for key, of_cell in levels.items()})
        without = {key: _key_without(key, factor) for key in keys}
        table["condition"] = table["cell"].map(without)
    elif factor in results:
        table["level"], table["condition"] = results[factor].astype(str), table["cell"]
    else:
        names = dict.fromkeys(name for of_cell in levels.values() for name in of_cell)
        raise ValueError(f"unknown factor {factor!r}: expected {', '.join(names)}, or a column of the results")
    baseline = str(baseline)
    known = list(table["level"].dropna().unique())
    if baseline not in known:
        raise ValueError(f"no level {baseline!r} of {factor}: expected one of {', '.join(known)}")
    table = table[results["invalid"].isna()].sort_values("run", kind="stable")
    repeated = table.duplicated(["condition", "level", "run"])
    if repeated.any():
        row = table[repeated].iloc[0]
        raise ValueError(
            f"run {row['run']} of the cell {row['cell']} occurs more than once: compare stores by a column with their names"
        )
    rows = list(_ratios(table, known, baseline))
    columns = ["condition", "level", "baseline", "value", "ratio", "low", "high", "paired", "runs", "baseline_runs", "failed"]
    ratios = pd.DataFrame(rows, columns=columns)
    factors = factor_columns(ratios.pop("condition"))
    factors[factor] = ordered(ratios.pop("level").astype(object))
    ratios = pd.DataFrame({**factors, **ratios})
    ratios.attrs = {"measure": measure, "factor": factor, "baseline": baseline, "source": source(results)}
    return ratios


def _key_without(key, factor):
    return ",".join(part for part in key.split(",") if part.partition("=")[0] != factor)


def _ratios(table, levels, baseline):
    for condition, rows in table.groupby("condition", sort=False):
        groups = {level: group for level, group in rows.groupby("level", sort=False)}
        base = groups.get(baseline)
        for level in levels:
            if base is None or level == baseline or level not in groups:
                continue
            other = groups[level]
            of_base, of_other = base["value"].to_numpy(), other["value"].to_numpy()
            paired = (
                len(base) == len(other)
                and base["seed"].notna().all()
                and np.array_equal(base["seed"], other["seed"])
                and np.array_equal(base["run"], other["run"])
            )
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio, low, high = _paired(of_base, of_other) if paired else _grouped(of_base, of_other)
            if np.isfinite(ratio):
                medians = np.median(of_base), np.median(of_other)
                failed = int(base["failed"].sum() + other["failed"].sum())
                yield condition, level, *medians, ratio, low, high, paired, len(other), len(base), failed


def _paired(base, other):
    ratios = other / base
    return np.median(ratios), *resampling.interval(ratios, lambda rows: np.median(rows, axis=1))


def _grouped(base, other):
    def ratio(a, b):
        return np.median(b, axis=-1) / np.median(a, axis=-1)

    return ratio(base, other), *resampling.interval_of_two(base, other, ratio)


def geometric_mean(ratios, by=()):
    """Return the geometric mean of the ratios of `compare` over cells, for each combination of the columns ``by``.

    The interval is by resampling cells: it states what other such cells would have changed, not how much runs differ. Without ``by``
    it is the overall ratio of ``spdy lab compare``, a single row. Ratios of several levels of the compared factor are not mixed: select
    one level, or add the factor to ``by``.
    """
    by = [by] if isinstance(by, str) else list(by)
    unknown = [name for name in by if name not in ratios]
    if unknown:
        raise ValueError(f"unknown column {unknown[0]!r}: expected one of {', '.join(ratios)}")
    check_one_comparison(ratios, by)
    groups = ratios.groupby(by, sort=True, observed=True) if by else [((), ratios)]
    rows = []
    for names, group in groups:
        logs = np.log(group["ratio"].to_numpy(dtype=float))
        if len(logs):
            low, high = resampling.interval(logs, lambda rows: np.exp(rows.mean(axis=1)))
            rows.append((*names, np.exp(logs.mean()), low, high, len(logs)))
    means = pd.DataFrame(rows, columns=[*by, "ratio", "low", "high", "cells"])
    for name in by:
        means[name] = means[name].astype(ratios[name].dtype)
    means.attrs = dict(ratios.attrs)
    return means


def check_one_comparison(ratios, by):
    """Raise `ValueError` if means over the columns that are not in ``by`` would mix several levels of the compared factor."""
    factor = ratios.attrs.get("factor")
    if factor in ratios and factor not in by and ratios[factor].nunique() > 1:
        levels = ", ".join(map(str, ratios[factor].unique()))
        raise ValueError(f"the ratios are of several levels of {factor} ({levels}): select one, or show {factor}")
