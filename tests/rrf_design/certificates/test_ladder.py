"""Every rung gives a proven lower bound, says which rung it is, and never more than the exact
value.
"""

from __future__ import annotations

import numpy as np
import pytest

from rrf_design.certificates._ladder import SECOND_OPINION, Rung, climb, listed
from rrf_design.checker.exact import ProofOutcome
from rrf_design.checker.proofs import prove_floor
from rrf_design.errors import InputError

from .conftest import brute_margin, make_record


def field(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.vstack([rng.standard_normal((8, 7)) / 3, 0.7 * np.eye(7)])


@pytest.mark.parametrize(
    ("rung", "front_end"),
    [
        (Rung.AUTO, "ortools"),
        (Rung.EXACT, "ortools"),
        (Rung.BRANCH_AND_BOUND, "ortools"),
        (Rung.DOMINANCE, "ortools"),
        (Rung.SEMIDEFINITE, "ortools"),
        (Rung.MIXED_INTEGER, "ortools"),
        (Rung.MIXED_INTEGER, "pulp"),
    ],
)
def test_rungs(rung: Rung, front_end: str) -> None:
    matrix = field(1)
    record = make_record(matrix)
    truth = brute_margin(matrix, [1] * 7, 2)
    standing = climb(record, 1, rung=rung, time_limit=60.0, n_jobs=None, front_end=front_end)
    assert 0.0 < standing.lower <= truth * (1 + 1e-12)
    assert prove_floor(record, 2, floor=standing.lower).outcome is ProofOutcome.PROVED
    expected = "exact" if rung in (Rung.AUTO, Rung.BRANCH_AND_BOUND) else str(rung)
    assert standing.rung == expected
    assert (SECOND_OPINION in standing.notes) == (rung is Rung.MIXED_INTEGER)
    if rung in (Rung.AUTO, Rung.EXACT, Rung.BRANCH_AND_BOUND):
        assert standing.lower >= truth * (1 - 1e-8)


def test_nothing_provable_is_said_to_be_nothing() -> None:
    standing = climb(make_record(np.ones((1, 3))), 1, rung=Rung.DOMINANCE, time_limit=60.0, n_jobs=None)
    assert (standing.lower, standing.rung, standing.proof) == (0.0, "none", {"kind": "none"})


def test_a_rung_that_does_not_fit_is_an_input_error() -> None:
    record = make_record(np.eye(700))
    with pytest.raises(InputError, match="rung semidefinite: 700 coordinates"):
        climb(record, 1, rung=Rung.SEMIDEFINITE, time_limit=1.0, n_jobs=None)
    with pytest.raises(InputError, match="rung mixed-integer: 700"):
        climb(record, 1, rung=Rung.MIXED_INTEGER, time_limit=1.0, n_jobs=None)


def test_listed_supports() -> None:
    record = make_record(np.diag([1.0, 0.5, 0.25]))
    lower, worst, _ = listed(record, [["n0", "n1"], ["n0"]])
    assert lower == pytest.approx(0.5, rel=1e-12)
    assert worst == (0, 1)
    for supports, message in (([], "at least one"), ([["x"]], "'x' is not a node"), ([["n0", "n0"]], "none twice")):
        with pytest.raises(InputError, match=message):
            listed(record, supports)


def test_a_bound_that_can_not_be_re_proved_in_time_is_not_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    from rrf_design.certificates import _ladder as ladder
    from rrf_design.checker.exact import ProofOutcome
    from rrf_design.checker.proofs import Proof

    record = make_record(np.random.default_rng(0).standard_normal((60, 20)))
    options = {"rung": Rung.BRANCH_AND_BOUND, "time_limit": 0.0, "n_jobs": None}
    monkeypatch.setattr(ladder, "prove_floor", lambda *_, **__: Proof(ProofOutcome.PROVED, 0, 0))
    assert ladder.climb(record, 4, **options).lower > 0.0
    monkeypatch.setattr(ladder, "prove_floor", lambda *_, **__: Proof(ProofOutcome.UNDECIDED, 0, 0))
    standing = ladder.climb(record, 4, **options)
    assert (standing.lower, standing.proof) == (0.0, {"kind": "none"})
    assert any("not claimed" in note for note in standing.notes)
