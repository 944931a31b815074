"""The component criterion agrees with the exact margin wherever it applies, and says so where it doesn't."""

from __future__ import annotations

import numpy as np
import pytest

import rrf_design as rrf


@pytest.mark.parametrize("seed", range(20))
def test_it_decides_zero_margins_of_identity_fields(seed):
    rng = np.random.default_rng(seed)
    dim = 1 + seed % 2
    nodes = [{"id": f"n{i}", "dim": dim} for i in range(7)]
    pairs = [(i, j) for i in range(7) for j in range(i + 1, 7) if rng.random() < 0.2]
    relations = [{"id": f"r{i}{j}", "tail": f"n{i}", "head": f"n{j}"} for i, j in pairs]
    anchors = [{"id": f"a{i}", "node": f"n{i}"} for i in range(7) if rng.random() < 0.4]
    problem = rrf.Problem(nodes=nodes, relations=relations, anchors=anchors)
    for k in (1, 2):
        criterion = rrf.component_criterion(problem, k=k)
        assert criterion.zero == (problem.margin(k=k).value == 0.0)
    everything = problem.margin(k=4).value > 0
    assert criterion.injective == everything


def test_it_refuses_what_it_does_not_cover():
    nodes = [{"id": "a"}, {"id": "b"}]
    scaled = rrf.Problem(nodes=nodes, relations=[{"id": "r", "tail": "a", "head": "b", "transport": {"scale": 3.0}}])
    with pytest.raises(rrf.InputError, match="relation 'r': transport scale"):
        rrf.component_criterion(scaled)
    partial = rrf.Problem(nodes=[{"id": "a", "dim": 2}], anchors=[{"id": "x", "node": "a", "rows": [[1.0, 0.0]]}])
    with pytest.raises(rrf.InputError, match="anchor 'x': partial rows"):
        rrf.component_criterion(partial)


def test_sums_are_not_identities() -> None:
    problem = rrf.Problem(
        nodes=[{"id": name} for name in "abc"], relations=[{"id": "s", "sum": ["a", "b"], "head": "c"}]
    )
    with pytest.raises(rrf.InputError, match="relation 's': among several nodes"):
        rrf.component_criterion(problem)
