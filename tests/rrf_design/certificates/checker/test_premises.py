"""Premises and noise that a certificate rests on."""

from __future__ import annotations

import copy
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi

import rrf_design as rrf
from rrf_design.certificates._issue import Certificate
from rrf_design.checker.document import content_digest
from rrf_design.checker.noise import (
    ErrorTerms,
    FieldBound,
    NoiseKind,
    Tail,
    Tolerances,
    covers,
    error_section,
    joint_confidence,
    radius,
)
from rrf_design.checker.record import OperatorRecord
from rrf_design.errors import InputError
from rrf_design.problem import Problem

from ..conftest import make_record

Change = Callable[[dict[str, Any]], None]


def field(**settings: Any) -> Problem:
    """Three judges in both orders, two labels, what is delivered and one check that may be
    wrong.
    """
    nodes = [{"id": f"{j}{o}", "unit": j, "range": [0.0, 1.0]} for j in "abc" for o in (1, 2)]
    relations = [{"id": f"own {j}", "tail": f"{j}1", "head": f"{j}2", "trusted": True} for j in "abc"]
    relations += [{"id": f"{x}{y}", "tail": f"{x}1", "head": f"{y}1", "trusted": True} for x, y in ("ab", "bc", "ac")]
    anchors = [{"id": f"label {i}", "node": "a1", "value": 1.0, "uncertainty": 0.01} for i in range(3)]
    return rrf.Problem(
        nodes=nodes,
        relations=relations,
        anchors=anchors,
        deliver=["a1", "b1"],
        wrong_checks=1,
        epsilon=0.02,
        **settings,
    )


def truth(record: OperatorRecord, section: dict[str, Any], *, everything: bool = False, k: int = 1) -> float:
    """The margin of the premise that a section states, by dense algebra over all supports and sets
    of checks.
    """
    dense, least = record.matrix.toarray(), np.inf
    owner = np.repeat(np.arange(len(record.block_ids)), record.block_sizes)
    deliver = record.node_ids if everything else section["deliver"]
    inside = record.columns_of([record.node_index[name] for name in deliver])
    suspects = [record.block_ids.index(name) for name in section["suspects"]]
    for units in combinations(section["units"], min(2 * k, len(section["units"]))):
        columns = record.columns_of([record.node_index[name] for unit in units for name in unit])
        wanted = np.isin(columns, inside)
        for gone in combinations(suspects, min(2 * section["wrong_checks"], len(suspects))):
            part = dense[~np.isin(owner, gone)][:, columns]
            rest = part[:, ~wanted]
            left = part[:, wanted] - rest @ (np.linalg.pinv(rest) @ part[:, wanted])
            padded = np.vstack([left, np.zeros((left.shape[1], left.shape[1]))])
            least = min(least, *np.linalg.svd(padded, compute_uv=False)) if wanted.any() else least
    return least


@pytest.fixture(scope="module")
def guarded() -> Certificate:
    return rrf.certify(field())


def forged(certificate: Certificate, change: Change) -> Any:
    document = copy.deepcopy(certificate.document)
    change(document)
    document["digest"] = content_digest(document)
    return rrf.verify(Certificate(document, certificate.record)), document


def raise_margin(document: dict[str, Any]) -> None:
    """A larger margin, with all that follows from it by arithmetic."""
    upper = document["margin"]["upper"] * 1.01
    document["margin"].update(lower=upper, upper=upper)
    document["audit"]["sensitivity"] = 0.9999 / upper


