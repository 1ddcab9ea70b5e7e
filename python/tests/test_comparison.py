"""Comparisons, which equal those of the program."""

import json
import shutil
import sqlite3
import subprocess

import numpy as np
import pandas as pd
import pytest
from conftest import SMALL

import spdy_lab
from spdy_lab import resampling


def compared_by_program(spdy, before, after, measure):
    command = [spdy, "lab", "compare", before, after, "--measure", measure, "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def compared_here(before, after, measure):
    stores = [spdy_lab.read(store).assign(store=name) for store, name in [(before, "before"), (after, "after")]]
    return spdy_lab.compare(pd.concat(stores, ignore_index=True), "store", "before", measure)


@pytest.fixture(scope="module")
def other(store, tmp_path_factory):
    """A store with the same cells and seeds, in which loads take longer, each by another part; and one with other seeds."""
    folder = tmp_path_factory.mktemp("other")
    slower = shutil.copy(store.location, folder / "slower.db")
    with sqlite3.connect(slower) as connection:
        connection.execute("UPDATE results SET load_ms = load_ms * (1 + id % 11 / 40.0), bytes_down = bytes_down + id")
    connection.close()
    reseeded = spdy_lab.run(SMALL | {"seed": 8, "runs": 4}, folder=folder, store=folder / "seed.db", progress=False)
    return slower, reseeded.location


@pytest.mark.parametrize(
    ("measure", "paired"),
    [(measure, True) for measure in ("load", "dcl", "tow", "bytes", "packets", "connections")] + [("load", False), ("bytes", False)],
)
def test_ratios_and_intervals_equal_those_of_the_program(store, other, spdy, measure, paired):
    after = other[0 if paired else 1]
    expected = compared_by_program(spdy, store.location, after, measure)
    ratios = compared_here(store.location, after, measure)
    assert len(ratios) == len(expected["cells"]) == 8
    for cell, (_, row) in zip(expected["cells"], ratios.iterrows(), strict=True):
        assert cell["paired"] == row["paired"] == paired
        assert cell["runs"] == [row["baseline_runs"], row["runs"]]
        assert (cell["before"], cell["after"]) == (row["baseline"], row["value"])
        found = {name: row[column] for name, column in [("value", "ratio"), ("low", "low"), ("high", "high")]}
        assert found == pytest.approx(cell["ratio"], rel=1e-14), cell["cell"]
    overall = spdy_lab.geometric_mean(ratios).iloc[0]
    found = {name: overall[column] for name, column in [("value", "ratio"), ("low", "low"), ("high", "high")]}
    assert found == pytest.approx(expected["overall"], rel=1e-12)


def test_protocols_are_paired_and_losses_are_not(results):
    by_protocol = spdy_lab.compare(results, "protocol", "http")
    assert list(by_protocol)[:4] == ["page", "network", "loss", "protocol"]
    assert len(by_protocol) == 4 and by_protocol["paired"].all()
    pairs = results.query("page == 'mineki' and loss == '2%'").pivot(index="seed", columns="protocol", values="load_ms")
    row = by_protocol.query("page == 'mineki' and loss == '2%'").iloc[0]
    assert row["ratio"] == (pairs["spdy"] / pairs["http"]).median()
    assert row["low"] < row["ratio"] < row["high"]
    by_loss = spdy_lab.compare(results, "loss", 0)
    assert len(by_loss) == 4 and not by_loss["paired"].any() and set(by_loss["loss"]) == {"2%"}


def test_means_keep_the_order_of_levels_and_do_not_mix_comparisons(results):
    ratios = spdy_lab.compare(results, "protocol", "http")
    means = spdy_lab.geometric_mean(ratios, by="loss")
    assert list(means["loss"]) == ["0", "2%"] and list(means["cells"]) == [2, 2]
    logs = np.log(ratios.query("loss == '0'")["ratio"])
    assert means["ratio"][0] == pytest.approx(np.exp(logs.mean()), rel=1e-12)
    two = spdy_lab.compare(results.assign(copy=results["run"] % 3), "copy", 0)
    with pytest.raises(ValueError, match=r"several levels of copy \(1, 2\)"):
        spdy_lab.geometric_mean(two)


def test_runs_that_do_not_count_and_missing_values_are_left_out(results):
    rows = results.query("page == 'mineki'").copy()
    rows.loc[rows["run"] > 2, "invalid"] = "the link was late"
    assert set(spdy_lab.compare(rows, "protocol", "http")["runs"]) == {2}
    rows.loc[rows["loss"] == "0", "load_ms"] = np.nan
    rows.loc[rows.index[-1], "failures"] = "one exchange"
    ratios = spdy_lab.compare(rows, "protocol", "http")
    assert list(ratios["loss"]) == ["2%"]
    assert spdy_lab.compare(results, "protocol", "http", "requests")["ratio"].between(0.9, 1.2).all()


def test_unknown_names_are_errors_that_list_what_is_expected(results):
    for arguments, expected in [
        (("lost", "0"), "unknown factor 'lost': expected page, protocol, network, loss, or a column"),
        (("loss", "1%"), "no level '1%' of loss: expected one of 0, 2%"),
        (("protocol", "http", "speed"), "unknown measure 'speed': expected load, dcl, tow,"),
    ]:
        with pytest.raises(ValueError, match=expected):
            spdy_lab.compare(results, *arguments)
    with pytest.raises(ValueError, match="run 1 of the cell page=.* occurs more than once"):
        spdy_lab.compare(pd.concat([results, results]), "protocol", "http")


def test_a_biased_value_takes_one_more_word(monkeypatch):
    # Canon's method of `rand` for the range 3: 0x5555_5555 * 3 ends with 0xffff_ffff, which is biased.
    stream = np.array([0x5555_5555, 0xFFFF_FFFF, 0x8000_0000, 0x5555_5555, 0, 0xFFFF_FFFF], dtype=np.uint64)
    monkeypatch.setattr(resampling, "_words", lambda position, count: np.resize(stream[position:], count))
    drawn, position = resampling._uniform(np.array([3, 3, 3, 3], dtype=np.uint64), 0)
    assert (list(drawn), position) == ([1, 1, 0, 2], 6)
