"""The pruned search misses no harmful support: against every support's own eigenvalue, and against
plain enumeration.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from rrf_design.checker._centres import Dense, Hunt, hunt, new_hunt, next_set
from rrf_design.checker._couplings import LIMIT
from rrf_design.checker._enumeration import COUNT, DONE, TESTED
from rrf_design.checker._gram import field_of
from rrf_design.checker.exact import ProofOutcome
from rrf_design.checker.proofs import prove_floor

from ..conftest import brute_margin, make_record


def dense_part(rng: np.random.Generator, sizes: Any, rows: int) -> Dense:
    width = int(np.sum(sizes))
    matrix = rng.standard_normal((rows, width))
    field = field_of(make_record(matrix, sizes), 2, np.zeros(0))
    assert field.gram is None
    return field.dense[0]


def found_by(
    part: Dense, size: int, shift: float, *, capacity: int, budget: int, price: int = 3
) -> tuple[list[tuple[int, ...]], Hunt]:
    """Every support that was rejected, collected over as many calls as it takes."""
    memory = new_hunt(part, size, shift=shift, capacity=capacity, price=price)
    found: list[tuple[int, ...]] = []
    while True:
        status = hunt(part, memory, shift, 0.0, budget)
        found += [tuple(sorted(int(i) for i in row)) for row in memory.rejected[: memory.state[COUNT]]]
        memory.state[COUNT] = 0
        if status == DONE:
            return found, memory


def least_eigenvalues(part: Dense, size: int) -> dict[tuple[int, ...], float]:
    supports = list(combinations(range(len(part.names)), size))
    columns = [np.concatenate([np.arange(part.cuts[i], part.cuts[i + 1]) for i in s]) for s in supports]
    return {s: float(np.linalg.eigvalsh(part.matrix[np.ix_(c, c)])[0]) for s, c in zip(supports, columns, strict=True)}


@pytest.mark.parametrize("size", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("kind", ["scalar", "pairs", "mixed"])
def test_exactly_the_harmful_supports_are_found(size: int, kind: str) -> None:
    """Thresholds from "nothing is harmful" to "half of them are", and a hair beside an eigenvalue
    on both sides.
    """
    rng = np.random.default_rng([size, len(kind)])
    for number in range(50):
        nodes = int(rng.integers(size + 1, 9))
        sizes = {"scalar": np.ones(nodes, int), "pairs": np.full(nodes, 2), "mixed": rng.integers(1, 4, nodes)}[kind]
        part = dense_part(rng, sizes, int(np.sum(sizes) * rng.uniform(0.9, 4.0)) + 2)
        values = least_eigenvalues(part, size)
        ordered = sorted(values.values())
        for shift in (ordered[0] * (1 - 1e-7), ordered[0] * (1 + 1e-7), ordered[len(ordered) // (2 + number % 9)]):
            if shift <= 1e-9:
                continue
            found = set(found_by(part, size, shift, capacity=64, budget=10**9)[0])
            assert {s for s, value in values.items() if value < shift * (1 - 1e-9)} <= found
            assert found <= {s for s, value in values.items() if value < shift * (1 + 1e-9)}


def test_pausing_and_a_full_list_change_nothing() -> None:
    rng = np.random.default_rng(3)
    part = dense_part(rng, np.array([1, 2, 1, 2, 1, 1, 2, 1, 1]), 22)
    values = least_eigenvalues(part, 4)
    shift = sorted(values.values())[len(values) // 3]
    whole, memory = found_by(part, 4, shift, capacity=4096, budget=10**9)
    for capacity, budget in ((1, 10**9), (3, 1), (4096, 1)):
        again, other = found_by(part, 4, shift, capacity=capacity, budget=budget)
        assert again == whole
        assert other.state[TESTED] == memory.state[TESTED]


def test_a_harmless_field_is_not_even_looked_at() -> None:
    part = dense_part(np.random.default_rng(0), np.ones(30, int), 4000)
    found, memory = found_by(part, 4, 0.1, capacity=8, budget=10**9)
    assert found == []
    assert memory.state[TESTED] == 0


@pytest.mark.parametrize("size", [4, 5])
def test_whatever_an_elimination_is_held_to_cost_nothing_is_missed(size: int) -> None:
    rng = np.random.default_rng(11)
    part = dense_part(rng, np.ones(14, int), 11)
    values = least_eigenvalues(part, size)
    shift = sorted(values.values())[20]
    expected = {s for s, value in values.items() if value < shift * (1 + 1e-9)}
    tests = []
    for price in (0, 3, 100, 10**7):
        found, memory = found_by(part, size, shift, capacity=64, budget=10**9, price=price)
        assert set(found) == expected
        tests.append(int(memory.state[TESTED]))
    assert tests[0] < tests[-1]  # eliminations on one end, stars only on the other


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_the_sets_of_a_star(count: int) -> None:
    rng = np.random.default_rng(count)
    for _ in range(40):
        pulls = np.sort(rng.random(int(rng.integers(count, 9))) * 1.2 / count)[::-1].copy()
        arms = np.zeros(count + 1, dtype=np.int64)
        found = []
        changed = next_set(pulls, len(pulls), arms, count, 0)
        while changed >= 0:
            if found:
                assert tuple(arms[:changed]) == found[-1][:changed]
            found.append(tuple(int(i) for i in arms[:count]))
            changed = next_set(pulls, len(pulls), arms, count, count)
        heavy = [s for s in combinations(range(len(pulls)), count) if pulls[list(s)].sum() > LIMIT]
        assert sorted(found) == heavy


def hostile(seed: int) -> tuple[Any, Any, Any, Any]:
    """Small fields that mostly are one dense component: ties, near singularity, wide scales, holes;
    some with radii.
    """
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(4, 9))
    sizes = [np.ones(nodes, int), np.full(nodes, 2), rng.integers(1, 4, nodes)][seed % 3]
    width = int(np.sum(sizes))
    matrix = rng.standard_normal((width + int(rng.integers(0, 6)), width))
    family = seed % 5
    if family == 1:
        matrix = rng.integers(-2, 3, matrix.shape).astype(float)
    elif family == 2:
        matrix = matrix * 10.0 ** rng.integers(-3, 4, width)
    elif family == 3:
        matrix[rng.random(matrix.shape) < 0.5] = 0.0
    elif family == 4:
        matrix[:, -1] = matrix[:, 0] + rng.standard_normal(len(matrix)) * 2.0 ** -int(rng.integers(4, 30))
    heights = [2] * (len(matrix) // 2) + [1] * (len(matrix) % 2)
    return matrix, sizes, heights, rng.random(len(heights)) * 0.02


@pytest.mark.parametrize("first", range(0, 300, 50))
def test_pruned_and_plain_proofs_agree_beside_the_threshold(first: int) -> None:
    """In particular nothing is accepted that plain enumeration refuses."""
    for seed in range(first, first + 50):
        matrix, sizes, heights, radii = hostile(seed)
        size = 2 + seed % 4
        record = make_record(matrix, sizes, blocks=heights, radii=radii)
        value = brute_margin(matrix, sizes, size)
        if value < 1e-9:
            continue
        for floor in (value * (1 - 1e-12), value * (1 + 1e-12)):
            plain = prove_floor(record, size, floor=floor, plain=True).outcome
            assert prove_floor(record, size, floor=floor).outcome is plain, seed
        if seed % 3 == 0:
            robust = max(0.0, value - float(np.linalg.norm(radii)) * (1 - 1e-3 * (seed % 2)))
            plain = prove_floor(record, size, floor=robust, with_radii=True, plain=True).outcome
            assert prove_floor(record, size, floor=robust, with_radii=True).outcome is plain, seed


def test_a_larger_dense_field_is_refuted_by_a_hair() -> None:
    rng = np.random.default_rng(8)
    matrix = rng.standard_normal((30, 40))
    record = make_record(matrix / np.linalg.norm(matrix, axis=0))
    from solvers import support_margin

    found = support_margin(record.matrix.toarray(), [1] * 40, size=4)
    assert prove_floor(record, 4, floor=found.lower).outcome is ProofOutcome.PROVED
    refuted = prove_floor(record, 4, floor=found.upper * (1 + 1e-12))
    assert refuted.outcome is ProofOutcome.REFUTED
    assert refuted.support == tuple(sorted(found.support))