def test_a_true_certificate_is_accepted_and_says_the_truth(guarded: Certificate) -> None:
    result = rrf.verify(guarded)
    assert result.valid, result.reason
    section = guarded.document["protection"]
    assert section["deliver"] == ["a1", "b1"]
    assert section["suspects"] == ["label 0", "label 1", "label 2"]
    assert guarded.gamma_lower == pytest.approx(truth(guarded.record, section), rel=1e-6)
    assert 0 < section["field_lower"] <= truth(guarded.record, section, everything=True)
    assert guarded.document["assumptions"][0] == "At most 1 of 3 units and at most 1 of 3 checks are wrong."


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda d: d.update(protection=None), "witness.support"),
        (lambda d: d["protection"]["units"].pop(), "must name every node"),
        (lambda d: d["protection"]["units"].append([]), "must name every node"),
        (lambda d: d["protection"]["units"][0].append("b1"), "must name every node"),
        (lambda d: d["protection"].update(units=[[n] for u in d["protection"]["units"] for n in u]), "support"),
        (lambda d: d["protection"].update(deliver=[]), "deliver: is empty"),
        (lambda d: d["protection"].update(deliver=["a1", "nobody"]), "must name different entries"),
        (lambda d: d["protection"].update(deliver=["a1", "a1"]), "must name different entries"),
        (lambda d: d["protection"].update(wrong_checks=0), "protection.wrong"),
        (lambda d: d["protection"].update(wrong_checks=-1), "at least 0"),
        (lambda d: d["protection"].update(suspects=[]), "protection.wrong"),
        (lambda d: d["protection"].update(wrong=[]), "witness does not reach"),
        (lambda d: d["protection"].update(wrong=["own a"]), "must name suspects"),
        (lambda d: d["protection"].update(field_lower=d["margin"]["upper"]), "field_lower: the claim is false"),
        (lambda d: d["protection"].update(field_lower=None), "global_lower"),
        (lambda d: d["uncertainty"].update(support_lower=0.1, robust_lower=0.1), "not proved under a premise"),
        (lambda d: raise_margin(d), "margin.lower: the claim is false"),
        (lambda d: d["error"].update(bound=d["error"]["bound"] * 0.9), "error.bound"),
        (lambda d: d["budgets"].append({"k": 2, "lower": 0.0, "upper": 9.0, "witness": d["witness"]}), "budgets"),
        (lambda d: d["margin"].update(proof={"kind": "dominance", "weights": []}, rung="dominance"), "enumeration"),
    ],
)
def test_forgeries_are_refused(guarded: Certificate, change: Change, reason: str) -> None:
    result, _ = forged(guarded, change)
    assert not result.valid
    assert reason in result.reason


def test_a_forger_who_moves_names_about_states_a_truth_or_is_refused(guarded: Certificate) -> None:
    """Random changes of every list, sealed again: what is accepted is true of the premise as it is
    then stated.
    """
    rng, accepted = np.random.default_rng(5), 0
    for _ in range(120):

        def change(document: dict[str, Any]) -> None:
            section = document["protection"]
            key = str(rng.choice(["deliver", "suspects", "wrong", "units", "wrong_checks", "lower"]))
            if key == "lower":
                document["margin"]["lower"] *= float(rng.choice([0.5, 0.999, 1.001, 1.5]))
                document["margin"]["status"] = "bounded"
            elif key == "wrong_checks":
                section[key] = int(rng.integers(0, 3))
            elif key == "units":
                names = [n for unit in section["units"] for n in unit]
                places = rng.integers(0, 4, size=len(names))
                parts = [[n for n, at in zip(names, places, strict=True) if at == place] for place in range(4)]
                section[key] = [part for part in parts if part]
            else:
                every = guarded.record.node_ids if key == "deliver" else guarded.record.block_ids
                section[key] = [name for name in every if rng.random() < 0.5]

        result, document = forged(guarded, change)
        if result.valid:
            accepted += 1
            assert document["margin"]["lower"] <= truth(guarded.record, document["protection"]) * (1 + 1e-9)
            assert document["margin"]["upper"] >= truth(guarded.record, document["protection"]) * (1 - 1e-9)
            assert document["protection"]["field_lower"] <= truth(
                guarded.record, document["protection"], everything=True
            ) * (1 + 1e-9)
    assert accepted > 0


def test_a_zero_margin_has_a_pair_that_counts_units() -> None:
    nodes = [{"id": f"{j}{o}", "unit": j} for j in "ab" for o in (1, 2)]
    relations = [{"id": f"own {j}", "tail": f"{j}1", "head": f"{j}2"} for j in "ab"]
    relations.append({"id": "ab", "tail": "a1", "head": "b1"})
    certificate = rrf.certify(rrf.Problem(nodes=nodes, relations=relations))
    assert rrf.verify(certificate).valid
    assert certificate.document["audit"]["pair"] == {"first": ["a1", "a2"], "second": ["b1", "b2"]}


