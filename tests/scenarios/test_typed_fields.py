from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from scenarios.kit.typed_fields import (
    CONDITION_LIMIT,
    PENALTIES,
    calibrate,
    complete,
    convex,
    corrupt,
    exact,
    generator,
    measure,
    path,
    random_tree,
    sample_field,
)


@pytest.fixture
def field():  # type: ignore[no-untyped-def]
    return sample_field(generator(0, "test", "graph"), [3, 5])


def test_truth_satisfies_every_relation(field) -> None:  # type: ignore[no-untyped-def]
    edges = [*complete(field.members(0)), *complete(field.members(1))]
    D = field.operator(edges)
    assert np.linalg.norm(D @ field.truth.ravel()) < 1e-12
    gauge = np.zeros_like(field.truth)
    gauge[field.members(1)] = field.maps[field.members(1)] @ np.ones(field.dim)
    assert np.linalg.norm(D @ gauge.ravel()) < 1e-12


def test_maps_are_orthogonal_times_log_normal(field) -> None:  # type: ignore[no-untyped-def]
    for M in field.maps:
        gram = M.T @ M
        assert np.abs(gram - np.diag(np.diag(gram))).max() < 1e-12
        assert np.linalg.cond(M) <= CONDITION_LIMIT
    scales = [np.log(np.diag(M.T @ M)) / 2 for i in range(40) for M in sample_field(generator(i, "t", "g"), [6]).maps]
    assert np.std(scales) == pytest.approx(0.12, abs=0.01)


def test_streams_do_not_overlap_and_repeat() -> None:
    a = generator(0, "S1", "graph", 3).normal()
    assert a == generator(0, "S1", "graph", 3).normal()
    others = [(1, "S1", "graph", 3), (0, "S2", "graph", 3), (0, "S1", "noise", 3), (0, "S1", "graph", 4)]
    assert len({a, *(generator(*other).normal() for other in others)}) == 5


def test_corruption_has_k_nodes_and_its_amplitudes(field) -> None:  # type: ignore[no-untyped-def]
    wrong = corrupt(np.random.default_rng(0), field, 2)
    sizes = np.linalg.norm(wrong.error, axis=1)
    assert tuple(np.flatnonzero(sizes)) == wrong.nodes
    assert sizes[list(wrong.nodes)] == pytest.approx(wrong.amplitudes)
    assert all(0.9 <= a <= 2.1 for a in wrong.amplitudes)


def test_graphs() -> None:
    assert path([4, 5, 6]) == [(4, 5), (5, 6)]
    assert len(complete(range(5))) == 10
    tree = random_tree(np.random.default_rng(0), list(range(6)))
    assert len(tree) == 5
    assert all(tail < head for tail, head in tree)


def test_exact_repair_brings_the_field_back() -> None:
    field = sample_field(generator(0, "decoders", "graph"), [6])
    B = field.operator(complete(range(6)), [0])
    wrong = corrupt(generator(0, "decoders", "corruption"), field, 2)
    found = exact(B, field.groups, B @ wrong.error.ravel(), k=2, truth=field.truth, error=wrong.error)
    assert found.relative_error < 1e-9
    assert found.localization == 1.0
    assert found.explanations == 1


def test_ambiguous_pair_takes_the_first_node() -> None:
    field = sample_field(generator(1, "decoders", "graph"), [2])
    B = field.operator([(0, 1)])
    for node in (0, 1):
        error = np.zeros((2, 4))
        error[node] = [1.0, 0.5, -0.5, 0.2]
        found = exact(B, field.groups, B @ error.ravel(), k=1, truth=field.truth, error=error)
        assert found.explanations == 2
        assert (found.relative_error < 1e-9) == (node == 0)


def test_convex_repair_and_its_calibration() -> None:
    field = sample_field(generator(2, "decoders", "graph"), [6])
    B = field.operator(complete(range(6)), list(range(6)))
    wrong = corrupt(generator(2, "decoders", "corruption"), field, 1)
    s = B @ wrong.error.ravel()
    found = convex(B, field.groups, s, k=1, truth=field.truth, error=wrong.error, penalty=0.01)
    assert found.localization == 1.0
    assert found.relative_error < 0.05
    assert calibrate([(B, field.groups, s, 1, field.truth, wrong.error)]) == PENALTIES[-1]
    none = convex(B, field.groups, np.zeros_like(s), k=1, truth=field.truth, error=wrong.error, penalty=0.01)
    assert none.absolute_error == pytest.approx(np.linalg.norm(wrong.error))


def test_runs_that_did_not_converge_choose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A penalty whose runs stopped early is never the best of the grid, however small its error
    looks.
    """
    from scenarios.kit import typed_fields as decoders

    field = sample_field(generator(2, "decoders", "graph"), [6])
    B = field.operator(complete(range(6)), list(range(6)))
    wrong = corrupt(generator(2, "decoders", "corruption"), field, 1)
    s, top = B @ wrong.error.ravel(), {}

    def stops(matrix: object, groups: object, *, syndrome: np.ndarray, penalty: float, tolerance: float) -> object:
        top.setdefault("penalty", penalty / PENALTIES[0])
        early = penalty < 0.5 * top["penalty"] * PENALTIES[1]
        # The early ones would be perfect; the others leave a tenth of the error.
        return SimpleNamespace(error=wrong.error.ravel() * (1.0 if early else 0.9), residual=0.0, converged=not early)

    monkeypatch.setattr(decoders, "group_lasso", stops)
    assert calibrate([(B, field.groups, s, 1, field.truth, wrong.error)]) in PENALTIES[:2]
    found = convex(B, field.groups, s, k=1, truth=field.truth, error=wrong.error, penalty=PENALTIES[-1])
    assert not found.converged


def test_measure_checks_its_witness() -> None:
    zero = measure(np.array([[1.0, -1.0, 0.0]]), [1, 1, 1], 1)
    assert zero.zero
    assert zero.witness_ok
    path = measure(np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0]]), [1, 1, 1], 1)
    assert path.gamma == pytest.approx(np.sqrt((3 - np.sqrt(5)) / 2))
    assert path.witness_ok
