"""Figures: axes with units, conditions in the caption."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

import spdy_lab


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def caption(ax):
    texts = [text for text in ax.texts if text.get_color() == "dimgrey"]
    return " ".join(texts[0].get_text().split())


def inside_of_figure(ax):
    figure = ax.figure
    figure.canvas.draw()
    inner, outer = ax.get_tightbbox(), figure.bbox
    return inner.x0 >= -1 and inner.y0 >= -1 and inner.x1 <= outer.x1 + 1 and inner.y1 <= outer.y1 + 1


def test_a_distribution_ends_at_the_slowest_load_of_each_level(results):
    ax = spdy_lab.plot_ecdf(results.query("page == 'mineki'"))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("load time (ms)", "share of loads")
    for line, protocol in zip(ax.get_lines(), ["http", "spdy"], strict=True):
        times = results.query(f"page == 'mineki' and protocol == '{protocol}'")["load_ms"]
        assert line.get_label() == f"{protocol}, n = 12"
        x, y = line.get_data()
        assert (x[0], x[-1], y[0], y[-1]) == (times.min(), times.max(), 0, 1)
        # A step up at each load: the share at the median is a half.
        assert y[np.searchsorted(x[1:], np.sort(times)[5], side="right")] >= 0.5
    assert caption(ax).startswith("page mineki; network cable; loss 0, 2%; spdy 0.1.0, model ")
    assert inside_of_figure(ax)


def test_ratios_are_drawn_with_their_intervals_in_the_order_of_levels(results):
    ratios = spdy_lab.compare(results, "protocol", "http")
    ax = spdy_lab.plot_ratio(ratios, x="loss", by="page")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "2%"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("loss", "load time, protocol spdy to http")
    points, _, (bars,) = ax.containers[1]
    expected = ratios.query("page == 'mineki'")
    assert list(points.get_ydata()) == list(expected["ratio"])
    ends = [segment[:, 1] for segment in bars.get_segments()]
    assert np.allclose(ends, expected[["low", "high"]])
    assert caption(ax).startswith("bars: 95 % intervals; network cable; 6 runs of each cell; spdy 0.1.0")
    mean = spdy_lab.plot_ratio(ratios, x="loss")
    assert caption(mean).startswith("geometric means of 2 cells; bars: 95 % intervals; page lulic-bing, mineki;")
    assert inside_of_figure(ax) and inside_of_figure(mean)


def test_a_heat_map_has_the_ratio_of_each_cell(results):
    ratios = spdy_lab.compare(results, "protocol", "http", "packets")
    ax = spdy_lab.plot_heatmap(ratios, x="loss", y="page")
    grid = ax.get_images()[0].get_array()
    assert np.allclose(np.ravel(grid), ratios["ratio"])
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("loss", "page")
    assert ax.get_images()[0].colorbar.ax.get_ylabel() == "packets, protocol spdy to http"
    assert [text.get_text() for text in ax.texts[:4]] == [f"{ratio:.2f}" for ratio in ratios["ratio"]]
    assert inside_of_figure(ax)


def test_unknown_columns_and_mixed_comparisons_are_errors(results):
    ratios = spdy_lab.compare(results, "protocol", "http")
    with pytest.raises(ValueError, match="unknown column 'rate': expected one of page, network, loss, protocol"):
        spdy_lab.plot_ratio(ratios, x="rate")
    three = spdy_lab.compare(results.assign(copy=results["run"] % 3), "copy", 0)
    with pytest.raises(ValueError, match="several levels of copy"):
        spdy_lab.plot_heatmap(three, x="loss", y="page")