@pytest.fixture(scope="module")
def made() -> Certificate:
    """Three answers in a row, the last one anchored by two clerks of whom one may be wrong."""
    problem = rrf.Problem(
        epsilon=0.1,
        wrong_checks=1,
        nodes=[{"id": name} for name in "abc"],
        relations=[{"id": "ab", "tail": "a", "head": "b"}, {"id": "bc", "tail": "b", "head": "c", "trusted": True}],
        anchors=[{"id": f"x{i}{name}", "node": name} for i in range(3) for name in "abc"],
    )
    return rrf.certify(problem)


def test_the_pair_is_accepted(made: Certificate) -> None:
    claim = made.document["rivals"]
    assert claim["distance"] == pytest.approx(0.2 / made.gamma_upper, rel=1e-9)
    assert claim["first"]["checks"]
    assert rrf.verify(made).valid


def change(made: Certificate, **changes: Any) -> Certificate:
    document = copy.deepcopy(made.document)
    for path, value in changes.items():
        place: Any = document["rivals"]
        *inner, last = path.split("__")
        for key in inner:
            place = place[key]
        place[last] = value(place[last]) if callable(value) else value
    document["digest"] = content_digest(document)
    return Certificate(document, made.record)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"distance": lambda x: x * 1.001}, "rivals.distance: is more than"),
        ({"distance": 0.0}, "rivals.distance: is more than"),
        ({"residual": lambda x: x * 0.999}, "rivals.residual: is smaller"),
        ({"residual": 0.1001}, "more than the noise radius"),
        ({"residual": -1.0}, "rivals.residual: is smaller"),
        ({"first__support": ["nobody"]}, "must name different nodes"),
        ({"first__support": lambda x: x * 2}, "must name different nodes"),
        ({"first__support": ["a", "b"], "first__direction": [[0.1], [0.1]]}, "more is wrong than k = 1 allows"),
        ({"first__direction": [[0.1, 0.1]]}, "does not fit its nodes"),
        ({"second__checks": ["bc"], "second__disturbance": [[0.1]]}, "must name at most 1 different suspects"),
        ({"first__checks": ["x0a", "x1a"]}, "must name at most 1 different suspects"),
        ({"first__disturbance": [[0.1, 0.1]]}, "does not fit its checks"),
        ({"first__checks": [], "first__disturbance": []}, "is smaller than what the two leave unexplained"),
        ({"first": "x"}, "must be an object"),
    ],
)
def test_a_false_pair_is_refused(made: Certificate, changes: dict[str, Any], reason: str) -> None:
    found = rrf.verify(change(made, **changes))
    assert not found.valid
    assert reason in found.reason


def test_both_can_not_blame_the_same(made: Certificate) -> None:
    same = copy.deepcopy(made.document["rivals"]["first"])
    assert "different answers and checks" in rrf.verify(change(made, second=same)).reason


RANDOM = [NoiseKind.GAUSSIAN, NoiseKind.CHI, NoiseKind.SUBGAUSSIAN, NoiseKind.CORRELATED]


@pytest.mark.parametrize("kind", RANDOM)
@pytest.mark.parametrize("rows", [1, 7, 400])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999999])
def test_radii_cover_and_are_nearly_the_least(kind: NoiseKind, rows: int, confidence: float) -> None:
    epsilon = radius(kind, sigma=0.3, rows=rows, confidence=confidence)
    assert covers(kind, epsilon=epsilon, sigma=0.3, rows=rows, confidence=confidence)
    assert not covers(kind, epsilon=epsilon * (1 - 1e-9), sigma=0.3, rows=rows, confidence=confidence)


def test_the_paper_formula_and_the_exact_quantile() -> None:
    concentration = radius(NoiseKind.GAUSSIAN, sigma=2.0, rows=9, confidence=0.95)
    assert concentration == pytest.approx(2 * (3 + np.sqrt(2 * np.log(20))), rel=1e-12)
    quantile = radius(NoiseKind.CHI, sigma=2.0, rows=9, confidence=0.95)
    assert quantile == pytest.approx(2 * chi.ppf(0.95, 9), rel=1e-12)
    assert quantile < radius(NoiseKind.SUBGAUSSIAN, sigma=2.0, rows=9, confidence=0.95) < concentration


