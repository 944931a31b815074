"""One wish, one tolerance: what is wanted, and when it is reached."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from rrf_design.checker.noise import NoiseKind, NoiseRadius
from rrf_design.errors import InputError
from rrf_design.goal import Goal, Standing, reaches
from rrf_design.noise import Radius


def radius(epsilon: float | None, spread: float | None = 0.0) -> Radius:
    kind = NoiseKind.NONE if epsilon is None else NoiseKind.DETERMINISTIC
    return Radius(NoiseRadius(kind, epsilon, rows=3), spread)


def test_the_wanted_margin_is_the_larger_of_target_and_two_epsilon_over_delta() -> None:
    assert Goal().wanted(radius(0.1)) is None
    assert Goal(target=0.5).wanted(radius(0.1)) == 0.5
    assert Goal(delta=0.4).wanted(radius(0.1)) == pytest.approx(0.5)
    assert Goal(target=0.1, delta=0.4).wanted(radius(0.1)) == pytest.approx(0.5)
    assert Goal(delta=0.4).wanted(radius(0.1, 0.1)) == pytest.approx(1.0)
    assert Goal(delta=0.4).wanted(radius(0.1, None)) == inf


def test_reached() -> None:
    near = {"lower": 0.5, "robust_lower": 0.2}
    assert Goal().reached(**near, radius=radius(None))
    assert not Goal(target=0.4).reached(**near, radius=radius(None))  # what is certain of the margin counts
    assert Goal(target=0.2).reached(**near, radius=radius(None))
    assert Goal(delta=0.4).reached(**near, radius=radius(0.1))
    assert not Goal(delta=0.39).reached(**near, radius=radius(0.1))
    assert not Goal(delta=100.0).reached(**near, radius=radius(0.1, None))
    assert not Goal(target=0.0).reached(lower=0.0, robust_lower=0.0, radius=radius(0.0))


def test_a_hair_below_is_reached_and_more_is_not() -> None:
    assert reaches(0.5 * (1 - 1e-10), 0.5)
    assert not reaches(0.5 * (1 - 1e-8), 0.5)
    assert reaches(1e-9, None)
    assert not reaches(0.0, None)


def test_bounds() -> None:
    assert radius(0.1).bound(0.5) == pytest.approx(0.4)
    assert radius(0.1, None).bound(0.5) is None
    assert radius(0.1).bound(0.0) is None
    standing = Standing(Goal(delta=1.0), 1, 0.5, 0.5, radius(0.1))
    assert standing.to_json() == {
        "wanted": pytest.approx(0.2),
        "reached": True,
        "epsilon": 0.1,
        "robust_lower": 0.5,
        "error_bound": pytest.approx(0.4),
    }
    assert Standing(Goal(delta=1.0), 1, 0.5, 0.5, radius(0.1, None)).wanted is None
    diffuse = replace(radius(0.1), tail=0.2, image=0.4)
    assert diffuse.bound(0.5) == pytest.approx(2.2)  # the tail itself, and 2(ε + ‖Br‖)/γ
    assert Goal(delta=1.2).wanted(diffuse) == pytest.approx(1.0)
    assert Goal(delta=0.2).wanted(diffuse) == inf
    assert not Goal(delta=2.1).reached(lower=0.5, robust_lower=0.5, radius=diffuse)
    assert Goal(delta=2.3).reached(lower=0.5, robust_lower=0.5, radius=diffuse)
    assert "range" in Standing(Goal(delta=1.0), 1, 0.5, 0.5, radius(0.1, None)).words()


@pytest.mark.parametrize("wrong", [{"target": -1.0}, {"target": inf}, {"delta": 0.0}, {"delta": float("nan")}])
def test_wishes_that_are_none(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        Goal(**wrong)
