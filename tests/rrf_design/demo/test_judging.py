"""Every box a field can end up in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rrf_design.acquisition import acquire
from rrf_design.demo import FieldVerdict, judge, topics
from rrf_design.models.scripted import ScriptedModel


def verdict(tmp_path: Path, off_by: list[float | None], **options: Any) -> Any:
    """Judge one sum whose four wordings are off by these amounts (None: not readable)."""
    topic = next(iter(topics(7, sums=1, products=0, capitals=0, programs=0).values()))
    asked = topic.problem.nodes[:4]
    prompts = [f"Compute {asked[0].variables['a']} + {asked[0].variables['b']}.", *(node.prompt for node in asked[1:])]
    said = {
        prompt: "no idea" if off is None else f"{topic.truth[node.id][0] + off:g}"
        for prompt, node, off in zip(prompts, asked, off_by, strict=True)
    }
    model = ScriptedModel(lambda request: said[request.prompt])
    given = {"budget": 1.0, "store": tmp_path / "r.sqlite", "method": "witness"} | options
    found = judge(acquire({"sum": topic.problem}, model, **given), {"sum": topic})
    assert found.kept
    return found.fields[0]


@pytest.mark.parametrize(
    ("off_by", "options", "expected"),
    [
        ([0, 0, 0, 0], {}, FieldVerdict.CLEAN),
        ([0, 40, 0, 0], {}, FieldVerdict.REPAIRED),
        ([85, 40, 0, 0], {}, FieldVerdict.REPAIRED),
        ([85, 40, -7, 0], {}, FieldVerdict.NOTICED),
        ([-1, -1, -1, -1], {"budget": 0.0}, FieldVerdict.FOOLED),
        ([None, None, None, None], {}, FieldVerdict.UNCERTAIN),
    ],
)
def test_boxes(tmp_path: Path, off_by: list[float | None], options: dict[str, Any], expected: FieldVerdict) -> None:
    field = verdict(tmp_path, off_by, **options)
    assert field.verdict is expected
    assert field.asked == 4


def test_counts(tmp_path: Path) -> None:
    field = verdict(tmp_path, [0, 40, None, 0])
    assert field.wrong == ("swapped",)
    assert field.unread == ("worded",)
    assert field.repaired_wrong == ("swapped",)
    assert field.within
