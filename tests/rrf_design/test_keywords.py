"""Keywords mean the same in every verb."""

from __future__ import annotations

import inspect

import pytest

import rrf_design as rrf
from rrf_design.noise import Noise


def test_options_after_the_first_two_are_keywords():
    for name in ("explain", "margin", "plan", "frontier", "portfolio", "certify", "repair", "acquire"):
        parameters = list(inspect.signature(getattr(rrf, name)).parameters.values())
        assert all(p.kind in (p.KEYWORD_ONLY, p.VAR_KEYWORD) for p in parameters[2:]), name


@pytest.mark.parametrize("verb", [rrf.plan, rrf.frontier, rrf.portfolio, rrf.certify, rrf.acquire, rrf.explain])
def test_an_unknown_keyword_is_refused_by_its_name(verb):
    problem = rrf.Problem(nodes=[{"id": "a"}], anchors=[{"id": "x", "node": "a", "value": 1.0}])
    with pytest.raises(TypeError, match="tyme_limit"):
        verb(problem, tyme_limit=3)


def test_what_repair_has_no_use_for_is_refused_and_not_ignored():
    problem = rrf.Problem(nodes=[{"id": "a"}], anchors=[{"id": "x", "node": "a", "value": 1.0}])
    with pytest.raises(rrf.InputError, match="resume"):
        rrf.repair(problem, {"a": 1.0}, resume="rows.jsonl")
    with pytest.raises(rrf.InputError, match="beta"):
        rrf.repair(problem, {"a": 1.0}, method="exact", beta=2.0)


def test_noise_and_its_short_forms_say_the_same():
    problem = rrf.Problem(
        k=1,
        nodes=[{"id": "a"}, {"id": "b"}, {"id": "c"}],
        relations=[{"id": "ab", "tail": "a", "head": "b"}, {"id": "bc", "tail": "b", "head": "c"}],
        anchors=[
            {"id": "x", "node": "a", "value": 1.0, "cost": 1.0},
            {"id": "y", "node": "c", "value": 1.0, "cost": 2.0},
        ],
    )
    short = rrf.repair(problem, {"a": 1, "b": 5, "c": 1}, select="all", epsilon=0.1)
    long = rrf.repair(problem, {"a": 1, "b": 5, "c": 1}, select="all", noise=Noise(0.1))
    assert (short.repaired, short.epsilon, short.verdict) == (long.repaired, long.epsilon, long.verdict)
    assert short.epsilon == 0.1
    both = rrf.certify(problem, "all", noise=Noise(sigma=0.1), confidence=0.9).document["noise"]
    assert both == rrf.certify(problem, "all", sigma=0.1, confidence=0.9).document["noise"]


def test_everything_that_takes_time_tells_its_progress_the_same_way(tmp_path):
    """progress(share, bounds, words): a share or None, two bounds or None, words or none."""
    from rrf_design.models.scripted import ScriptedModel
    from solvers import margin

    told = {}

    def listen(name):
        return lambda *news: told.setdefault(name, []).append(news)

    problem = rrf.Problem(
        k=1,
        nodes=[{"id": name, "prompt": "6 * 7?"} for name in "abcd"],
        relations=[{"id": a + b, "tail": a, "head": b} for a, b in ("ab", "bc", "cd", "da")],
        anchors=[{"id": f"x{name}", "node": name, "value": 42.0, "cost": 1.0} for name in "abcd"],
    )
    margin(problem.operator("all").matrix.toarray(), k=1, progress=listen("margin"))
    rrf.plan(problem, budget=2.0, method="optimal", progress=listen("plan"))
    rrf.frontier(problem, progress=listen("frontier"))
    certificate = rrf.certify(problem, "all", progress=listen("certify"))
    rrf.verify(certificate, progress=listen("verify"))
    rrf.repair(problem, dict.fromkeys("abcd", 42.0), select="all", progress=listen("repair"))
    one = ScriptedModel(lambda request: "42")
    rrf.acquire(problem, one, budget=4.0, store=tmp_path / "runs.sqlite", progress=listen("acquire"))
    many = {"one": problem, "two": problem}
    rrf.acquire(many, one, budget=4.0, store=tmp_path / "runs.sqlite", progress=listen("data set"))
    assert {"margin", "plan", "frontier", "certify", "acquire", "data set"} <= set(told)
    for name, news in told.items():
        for share, bounds, words in news:
            assert share is None or 0.0 <= share <= 1.0, name
            assert bounds is None or bounds[0] <= bounds[1] * (1 + 1e-12), name
            assert isinstance(words, str), name
    assert told["data set"][-1][0] == 1.0
