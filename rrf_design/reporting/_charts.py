"""Charts as inline SVG, each with the table of what it shows: lines and steps with bounds, and
bars.

Series differ by marker and dash as well as by colour. Bounds are drawn as a band from lower to
upper, and where they are equal the band has no height: nothing is smoothed or interpolated that was
not computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rrf_design.reporting.pages import Markup, Picture, at_least, at_most, join, number, table, tag

WIDTH, HEIGHT = 640, 340
LEFT, RIGHT, TOP, BOTTOM = 78, 22, 18, 62
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
    target: float | None = None,
    target_name: str = "target",
    log_y: bool = False,
    zero: bool = True,
) -> Picture:
    """Values over x.

    `step` holds each value until the next point (what money has bought stays bought).
    """
    drawn = [s for s in series if len(s.x)]
    values = [
        v for s in drawn for part in (s.y, s.lower, s.upper) if part is not None for v in part if math.isfinite(v)
    ]
    if target is not None:
        values.append(target)
    x_scale = _Scale.over([v for s in drawn for v in s.x], LEFT, WIDTH - RIGHT, pad=0.0)
    y_scale = _Scale.over(values, HEIGHT - BOTTOM, TOP, zero=zero and not log_y, log=log_y)
    parts = [_axes(x_scale, y_scale, x_label, y_label)]
    if target is not None:
        y = y_scale(target)
        parts.append(tag("line", x1=float(LEFT), x2=float(WIDTH - RIGHT), y1=y, y2=y, class_="target"))
        parts.append(
            tag(
                "text",
                f"{target_name} {number(target)}",
                x=LEFT + 6.0,
                y=y - 6,
                class_="soft",
            )
        )
    for index, item in enumerate(drawn):
        parts.append(_draw(item, index, x_scale, y_scale, step))
    svg = _svg(_summary(drawn, x_label, y_label), HEIGHT, *parts)
    return Picture(
        svg=join(svg, _legend(drawn)),
        summary=_summary(drawn, x_label, y_label),
        table=_series_table(drawn, x_label, y_label),
    )


def step_chart(
    series: Sequence[Series], *, x_label: str, y_label: str, target: float | None = None, target_name: str = "target"
) -> Picture:
    """A line chart whose values hold until the next point."""
    return line_chart(series, x_label=x_label, y_label=y_label, step=True, target=target, target_name=target_name)


def bar_chart(
    bars: Sequence[Bar], *, label: str, value_label: str, target: float | None = None, most: int = 30
) -> Picture:
    """Horizontal bars with their values written out; whiskers show bounds.

    Bars beyond `most` are in the table only.
    """
    shown = list(bars[:most])
    row = 30
    height = TOP + row * max(len(shown), 1) + 48
    left = 190
    ends = [v for b in shown for v in (b.value, b.upper, target) if v is not None and math.isfinite(v)]
    scale = _Scale.over([0.0, *ends], left, WIDTH - 74, zero=True)
    parts: list[Markup] = []
    for tick in scale.ticks:
        parts.append(tag("line", x1=scale(tick), x2=scale(tick), y1=float(TOP), y2=float(height - 42), class_="rule"))
        parts.append(
            tag("text", number(tick), x=scale(tick), y=float(height - 24), text_anchor="middle", class_="soft")
        )
    parts.append(
        tag("text", value_label, x=(left + WIDTH - 74) / 2, y=float(height - 4), text_anchor="middle", class_="soft")
    )
    for index, bar in enumerate(shown):
        y = TOP + row * index + 5.0
        end = scale(bar.value) if math.isfinite(bar.value) else scale(0.0)
        inside = [
            tag("title", f"{bar.name}: {number(bar.value)} {value_label}{', ' + bar.note if bar.note else ''}"),
            tag("text", _clip(bar.name, 24), x=float(left - 8), y=y + 14, text_anchor="end"),
            tag("rect", x=float(left), y=y, width=max(end - left, 0.0), height=float(row - 10), class_="bar"),
        ]
        if bar.lower is not None and bar.upper is not None and scale(bar.upper) - scale(bar.lower) > 2:
            inside.append(_whisker(scale(bar.lower), scale(bar.upper), y + (row - 10) / 2))
            end = max(end, scale(bar.upper))
        inside.append(tag("text", number(bar.value, 4), x=end + 6, y=y + 14))
        parts.append(tag("g", *inside, class_="c0"))
    if target is not None:
        parts.append(
            tag("line", x1=scale(target), x2=scale(target), y1=float(TOP), y2=float(height - 42), class_="target")
        )
    bounds = any(b.lower is not None for b in bars)
    notes = any(b.note for b in bars)
    columns = [label, value_label, *(["lower bound", "upper bound"] if bounds else []), *(["note"] if notes else [])]
    rows = [
        [
            b.name,
            number(b.value),
            *([at_least(b.lower), at_most(b.upper)] if bounds else []),
            *([b.note] if notes else []),
        ]
        for b in bars
    ]
    summary = f"{value_label} of {len(bars)} by {label}"
    beside = table(columns, rows, right=range(1, 4 if bounds else 2))
    return Picture(svg=_svg(summary, height, *parts), summary=summary, table=beside)


@dataclass(frozen=True, slots=True)
class _Scale:
    """Data to pixels, with ticks at round numbers."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    log: bool = False

    @classmethod
    def over(
        cls,
        values: Sequence[float],
        start: float,
        end: float,
        *,
        zero: bool = False,
        log: bool = False,
        pad: float = 0.06,
    ) -> _Scale:
        finite = [v for v in values if math.isfinite(v) and (v > 0 or not log)] or [0.0 if not log else 1.0]
        low, high = min(finite), max(finite)
        if log:
            first, last = math.floor(math.log10(low)), max(math.ceil(math.log10(high)), math.floor(math.log10(low)) + 1)
            stride = max(1, (last - first) // 6)
            return cls(
                float(first), float(last), start, end, tuple(10.0**e for e in range(first, last + 1, stride)), True
            )
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
        if self.log:
            value = math.log10(value) if value > 0 else self.low
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def _round_ticks(low: float, high: float, *, about: int = 5, least: float = 0.0) -> tuple[float, ...]:
    raw = max((high - low) / about, least)
    size = 10.0 ** math.floor(math.log10(raw))
    stride = next(m * size for m in (1, 2, 2.5, 5, 10) if m * size >= raw * 0.999)
    first = math.ceil(low / stride - 1e-9)
    last = math.floor(high / stride + 1e-9)
    return tuple(round(i * stride, 12) + 0.0 for i in range(first, last + 1))


def _axes(x: _Scale, y: _Scale, x_label: str, y_label: str) -> Markup:
    parts = []
    for tick in y.ticks:
        parts.append(tag("line", x1=float(LEFT), x2=float(WIDTH - RIGHT), y1=y(tick), y2=y(tick), class_="rule"))
        parts.append(tag("text", number(tick), x=float(LEFT - 8), y=y(tick) + 4.5, text_anchor="end", class_="soft"))
    for tick in x.ticks:
        parts.append(
            tag("line", x1=x(tick), x2=x(tick), y1=float(HEIGHT - BOTTOM), y2=HEIGHT - BOTTOM + 5.0, class_="axis")
        )
        parts.append(
            tag("text", number(tick), x=x(tick), y=HEIGHT - BOTTOM + 22.0, text_anchor="middle", class_="soft")
        )
    parts.append(
        tag(
            "line",
            x1=float(LEFT),
            x2=float(WIDTH - RIGHT),
            y1=float(HEIGHT - BOTTOM),
            y2=float(HEIGHT - BOTTOM),
            class_="axis",
        )
    )
    parts.append(tag("text", x_label, x=(LEFT + WIDTH - RIGHT) / 2, y=HEIGHT - 8.0, text_anchor="middle"))
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        tag("text", y_label, x=0.0, y=0.0, transform=f"translate(18 {middle:g}) rotate(-90)", text_anchor="middle")
    )
    return join(parts)


