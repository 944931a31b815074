"""Charts as inline SVG, each with the table of what it shows: lines and steps with bounds, and
bars.

Series differ by marker and dash as well as by colour. Bounds are drawn as a band from lower to
upper, and where they are equal the band has no height: nothing is smoothed or interpolated that was
not computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rrf_design.reporting.pages import Column, Markup, Picture, at_least, at_most, figures, join, listing, number, tag

WIDTH, HEIGHT = 640, 340
LEFT, RIGHT, TOP, BOTTOM = 78, 22, 18, 62
MOST_BARS = 30
DASHES = (None, "7 4", "2 4", "9 3 2 3")


@dataclass(frozen=True, slots=True)
class Series:
    """Values over x, optionally between bounds, optionally with a word for each point."""

    name: str
    x: Sequence[float]
    y: Sequence[float]
    lower: Sequence[float] | None = None
    upper: Sequence[float] | None = None
    labels: Sequence[str] | None = None

    def __post_init__(self) -> None:
        for values in (self.y, self.lower, self.upper, self.labels):
            if values is not None and len(values) != len(self.x):
                raise ValueError(f"series {self.name!r}: {len(values)} values for {len(self.x)} points")

    @classmethod
    def of(
        cls, name: str, entries: Iterable[Mapping[str, Any]], *keys: str, labels: Sequence[str] | None = None
    ) -> Series:
        """What entries have under the keys of x and y, and perhaps of the bounds."""
        rows = list(entries)
        x, y, *bounds = ([float(row[key]) for row in rows] for key in keys)
        lower, upper = bounds or (None, None)
        return cls(name, x, y, lower, upper, labels)


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar, optionally with bounds."""

    name: str
    value: float
    lower: float | None = None
    upper: float | None = None
    note: str = ""


def line_chart(
    series: Sequence[Series],
    *,
    x_label: str,
    y_label: str,
    step: bool = False,
    joined: bool = True,
    target: float | None = None,
    target_name: str = "target",
) -> Picture:
    """Values over x.

    `step` holds each value until the next point (what money has bought stays bought); points that
    are not `joined` have nothing between them.
    """
    drawn = [s for s in series if len(s.x)]
    values = [v for s in drawn for part in (s.y, s.lower, s.upper) if part is not None for v in part]
    x = _Scale.over([v for s in drawn for v in s.x], LEFT, WIDTH - RIGHT, pad=0.0)
    y = _Scale.over([*values, *([] if target is None else [target])], HEIGHT - BOTTOM, TOP, zero=True)
    parts = [_axes(x, y, x_label, y_label)]
    if target is not None:
        parts.append(_line(LEFT, WIDTH - RIGHT, y(target), y(target), "target"))
    parts += [_draw(item, index, x, y, step, joined) for index, item in enumerate(drawn)]
    if target is not None:  # above everything, with a rim of paper
        words = f"{target_name} {number(target)}"
        parts.append(tag("text", words, x=LEFT + 6.0, y=y(target) - 6, class_="soft name"))
    summary = f"Chart of {y_label} over {x_label}: {', '.join(s.name for s in drawn)}"
    return Picture(join(_svg(summary, HEIGHT, *parts), _legend(drawn)), summary, _series_table(drawn, x_label, y_label))


def _line(x1: float, x2: float, y1: float, y2: float, kind: str) -> Markup:
    return tag("line", x1=float(x1), x2=float(x2), y1=float(y1), y2=float(y2), class_=kind)


def _words(text: str, x: float, y: float, *, anchor: str | None = None, soft: bool = False) -> Markup:
    return tag("text", text, x=float(x), y=float(y), text_anchor=anchor, class_="soft" if soft else None)


def step_chart(
    series: Series,
    y_label: str,
    target: float | None = None,
    *,
    x_label: str = "money spent (unit of costs)",
    target_name: str = "target",
) -> Picture:
    """A curve whose values hold until the next point."""
    return line_chart([series], x_label=x_label, y_label=y_label, step=True, target=target, target_name=target_name)


