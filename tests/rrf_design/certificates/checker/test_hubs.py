"""The verifier's own way with hubs: what it proves holds, what is claimed too high it refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import rrf_design as rrf
from rrf_design.checker import _hubs
from rrf_design.checker.exact import ProofOutcome
from rrf_design.checker.proofs import prove_floor

from ..conftest import brute_margin, make_record


def star(rng: np.random.Generator, *, nodes: int, hubs: int, dims: tuple[int, ...]) -> tuple[np.ndarray, list[int]]:
    """Leaves at one of a few hubs, hubs in a row, some chords, weak anchors, weights .5 to 2."""
    sizes = rng.choice(dims, nodes)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    pairs = [(i - 1, i) for i in range(1, hubs)] + [(int(rng.integers(hubs)), i) for i in range(hubs, nodes)]
    pairs += [(i, i + 1) for i in range(hubs, nodes - 1, 4)]
    blocks = []
    for i, j in pairs:
        block = np.zeros((sizes[j], starts[-1]))
        block[:, starts[j] : starts[j + 1]] = np.eye(sizes[j])
        block[:, starts[i] : starts[i + 1]] = -np.linalg.qr(rng.normal(size=(3, 3)))[0][: sizes[j], : sizes[i]]
        blocks.append(rng.uniform(0.5, 2.0) * block)
    return np.vstack([*blocks, 0.3 * np.eye(starts[-1])]), sizes.tolist()


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """How many nodes, the largest, are taken for hubs; and what came of it each time."""
    seen: list[Any] = [1]
    plain = _hubs.prove_around_hubs

    def around(*arguments: Any, **options: Any) -> Any:
        seen.append(plain(*arguments, **options))
        return seen[-1]

    monkeypatch.setattr(_hubs, "prove_around_hubs", around)
    monkeypatch.setattr(
        _hubs, "hubs_in", lambda gram, size: np.argsort(-np.diff(gram.neighbour_starts), kind="stable")[: seen[0]]
    )
    return seen


@pytest.mark.parametrize("dims", [(1,), (1, 2, 3)])
@pytest.mark.parametrize("hubs", [1, 2])
def test_true_claims_are_proved_and_false_ones_refuted(forced: list[Any], hubs: int, dims: tuple[int, ...]) -> None:
    for seed in range(6):
        matrix, sizes = star(np.random.default_rng([seed, hubs, len(dims)]), nodes=13, hubs=hubs, dims=dims)
        record, size = make_record(matrix, sizes), 3 + seed % 2
        value = brute_margin(matrix, sizes, size)
        forced[0] = hubs
        assert prove_floor(record, size, floor=value * (1 - 1e-10)).outcome is ProofOutcome.PROVED
        assert prove_floor(record, size, floor=value * 0.9).outcome is ProofOutcome.PROVED
        for share in (1e-9, 1e-3, 0.3):
            refuted = prove_floor(record, size, floor=value * (1 + share))
            assert refuted.outcome is ProofOutcome.REFUTED
            block = np.concatenate([np.arange(sum(sizes[:i]), sum(sizes[: i + 1])) for i in refuted.support])
            assert np.linalg.svd(matrix[:, block], compute_uv=False)[-1] < value * (1 + share)
    assert sum(found is not None for found in forced[1:]) >= 10


def test_every_set_is_met_whether_or_not_a_hub_is_in_it(forced: list[Any]) -> None:
    """A weak chord among the leaves, and a weak leaf at the hub: each is found by itself."""
    nodes = 14
    for pair, weight in (((5, 6), 0.2), ((0, 9), 0.1)):
        rows = [(0, i, 1.0) for i in range(1, nodes)] + [(1, 2, 1.0), (5, 6, 1.0)]
        matrix = np.zeros((len(rows) + 1, nodes))
        for place, (i, j, size) in enumerate(rows):
            matrix[place, [i, j]] = (-size, size)
        matrix[-1, 0] = 1.0
        matrix[:, pair[1]] *= weight
        value = brute_margin(matrix, [1] * nodes, 4)
        record = make_record(matrix, [1] * nodes)
        assert prove_floor(record, 4, floor=value * (1 - 1e-10)).outcome is ProofOutcome.PROVED
        refuted = prove_floor(record, 4, floor=value * (1 + 1e-9))
        assert refuted.outcome is ProofOutcome.REFUTED
        assert pair[1] in refuted.support


def test_a_certificate_of_a_large_star_is_proved_again_and_a_forged_one_refused() -> None:
    leaves, rng = 1_500, np.random.default_rng(1)
    weights = rng.uniform(0.5, 2.0, leaves)
    place = np.arange(leaves)
    columns = np.concatenate([np.zeros(leaves, int), np.arange(1, leaves + 1)])
    ties = sparse.csr_array((np.concatenate([-weights, weights]), (np.tile(place, 2), columns)))
    anchor = sparse.csr_array(([1.0], ([0], [0])), shape=(1, leaves + 1))
    certificate = rrf.certify(rrf.from_matrix(sparse.vstack([ties, anchor]).tocsr(), k=2), budgets=[])
    assert rrf.verify(certificate).valid
    record = make_record(sparse.vstack([ties, anchor]).tocsr())
    claimed = certificate.document["margin"]["lower"]
    assert prove_floor(record, 4, floor=claimed).outcome is ProofOutcome.PROVED
    assert prove_floor(record, 4, floor=claimed * (1 + 1e-8)).outcome is ProofOutcome.REFUTED
