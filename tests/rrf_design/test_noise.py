"""One radius for all: declared, from a standard deviation, or from blocks; and what uncertain
blocks add.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.noise import (
    Noise,
    Radius,
    _field_spread,
    _largest_gain,
    node_weights,
    radius_of,
    recovery_bound,
    spread_at,
)


def pair(**settings: Any) -> rrf.Problem:
    content: dict[str, Any] = {
        "nodes": [{"id": "a"}, {"id": "b"}],
        "relations": [{"id": "r", "tail": "a", "head": "b"}],
        "anchors": [{"id": "x", "node": "a", "value": 1.0}],
    }
    return rrf.Problem(**{**content, **settings})


def found(problem: rrf.Problem, **given: Any) -> Any:
    return radius_of(problem, problem.operator(), Noise(**given) if given else None)


def test_what_is_declared_counts_and_what_is_given_replaces_it() -> None:
    assert found(pair(epsilon=0.3)).total == 0.3
    assert found(pair(epsilon=0.3), epsilon=0.1).total == 0.1
    assert found(pair()).total == 0.0
    assert not found(pair()).declared
    several = found(pair(sigma=0.1))
    assert several.total == pytest.approx(0.1 * 5.991464547107979**0.5)  # the χ² quantile of two rows
    assert several.confidence == 0.95


def test_noise_of_blocks_alone_is_noise() -> None:
    judged = pair(anchors=[{"id": "judge", "node": "a", "value": 42.0, "sigma": 5.0}])
    assert found(judged).total == pytest.approx(1.959963984540054)  # one whitened row of unit variance
    assert found(judged).rows.blocks == ("judge",)


def test_uncertain_blocks_add_what_the_field_can_make_of_them() -> None:
    doubtful = {"relations": [{"id": "r", "tail": "a", "head": "b", "uncertainty": 0.1}]}
    unknown = pair(epsilon=0.2, **doubtful)
    assert found(unknown).total is None
    assert node_weights(unknown.operator()) == {"a": pytest.approx(0.01), "b": pytest.approx(0.01)}
    assert found(pair(epsilon=0.2, amplitude=100.0, **doubtful)).total == pytest.approx(10.2)
    nodes = [{"id": "a", "range": [-3.0, 2.0]}, {"id": "b", "range": [0.0, 4.0]}]
    ranged = pair(nodes=nodes, **doubtful)
    assert _field_spread(ranged, ranged.operator()) == pytest.approx(0.5)
    assert spread_at(ranged.operator(), {"a": 3.0, "b": 4.0}) == pytest.approx(0.5)
    both = pair(nodes=nodes, amplitude=1.0, **doubtful)
    assert _field_spread(both, both.operator()) == pytest.approx(0.1)


def test_a_block_is_uncertain_on_every_node_it_names_also_where_its_coefficient_is_zero() -> None:
    nothing = {"id": "r", "tail": "a", "head": "b", "transport": {"scale": 0.0}, "uncertainty": 0.1}
    assert set(node_weights(pair(relations=[nothing]).operator())) == {"a", "b"}


def test_ranges_count_every_coordinate_in_the_metric() -> None:
    nodes = [{"id": "a", "dim": 2, "range": [0.0, 1.0], "metric": 4.0}, {"id": "b", "dim": 2, "range": [0.0, 0.0]}]
    relations = [{"id": "r", "tail": "a", "head": "b", "uncertainty": 1.0}]
    problem = rrf.Problem(nodes=nodes, relations=relations)
    assert _field_spread(problem, problem.operator()) == pytest.approx(2.0 * 2**0.5)


@pytest.mark.parametrize(
    "wrong", [{"epsilon": -1.0}, {"epsilon": True}, {"sigma": 0.0}, {"epsilon": 0.1, "sigma": 0.1}]
)
def test_noise_that_is_none(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Noise(**wrong)
    with pytest.raises(InputError, match="not one of"):
        Noise(kind="pink")


def test_a_range_has_its_least_first() -> None:
    with pytest.raises(InputError, match="comes first"):
        pair(nodes=[{"id": "a", "range": [2.0, 1.0]}, {"id": "b"}])


@pytest.mark.parametrize("seed", range(20))
def test_the_largest_gain_is_a_bound_on_the_norm(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    operator = rrf.from_matrix(rng.standard_normal((4, 3)) * 10.0 ** rng.integers(-3, 4)).operator()
    true = np.linalg.norm(operator.matrix.toarray(), 2)
    assert true <= _largest_gain(operator) <= true * (1 + 1e-8)
    monkeypatch.setattr("rrf_design.noise.DENSE", 0)
    assert true <= _largest_gain(operator) <= 4 * true


def test_small_errors_everywhere_are_noise_and_error() -> None:
    plain = rrf.Problem(nodes=[{"id": "a"}], anchors=[{"id": "x", "node": "a"}], tail=0.5)
    found = radius_of(plain, plain.whole)
    assert found.declared
    assert found.total == pytest.approx(0.5)
    assert found.bound(1.0) == pytest.approx(1.5)
    assert (
        found.words()
        == "the noise of all rows together is at most 0, all other answers together are off by at most 0.5"
    )
    with pytest.raises(InputError, match=r"delta = 0\.5 can't be promised with errors of up to tail = 0\.5"):
        rrf.Problem(nodes=[{"id": "a"}], tail=0.5, delta=0.5)
    with pytest.raises(InputError, match="tail must be greater than or equal to 0"):
        rrf.Problem(nodes=[{"id": "a"}], tail=-0.5)


def test_two_explanations_are_no_further_apart_than_twice_the_radius_over_the_margin() -> None:
    """Every bound is this one: a radius's own, and that of a repair with it."""
    from fractions import Fraction

    assert recovery_bound(0.0, 0.5) == 0.0
    for epsilon, lower in ((0.1, 0.3), (1.0, 3.0), (1e-9, 0.7)):
        assert Fraction(recovery_bound(epsilon, lower)) >= 2 * Fraction(epsilon) / Fraction(lower)
    problem = pair(epsilon=0.3, k=1, deliver=["b"])
    fixed = rrf.repair(problem, {"a": 1.0, "b": 1.0})
    radius = found(problem)
    assert isinstance(radius, Radius)
    assert fixed.error_bound == radius.bound(fixed.gamma_lower) == recovery_bound(0.3, fixed.gamma_lower)


def test_answers_that_scatter_too_far_for_floats_are_refused() -> None:
    problem = pair(nodes=[{"id": "a", "sigma": 1e308}, {"id": "b"}])
    with pytest.raises(InputError, match=r"sigma of the nodes a: too large for floating point"):
        found(problem)