def bar_chart(bars: Sequence[Bar], *, label: str, value_label: str) -> Picture:
    """Horizontal bars with their values written out; whiskers show bounds.

    Bars beyond `MOST_BARS` are in the table only.
    """
    shown, row, left, right = bars[:MOST_BARS], 30, 190, WIDTH - 74
    height = TOP + row * max(len(shown), 1) + 48
    ends = [v for b in shown for v in (b.value, b.upper) if v is not None]
    scale = _Scale.over([0.0, *ends], left, right, zero=True)
    parts: list[Markup] = []
    for tick in scale.ticks:
        parts.append(_line(scale(tick), scale(tick), TOP, height - 42, "rule"))
        parts.append(_words(number(tick), scale(tick), height - 24, anchor="middle", soft=True))
    parts.append(_words(value_label, (left + right) / 2, height - 4, anchor="middle", soft=True))
    for index, bar in enumerate(shown):
        y = TOP + row * index + 5.0
        end = scale(bar.value) if math.isfinite(bar.value) else scale(0.0)
        inside = [
            tag("title", f"{bar.name}: {number(bar.value)} {value_label}{', ' + bar.note if bar.note else ''}"),
            _words(bar.name if len(bar.name) <= 24 else bar.name[:23] + "…", left - 8, y + 14, anchor="end"),
            tag("rect", x=float(left), y=y, width=max(end - left, 0.0), height=float(row - 10), class_="bar"),
        ]
        if bar.lower is not None and bar.upper is not None and scale(bar.upper) - scale(bar.lower) > 2:
            inside.append(_whisker(scale(bar.lower), scale(bar.upper), y + (row - 10) / 2))
            end = max(end, scale(bar.upper))
        parts.append(tag("g", *inside, _words(number(bar.value, 4), end + 6, y + 14), class_="c0"))
    beside = listing(
        bars,
        Column(label, lambda b: b.name),
        figures(value_label, lambda b: number(b.value)),
        *_bounds(any(b.lower is not None for b in bars), lambda b: at_least(b.lower), lambda b: at_most(b.upper)),
        Column("note", lambda b: b.note) if any(b.note for b in bars) else None,
    )
    summary = f"{value_label} of {len(bars)} by {label}"
    return Picture(_svg(summary, height, *parts), summary, beside)


def _bounds(wanted: bool, lower: Callable[[Any], str], upper: Callable[[Any], str]) -> list[Column]:
    """The columns of proven bounds; none where nothing has any."""
    return [figures("lower bound", lower), figures("upper bound", upper)] if wanted else []


