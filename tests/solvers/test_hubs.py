"""Supports around hubs: the same answers as without them, and as enumeration."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import solvers._search
from solvers import margin, support_margin, supports_below
from solvers._gamma import enumerate_supports
from solvers._gram import make_field
from solvers._hubs import HubSearch, hubs_of
from solvers.kernels.kernel import all_compiled


def hub_field(
    rng: np.random.Generator, *, nodes: int, hubs: int, dims: tuple[int, ...] = (1,), equal: bool = False
) -> tuple[np.ndarray, list[int]]:
    """Hubs that touch most nodes, chords among the others, an anchor on each; weights .3 to 3."""
    sizes = rng.choice(dims, nodes).tolist()
    starts = np.concatenate([[0], np.cumsum(sizes)])
    pairs = [(h, i) for h in range(hubs) for i in range(h + 1, nodes) if h == 0 or rng.random() < 0.8]
    pairs += [tuple(rng.choice(np.arange(hubs, nodes), 2, replace=False)) for _ in range(nodes // 2)]
    blocks = []
    for i, j in pairs:
        rows = min(sizes[i], sizes[j])
        row = np.zeros((rows, starts[-1]))
        weight = 1.0 if equal else rng.uniform(0.3, 3.0)
        row[:, starts[i] : starts[i + 1]] = weight * np.eye(rows, sizes[i])
        row[:, starts[j] : starts[j + 1]] = -weight * np.linalg.qr(rng.normal(size=(sizes[j], sizes[j])))[0][:rows]
        blocks.append(row)
    for i in range(nodes):
        row = np.zeros((sizes[i], starts[-1]))
        row[:, starts[i] : starts[i + 1]] = rng.choice([0.05, 0.2, 1.0]) * np.eye(sizes[i])
        blocks.append(row)
    return np.vstack(blocks), sizes


def star(leaves: int, *, equal: bool, chords: int, seed: int = 0) -> Any:
    """One node with a relation to every other, chords between others, an anchor on the hub."""
    rng = np.random.default_rng([seed, leaves])
    tails = np.concatenate([np.zeros(leaves, int), np.arange(1, chords + 1)])
    heads = np.concatenate([np.arange(1, leaves + 1), rng.permutation(np.arange(1, leaves + 1))[:chords]])
    weights = np.ones(len(tails)) if equal else rng.uniform(0.5, 2.0, len(tails))
    count = np.arange(len(tails))
    places = (np.tile(count, 2), np.concatenate([tails, heads]))
    relations = sparse.csr_array((np.concatenate([-weights, weights]), places), shape=(len(tails), leaves + 1))
    return sparse.vstack([relations, sparse.csr_array(([1.0], ([0], [0])), shape=(1, leaves + 1))]).tocsr()


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many nodes, the largest, are taken for hubs; and how often they were of use."""
    count = [0, 0]
    plain = HubSearch.below

    def below(self: HubSearch, *arguments: Any, **options: Any) -> Any:
        found = plain(self, *arguments, **options)
        count[1] += found is not None and found[1]
        return found

    monkeypatch.setattr(HubSearch, "below", below)
    monkeypatch.setattr(
        solvers._search,
        "hubs_of",
        lambda field, size: np.argsort(-np.diff(field.graph.indptr), kind="stable")[: count[0]],
    )
    return count


def connected(B: np.ndarray, sizes: list[int], support: tuple[int, ...]) -> bool:
    columns = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    rows = [set(np.flatnonzero(B[:, columns[i]].any(axis=1))) for i in support]
    reached, left = rows[0], rows[1:]
    while left:
        near = [own for own in left if own & reached]
        if not near:
            return False
        reached, left = reached.union(*near), [own for own in left if not own & reached]
    return True