def test_simulated_gaussian_noise_stays_inside_as_often_as_promised() -> None:
    rng = np.random.default_rng(0)
    norms = np.linalg.norm(rng.standard_normal((20000, 6)), axis=1)
    inside = (norms <= radius(NoiseKind.CHI, sigma=1.0, rows=6, confidence=0.9)).mean()
    assert abs(inside - 0.9) < 0.01


def test_no_rows_no_noise_and_tolerances_apart() -> None:
    assert radius(NoiseKind.CHI, sigma=1.0, rows=0, confidence=0.9) == 0.0
    found = section(tolerances=Tolerances(1.0, 2.0, 1.0, 3.0), tail=Tail(0.2, 0.05))
    assert found["tolerances"]["bound"] == pytest.approx(10.0)
    assert found["tail"]["bound"] == pytest.approx(0.2 + 2 * 0.15 / 0.5)
    with pytest.raises(InputError, match="relation_truth"):
        Tolerances(-1.0, 0.0, 0.0, 0.0)
    with pytest.raises(InputError, match="tail"):
        Tail(float("nan"), 0.0)


@pytest.mark.parametrize(("sigma", "confidence"), [(-1.0, 0.9), (float("nan"), 0.9), (1.0, 1.0), (1.0, 0.0)])
def test_what_is_no_noise_is_an_input_error(sigma: float, confidence: float) -> None:
    with pytest.raises(InputError, match="describe no noise"):
        radius(NoiseKind.CHI, sigma=sigma, rows=3, confidence=confidence)


def test_joint_confidence_is_a_union_bound() -> None:
    assert joint_confidence(None, None) is None
    assert joint_confidence(0.95, None) == 0.95
    joint = joint_confidence(0.95, 0.9)
    assert joint == pytest.approx(0.85)
    assert joint_confidence(0.4, 0.4) == 0.0


PLAIN = make_record(np.eye(2))
UNSURE = make_record([[1.0, -1.0], [0.0, 1.0]], radii=[0.3, 0.4])


def section(record: Any = PLAIN, **more: Any) -> dict[str, Any]:
    return error_section(record, ErrorTerms(**{"lower": 0.5, "upper": 0.6, "epsilon": 0.1, **more}))


def test_no_margin_or_no_bound_on_the_field_promises_nothing() -> None:
    found = section()
    assert found["bound"] == pytest.approx(0.4)
    assert (found["spread"], found["minimax"]) == (0.0, None)
    found = section(UNSURE)
    assert (found["spread"], found["effective_epsilon"], found["bound"]) == (None, None, None)
    found = section(lower=0.0, largest_error=2.0)
    assert found["bound"] is None
    assert found["minimax"]["upper"] == 2.0
    found = section(largest_error=10.0, sigma=0.3)
    assert found["minimax"]["lower"] == pytest.approx(0.5 * 0.2 / 0.6)
    assert found["minimax"]["upper"] == pytest.approx(0.4)
    assert found["minimax"]["gaussian_lower"] == pytest.approx(0.5 / 8)
    small = section(largest_error=0.01)
    assert (small["minimax"]["lower"], small["minimax"]["upper"]) == (0.005, 0.01)


def test_uncertainty_multiplies_the_field() -> None:
    # node 0: 0.3², node 1: 0.3² + 0.4²
    whole = section(UNSURE, field=FieldBound(amplitude=10.0))
    assert whole["spread"] == pytest.approx(5.0)
    assert whole["bound"] == pytest.approx(2 * 5.1 / 0.5)
    each = section(UNSURE, field=FieldBound(norms={"n0": 10.0, "n1": 0.0}))
    assert each["spread"] == pytest.approx(3.0)
    both = section(UNSURE, field=FieldBound(amplitude=10.0, norms={"n0": 10.0, "n1": 0.0}))
    assert both["spread"] == each["spread"]
    assert section(UNSURE, field=FieldBound(norms={"n0": 10.0}))["spread"] is None


def test_where_nothing_is_uncertain_who_touches_what_is_not_worked_out() -> None:
    """Verifying a small certificate is mostly such work: nothing is done that no claim needs."""
    from rrf_design.checker.noise import _least_spread

    record = make_record(np.eye(3))
    assert _least_spread(record, None, None) == 0
    assert "incidence" not in vars(record)
