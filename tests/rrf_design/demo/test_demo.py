"""The demonstration's data, how a run over it is judged, and what set-up compiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rrf_design.acquisition import acquire
from rrf_design.acquisition._fetch import Fetcher
from rrf_design.demo import TARGET, FieldVerdict, judge, topics
from rrf_design.demo.warm import _use_everything
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


@pytest.mark.parametrize("seed", [0, 7, 11])
def test_the_truth_satisfies_every_relation_and_every_check(seed: int) -> None:
    for name, topic in topics(seed).items():
        operator = topic.problem.operator("all")
        residual = operator.matrix @ operator.stack(topic.truth) - operator.target
        known = ~np.isnan(residual)
        assert np.abs(residual[known]).max() < 1e-12, name
        fetcher = Fetcher({name: topic.problem}, ScriptedModel(lambda r: ""), known={})
        source = fetcher.sources[name, "check"]
        if source.local and not hasattr(source, "tests"):
            from rrf_design.acquisition.sources.base import Asked

            assert source.fetch(Asked({}, {})).value == topic.truth["plain"]


def test_nothing_is_promised_before_anything_is_bought_and_either_purchase_protects() -> None:
    for topic in topics().values():
        assert topic.problem.margin().value == 0.0
        for one in ("check", topic.problem.nodes[4].id):
            assert topic.problem.margin([one]).lower >= TARGET


def test_values_in_words() -> None:
    topic = topics()["capital of Egypt"]
    assert topic.words(topic.truth["plain"]) == "Cairo"
    assert topic.words([0.5, 0.5, 0.0, 0.0]) == "mixed"
    assert topic.words(None) == "?"
    assert next(iter(topics().values())).words([12.0]) == "12"


def test_seeds_choose_the_numbers() -> None:
    assert list(topics(1)) == list(topics(1)) != list(topics(2))
    assert len(topics(3, sums=1, products=1, capitals=1, programs=0)) == 3


def test_the_kernels_of_verifier_and_decoder_are_met() -> None:
    _use_everything()
    from rrf_design.checker import _enumeration as enumeration
    from solvers.kernels import support_pairs

    assert enumeration.walk.dispatcher.signatures
    assert support_pairs.scan_pairs.dispatcher.signatures
