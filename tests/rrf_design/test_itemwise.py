"""One verb for a problem and for a data set: who is called, and with what."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.itemwise import for_each_item


def test_a_problem_goes_to_the_verb_and_a_data_set_to_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = ModuleType("elsewhere")
    elsewhere.for_tables = lambda *given, **options: ("table", given[1:], options)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "elsewhere", elsewhere)

    @for_each_item("elsewhere", "for_tables")
    def verb(problem: Any = None, extra: int = 0, *, loud: bool = False) -> Any:
        """What it does."""
        return "problem", extra, loud

    one = rrf.Problem(nodes=[{"id": "a"}])
    recipe = {"data": {"id": "no"}, "answer": {"of": "a"}, "ask": [{"id": "a", "prompt": "{{ q }}"}]}
    table = rrf.dataset(recipe, [{"no": "1", "q": "2 + 3?"}])
    assert verb(one, 3, loud=True) == ("problem", 3, True)
    assert verb() == ("problem", 0, False)
    assert verb(table, 3, loud=True) == ("table", (3,), {"loud": True})
    assert verb.__doc__ == "What it does."
