"""Certificates as they are issued: sections, the ladder of lower bounds, what is protected."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.certificates import Certificate, NoiseKind, Regime, Uncertainty
from rrf_design.certificates._issue import _record_of, _save_record, _unwhitened
from rrf_design.certificates._ladder import SECOND_OPINION, Rung, climb, listed
from rrf_design.certificates._sections import (
    SMALL,
    audit_section,
    further_budgets,
    nullspace_section,
    positive,
    witness_section,
)
from rrf_design.checker.exact import ProofOutcome
from rrf_design.checker.nullspace import NullSpace, check_nullspace
from rrf_design.checker.proofs import prove_floor
from rrf_design.checker.record import load_record
from rrf_design.errors import InputError
from rrf_design.problem import Problem

from .conftest import brute_margin, make_record, triangle


def test_a_positive_margin() -> None:
    made = rrf.certify(triangle(), ["fix"], require=0.4)
    assert made.gamma_lower == pytest.approx(1.0, rel=1e-8)
    assert made.gamma_lower <= 1.0 <= made.gamma_upper
    assert made.robust_lower == pytest.approx(0.99, rel=1e-8)
    assert made.error_bound == pytest.approx(2 * (0.02 + 0.01 * 0.5**0.5), rel=1e-6)  # ab is off by 0.01 of two halves
    assert made.regime is Regime.COMPUTATION
    assert made.met
    assert made.certificate is made.document
    assert made.document["audit"]["sensitivity"] == pytest.approx(1.0)
    assert made.document["budgets"][0]["k"] == 2
    assert rrf.verify(made).valid


def test_a_zero_margin_gives_the_indistinguishable_pair() -> None:
    made = rrf.certify(triangle(), require=0.4)
    assert made.gamma_lower == 0.0
    assert made.regime is Regime.INFORMATION
    assert made.document["margin"]["rung"] == "none"
    assert made.document["audit"]["pair"] == {"first": ["isolate"], "second": []}
    assert made.document["nullspace"]["status"] == "refuted"
    assert made.error_bound is None
    assert not made.met
    assert rrf.verify(made).valid


def test_the_paper_chain_needs_its_anchor_only_at_two() -> None:
    chain = Problem(
        nodes=[{"id": str(i)} for i in range(4)],
        relations=[{"id": f"r{i}", "tail": str(i), "head": str(i + 1)} for i in range(3)],
        anchors=[{"id": "first", "node": "0", "cost": 1.0}],
    )
    made = rrf.certify(chain)
    assert made.gamma_lower > 0.5
    assert made.document["budgets"][0]["upper"] < 1e-9
    anchored = rrf.certify(chain, "all", k=2)
    assert anchored.gamma_lower > 0.1
    assert rrf.verify(made).valid
    assert rrf.verify(anchored).valid


def test_noise_limited_designs_are_called_so() -> None:
    assert rrf.certify(triangle(epsilon=0.2), ["fix"]).regime is Regime.NOISE
    spread = Uncertainty({"ab": 0.7}, source="calibration")
    assert rrf.certify(triangle(), ["fix"], uncertainty=spread).regime is Regime.NOISE


@pytest.mark.parametrize("kind", ["gaussian", "chi", "subgaussian"])
def test_random_noise(kind: str) -> None:
    made = rrf.certify(triangle(epsilon=None), ["fix"], sigma=0.01, confidence=0.9, kind=kind, largest_error=1.0)
    assert made.document["noise"]["kind"] == kind
    assert made.document["error"]["confidence"] == 0.9
    assert (made.document["error"]["minimax"]["gaussian_lower"] is not None) == (kind != "subgaussian")
    assert rrf.verify(made).valid


def test_declared_covariances_give_the_noise_and_the_unwhitened_margin() -> None:
    problem = Problem(
        nodes=[{"id": "a"}, {"id": "b"}],
        relations=[{"id": "r", "tail": "a", "head": "b"}],
        anchors=[{"id": "x", "node": "a", "sigma": 0.5}, {"id": "y", "node": "b", "sigma": 0.5}],
    )
    made = rrf.certify(problem)
    assert made.document["noise"]["blocks"] == ["x", "y"]
    assert made.document["noise"]["rows"] == 2
    assert made.document["metrics"]["whitened"] == ["x", "y"]
    assert made.document["provenance"]["unwhitened"]["lower"] == pytest.approx(1.0, rel=1e-8)
    assert made.gamma_lower == pytest.approx(2.0, rel=1e-8)
    assert rrf.verify(made).valid


def test_calibrated_radii_carry_their_confidence() -> None:
    spread = Uncertainty({"ab": 0.05, "fix": 0.05}, source="40 repeats, bootstrap", confidence=0.95)
    made = rrf.certify(triangle(), ["fix"], uncertainty=spread)
    assert made.document["uncertainty"]["support_lower"] > made.document["uncertainty"]["global_lower"]
    assert made.document["error"]["confidence"] == 0.95
    assert rrf.verify(made).valid


def test_supports_are_labelled_as_only_that() -> None:
    made = rrf.certify(triangle(), supports=[["a", "b"]])
    assert made.gamma_lower == 0.0
    assert made.document["conditional"]["lower"] == pytest.approx(1.0, rel=1e-9)
    assert rrf.verify(made).valid


def test_the_same_input_gives_the_same_document_and_survives_its_file(tmp_path: Path) -> None:
    assert rrf.certify(triangle(), ["fix"]).document == rrf.certify(triangle(), ["fix"]).document
    record = make_record(np.random.default_rng(0).standard_normal((4, 6)), [2, 3, 1], blocks=[3, 1])
    _save_record(record, tmp_path / "b.npz")
    assert load_record(tmp_path / "b.npz").digest == record.digest
    assert [path.name for path in tmp_path.iterdir()] == ["b.npz"]


def test_vector_nodes_with_metrics_and_transports() -> None:
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.standard_normal((2, 2)))[0].tolist()
    problem = Problem(
        nodes=[{"id": "p", "dim": 2, "metric": [[2.0, 0.5], [0.5, 1.0]]}, {"id": "q", "dim": 2}, {"id": "s", "dim": 1}],
        relations=[
            {"id": "turn", "tail": "p", "head": "q", "transport": {"matrix": turn}, "uncertainty": 0.02},
            {"id": "first", "tail": "q", "head": "s", "transport": {"select": [0]}},
        ],
        anchors=[{"id": "ap", "node": "p"}, {"id": "as", "node": "s", "covariance": [[0.25]]}],
    )
    for rung in ("auto", "dominance", "semidefinite"):
        made = rrf.certify(problem, rung=rung)
        assert made.gamma_lower > 0
        assert rrf.verify(made).valid


def test_saving(tmp_path: Path) -> None:
    made: Certificate = rrf.certify(triangle(), ["fix"]).save(tmp_path / "c.json")
    stored = json.loads((tmp_path / "c.json").read_text())
    assert stored == made.document
    assert made.to_json()["certificate"] == str(tmp_path / "c.json")
    with pytest.raises(InputError, match="can't be written"):
        made.save(tmp_path / "no" / "c.json")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rung": "best"}, "rung: 'best' is not one of"),
        ({"k": 0}, "k must be"),
        ({"epsilon": -1.0}, "epsilon must be"),
        ({"epsilon": 0.1, "sigma": 0.1}, "epsilon or sigma"),
        ({"sigma": 0.1, "kind": "loud"}, "'loud' is not one of"),
        ({"sigma": 0.1, "kind": NoiseKind.DETERMINISTIC}, "needs epsilon"),
        ({"amplitude": 0.0}, "amplitude must be"),
        ({"uncertainty": Uncertainty({"zz": 0.1})}, "'zz' is not a block"),
        ({"budgets": [0]}, "k must be"),
    ],
)
def test_input_errors(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        rrf.certify(triangle(), ["fix"], **options)  # type: ignore[arg-type]


def test_progress_hears_bounds_that_hold() -> None:
    heard: list[Any] = []
    certificate = rrf.certify(triangle(), ["fix"], budgets=[2], progress=lambda *told: heard.append(told))
    assert heard
    assert all(0.0 <= done <= 1.0 for done, _, _ in heard)
    assert all(lower <= certificate.gamma_upper and upper >= certificate.gamma_lower for _, (lower, upper), _ in heard)
    again: list[Any] = []
    assert rrf.verify(certificate, progress=lambda *told: again.append(told)).valid
    assert again[0][1][0] == 0.0  # nothing is re-proved before the search is through
    assert again[-1][1][0] == certificate.gamma_lower


def test_nothing_is_left_when_saving_is_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rrf_design.certificates._issue.INLINE_ENTRIES", 3)
    certificate = rrf.certify(triangle(), ["fix"])

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("rrf_design.certificates._issue.write_text", stop)
        with pytest.raises(KeyboardInterrupt):
            certificate.save(tmp_path / "c.json")
    assert list(tmp_path.iterdir()) == []
    certificate.save(tmp_path / "c.json")
    assert len(list(tmp_path.iterdir())) == 2


def test_what_is_saved_is_the_document(tmp_path: Path) -> None:
    made = rrf.certify(triangle(), ["fix"], require=0.4)
    saved = made.save(tmp_path / "c.json")
    assert json.loads((tmp_path / "c.json").read_text(encoding="utf-8")) == made.document
    assert saved.certificate == tmp_path / "c.json"
    assert made.certificate == made.document
    assert saved.met
    assert not rrf.certify(triangle(), ["fix"], require=1.4).met


def test_the_same_design_gives_the_same_document_and_an_idea_of_what_checking_takes() -> None:
    first, second = rrf.certify(triangle(), ["fix"]), rrf.certify(triangle(), ["fix"])
    assert first.document == second.document
    assert first.verification_seconds is not None
    assert 0.0 < first.verification_seconds < 60.0
    assert first.to_json()["verification_seconds"] == first.verification_seconds


def test_record_of_an_assembled_operator() -> None:
    record = _record_of(triangle().operator("all"))
    assert record.block_ids == ("ab", "bc", "ca", "fix")
    assert record.block_kinds[-1] == "anchor"
    assert record.radii.tolist() == [0.01, 0.0, 0.0, 0.0]
    assert record.dense_part((0,)).tolist() == [[-1.0], [1.0]]


def exactly(problem: rrf.Problem, document: dict[str, Any]) -> tuple[Fraction, Fraction]:
    """‖B(e₁ − e₂) + u₁ − u₂‖² and ‖(e₁ − e₂)_D‖², by plain sums of rationals."""
    operator = problem.operator()
    dense = operator.matrix.toarray()
    error = [Fraction(0)] * dense.shape[1]
    rows = [Fraction(0)] * dense.shape[0]
    for side, sign in (("first", 1), ("second", -1)):
        part = document["rivals"][side]
        for name, values in zip(part["support"], part["direction"], strict=True):
            for column, x in zip(operator.groups[operator.node_index[name]], values, strict=True):
                error[column] += sign * Fraction(x)
        for name, values in zip(part["checks"], part["disturbance"], strict=True):
            top = int(operator.block_offsets[operator.block_index[name]])
            for place, x in enumerate(values):
                rows[top + place] += sign * Fraction(x)
    for r, row in enumerate(dense):
        rows[r] += sum((Fraction(float(b)) * e for b, e in zip(row, error, strict=True)), Fraction(0))
    wanted = [c for n in operator.premise.wanted(operator.node_ids) for c in operator.groups[operator.node_index[n]]]
    return sum((x * x for x in rows), Fraction(0)), sum((error[c] ** 2 for c in wanted), Fraction(0))


def generated(seed: int) -> rrf.Problem:
    rng = np.random.default_rng(seed)
    nodes: list[dict[str, Any]] = [{"id": f"n{i}", "dim": int(rng.integers(1, 3))} for i in range(4)]
    dims = [node["dim"] for node in nodes]
    settings: dict[str, Any] = {"epsilon": 0.05}
    if seed % 3 == 1:
        for node in nodes:
            node["unit"] = f"u{rng.integers(3)}"
    if seed % 3 == 2:
        settings |= {"deliver": ["n0"], "wrong_checks": int(rng.integers(0, 2))}
    relations = [
        {
            "id": f"r{i}{j}",
            "rows": {f"n{i}": [rng.integers(-2, 3, dims[i]).tolist()], f"n{j}": [rng.integers(1, 3, dims[j]).tolist()]},
        }
        for i in range(4)
        for j in range(i)
    ]
    anchors = [{"id": f"a{i}", "node": f"n{i}"} for i in range(4) if rng.random() < 0.8]
    return rrf.Problem(k=1, nodes=nodes, relations=relations, anchors=anchors, **settings)


@pytest.mark.parametrize("seed", range(30))
def test_both_are_admissible_and_as_far_apart_as_can_be(seed: int) -> None:
    problem = generated(seed)
    made = rrf.certify(problem, budgets=() if seed % 3 == 0 else None)
    claim = made.document["rivals"]
    assert claim is not None
    image2, apart2 = exactly(problem, made.document)
    assert image2 <= 4 * Fraction(claim["residual"]) ** 2 <= 4 * Fraction(0.05) ** 2
    assert 0 < Fraction(claim["distance"]) ** 2 <= apart2
    premise = problem.operator().premise
    for side in ("first", "second"):
        assert premise.count(claim[side]["support"]) <= 1
        assert len(claim[side]["checks"]) <= premise.wrong_checks
    if made.gamma_upper > 1e-9:
        assert claim["distance"] == pytest.approx(0.1 / made.gamma_upper, rel=1e-6)
    else:
        assert claim["distance"] == pytest.approx(1.0)
    assert rrf.verify(made).valid


def pair_of_two(**settings: Any) -> rrf.Problem:
    return rrf.Problem(
        nodes=[{"id": "a"}, {"id": "b"}],
        relations=[{"id": "r", "tail": "a", "head": "b"}],
        anchors=[{"id": "x", "node": "a", "sigma": 0.1}],
        **settings,
    )


def test_a_largest_error_keeps_them_closer_unless_noise_can_hide_it() -> None:
    made = rrf.certify(pair_of_two(epsilon=1.0), largest_error=0.25)
    assert made.document["rivals"]["distance"] == pytest.approx(0.25, rel=1e-6)
    assert rrf.verify(made).valid
    assert made.to_json()["rivals"] == made.document["rivals"]
    assert rrf.certify(pair_of_two(), budgets=()).document["noise"]["blocks"] == ["x"]
    assert (
        rrf.certify(pair_of_two(), budgets=()).document["rivals"] is None
    )  # the relation carries no noise, and sees them
    bare = pair_of_two().model_copy(update={"anchors": ({"id": "x", "node": "a"},)})
    assert rrf.certify(bare).document["rivals"] is None


def test_a_witness_is_measured_exactly_and_a_zero_margin_has_a_pair() -> None:
    record = make_record(np.array([[3.0, 0.0], [0.0, 4.0]]))
    named, image2, upper = witness_section(record, [0, 1], np.array([0.6, 0.8]))
    assert named == {"support": ["n0", "n1"], "direction": [[0.6], [0.8]]}
    assert image2 == (3 * Fraction(0.6)) ** 2 + (4 * Fraction(0.8)) ** 2
    length2 = Fraction(0.6) ** 2 + Fraction(0.8) ** 2
    assert Fraction(upper) ** 2 * length2 >= image2 > Fraction(np.nextafter(upper, 0.0)) ** 2 * length2
    witness = {"support": ["a", "b", "c"], "direction": [[1.0], [1.0], [1.0]]}
    assert audit_section(witness, Fraction(0), 0.0, 2)["pair"] == {"first": ["a", "b"], "second": ["c"]}
    positive_margin = audit_section(witness, Fraction(1, 4), 0.5, 2)
    assert positive_margin == {"residual": 0.5, "pair": None, "sensitivity": 2.0}


def test_the_next_budget_is_certified_where_that_is_cheap() -> None:
    small, large = make_record(np.eye(8)), make_record(np.eye(400))
    assert further_budgets(None, 1, small) == [2]
    assert further_budgets(None, 4, small) == []
    assert further_budgets(None, 2, large) == []
    assert further_budgets([3, 1, 3], 1, large) == [3]


def test_numbers_that_must_be_positive() -> None:
    assert positive(None, "delta") is None
    for value in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(InputError, match="delta must be a positive number"):
            positive(value, "delta")


def test_the_operator_without_whitening() -> None:
    options = {"time_limit": None, "n_jobs": None, "front_end": "ortools"}
    assert _unwhitened(triangle(), None, 1, options, lambda *_: None) is None
    problem = Problem(
        nodes=[{"id": "a"}, {"id": "b"}],
        relations=[{"id": "r", "tail": "a", "head": "b", "covariance": [[4.0]]}],
        anchors=[{"id": "x", "node": "a", "weight": 9.0}, {"id": "y", "node": "b", "sigma": 0.1}],
    )
    bare = np.array([[-1.0, 1.0], [3.0, 0.0], [0.0, 1.0]])  # weights stay, noise goes
    section = _unwhitened(problem, None, 1, options, lambda *_: None)
    assert section is not None
    assert section["lower"] <= np.linalg.svd(bare)[1][-1] <= section["upper"] * (1 + 1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_whatever_is_found_is_proved(seed: int) -> None:
    rng = np.random.default_rng(seed)
    record = make_record(rng.integers(-1, 2, (int(rng.integers(2, 7)), 5)).astype(float))
    section = nullspace_section(record, 1)
    assert check_nullspace(section, record, 1).startswith(section["status"])


def test_large_fields_are_left_open() -> None:
    assert nullspace_section(make_record(np.eye(SMALL + 1)), 1)["status"] == NullSpace.NOT_CERTIFIED


def test_nothing_is_claimed_of_rows_that_are_far_apart_unless_the_checker_proves_it() -> None:
    """Products of such rows cancel in floats: a residual of 1e-12 there may be 1e-8 in truth, and
    refutes nothing then.
    """
    rng = np.random.default_rng(0)
    for _ in range(150):
        nodes = int(rng.integers(3, 7))
        rows = nodes + int(rng.integers(0, 3))
        record = make_record(rng.standard_normal((rows, nodes)) * 10.0 ** rng.integers(-70, 71, (rows, 1)))
        for k in (1, 2):
            section = nullspace_section(record, k)
            assert check_nullspace(section, record, k).startswith(section["status"])


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
    crowd = np.random.default_rng(0).standard_normal((70, 60))
    with pytest.raises(InputError, match="rung mixed-integer: the largest ball, of radius 3, has 60 coordinates"):
        climb(make_record(crowd), 2, rung=Rung.MIXED_INTEGER, time_limit=1.0, n_jobs=None)


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


def protecting_field(**settings: Any) -> rrf.Problem:
    nodes = [{"id": "total"}, {"id": "again"}, {"id": "other"}]
    relations = [{"id": "same", "tail": "total", "head": "again", "sigma": 0.5}]
    anchors = [{"id": f"x{i}", "node": "total"} for i in range(3)]
    return rrf.Problem(nodes=nodes, relations=relations, anchors=anchors, deliver=["total"], wrong_checks=1, **settings)


@pytest.mark.parametrize("asked", [{"budgets": [2]}, {"largest_error": 1.0}, {"supports": [["total"]]}])
def test_what_can_not_be_re_proved_is_not_issued(asked: dict[str, Any]) -> None:
    with pytest.raises(rrf.InputError, match="is not certified with units"):
        rrf.certify(protecting_field(), **asked)
    with pytest.raises(rrf.InputError, match="relaxations know nothing"):
        rrf.certify(protecting_field(), rung="dominance")


def test_the_certificate_speaks_of_what_is_delivered() -> None:
    problem = protecting_field(epsilon=0.1, delta=0.3)
    certificate = rrf.certify(problem)
    assert rrf.verify(certificate).valid
    assert certificate.gamma_lower == pytest.approx(problem.margin().value)
    assert certificate.error_bound == pytest.approx(0.2 / problem.margin().value)
    assert certificate.document["assumptions"][:2] == [
        "At most 1 of 3 answers and at most 1 of 4 checks are wrong.",
        "Only the values of total are promised.",
    ]
    assert certificate.document["provenance"]["unwhitened"]["upper"] == pytest.approx(1.0)
