"""Tables with known truth, drawn by a seed: a few things with prices and amounts, in forms that
people and programs paste into letters: other separators, column orders, headers and number formats,
quoted cells, merged lines, sums and notes below.

One amount is asked for. The truth is drawn before the text is made of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Rng = np.random.Generator
Rows = list[dict[str, Any]]
Line = Sequence[str]
NAMES = ("bolts", "lamps", "paper", "cable", "paint", "screws", "filters", "gloves", "tape", "hoses")
HEADS = (("item", "qty", "price", "amount"), ("Ware", "Menge", "Preis", "Betrag"), ("article", "qté", "prix", "total"))


def _piped(lines: Sequence[Line]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _quoted(lines: Sequence[Line]) -> str:
    return "\n".join(",".join(f'"{cell}"' for cell in line) for line in lines)


def _fixed(lines: Sequence[Line]) -> str:
    return "\n".join("".join(cell.rjust(12) for cell in line) for line in lines)


def _spoken(lines: Sequence[Line]) -> str:
    head, *rest = lines
    return "\n".join("; ".join(f"{name}: {cell}" for name, cell in zip(head, line, strict=True)) for line in rest)


LAYOUTS: tuple[Callable[[Sequence[Line]], str], ...] = (
    _piped,
    _quoted,
    _fixed,
    _spoken,
    lambda lines: "\n".join("\t".join(line) for line in lines),
    lambda lines: "\n".join(";".join(line) for line in lines),
    lambda lines: "".join(f"<tr><td>{'</td><td>'.join(line)}</td></tr>" for line in lines),
    lambda lines: "\n".join("\n".join(line) for line in lines),
)
"""One cell a line at the end: what is left of a table that was copied from a page."""


def priced(count: int, forms: Sequence[Callable[[int], str]], *, seed: int) -> Rows:
    """Tables of four to six things; the amount of one of them is asked for."""
    found: Rows = []
    for place in range(count):
        rng = np.random.default_rng([seed, 3, place])
        size = int(rng.integers(4, 7))
        names = [NAMES[at] for at in rng.permutation(len(NAMES))[:size]]
        counts = rng.integers(2, 40, size=size).tolist()
        prices = rng.integers(150, 20_000, size=size).tolist()
        form = forms[int(rng.integers(len(forms)))]
        order = rng.permutation(4).tolist()
        head = HEADS[int(rng.integers(len(HEADS)))]
        lines = [[head[at] for at in order]]
        for name, many, price in zip(names, counts, prices, strict=True):
            cells = (name, str(many), form(price), form(many * price))
            lines.append([cells[at] for at in order])
        amounts = [many * price for many, price in zip(counts, prices, strict=True)]
        text = LAYOUTS[place % len(LAYOUTS)](lines)
        if rng.integers(2):
            text += f"\nSum {form(sum(amounts))}"
        asked = int(rng.integers(size))
        row = {"id": f"p{place:03d}", "text": text, "thing": names[asked], "truth": f"{amounts[asked] / 100:.2f}"}
        listed = {*amounts, *prices, *((sum(amounts),) if "\nSum " in text else ())}
        found.append({**row, "amounts": sorted(listed)})
    return found
