"""Recorded answers as arrays of codes: what a folder with `panels.json`, `NAME.answers.jsonl.gz`
and `NAME.table.jsonl.gz` holds.

Answers that are not the project's own are read where they lie and never copied: a part returns
counts and costs, no text and no value.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rrf_design.errors import InputError
from rrf_design.risk import UNREADABLE

Codes = NDArray[np.int64]
NOBODY = -2
"""The code of a gold value that no node of the panel says."""


@dataclass(frozen=True, slots=True)
class Panel:
    """answers (items, nodes) and gold (items,) in one coding per item; the price of a call to each
    node.
    """

    name: str
    answers: Codes
    gold: Codes
    prices: NDArray[np.float64]
    nodes: tuple[str, ...]


def folder_of(answers: Any, scenario: str = "data-set-promises") -> Path:
    """The folder as told; InputError where there is none."""
    if answers is None:
        raise InputError(
            f"{scenario} replays recorded answers of real models; give their folder: --set answers=FOLDER (panels.json,"
            " *.answers.jsonl.gz, *.table.jsonl.gz)"
        )
    folder = Path(str(answers))
    if not (folder / "panels.json").is_file():
        raise InputError(f"{folder.name}: there is no panels.json in this folder of answers")
    return folder


def panel_names(folder: Path) -> list[str]:
    return list(_panels(folder))


def panel_kind(folder: Path, name: str) -> str:
    """What its answers are: number, choice, verdict, program output."""
    return str(_panels(folder)[name]["kind"])


@lru_cache(maxsize=8)
def read_panel(folder: Path, name: str) -> Panel:
    """The panel called `name`; its set of answers has the same name, or that name without a part
    after the last hyphen.
    """
    described = _panels(folder)
    if name not in described:
        raise InputError(f"panels.json has no panel {name!r}; it has {', '.join(described)}")
    nodes = tuple(str(entry["node"]) for entry in described[name]["nodes"])
    prices = np.array([float(entry["price"]) for entry in described[name]["nodes"]])
    kept = name if (folder / f"{name}.answers.jsonl.gz").is_file() else name.rpartition("-")[0]
    answers, gold = read_codes(folder, kept, nodes)
    return Panel(name, answers, gold, prices, nodes)


def read_codes(folder: Path, kept: str, nodes: Sequence[str]) -> tuple[Codes, Codes]:
    """Answers (items, nodes) and gold (items,) of the set of answers called `kept`, in the order of
    its table; the folder's `value` column is the reading.
    """
    truth = {str(row["id"]): _key(row["gold"]) for row in zipped_rows(folder / f"{kept}.table.jsonl.gz")}
    place = {node: index for index, node in enumerate(nodes)}
    values: dict[str, list[str | None]] = {item: [None] * len(nodes) for item in truth}
    for row in zipped_rows(folder / f"{kept}.answers.jsonl.gz"):
        if row["node"] in place and str(row["item"]) in values and row["status"] == "ok":
            values[str(row["item"])][place[row["node"]]] = _key(row["value"])
    answers = np.full((len(values), len(nodes)), UNREADABLE, dtype=np.int64)
    gold = np.full(len(values), NOBODY, dtype=np.int64)
    for index, (item, said) in enumerate(values.items()):
        codes: dict[str, int] = {}
        for node, value in enumerate(said):
            if value is not None:
                answers[index, node] = codes.setdefault(value, len(codes))
        gold[index] = codes.get(truth[item], NOBODY)
    return answers, gold


def gold_keys(folder: Path, kept: str) -> list[str]:
    """The gold values of a set of answers, in the order of its table."""
    return [_key(row["gold"]) for row in zipped_rows(folder / f"{kept}.table.jsonl.gz")]


def nodes_of_set(folder: Path, kept: str) -> list[str]:
    """The nodes that a set of answers has, in the order in which they come; empty where there is no
    such set.
    """
    path = folder / f"{kept}.answers.jsonl.gz"
    return list(dict.fromkeys(str(row["node"]) for row in zipped_rows(path))) if path.is_file() else []


def price_list(folder: Path) -> dict[str, float]:
    """The price of a call to every node that some panel names."""
    return {str(e["node"]): float(e["price"]) for panel in _panels(folder).values() for e in panel["nodes"]}


@lru_cache(maxsize=8)
def _panels(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "panels.json").read_text(encoding="utf-8"))
    return found


def _key(value: Any) -> str:
    """Numbers are the same number however they are written; texts are compared as they stand."""
    return repr(float(value)) if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value).strip()


def zipped_rows(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            for line in stream:
                yield json.loads(line)
    except (OSError, ValueError) as error:
        raise InputError(f"{path.name}: can't be read ({getattr(error, 'strerror', None) or error})") from None
