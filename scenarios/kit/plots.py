"""The usual pictures as SVG text: lines and points, in colours that colour-blind readers can tell
apart.

Text stays text in the SVG and nothing in it depends on the time or the machine, so equal data give
equal files.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from scenarios.kit.report import Figure

# Okabe and Ito's palette; markers differ as well, so that no information is in the colour alone.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#F0E442")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")

Series = Mapping[str, tuple[Sequence[float], Sequence[float]]]


def draw(
    name: str, paint: Callable[[Any], None], *, caption: str = "", size: tuple[float, float] = (6.4, 3.8)
) -> Figure:
    """A figure painted on one matplotlib axes."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Canvas

    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "font.size": 10}):
        canvas = Canvas(figsize=size, layout="constrained")
        FigureCanvasSVG(canvas)
        axes = canvas.add_subplot()
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
        paint(axes)
        buffer = io.StringIO()
        canvas.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    # Trailing blanks of the writer would be noise in version control.
    svg = "\n".join(line.rstrip() for line in text[text.index("<svg") :].splitlines()) + "\n"
    return Figure(name, svg, caption)


def lines(
    name: str, series: Series, *, x: str, y: str, caption: str = "", log_x: bool = False, log_y: bool = False
) -> Figure:
    """One line with markers per series."""

    def paint(axes: Any) -> None:
        for index, (label, (xs, ys)) in enumerate(series.items()):
            axes.plot(
                xs, ys, label=label, color=COLOURS[index % 8], marker=MARKERS[index % 8], markersize=4, linewidth=1.4
            )
        _finish(axes, x, y, log_x, log_y, many=len(series) > 1)

    return draw(name, paint, caption=caption)


def points(
    name: str, series: Series, *, x: str, y: str, caption: str = "", log_x: bool = False, log_y: bool = False
) -> Figure:
    """One cloud of points per series."""

    def paint(axes: Any) -> None:
        for index, (label, (xs, ys)) in enumerate(series.items()):
            axes.scatter(xs, ys, label=label, s=14, alpha=0.6, color=COLOURS[index % 8], marker=MARKERS[index % 8])
        _finish(axes, x, y, log_x, log_y, many=len(series) > 1)

    return draw(name, paint, caption=caption)


def bars(name: str, heights: Mapping[str, float], *, y: str, caption: str = "") -> Figure:
    """One horizontal bar per label, first on top."""

    def paint(axes: Any) -> None:
        places = list(range(len(heights)))[::-1]
        axes.barh(places, list(heights.values()), color=COLOURS[0])
        axes.set_yticks(places, list(heights))
        axes.set_xlabel(y, loc="right")  # long labels leave little room for the axis

    return draw(name, paint, caption=caption, size=(6.4, 0.9 + 0.3 * len(heights)))


def _finish(axes: Any, x: str, y: str, log_x: bool, log_y: bool, *, many: bool) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if log_x:
        axes.set_xscale("log")
    if log_y:
        axes.set_yscale("log")
    if many:
        axes.legend(frameon=False, fontsize=8)