@dataclass(frozen=True, slots=True)
class _Scale:
    """Data to pixels, with ticks at round numbers."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]

    @classmethod
    def over(
        cls, values: Sequence[float], start: float, end: float, *, zero: bool = False, pad: float = 0.06
    ) -> _Scale:
        finite = [v for v in values if math.isfinite(v)] or [0.0]
        low, high = min(finite), max(finite)
        if zero:
            low, high = min(low, 0.0), max(high, 0.0)
        if high == low:
            low, high = (0.0, 1.0) if low == 0 else (min(0.0, 2 * low), max(0.0, 2 * low))
        span = high - low
        high += pad * span
        if low != 0.0:
            low -= pad * span
        whole = all(v == int(v) for v in finite)  # counts have no tick at 1.2
        return cls(low, high, start, end, _round_ticks(low, high, least=1.0 if whole and span >= 1 else 0.0))

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def _round_ticks(low: float, high: float, *, least: float) -> tuple[float, ...]:
    raw = max((high - low) / 5, least)  # about five of them
    size = 10.0 ** math.floor(math.log10(raw))
    stride = next(m * size for m in (1, 2, 2.5, 5, 10) if m * size >= raw * 0.999)
    first = math.ceil(low / stride - 1e-9)
    last = math.floor(high / stride + 1e-9)
    return tuple(float(f"{i * stride:.12g}") for i in range(first, last + 1))


def _axes(x: _Scale, y: _Scale, x_label: str, y_label: str) -> Markup:
    foot, middle = HEIGHT - BOTTOM, (TOP + HEIGHT - BOTTOM) / 2
    parts = []
    for tick in y.ticks:
        parts.append(_line(LEFT, WIDTH - RIGHT, y(tick), y(tick), "rule"))
        parts.append(_words(number(tick), LEFT - 8, y(tick) + 4.5, anchor="end", soft=True))
    for tick in x.ticks:
        parts.append(_line(x(tick), x(tick), foot, foot + 5, "axis"))
        parts.append(_words(number(tick), x(tick), foot + 22, anchor="middle", soft=True))
    parts.append(_line(LEFT, WIDTH - RIGHT, foot, foot, "axis"))
    parts.append(_words(x_label, (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, anchor="middle"))
    turned = f"translate(18 {middle:g}) rotate(-90)"
    parts.append(tag("text", y_label, x=0.0, y=0.0, transform=turned, text_anchor="middle"))
    return join(parts)


def _draw(item: Series, index: int, x: _Scale, y: _Scale, step: bool, joined: bool) -> Markup:
    parts: list[Markup] = []
    if item.lower is not None and item.upper is not None:
        top = list(_path(item.x, item.upper, x, y, step))
        known = [low if math.isfinite(low) else value for low, value in zip(item.lower, item.y, strict=True)]
        bottom = list(_path(item.x, known, x, y, step))
        outline = " L".join([*top, *reversed(bottom)])
        parts.append(tag("path", d=f"M{outline} Z", class_="band"))
        for here, low, high in zip(item.x, item.lower, item.upper, strict=True):
            if abs(y(low) - y(high)) > 2 and math.isfinite(low) and math.isfinite(high):
                parts.append(_whisker(y(high), y(low), x(here), upright=True))
    line = " L".join(_path(item.x, item.y, x, y, step))
    if joined:
        parts.append(tag("path", d=f"M{line}", class_="line", stroke_dasharray=DASHES[index % len(DASHES)]))
    for i, (here, value) in enumerate(zip(item.x, item.y, strict=True)):
        if not math.isfinite(value):
            continue
        words = f"{item.name}{': ' + item.labels[i] if item.labels else ''} at {number(here)}: {number(value)}"
        if item.lower is not None and item.upper is not None:
            words += f", lower bound {at_least(item.lower[i])}, upper bound {at_most(item.upper[i])}"
        parts.append(tag("circle", tag("title", words), cx=x(here), cy=y(value), r=11.0, class_="hit"))
        parts.append(_marker(index, x(here), y(value)))
    return tag("g", *parts, class_=f"c{index % 7}")


def _path(xs: Sequence[float], ys: Sequence[float], x: _Scale, y: _Scale, step: bool) -> Iterator[str]:
    previous: float | None = None
    for here, value in zip(xs, ys, strict=True):
        if not math.isfinite(value):
            continue
        if step and previous is not None:
            yield f"{x(here):.1f},{previous:.1f}"
        previous = y(value)
        yield f"{x(here):.1f},{previous:.1f}"


def _whisker(start: float, end: float, across: float, *, upright: bool = False) -> Markup:
    if upright:
        d = f"M{across - 4:.1f},{start:.1f} h8 M{across:.1f},{start:.1f} V{end:.1f} M{across - 4:.1f},{end:.1f} h8"
    else:
        d = f"M{start:.1f},{across - 4:.1f} v8 M{start:.1f},{across:.1f} H{end:.1f} M{end:.1f},{across - 4:.1f} v8"
    return tag("path", d=d, class_="whisker")


def _marker(index: int, x: float, y: float) -> Markup:
    shapes: tuple[Callable[[], Markup], ...] = (
        lambda: tag("circle", cx=x, cy=y, r=4.5, class_="dot"),
        lambda: tag("rect", x=x - 4.2, y=y - 4.2, width=8.4, height=8.4, class_="dot"),
        lambda: tag("path", d=f"M{x:.1f},{y - 5.5:.1f} l5.2,9.4 h-10.4 Z", class_="dot"),
        lambda: tag("path", d=f"M{x:.1f},{y - 6:.1f} l6,6 l-6,6 l-6,-6 Z", class_="dot"),
    )
    return shapes[index % len(shapes)]()


def _legend(series: Sequence[Series]) -> Markup | None:
    if len(series) < 2:
        return None
    items = []
    for index, item in enumerate(series):
        line = tag("path", d="M2,7 H32", class_="line", stroke_dasharray=DASHES[index % len(DASHES)])
        sample = (line, _marker(index, 17.0, 7.0))
        drawn = tag("svg", *sample, viewBox="0 0 34 14", aria_hidden="true", class_=f"c{index % 7}")
        items.append(tag("li", drawn, item.name))
    return tag("ul", items, class_="legend")


def _series_table(series: Sequence[Series], x_label: str, y_label: str) -> Markup:
    return listing(
        [(s, i) for s in series for i in range(len(s.x))],
        Column("series", lambda at: at[0].name) if len(series) > 1 else None,
        figures(x_label, lambda at: number(at[0].x[at[1]])),
        Column("what", lambda at: at[0].labels[at[1]] if at[0].labels else "")
        if any(s.labels is not None for s in series)
        else None,
        figures(y_label, lambda at: number(at[0].y[at[1]])),
        *_bounds(
            any(s.lower is not None for s in series),
            lambda at: at_least(at[0].lower[at[1]]) if at[0].lower else "",
            lambda at: at_most(at[0].upper[at[1]]) if at[0].upper else "",
        ),
    )


def _svg(summary: str, height: int, *parts: Markup) -> Markup:
    return tag("svg", tag("title", summary), *parts, viewBox=f"0 0 {WIDTH} {height}", role="img", aria_label=summary)
