"""Figures for papers with Matplotlib. Each function draws into ``ax``, or into a new figure, and returns the axes.

Axes state their units. The conditions that a figure does not show otherwise, and what made the loads, are in the caption below it.
"""

import textwrap

import numpy as np

from spdy_lab.comparison import check_one_comparison, geometric_mean, label, measured
from spdy_lab.results import conditions, factor_names, source

#: Characters of a line of a caption for each inch of the axes' width.
_CAPTION_PER_INCH = 17
#: Factors whose levels are names without an order.
_NAMES = ("page", "protocol")
_MARKERS = "osD^vPX*"
_LINES = ["-", "--", "-.", ":"]


def plot_ecdf(results, by="protocol", measure="load", ax=None):
    """Plot the share of loads that took at most a given time, a line for each level of ``by``.

    Loads of all cells of a level are one distribution. Runs that do not count (`invalid`) are left out.
    """
    results = results[results["invalid"].isna()] if "invalid" in results else results
    ax = _axes(ax)
    text, unit = label(measure)
    for number, (level, rows) in enumerate(_groups(results, by)):
        values = np.sort(measured(rows, measure).dropna())
        if len(values):
            line = _LINES[number % len(_LINES)]
            ax.step([values[0], *values], np.linspace(0, 1, len(values) + 1), line, where="post", label=f"{level}, n = {len(values)}")
    ax.set_xlabel(_with_unit(text, unit))
    ax.set_ylabel("share of loads")
    ax.set_ylim(0, 1)
    ax.legend(title=by)
    _caption(ax, [conditions(results, without=[by]), source(results)])
    return ax


def plot_ratio(ratios, x, by=None, ax=None):
    """Plot the ratios of `compare` over the levels of ``x``, with their 95 % intervals, in a colour for each level of ``by``.

    If several cells have the same levels of both, their geometric mean is shown, with an interval by resampling cells.
    """
    ax = _axes(ax)
    shown = [x] if by is None else [x, by]
    points, mean_of = _one_for_each(ratios, shown)
    levels = _levels(ratios, x)
    groups = [(None, points)] if by is None else _groups(points, by)
    for number, (level, rows) in enumerate(groups):
        # Side by side, so that intervals do not hide each other.
        at = [levels.index(str(name)) + 0.12 * (number - (len(groups) - 1) / 2) for name in rows[x]]
        ends = [rows["ratio"] - rows["low"], rows["high"] - rows["ratio"]]
        # A line would suggest values between two pages.
        line = "" if x in _NAMES else _LINES[number % len(_LINES)]
        style = line + _MARKERS[number % len(_MARKERS)]
        ax.errorbar(at, rows["ratio"], yerr=np.maximum(ends, 0), fmt=style, capsize=3, markersize=5, label=level)
    ax.axhline(1, color="grey", linewidth=0.8, zorder=0)
    ax.set_xticks(range(len(levels)), levels)
    if sum(map(len, levels)) > 50:
        ax.tick_params(axis="x", rotation=30)
    ax.set_xlabel(x)
    ax.set_ylabel(_ratio_label(ratios, shown))
    if by is not None:
        ax.legend(title=by)
    bars = "bars: 95 % intervals" if (points["low"] < points["high"]).any() else ""
    _caption(ax, [mean_of, bars, _conditions(ratios, shown), ratios.attrs.get("source", "")])
    return ax


