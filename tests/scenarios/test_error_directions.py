from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scenarios.error_directions import SCENARIO, parts, run
from scenarios.error_directions.directions import chance, gauge, pattern_error, shares, worst_directions
from scenarios.kit.designs import DESIGNS, prepared
from scenarios.kit.scenario import Context


def test_single_and_shared_errors_have_the_shares_they_must_have() -> None:
    alone, shared = np.zeros((4, 2)), np.tile([3.0, -1.0], (4, 1))
    alone[2] = [1.0, 5.0]
    assert shares(alone, gauge()) == pytest.approx((0.25, 0.25))
    assert shares(shared, gauge()) == pytest.approx((1.0, 0.25))


def test_uncorrelated_errors_have_the_expected_share_on_average() -> None:
    rng = np.random.default_rng(0)
    found = np.array(
        [shares(rng.normal(size=(4, 1)) * [[1], [2], [1], [5]], worst_directions("spanning_tree")) for _ in range(4000)]
    )
    assert found[:, 0].mean() == pytest.approx(found[:, 1].mean(), abs=0.01)


def test_worst_directions_attain_the_margin_on_two_nodes() -> None:
    for design in DESIGNS:
        ready = prepared(design.name, 1)
        for direction in worst_directions(design.name):
            assert np.linalg.norm(direction) == pytest.approx(1.0)
            assert np.count_nonzero(np.abs(direction) > 1e-9) <= 2
            assert np.linalg.norm(ready.matrix @ direction) == pytest.approx(ready.gamma, abs=1e-9)


def test_patterns_share_a_direction_only_where_they_share_a_value() -> None:
    assert shares(pattern_error((1, 2, 3, 4)), gauge())[0] == pytest.approx(0.25)
    assert shares(pattern_error((1, 1, 0, 0)), gauge())[0] == pytest.approx(0.5)
    assert shares(pattern_error((1, 1, 1, 1)), gauge())[0] == pytest.approx(1.0)


def test_chance_is_a_quarter_without_common_values_and_one_if_all_are_wrong_in_one_way() -> None:
    assert chance(np.full(4, 0.3), None, draws=200, seed=0) == pytest.approx(0.25)
    assert chance(np.ones(4), 2, draws=20, seed=0) == pytest.approx(1.0)
    assert 0.25 < chance(np.full(4, 0.5), 10, draws=2000, seed=0) < 0.35


def test_another_seed_measures_the_same_fields_of_a_log() -> None:
    folder = Path(__file__).parents[2] / "reports" / SCENARIO.name
    given = {**SCENARIO.parameters(quick=True), "most": 2}
    contexts = [Context({**given, "seed": seed}, True, folder) for seed in (0, 7)]
    part = parts(contexts[0])[0]
    first, second = (run(context, part) for context in contexts)
    assert first == second
    assert first["fields"] > 0
