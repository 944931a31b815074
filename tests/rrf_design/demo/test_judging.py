"""Every box a field can end up in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rrf_design.acquisition import acquire
from rrf_design.demo import FieldVerdict, judge, topics
from rrf_design.models.scripted import ScriptedModel

NAME = "6 + 8"


def verdict(tmp_path: Path, answers: list[str], **options: Any) -> Any:
    """Judge one sum whose four wordings got these answers (truth: 14, 14, 14, 15)."""
    topic = next(iter(topics(7, sums=1, products=0, capitals=0, programs=0).values()))
    said = dict(zip((node.prompt for node in topic.problem.nodes[1:]), answers[1:], strict=False))
    model = ScriptedModel(lambda request: said.get(request.prompt, answers[0]))
    items = {"sum": topic.problem}
    given = {"budget": 1.0, "store": tmp_path / "r.sqlite", "method": "witness"} | options
    run = acquire(items, model, **given)
    found = judge(run, {"sum": topic})
    assert found.kept
    return found.fields[0]


@pytest.fixture(autouse=True)
def the_sum() -> None:
    assert next(iter(topics(7, sums=1, products=0, capitals=0, programs=0))) == NAME


@pytest.mark.parametrize(
    ("answers", "options", "expected"),
    [
        (["14", "14", "14", "15"], {}, FieldVerdict.CLEAN),
        (["14", "54", "14", "15"], {}, FieldVerdict.REPAIRED),
        (["99", "54", "14", "15"], {}, FieldVerdict.REPAIRED),
        (["99", "54", "7", "15"], {}, FieldVerdict.NOTICED),
        (["13", "13", "13", "14"], {"budget": 0.0}, FieldVerdict.FOOLED),
        (["no", "no", "no", "no"], {}, FieldVerdict.UNCERTAIN),
    ],
)
def test_boxes(tmp_path: Path, answers: list[str], options: dict[str, Any], expected: FieldVerdict) -> None:
    field = verdict(tmp_path, answers, **options)
    assert field.verdict is expected
    assert field.asked == 4


def test_counts(tmp_path: Path) -> None:
    field = verdict(tmp_path, ["14", "54", "none", "15"])
    assert field.wrong == ("swapped",)
    assert field.unread == ("worded",)
    assert field.repaired_wrong == ("swapped",)
    assert field.within