def _draw(item: Series, index: int, x: _Scale, y: _Scale, step: bool) -> Markup:
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
        sample = [
            tag("path", d="M2,7 H32", class_="line", stroke_dasharray=DASHES[index % len(DASHES)]),
            _marker(index, 17.0, 7.0),
        ]
        items.append(
            tag("li", tag("svg", *sample, viewBox="0 0 34 14", aria_hidden="true", class_=f"c{index % 7}"), item.name)
        )
    return tag("ul", items, class_="legend")


def _series_table(series: Sequence[Series], x_label: str, y_label: str) -> Markup:
    bounds = any(s.lower is not None for s in series)
    words = any(s.labels is not None for s in series)
    several = len(series) > 1
    columns = [
        *(["series"] if several else []),
        x_label,
        *(["what"] if words else []),
        y_label,
        *(["lower bound", "upper bound"] if bounds else []),
    ]
    rows = []
    for s in series:
        for i, here in enumerate(s.x):
            row = [
                *([s.name] if several else []),
                number(here),
                *([s.labels[i] if s.labels else ""] if words else []),
                number(s.y[i]),
            ]
            if bounds:
                row += [at_least(s.lower[i]) if s.lower else "", at_most(s.upper[i]) if s.upper else ""]
            rows.append(row)
    right = [i for i, name in enumerate(columns) if name not in ("series", "what")]
    return table(columns, rows, right=right)


def _summary(series: Sequence[Series], x_label: str, y_label: str) -> str:
    return f"Chart of {y_label} over {x_label}: {', '.join(s.name for s in series)}"


def _svg(summary: str, height: int, *parts: Markup) -> Markup:
    return tag("svg", tag("title", summary), *parts, viewBox=f"0 0 {WIDTH} {height}", role="img", aria_label=summary)


def _clip(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