def plot_heatmap(ratios, x, y, ax=None):
    """Plot the ratios of `compare` over two factors: blue below 1, red above.

    If several cells have the same levels of both, their geometric mean is shown.
    """
    import matplotlib.colors

    ax = _axes(ax)
    points, mean_of = _one_for_each(ratios, [x, y])
    columns, rows = _levels(ratios, x), _levels(ratios, y)
    grid = np.full((len(rows), len(columns)), np.nan)
    for across, up, ratio in zip(points[x], points[y], points["ratio"], strict=True):
        grid[rows.index(str(up)), columns.index(str(across))] = ratio
    far = max(np.nanmax(np.abs(np.log(grid))), np.log(1.1))
    norm = matplotlib.colors.LogNorm(np.exp(-far), np.exp(far))
    image = ax.imshow(grid, cmap="RdBu_r", norm=norm, origin="lower", aspect="auto")
    for (row, column), ratio in np.ndenumerate(grid):
        if np.isfinite(ratio):
            dark = abs(np.log(ratio)) > 0.6 * far
            ax.text(column, row, f"{ratio:.2f}", ha="center", va="center", color="white" if dark else "black", fontsize="small")
    ax.set_xticks(range(len(columns)), columns)
    ax.set_yticks(range(len(rows)), rows)
    if sum(map(len, columns)) > 50:
        ax.tick_params(axis="x", rotation=30)
    ax.set_xlabel(x)
    ax.set_ylabel(y)
    bar = ax.figure.colorbar(image, ax=ax, label=_ratio_label(ratios, [x, y]))
    _ratio_ticks(bar, far)
    _caption(ax, [mean_of, _conditions(ratios, [x, y]), ratios.attrs.get("source", "")])
    return ax


def _axes(ax):
    if ax is not None:
        return ax
    import matplotlib.pyplot

    return matplotlib.pyplot.subplots(layout="constrained")[1]


def _groups(table, by):
    if by not in table:
        raise ValueError(f"unknown column {by!r}: expected one of {', '.join(table)}")
    # Levels of a plan in its order, others as they first occur.
    in_order = by in factor_names(table)
    return [(level, rows) for level, rows in table.groupby(by, observed=True, sort=in_order)]


def _levels(table, name):
    levels = dict(_groups(table, name))
    return [str(level) for level in levels]


def _one_for_each(ratios, by):
    """The ratio of each combination of levels, and the words for the caption if it is a mean."""
    for name in by:
        _groups(ratios, name)
    check_one_comparison(ratios, by)
    if not ratios.duplicated(by).any():
        return ratios, ""
    means = geometric_mean(ratios, by)
    counts = sorted({means["cells"].min(), means["cells"].max()})
    return means, f"geometric means of {' to '.join(map(str, counts))} cells"


def _ratio_label(ratios, shown):
    # Pandas drops the attributes of concatenated comparisons that differ in them.
    factor, baseline = ratios.attrs.get("factor"), ratios.attrs.get("baseline")
    if factor is None:
        return "ratio"
    text, _ = label(ratios.attrs["measure"])
    levels = _levels(ratios, factor)
    other = f"{factor} {levels[0]}" if len(levels) == 1 and factor not in shown else factor
    return f"{text}, {other} to {baseline}"


def _conditions(ratios, shown):
    factor = ratios.attrs.get("factor")
    # A single compared level is in the label of the ratio.
    hidden = [factor] if factor in factor_names(ratios) and len(_levels(ratios, factor)) == 1 else []
    runs = sorted({ratios["runs"].min(), ratios["runs"].max()})
    each = f"{' to '.join(map(str, runs))} run{'s' if runs[-1] > 1 else ''} of each cell"
    return f"{conditions(ratios, without=[*shown, *hidden])}; {each}"


def _ratio_ticks(bar, far):
    import matplotlib.ticker

    ticks = [ratio for ratio in (0.1, 0.2, 0.25, 0.5, 0.8, 1, 1.25, 2, 4, 5, 10) if abs(np.log(ratio)) <= far]
    bar.set_ticks(ticks, labels=[f"{ratio:g}" for ratio in ticks])
    bar.ax.yaxis.set_minor_locator(matplotlib.ticker.NullLocator())


def _with_unit(text, unit):
    return f"{text} ({unit})" if unit else text


def _caption(ax, parts):
    text = "; ".join(part for part in parts if part)
    width = int(_CAPTION_PER_INCH * ax.figure.get_size_inches()[0])
    columns = ax.get_subplotspec().get_gridspec().ncols if ax.get_subplotspec() else 1
    ax.annotate(
        textwrap.fill(text, max(30, width // columns)),
        xy=(0.5, 0),
        xycoords=ax.xaxis.label,
        xytext=(0, -6),
        textcoords="offset points",
        ha="center",
        va="top",
        fontsize="x-small",
        color="dimgrey",
    )
