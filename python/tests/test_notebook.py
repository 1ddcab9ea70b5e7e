"""The notebook with the papers' figures."""

import base64
import pathlib
import re

import nbclient
import nbformat
import pytest

NOTEBOOK = pathlib.Path(__file__).parents[1] / "notebooks" / "figures.ipynb"
#: Width and height of the smallest figure, in pixels.
SMALLEST = 400, 300


@pytest.fixture
def notebook():
    return nbformat.read(NOTEBOOK, as_version=4)


def test_it_is_stored_without_outputs(notebook):
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None, cell.source


@pytest.mark.filterwarnings("default")
def test_it_draws_one_figure_of_each_paper(notebook, tmp_path):
    nbclient.NotebookClient(notebook, timeout=600, startup_timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    paper, figures = None, {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown" and (title := re.match(r"## ([\w ]+):", cell.source)):
            paper = title[1]
        for output in cell.get("outputs", []):
            if png := output.get("data", {}).get("image/png"):
                assert paper not in figures, f"two figures of {paper}"
                figures[paper] = base64.b64decode(png)
    assert list(figures) == ["Belshe", "White paper", "Mineki", "Lulic", "NSDI 2014", "CACM 2012", "UNM"]
    for paper, png in figures.items():
        size = int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")
        assert size >= SMALLEST and size[1] >= SMALLEST[1], f"{paper}: {size}"
