from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from scenarios.synthetic import calibrate, complete, convex, corrupt, exact, generator, measure, sample_field
from scenarios.synthetic.decoders import PENALTIES


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
    """A penalty whose runs stopped early is never the best of the grid, however small its error looks."""
    from scenarios.synthetic import decoders

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
