"""How results show themselves in Python: one line, a short table for notebooks, a data frame, and
a picture where there is one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from itertools import islice
from typing import Any

from rrf_design.errors import MissingDependency

LONGEST = 200
"""Characters of a line, and of a cell of a notebook's table."""
FIRST = 10
"""Rows that a notebook shows; `to_frame` has them all."""
MOST_TOLD = 2000
"""Characters of what a notebook shows above them."""


def _cut(text: str, length: int = LONGEST) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= length else f"{flat[: length - 2]} …"


class Shown:
    """A result of a public function.

    A class says in `_line` what the result came to, and gives its rows, if any, in `_records`. What
    is no list of rows is made again by `from_json` of what its `to_json` gave.
    """

    __slots__ = ()

    def _line(self) -> str:
        raise NotImplementedError

    def _told(self) -> str:
        """What it came to, where a sentence may be longer than a line."""
        return self._line()

    def _records(self) -> Iterable[Mapping[str, Any]]:
        """One mapping from column to cell for each row, all with the same columns."""
        return ()

    def __repr__(self) -> str:
        line = _cut(f"{type(self).__name__}({self._line()}")
        return f"{line[: LONGEST - 1]})"

    def _repr_html_(self) -> str:
        """What it came to and its first rows, for notebooks: no script."""
        first = list(islice(self._records(), FIRST + 1))
        told = f"<p>{escape(_cut(self._told(), MOST_TOLD))}</p>"
        if not first:
            return told
        heads = "".join(f"<th>{escape(name)}</th>" for name in first[0])
        lines = ("".join(f"<td>{escape(_cut(_text(cell)))}</td>" for cell in row.values()) for row in first[:FIRST])
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        more = "<p>… and more: to_frame() has all rows</p>" if len(first) > FIRST else ""
        return f"{told}<table><tr>{heads}</tr>{body}</table>{more}"


class ShownRows(Shown):
    """A result that consists of rows."""

    __slots__ = ()

    def to_frame(self) -> Any:
        """The rows as a data frame of pandas (polars where only that is installed)."""
        rows = [dict(row) for row in self._records()]
        return frame_of(rows, list(rows[0]) if rows else [])


def _text(cell: Any) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:.6g}"
    return ", ".join(map(_text, cell)) if isinstance(cell, list | tuple) else str(cell)


def frame_of(rows: list[dict[str, Any]], columns: list[str]) -> Any:
    """Rows as a data frame of whatever is installed: pandas, else polars."""
    from importlib import import_module
    from importlib.util import find_spec

    if find_spec("pandas") is not None:
        return import_module("pandas").DataFrame(rows, columns=columns)
    if find_spec("polars") is not None:
        return import_module("polars").DataFrame({name: [row[name] for row in rows] for name in columns}, strict=False)
    raise MissingDependency("a data frame needs pandas or polars: pip install pandas")


def axes_of(axes: Any, *, across: str, up: str) -> Any:
    """The matplotlib axes to draw on: those given, or new ones, with names for both directions."""
    if axes is None:
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise MissingDependency("a picture needs matplotlib: pip install matplotlib") from None
        axes = Figure(figsize=(6.0, 3.6), layout="constrained").subplots()
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    return axes


def bars_on(axes: Any, values: Mapping[str, float], *, across: str) -> Any:
    """One bar for each name, the first on top."""
    drawn = axes_of(axes, across=across, up="")
    drawn.barh(list(values)[::-1], list(values.values())[::-1])
    return drawn