@pytest.mark.parametrize("dims", [(1,), (1, 2, 3), (2,)])
@pytest.mark.parametrize("hubs", [1, 2, 3])
def test_the_margin_is_that_of_enumeration(forced: list[int], dims: tuple[int, ...], hubs: int) -> None:
    for seed in range(12):
        rng = np.random.default_rng([seed, hubs, len(dims), dims[0]])
        B, sizes = hub_field(rng, nodes=9, hubs=hubs, dims=dims, equal=seed % 3 == 0)
        size = 3 + seed % 4
        columns = make_field(B, sizes).groups
        truth = enumerate_supports(B, columns, size)
        forced[0] = hubs + seed % 2
        found = support_margin(B, sizes, size=size, method="search")
        assert found.lower <= truth.value * (1 + 1e-12)
        assert truth.value <= found.upper * (1 + 1e-12)
        assert found.status == "exact"
        assert found.value == pytest.approx(truth.value, rel=1e-9)
    assert forced[1] >= 6


@pytest.mark.parametrize("dims", [(1,), (1, 2)])
def test_lists_hold_the_same_supports(forced: list[int], dims: tuple[int, ...]) -> None:
    met = 0
    for seed in range(16):
        rng = np.random.default_rng([seed, 7, len(dims)])
        B, sizes = hub_field(rng, nodes=9, hubs=2, dims=dims)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        size = 3 + seed % 3
        values = {}
        for support in combinations(range(9), size):
            if connected(B, sizes, support):
                columns = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in support])
                values[support] = np.linalg.svd(B[:, columns], compute_uv=False)[-1]
        threshold = sorted(values.values())[seed % 8] * 1.001
        forced[0] = 2
        listed = supports_below(B, sizes, size=size, threshold=threshold)
        below = {support for support, value in values.items() if value < threshold}
        found = {each.support for each in listed.supports}
        assert listed.complete
        assert {support for support in found if support in values} == below
        met += len(below)
    assert met > 40
    assert forced[1] > 4


def test_hubs_that_only_all_together_are_in_question(forced: list[int]) -> None:
    """Three hubs whose couplings add up, and no place for another node beside them."""
    leaves = 12
    ties = [(0, 1, 1.0), (0, 2, 1.0), (1, 2, 1.0), *((h, i, 0.05) for h in range(3) for i in range(3, leaves))]
    B = np.vstack([np.zeros((len(ties), leaves)), np.diag([0.05] * 3 + [3.0] * (leaves - 3))])
    for row, (i, j, weight) in zip(B, ties, strict=False):
        row[[i, j]] = weight
    forced[0] = 3
    assert enumerate_supports(B, make_field(B, None).groups, 3).value > 0.2
    listed = supports_below(B, size=3, threshold=0.2)
    assert listed.complete
    assert not listed.supports
    assert forced[1]


@pytest.mark.parametrize("equal", [True, False])
def test_a_star_with_chords_is_equal_to_the_plain_search(forced: list[int], equal: bool) -> None:
    field = star(70, equal=equal, chords=30)
    plain = margin(field, k=2)
    forced[0] = 1
    found = margin(field, k=2)
    assert (found.value, found.upper, found.support) == (plain.value, plain.upper, plain.support)
    assert found.status == plain.status == "exact"
    assert forced[1]


def test_a_large_star_is_settled_by_a_few_numbers() -> None:
    field = star(4_000, equal=False, chords=2_000)
    assert hubs_of(make_field(field, None), 4).tolist() == [0]
    found = margin(field, k=2)
    assert found.status == "exact"
    assert found.tested < 10_000


def test_processes_and_the_interpreter_change_nothing() -> None:
    field = star(300, equal=False, chords=150, seed=3)
    one = margin(field, k=2)
    assert repr(margin(field, k=2, n_jobs=2)) == repr(one)
    with all_compiled():
        assert repr(margin(field, k=2)) == repr(one)


def test_ordinary_fields_have_no_hubs() -> None:
    rng = np.random.default_rng(0)
    assert not len(hubs_of(make_field(rng.normal(size=(80, 60)), None), 4))
    ring = sparse.eye_array(500) - sparse.eye_array(500, k=1)
    assert not len(hubs_of(make_field(sparse.csr_array(ring), None), 4))
