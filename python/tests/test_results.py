"""Reading results: types, factors, and the formats of a store."""

import io
import sqlite3
import subprocess

import pandas as pd
import pytest

import spdy_lab
from spdy_lab.results import REPEATED, conditions, levels_of, typed


def test_factors_are_ordered_categories_as_the_plan_has_them(results):
    assert list(results)[:4] == ["page", "protocol", "network", "loss"]
    assert len(results) == 8 * 6
    for name, levels in {
        "page": ["lulic-bing", "mineki"],
        "protocol": ["http", "spdy"],
        "network": ["cable"],
        "loss": ["0", "2%"],
    }.items():
        column = results[name]
        assert list(column.cat.categories) == levels and column.cat.ordered, name
    assert conditions(results, without=["page"]) == "protocol http, spdy; network cable; loss 0, 2%"


def test_each_column_of_a_store_has_the_type_that_the_store_declares(store, results):
    with sqlite3.connect(store.location) as connection:
        columns = connection.execute("SELECT name, type FROM pragma_table_info('results')").fetchall()
    connection.close()
    kinds = {"INTEGER": "iub", "INT": "iub", "REAL": "f", "FLOAT": "f"}
    renamed = {"page": "page_sha256", "network": "network_settings"}
    for name, declared in columns:
        if name not in REPEATED:
            dtype = results[renamed.get(name, name)].dtype
            if declared == "TEXT":
                assert isinstance(dtype, (pd.CategoricalDtype, pd.StringDtype)), name
            else:
                assert dtype.kind in kinds[declared], f"{name} is {dtype}"
    assert results["fold"].dtype == bool and not results["fold"].any()
    assert results["load_ms"].dtype == float and results["load_ms"].between(1, 100_000).all()
    assert results["failures"].isna().all()


def test_a_csv_file_reads_as_the_store_does(store, results, spdy, tmp_path):
    for suffix in ["csv", "parquet"]:
        file = tmp_path / f"small.{suffix}"
        subprocess.run([spdy, "--quiet", "lab", "export", store.location, f"--{suffix}", file], check=True)
        if suffix == "csv":
            assert results.equals(spdy_lab.read(file))
        else:
            # The tests do not install pyarrow, which says what to install.
            with pytest.raises(ImportError, match="pyarrow"):
                spdy_lab.read(file)


def test_texts_are_not_taken_for_missing_values_or_numbers():
    csv = (
        "id,bw,cell,run,connections,connections_per_host,load_ms,seed,fold,failures\n"
        '2,100,"page=NA,protocol=http,bw=100,connections=6",1,7,6,2.5,,,"a\nb"\n'
        '1,nan,"page=a%2Cb,protocol=spdy,bw=nan,connections=6",1,1,6,2,12,1,\n'
    )
    from spdy_lab.results import _read_csv

    table = typed(_read_csv(io.StringIO(csv)))
    assert list(table["page"]) == ["a,b", "NA"] and list(table["bw"]) == ["nan", "100"]
    # The factor `connections` is `connections_per_host`.
    assert list(table["connections"]) == [1, 7] and list(table["connections_per_host"]) == [6, 6]
    assert table["seed"].dtype == "Int64" and table["fold"].dtype == "boolean"
    assert pd.isna(table["failures"][0]) and table["failures"][1] == "a\nb"
    assert levels_of("page=p,loss=1%25,network=down=1mbit%2Crtt=5ms")["network"] == "down=1mbit,rtt=5ms"


def test_a_table_without_the_columns_of_a_store_is_an_error(tmp_path):
    (tmp_path / "other.csv").write_text("id,time\n1,2\n")
    with pytest.raises(ValueError, match="expected the columns of a store, found none named cell, run, load_ms"):
        spdy_lab.read(tmp_path / "other.csv")


def test_an_import_of_lulics_table_has_his_factors(tmp_path, spdy):
    results = tmp_path / "results.db"
    columns = "id INTEGER PRIMARY KEY, bw TEXT, delay TEXT, method TEXT, site TEXT, onContentLoad INT, onLoad INT, tow FLOAT, run INT"
    with sqlite3.connect(results) as connection:
        connection.execute(f"CREATE TABLE results({columns})")
        for id, (method, load) in enumerate([("http", 1000), ("http", 3000), ("spdy", 500), ("spdy", 700)]):
            row = (id + 1, "100", "10", method, "flags", 90, load, 1.5, 1 + id % 2)
            connection.execute("INSERT INTO results VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
    connection.close()
    store = tmp_path / "lulic.db"
    subprocess.run([spdy, "--quiet", "lab", "import", results, "--store", store], check=True)
    loads = spdy_lab.read(store)
    assert list(loads)[:4] == ["page", "protocol", "bw", "delay"]
    ratio = spdy_lab.compare(loads, "protocol", "http").iloc[0]
    # Without seeds, runs are not paired: 600 to 2000.
    assert (ratio["ratio"], ratio["paired"], ratio["runs"]) == (0.3, False, 2)


def test_loads_of_a_race_have_the_same_names():
    loads = spdy_lab.race("lulic-bing", ["dsl", "down=2mbit,up=1mbit,rtt=20ms"], ["http", "spdy"], options={"tls": "1.2"})
    assert len(loads) == 4
    assert list(loads["network"].cat.categories) == ["dsl", "down=2mbit,up=1mbit,rtt=20ms"]
    assert list(loads["protocol"][:2]) == ["http", "spdy"] and set(loads["page"]) == {"lulic-bing"}
    assert loads["load_ms"].dtype == float and loads["connections"].dtype == "int64"
    with pytest.raises(spdy_lab.ProgramError, match="spdy race failed with exit code 2: .*nowhere"):
        spdy_lab.race("lulic-bing", "nowhere")
