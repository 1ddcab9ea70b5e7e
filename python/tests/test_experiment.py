"""Running experiments, from a dict, a text, a file, or arguments."""

import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import textwrap
import tomllib

import numpy as np
import pytest

import spdy_lab
from spdy_lab.experiment import to_toml

ONE = {"name": "one", "pages": ["lulic-bing"], "protocols": ["spdy"], "factors": {"network": "dsl"}}


def test_a_dict_becomes_the_same_dict_as_toml():
    experiment = {
        "name": "loss",
        "seed": np.int64(2),
        "runs": 3,
        "pages": ["portal", 'a "b"\\ü.har'],
        "protocols": ("http", "spdy"),
        "factors": {"loss": ["0", "1%"], "initial_window": np.array([3, 10]), "hints": [True, False], "rtt": "20ms"},
    }
    read = tomllib.loads(to_toml(experiment))
    assert read == {
        **experiment,
        "protocols": ["http", "spdy"],
        "factors": {**experiment["factors"], "initial_window": [3, 10]},
    }
    with pytest.raises(TypeError, match="found None"):
        to_toml({"name": "a", "factors": {"loss": [None]}})


def test_a_dict_a_text_a_path_and_arguments_give_the_same_loads(tmp_path):
    stores = [spdy_lab.run(**ONE, folder=tmp_path, progress=False)]
    file = tmp_path / "one.toml"
    text = file.read_text()
    for number, experiment in enumerate([ONE, text, file, str(file)]):
        store = tmp_path / f"{number}.db"
        stores.append(spdy_lab.run(experiment, folder=tmp_path, store=store, progress=False))
    assert stores[0].location == str(tmp_path / "one.db")
    first, *others = (store.read() for store in stores)
    assert len(first) == 1
    for other in others:
        assert first.equals(other)


def test_a_file_of_another_author_is_not_overwritten(tmp_path):
    (tmp_path / "one.toml").write_text("# mine\n")
    with pytest.raises(FileExistsError, match="was not written by spdy_lab.run"):
        spdy_lab.run(ONE, folder=tmp_path)
    assert (tmp_path / "one.toml").read_text() == "# mine\n"


def test_invalid_experiments_raise_what_the_program_prints(tmp_path):
    for factors, expected in [
        ({"network": "dsl", "losss": 1}, r'line \d+, column 1: unknown factor "losss": expected one of network,'),
        ({"network": "dsl", "loss": "much"}, "much"),
    ]:
        with pytest.raises(spdy_lab.ProgramError, match=expected) as error:
            spdy_lab.run(ONE | {"factors": factors}, folder=tmp_path)
        assert error.value.code == 1
    with pytest.raises(spdy_lab.ProgramError, match="the shipped experiments are lulic,"):
        spdy_lab.run("nowhere", folder=tmp_path)
    with pytest.raises(ValueError, match="expected a name of letters.* found '../one'"):
        spdy_lab.run(ONE | {"name": "../one"}, folder=tmp_path)
    with pytest.raises(TypeError, match="found both: runs"):
        spdy_lab.run(ONE, runs=2, folder=tmp_path)
    assert not list(tmp_path.glob("*.db"))


def test_a_changed_experiment_does_not_extend_a_store(tmp_path):
    spdy_lab.run(ONE, folder=tmp_path, progress=False)
    with pytest.raises(spdy_lab.ProgramError, match="has results of the plan one .* use another store"):
        spdy_lab.run(ONE | {"seed": 2}, folder=tmp_path, progress=False)


def test_incomplete_loads_are_a_warning_and_the_store_is_returned(tmp_path, script):
    path = script(
        '[ "$1" = --version ] && echo spdy 0.1.0 && exit\n'
        'echo \'{"cell":"page=portal","runs":2,"failed":1,"invalid":0}\'; exit 1'
    )
    with pytest.warns(spdy_lab.IncompleteLoadsWarning, match="one: 1 loads are incomplete and 0 do not count"):
        store = spdy_lab.run(ONE, folder=tmp_path, spdy=path)
    assert store.location == str(tmp_path / "one.db")


def test_the_program_ends_in_order_at_an_interrupt_and_the_run_continues(tmp_path):
    experiment = {**ONE, "pages": ["portal"], "factors": {"network": "dsl", "loss": [f"{n}%" for n in range(40)]}, "runs": 5}
    (tmp_path / "long.toml").write_text(to_toml(experiment | {"name": "long"}))
    code = """
        import signal, spdy_lab, spdy_lab.experiment
        # A shell starts background programs with interrupts ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        spdy_lab.experiment.LOOK_EVERY_S = 0.05
        spdy_lab.run("long.toml", jobs=1)
    """
    package = pathlib.Path(spdy_lab.__file__).parents[1]
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(package)},
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        progress = b""
        while not re.search(rb"long: [1-9]\d* of 200 loads", progress):
            more = process.stderr.read1()
            assert more, f"the run ended: {progress}"
            progress += more
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate()
    assert process.returncode != 0 and rest.rstrip().endswith(b"KeyboardInterrupt"), rest
    with sqlite3.connect(tmp_path / "long.db") as connection:
        stored = connection.execute("SELECT count(*) FROM results").fetchone()[0]
    connection.close()
    assert 0 < stored < 200 and stored % 5 == 0, progress
