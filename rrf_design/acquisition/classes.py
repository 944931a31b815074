"""Answers that are classes (labels, literals, calls) in a live run: every class of an item is a
coordinate, in the order heard.

A class means something beside the other answers of its item only. How many there can be is known
before the first question (each answer and each check names one at most), so the field has room for
all of them from the beginning; which one a coordinate stands for is told by the texts in the
journal, so a resumed run goes on with the same.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rrf_design.derive import with_classes
from rrf_design.problem import Problem

if TYPE_CHECKING:
    from rrf_design.acquisition._state import ItemState
    from rrf_design.responses import Parser


class HeardClasses:
    """The classes of one item that were heard so far. For any thread."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._places: dict[str, int] = {}
        self._lock = threading.Lock()

    def vector(self, label: str) -> tuple[float, ...]:
        """One where the class stands."""
        with self._lock:
            place = self._places.get(label)
            if place is None:
                taken = set(self._places.values())
                place = self._places[label] = next(index for index in range(self.room) if index not in taken)
        return tuple(float(index == place) for index in range(self.room))

    def label(self, vector: Sequence[float]) -> str | None:
        """The class that stands where a vector has its one; None where none does."""
        place = max(range(len(vector)), key=vector.__getitem__)
        with self._lock:
            return next((label for label, own in self._places.items() if own == place), None)

    def recall(self, state: ItemState, parsers: Mapping[str, Parser]) -> None:
        """What the journal says: the class of every settled text, at the coordinate it had."""
        for name, entry in state.settled.items():
            if entry.ok and entry.value is not None and entry.text:
                label = class_of(entry.text, parsers.get(name))
                if label is not None and len(entry.value) == self.room:
                    self._places[label] = entry.value.index(1.0)


def class_of(text: str, parser: Parser | None) -> str | None:
    """The class that a text names: by the parser of its node, or a check's own word."""
    return text if parser is None else parser.parse(text).label


def open_nodes(problem: Problem) -> frozenset[str]:
    """The nodes whose answers are classes."""
    return frozenset(node.id for node in problem.nodes if node.parser is not None and _reads_classes(node.parser))


def with_room(problem: Problem) -> Problem:
    """The problem with as many coordinates at its open nodes as there can be classes; itself where
    there are none.
    """
    nodes = open_nodes(problem)
    if not nodes:
        return problem
    checks = sum(bool(nodes.intersection(anchor.nodes)) for anchor in problem.anchors)
    return with_classes(problem, nodes, max(2, len(nodes) + checks))


def _reads_classes(spec: str | Mapping[str, Any]) -> bool:
    return _named(spec) if isinstance(spec, str) else _named(str(spec.get("name", ""))) or _has_classes(dict(spec))


@lru_cache(maxsize=256)
def _named(name: str) -> bool:
    return _has_classes(name)


def _has_classes(spec: str | dict[str, Any]) -> bool:
    from rrf_design.errors import InputError
    from rrf_design.responses import parsers

    try:
        return parsers.get(spec).dim == 0
    except InputError:  # it needs options, or is unknown, which is said where it is used
        return False
