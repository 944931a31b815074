"""The JSON of a repair holds everything, in plain types."""

from __future__ import annotations

import json
from dataclasses import fields

import rrf_design as rrf
from rrf_design.repairing import Repair, to_document


def test_everything_is_there_and_plain(equality, answers):
    fixed = rrf.repair(equality("pairs"), answers(1, 1, 3, 1), truth=answers(1, 1, 3, 3))
    document = to_document(fixed)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    names = {field.name for field in fields(Repair)} - {"problem_digest"}
    assert set(document) == names | {"format", "version", "problem", "guaranteed"}
    assert document["certainty"] == "ambiguous"
    assert document["failures"] == ["zero or low margin"]
    assert document["alternatives"][0]["support"] in (["n2"], ["n3"])


def test_infinities_are_null(equality, answers):
    fixed = rrf.repair(equality("complete"), answers(1, 1, 1, 1))
    assert fixed.diagnostics.best_smaller == float("inf")
    assert to_document(fixed)["diagnostics"]["best_smaller"] is None
