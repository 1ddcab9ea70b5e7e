"""Reads results: stores, and the CSV and Parquet files that ``spdy lab export`` writes."""

import io
import os
import pathlib
from urllib.parse import unquote

import numpy as np
import pandas as pd

from spdy_lab import program
from spdy_lab.experiment import Store

#: Columns of text. All others are numbers.
TEXTS = (
    "bw delay method site cell plan program page network queue tcp tls dns compression deploy cache accelerator scheduler failures "
    "clock congestion invalid rejected"
).split()
#: Columns of booleans, stored as 1 and 0.
BOOLEANS = "tls_resumption ip_pooling fold priorities hints prefetch ml_kem".split()
#: Texts that are different in each load, or almost: they remain text.
NOTES = ("failures", "invalid", "rejected")
#: Numbers that are not whole, apart from times (``_ms``) and what a link in real time achieved.
FRACTIONS = ("loss_down", "loss_up", "think")
#: Columns that repeat others in the units of Lulic's table.
REPEATED = ("method", "site", "onContentLoad", "onLoad", "tow")
#: Columns of the store that are renamed, because the name is that of a factor as the plan has it.
RENAMED = {"page": "page_sha256", "network": "network_settings"}
#: The factor `connections` is the column `connections_per_host`: `connections` counts the connections of a load.
COUNTED = "connections"


def read(store, *, spdy=None):
    """Return the loads of a store as a `pandas.DataFrame`, one a row.

    ``store`` is what `run` returned, the path of a store, a ``postgres://`` URL, or a ``.csv`` or ``.parquet`` file that ``spdy lab
    export`` wrote. Parquet needs pyarrow.

    First come `page`, `protocol` and the factors of the plan: ordered categories, with the levels as the plan has them, in its order.
    Times are floats in milliseconds (`load_ms`), numbers are integers, options that are on or off are booleans.
    """
    if isinstance(store, Store):
        store, spdy = store.location, spdy or store.spdy
    location = os.fspath(store)
    suffix = pathlib.PurePath(location).suffix.lower()
    if suffix == ".parquet":
        return typed(pd.read_parquet(location))
    if suffix == ".csv":
        return typed(_read_csv(location))
    words = ["lab", "export", "--csv", "-", "--", location]
    code, stdout, stderr = program.output_of(program.find(spdy), words)
    if code != 0:
        raise program.ProgramError("lab export", code, stderr)
    return typed(_read_csv(io.BytesIO(stdout)))


def _read_csv(source):
    # Only an empty field is a missing value: a page may be named "NA".
    return pd.read_csv(source, dtype=dict.fromkeys(TEXTS, str), keep_default_na=False, na_values=[""], encoding="utf-8")


def typed(table):
    """Return the columns of a store's table with their types, and the factors of its cells."""
    missing = [name for name in ("id", "cell", "run", "load_ms") if name not in table]
    if missing:
        raise ValueError(f"expected the columns of a store, found none named {', '.join(missing)}")
    table = table.sort_values("id", kind="stable", ignore_index=True)
    columns = {name: _typed_column(name, table[name]) for name in table if name not in REPEATED}
    columns = {RENAMED.get(name, name): column for name, column in columns.items()}
    factors = factor_columns(table["cell"])
    factors.pop(COUNTED, None)
    return pd.DataFrame({**factors, **{name: column for name, column in columns.items() if name not in factors}})


def _typed_column(name, column):
    if name in NOTES:
        return column.astype("string")
    if name in TEXTS or not pd.api.types.is_numeric_dtype(column.dtype):
        return column.astype("category")
    if name in BOOLEANS:
        return column.astype("boolean" if column.hasnans else bool)
    if name.endswith("_ms") or name.startswith("achieved_") or name in FRACTIONS:
        return column.astype(float)
    return column.astype("Int64" if column.hasnans else "int64")


def levels_of(key):
    """Return the levels of a cell's key by factor: ``page=portal,protocol=spdy,loss=1%25`` has the loss ``1%``."""
    pairs = (part.partition("=") for part in key.split(","))
    return {name: unquote(level) for name, _, level in pairs}


def factor_columns(cells):
    """Return a column for each factor of a series of keys: categories in the order in which they first occur."""
    codes, keys = pd.factorize(cells)
    levels = [levels_of(key) for key in keys]
    names = dict.fromkeys(name for cell in levels for name in cell)
    columns = {}
    for name in names:
        of_keys = np.array([cell.get(name) for cell in levels], dtype=object)
        values = pd.Series(of_keys[codes], index=cells.index, dtype=object)
        columns[name] = ordered(values)
    return columns


def ordered(values):
    """Return a series as ordered categories, in the order in which they first occur."""
    return values.astype(pd.CategoricalDtype(values.dropna().unique(), ordered=True))


def conditions(table, without=()):
    """Describe the conditions of a table's rows: its factors and their levels, except for those that the reader sees elsewhere."""
    parts = []
    for name in factor_names(table):
        if name not in without:
            levels = table[name].cat.remove_unused_categories().cat.categories
            parts.append(f"{name} {_list(levels)}")
    return "; ".join(parts)


def _list(levels):
    levels = [str(level) for level in levels]
    if len(levels) > 6:
        levels = [*levels[:2], "…", levels[-1], f"({len(levels)} levels)"]
    return ", ".join(levels)


def factor_names(table):
    """Names of the columns of factors: ordered categories."""
    return [name for name in table if getattr(table[name].dtype, "ordered", False)]


def source(table):
    """Describe what made the loads: the program and its model."""
    programs = [f"spdy {version}" for version in _present(table, "program")]
    return ", ".join(programs + [f"model {number}" for number in _present(table, "model")])


def _present(table, name):
    return table[name].dropna().unique() if name in table else []
