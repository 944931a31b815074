"""The demonstration's data is what it says: typed right, protected by what is for sale, and not rigged."""

from __future__ import annotations

import numpy as np
import pytest

from rrf_design.acquisition.fetching import Fetcher
from rrf_design.demo import topics
from rrf_design.demo.questions import TARGET
from rrf_design.models.scripted import ScriptedModel


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
            from rrf_design.acquisition.sources import Asked

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
