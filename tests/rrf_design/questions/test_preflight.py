from __future__ import annotations

from pathlib import Path

import pytest

from rrf_design.errors import InputError
from rrf_design.questions.filling import Filler
from rrf_design.questions.preflight import check_columns
from rrf_design.questions.recipe import load_recipe, recipe_from_document

COLUMNS = ["no", "text", "booked", "ledger", "fee", "minutes", "net", "tax"]


def test_every_placeholder_needs_its_column(invoices: Path) -> None:
    filler = Filler(load_recipe(invoices / "rrf.toml"))
    check_columns(filler, COLUMNS, "t.csv")
    for column in ("text", "ledger", "fee", "minutes", "tax"):
        with pytest.raises(InputError, match=rf"^t.csv: no column '{column}'.* of rrf.toml\)$"):
            check_columns(filler, [name for name in COLUMNS if name != column], "t.csv")


def test_what_a_verifier_learns_later_is_no_column() -> None:
    by = {"verifier": "scripted:x", "prompt": "{{ answer }} {{ a }} {{ x }}"}
    recipe = recipe_from_document(
        {
            "answer": {"of": "a"},
            "ask": [{"id": "a", "prompt": "?"}],
            "check": [{"id": "c", "of": "a", "by": by, "sigma": 1.0}],
        }
    )
    check_columns(Filler(recipe), ["x"], "t.csv")
    with pytest.raises(InputError, match="no column 'x'"):
        check_columns(Filler(recipe), ["y"], "t.csv")


def test_shapes_are_checked_before_a_row_is_seen() -> None:
    asks = [{"id": "a", "prompt": "?", "parse": {"json": ["x", "y"]}}, {"id": "b", "prompt": "?", "like": "a"}]
    with pytest.raises(InputError, match=r"relation 'b like a': .*dimension.*\(ask 'b'"):
        recipe_from_document({"answer": {"of": "a"}, "ask": asks})
