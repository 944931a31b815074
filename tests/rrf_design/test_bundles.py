"""No public function has more than eight parameters; the fields of a bundle may be given as keywords of their own."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from dataclasses import dataclass, fields

import pytest

import rrf_design
import rrf_design as rrf
import solvers
from rrf_design.bundles import Backend, Given, bundled, refuse_unused
from rrf_design.noise import Noise

MOST = 8


def public_functions():
    """Every function that a package names in its `__all__`; commands have their options instead of parameters."""
    rooms = [rrf_design, solvers]
    for root in (rrf_design, solvers):
        for found in pkgutil.walk_packages(root.__path__, root.__name__ + "."):
            if not found.name.startswith(("rrf_design.cli", "solvers.kernels")):
                rooms.append(importlib.import_module(found.name))
    for room in rooms:
        for name in getattr(room, "__all__", ()):
            thing = getattr(room, name)
            if inspect.isroutine(thing):
                yield f"{room.__name__}.{name}", thing


def test_no_public_function_has_more_than_eight_parameters():
    found = dict(public_functions())
    assert {"rrf_design.plan", "rrf_design.acquire", "solvers.margin", "rrf_design.risk.bound"} <= set(found)
    long = {name: len(inspect.signature(thing).parameters) for name, thing in found.items()}
    assert {name: count for name, count in long.items() if count > MOST} == {}


def test_options_after_the_first_two_are_keywords_and_none_hides_behind_stars():
    for name in ("plan", "frontier", "portfolio", "certify", "repair", "acquire"):
        parameters = list(inspect.signature(getattr(rrf, name)).parameters.values())
        assert all(p.kind is p.KEYWORD_ONLY for p in parameters[2:]), name


@dataclass(frozen=True)
class _Pace:
    speed: int = 1
    rest: float = 0.5


@bundled(pace=_Pace, noise=Noise)
def walk(where, *, far=1, pace=None, noise=None):
    """The way."""
    return where, far, pace, noise


def test_fields_are_taken_as_keywords():
    assert walk("home") == ("home", 1, None, None)
    assert walk("home", far=2, speed=3) == ("home", 2, _Pace(3), None)
    assert walk("home", pace=_Pace(3, 0.1), rest=0.2)[2] == _Pace(3, 0.2)
    assert walk("home", epsilon=0.1, speed=2)[2:] == (_Pace(2), Noise(0.1))
    assert walk.__doc__ == "The way."
    assert list(inspect.signature(walk).parameters) == ["where", "far", "pace", "noise"]


def test_an_unknown_keyword_is_named_with_the_nearest():
    with pytest.raises(TypeError, match=r"walk\(\) got an unexpected keyword argument 'sped'; did you mean 'speed'\?"):
        walk("home", sped=3)


def test_the_rest_goes_where_somebody_reads_it():
    @bundled(backend=Backend, rest="backend")
    def run(*, backend=None):
        return backend

    assert run(penalty=2.0, seed=3) == Backend(seed=3, options={"penalty": 2.0})


def test_what_a_verb_has_no_use_for_is_refused_and_not_ignored():
    problem = rrf.Problem(nodes=[{"id": "a"}], anchors=[{"id": "x", "node": "a", "value": 1.0}])
    with pytest.raises(rrf.InputError, match="certify: it has no use for seed; leave it out"):
        rrf.certify(problem, seed=3)
    with pytest.raises(rrf.InputError, match="portfolio: it has no use for front_end"):
        rrf.portfolio([problem], budget=1.0, backend=Backend(front_end="pulp"))
    with pytest.raises(rrf.InputError, match="repair of one problem: it has no use for resume"):
        rrf.repair(problem, {"a": 1.0}, resume="rows.jsonl")
    refuse_unused(Given(), "repair", ())


def test_bundles_and_keywords_say_the_same():
    problem = rrf.Problem(
        k=1,
        nodes=[{"id": "a"}, {"id": "b"}, {"id": "c"}],
        relations=[{"id": "ab", "tail": "a", "head": "b"}, {"id": "bc", "tail": "b", "head": "c"}],
        anchors=[
            {"id": "x", "node": "a", "value": 1.0, "cost": 1.0},
            {"id": "y", "node": "c", "value": 1.0, "cost": 2.0},
        ],
    )
    loose = rrf.plan(problem, budget=3.0, k=1, objective="gamma", n_jobs=1, time_limit=1e6)
    tied = rrf.plan(problem, budget=3.0, measure=rrf.Measure(1, "gamma"), backend=Backend(1, 1e6))
    assert loose == tied
    short = rrf.repair(problem, {"a": 1, "b": 5, "c": 1}, select="all", epsilon=0.1)
    long = rrf.repair(problem, {"a": 1, "b": 5, "c": 1}, select="all", noise=Noise(0.1))
    assert (short.repaired, short.epsilon, short.verdict) == (long.repaired, long.epsilon, long.verdict)
    assert short.epsilon == 0.1


def test_no_two_bundles_of_a_verb_have_a_field_in_common():
    for kinds in ((rrf.Measure, Backend), (Noise, rrf.Claims, Backend), (Noise, Given, Backend)):
        names = [entry.name for kind in kinds for entry in fields(kind)]
        assert len(names) == len(set(names))
    names = [entry.name for kind in (rrf.Limits, rrf.Strategy, rrf.Surroundings) for entry in fields(kind)]
    assert len(names) == len(set(names))


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
    rrf.plan(problem, budget=2.0, method="optimal", backend=Backend(progress=listen("plan")))
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
