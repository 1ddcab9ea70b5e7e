"""Experiments of SPDY's lab with pandas: run them, read their stores, compare and plot the results.

The package runs the program ``spdy``, which must be in ``PATH``, in the variable ``SPDY``, or given as the argument ``spdy``.
"""

from spdy_lab.comparison import compare, geometric_mean
from spdy_lab.experiment import IncompleteLoadsWarning, Store, run
from spdy_lab.figures import plot_ecdf, plot_heatmap, plot_ratio
from spdy_lab.program import ProgramError, ProgramNotFoundError, VersionError
from spdy_lab.racing import race
from spdy_lab.results import read

__all__ = [
    "IncompleteLoadsWarning",
    "ProgramError",
    "ProgramNotFoundError",
    "Store",
    "VersionError",
    "compare",
    "geometric_mean",
    "plot_ecdf",
    "plot_heatmap",
    "plot_ratio",
    "race",
    "read",
    "run",
]
