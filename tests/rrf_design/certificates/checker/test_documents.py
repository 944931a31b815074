"""What a certificate's document may say, and how it is read step by step."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable
from fractions import Fraction
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.certificates import Certificate
from rrf_design.certificates._issue import certify
from rrf_design.checker._steps import (
    Check,
    Steps,
    _check_audit,
    _check_regime,
    _check_sentences,
    _check_uncertainty,
    check_errors,
    check_noise,
)
from rrf_design.checker._tails import is_drawn, refutes
from rrf_design.checker.document import SECTIONS, check_form, content_digest, parse
from rrf_design.checker.premises import check_pilot, failures, rate_above, sentence
from rrf_design.checker.promise_words import percent_above
from rrf_design.checker.record import ARRAYS, load_record, record_from_lists
from rrf_design.checker.wording import (
    CONSEQUENCE,
    INFORMATION,
    MOST_LISTED,
    ON_TRUST,
    Finding,
    Regime,
    assumption_lines,
    regime_of,
)
from rrf_design.errors import Refused

from ..conftest import make_record, triangle


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return certify(triangle(), ["fix"]).document


def sealed(document: dict[str, Any]) -> dict[str, Any]:
    return {**document, "digest": content_digest(document)}


def test_a_fresh_document_passes(document: dict[str, Any]) -> None:
    check_form(document)


@pytest.mark.parametrize("key", sorted(set(SECTIONS) - {"digest"}))
def test_a_missing_section_is_refused(document: dict[str, Any], key: str) -> None:
    with pytest.raises(Refused):
        check_form(sealed({name: value for name, value in document.items() if name != key}))


def test_a_document_without_digest_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="digest"):
        check_form({name: value for name, value in document.items() if name != "digest"})


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("format",), "other", "not a certificate"),
        (("version",), 1, "version 1 is unknown"),
        (("version",), 1.0, "version 1.0 is unknown"),
        (("extra",), 1, "extra: unknown"),
        (("k",), "1", "wrong type"),
        (("k",), True, "wrong type"),
        (("margin", "lower"), "0.9", "wrong type"),
        (("margin", "rung"), "dominance", "does not go with"),
        (("margin", "proof"), {"kind": "guess"}, "does not go with"),
        (("margin", "proof"), {"kind": "enumeration", "more": 1}, "more: unknown"),
        (("witness", "direction"), [[0.5], "x"], "must be a list"),
        (("audit",), [], "must be an object"),
        (("assumptions",), ["a", "b", 1], r"assumptions\[2\]: 1 has the wrong type"),
        (("witness", "direction"), [[0.5, True]], r"direction\[0\]\[1\]: True has the wrong type"),
        (("witness", "direction"), [[0.5, 2e300]], r"direction\[0\]\[1\]: must be a number of at most"),
        (("witness", "direction"), [[0.5, 2**60]], r"direction\[0\]\[1\]: must be a number of at most"),
    ],
)
def test_faults_are_named(document: dict[str, Any], path: tuple[str, ...], value: Any, message: str) -> None:
    changed = copy.deepcopy(document)
    place = changed
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(Refused, match=message):
        check_form(sealed(changed))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a JSON document"),
        ("[1]", "top level"),
        ('{"a": NaN}', "NaN"),
        ('{"a": 1, "a": 2}', "twice"),
        ("[" * 100_000, "not a JSON document"),
    ],
)
def test_texts_that_are_no_documents(text: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        parse(text)


NODES = ("a", "b", "c")
SIZE, COUNT = 50, 8


def redrawn(size: int, seed: int, population: str, count: int) -> list[int]:
    """The slow and obvious way: all places in their random order."""
    return sorted(range(size), key=lambda place: hashlib.sha256(f"{population}:{seed}:{place}".encode()).digest())[
        :count
    ]


def section(**changes: Any) -> dict[str, Any]:
    wrong = {"a": "10010000", "b": "10000000", "c": "00010001"}
    found: dict[str, Any] = {
        "table": "t.csv",
        "size": SIZE,
        "population": "digest",
        "recipe": "r",
        "seed": 3,
        "places": redrawn(SIZE, 3, "digest", COUNT),
        "wrong": wrong,
        "more_than_k": failures(wrong, [[name] for name in NODES], 1, COUNT),
        "confidence": 0.9,
        **changes,
    }
    found.setdefault("bound", rate_above(COUNT, found["more_than_k"], 0.9))
    found.setdefault("sentence", sentence(found, 1, [[name] for name in NODES]))
    return found


def test_honest_sections_are_recounted_and_may_claim_less() -> None:
    assert section()["more_than_k"] == 2
    assert "2 of 8 drawn items recounted" in check_pilot(section(), NODES, None, 1)
    told = section(bound=0.9)
    assert check_pilot(told, NODES, None, 1)


@pytest.mark.parametrize(("items", "failed"), [(10, 0), (20, 3), (8, 7), (40, 20)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_a_rate_is_refuted_exactly_where_rationals_say_so(items: int, failed: int, confidence: float) -> None:
    def tail(rate: float) -> Fraction:
        p = Fraction(rate)
        return sum((comb(items, j) * p**j * (1 - p) ** (items - j) for j in range(failed + 1)), Fraction(0))

    level = 1 - Fraction(str(confidence))
    bound = rate_above(items, failed, confidence)
    for rate in (bound, bound * (1 - 1e-9), bound * (1 + 1e-9), 0.5, 1e-12):
        assert refutes(items, failed, Fraction(rate), level) is (tail(rate) <= level)
    assert refutes(items, failed, Fraction(bound), level)
    assert not refutes(items, failed, Fraction(bound * (1 - 1e-9)), level)


def test_the_ends_of_the_range() -> None:
    assert rate_above(5, 5, 0.95) == 1.0
    assert refutes(5, 5, Fraction(1), Fraction(1, 20))
    assert not refutes(5, 5, Fraction(0.999), Fraction(1, 20))
    assert not refutes(5, 0, Fraction(0), Fraction(1, 20))


def test_a_percentage_is_rounded_upwards() -> None:
    assert [percent_above(Fraction(bound)) for bound in (0.0, 0.1, 0.12345, 1.0, 1e-9)] == [
        "0.00 %",
        "10.01 %",
        "12.35 %",
        "100.00 %",
        "0.01 %",
    ]


def test_a_unit_is_wrong_with_its_nodes_and_other_units_are_another_claim() -> None:
    wrong = {"a": "101", "b": "100", "c": "001"}
    assert failures(wrong, [["a"], ["b"], ["c"]], 1, 3) == 2
    assert failures(wrong, [["a", "b"], ["c"]], 1, 3) == 1
    assert failures(wrong, [["a", "b", "c"]], 0, 3) == 2
    with pytest.raises(Refused):
        check_pilot(HONEST, NODES, None, 0)
    with pytest.raises(Refused):
        check_pilot(HONEST, NODES, [["a", "b"], ["c"]], 1)


def test_the_draw_depends_on_everything_and_on_its_order() -> None:
    whole = redrawn(30, 1, "d", 30)
    for count in (1, 7, 30):
        assert is_drawn(whole[:count], 30, 1, "d")
    first = whole[:7]
    assert not is_drawn(first, 30, 2, "d")
    assert not is_drawn(first, 30, 1, "e")
    assert not is_drawn(first[::-1], 30, 1, "d")
    assert not is_drawn([*first[:6], first[5]], 30, 1, "d")
    assert not is_drawn(whole[1:8], 30, 1, "d")
    assert not is_drawn([*first[:6], 30], 30, 1, "d")
    assert not is_drawn([*first[:6], -1], 30, 1, "d")


HONEST = section()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 4}, "draw other items"),
        ({"seed": -1}, "items drawn from"),
        ({"population": "other"}, "draw other items"),
        ({"size": 7}, "items drawn from 7"),
        ({"size": 10**9}, "items drawn from"),
        ({"places": []}, "0 items drawn"),
        ({"places": HONEST["places"][::-1]}, "draw other items"),
        ({"more_than_k": 1}, "the marks say 2"),
        ({"bound": 0.2}, "do not prove it"),
        ({"bound": float("nan")}, "must be shares"),
        ({"bound": 1.5}, "must be shares"),
        ({"confidence": 0.0}, "must be shares"),
        ({"confidence": 1.0}, "must be shares"),
        ({"confidence": 0.99}, "do not prove it"),
        ({"sentence": "All is well."}, "is not what the figures say"),
        ({"table": "other.csv"}, "is not what the figures say"),
        ({"wrong": {"a": "0" * 8, "b": "0" * 8}}, "every node of the operator"),
        ({"wrong": {"a": "0" * 8, "b": "0" * 8, "c": "0" * 8, "d": "0" * 8}}, "every node of the operator"),
        ({"wrong": {"a": "0" * 8, "b": "0" * 8, "c": "0" * 7}}, "a 0, 1 or - for each item"),
        ({"wrong": {"a": "0" * 8, "b": "0" * 8, "c": "0000000x"}}, "a 0, 1 or - for each item"),
        ({"wrong": {"a": "0" * 8, "b": "0" * 8, "c": [0] * 8}}, "a 0, 1 or - for each item"),
        ({"wrong": {"a": "0" * 8, "b": "0" * 8, "c": "0" * 8}}, "the marks say 0"),
        ({"wrong": {**HONEST["wrong"], "a": "-" + HONEST["wrong"]["a"][1:]}}, "so at every node"),
        ({"wrong": dict.fromkeys(HONEST["wrong"], "-" * 8)}, "the marks say 0"),
    ],
)
def test_forgeries_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message):
        check_pilot({**HONEST, **changes}, NODES, None, 1)


def lists() -> dict[str, Any]:
    return make_record(np.array([[1.0, -1.0, 0.0], [0.0, 0.5, 2.0]]), radii=[0.0, 0.1]).to_document()


def test_a_record_survives_the_document() -> None:
    record = make_record(np.random.default_rng(0).standard_normal((4, 6)), [2, 3, 1], blocks=[3, 1])
    assert record_from_lists(record.to_document()).digest == record.digest


@pytest.mark.parametrize("name", ARRAYS)
def test_every_array_is_in_the_digest(name: str) -> None:
    fields = lists()
    before = record_from_lists(fields).digest
    item = fields[name][-1] if fields[name] else None
    if isinstance(item, str):
        fields[name][-1] = "anchor" if name == "block_kinds" else item + "x"
    elif name == "node_sizes":
        fields[name] = [1, 1, 1, 1]
        fields["node_ids"].append("n9")
    elif name == "block_sizes":
        fields[name] = [2, 0]
    elif name in ("touch_starts", "touch_nodes"):
        fields["touch_starts"] = [0, *[1] * (len(fields["touch_starts"]) - 1)]
        fields["touch_nodes"] = [0]
    elif name == "indptr":
        fields[name] = [0, 2, 4, 4]
        fields["block_sizes"] = [1, 2]
    elif name == "indices":
        fields[name] = [0, 1, 0, 2]
    else:
        fields[name][-1] = float(np.nextafter(item, 9))
    assert record_from_lists(fields).digest != before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"node_ids": ["a", "a", "b"]}, "node ids are not unique"),
        ({"block_ids": ["a", "a"]}, "block ids are not unique"),
        ({"node_sizes": [1, 1, 0]}, "a node has no coordinate"),
        ({"node_sizes": [1, 2]}, "number of node sizes"),
        ({"block_sizes": [1, 2]}, "block sizes do not add up"),
        ({"block_kinds": ["relation", "guess"]}, "neither relation nor anchor"),
        ({"radii": [0.0, -0.1]}, "a radius is negative"),
        ({"radii": [0.0]}, "block arrays differ"),
        ({"indptr": [0, 3, 2]}, "row pointers"),
        ({"indices": [0, 1, 1, 7]}, "a column is out of range"),
        ({"indices": [0, 0, 1, 2]}, "given twice"),
        ({"data": [1.0, -1.0, 0.5]}, "differ in number"),
        ({"data": [1.0, -1.0, 0.5, "x"]}, "must hold numbers"),
        ({"data": [1.0, -1.0, 0.5, True]}, "must hold numbers"),
        ({"data": [1.0, -1.0, 0.5, float("nan")]}, "must hold numbers"),
        ({"data": [1.0, -1.0, 0.5, -float("inf")]}, "must hold numbers"),
        ({"data": [1.0, -1.0, 0.5, 1.5e308]}, "must hold numbers"),
        ({"data": [1.0, -1.0, 0.5, 10**400]}, "must hold numbers"),
        ({"indices": [0, 1, 1, 1.5]}, "whole numbers"),
        ({"indices": [0, 1, 1, True]}, "whole numbers"),
        ({"indices": [0, 1, 1, 2**70]}, "whole numbers"),
        ({"indices": [0, 1, 1, -(2**70)]}, "whole numbers"),
        ({"node_ids": [1, 2, 3]}, "strings"),
        ({"data": None}, "must be a list"),
    ],
)
def test_what_is_no_operator_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(Refused, match=message):
        record_from_lists({**lists(), **change})


def test_bad_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="not found"):
        load_record(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(Refused, match="not readable"):
        load_record(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", format=np.array("rrf-certificate-operator/2"), data=np.zeros(1))
    with pytest.raises(Refused, match="not in the format"):
        load_record(tmp_path / "other.npz")


def test_claims_in_plain_words_name_what_they_rest_on() -> None:
    document = certify(triangle(), ["fix"]).document
    assert document["assumptions"][0] == "At most 1 of the 4 answers are wrong."
    assert any(line.startswith("The noise of all rows together is at most") for line in document["assumptions"])
    assert all(name in ON_TRUST for name in INFORMATION)
    assert set(CONSEQUENCE) == set(Regime)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"nodes": [{"id": "a", "sigma": 0.25}, {"id": "b"}]}, "a 0.25"),
        ({"tail": 0.125}, "at most 0.125"),
        ({"amplitude": 2.5}, "at most 2.5 long"),
        ({"nodes": [{"id": "a", "range": [0.0, 3.5]}, {"id": "b", "range": [-4.5, 0.0]}]}, "a 3.5, b 4.5"),
        ({"epsilon": 0.375}, "at most 0.375"),
    ],
)
def test_premises_are_said_with_their_numbers(change: dict[str, Any], word: str) -> None:
    known: dict[str, Any] = {
        "k": 1,
        "nodes": [{"id": "a"}, {"id": "b"}],
        "relations": [{"id": "ab", "tail": "a", "head": "b", "uncertainty": 0.01}],
        "anchors": [{"id": "x", "node": "a", "value": 1.0}, {"id": "y", "node": "b", "value": 1.0}],
        "epsilon": 0.1,
    }
    if "sigma" in str(change):
        del known["epsilon"]
    document = certify(rrf.Problem(**{**known, **change})).document
    assert any(word in line for line in document["assumptions"]), document["assumptions"]


def test_long_lists_are_pointed_at() -> None:
    names = [f"n{i:02d}" for i in range(MOST_LISTED + 1)]
    problem = rrf.Problem(
        k=1,
        nodes=[{"id": name, "sigma": 0.1} for name in names],
        anchors=[{"id": f"x{name}", "node": name, "value": 1.0} for name in names],
    )
    lines = certify(problem).document["assumptions"]
    assert any(f"those of {len(names)} entries under noise.answers" in line for line in lines)


@pytest.mark.parametrize(
    ("section", "key", "value", "reason"),
    [
        (None, "assumptions", [], "are not those of this certificate; missing: At most 1"),
        ("metrics", "norm", "the largest entry", "not in the specified words"),
        ("metrics", "fibers", ["nobody"], "must name different entries"),
        ("metrics", "whitened", ["fix", "fix"], "must name different entries"),
        ("problem", "selected", ["nothing"], "must name different entries"),
        ("problem", "digest", "0", "no SHA-256"),
    ],
)
def test_another_sentence_is_refused(section: str | None, key: str, value: Any, reason: str) -> None:
    made = certify(triangle(), ["fix"])
    document = {**made.document}
    if section is None:
        document[key] = value
    else:
        document[section] = {**document[section], key: value}
    with pytest.raises(Refused, match=reason):
        _check_sentences(document, made.record)
    assert (
        assumption_lines(made.document, nodes=4, uncertain=bool(made.record.radii.any()))
        == made.document["assumptions"]
    )


@pytest.mark.parametrize(
    ("finding", "expected"),
    [
        (Finding(0.0, 0.0, None, None, None), Regime.INFORMATION),
        (Finding(1e-12, 1e-12, 1.0, None, None), Regime.INFORMATION),
        (Finding(1.0, 0.3, None, None, None), Regime.NOISE),
        (Finding(1.0, 1.0, 0.2, 0.1, None), Regime.NOISE),
        (Finding(1.0, 1.0, 5.0, None, 2.0), Regime.NOISE),
        (Finding(1.0, 0.9, 0.05, 0.1, 2.0), Regime.COMPUTATION),
        (Finding(1.0, 1.0, None, 0.1, None), Regime.COMPUTATION),
    ],
)
def test_regime(finding: Finding, expected: Regime) -> None:
    assert regime_of(finding) is expected


def walked(steps_document: dict[str, Any]) -> tuple[list[Check], str]:
    checks: list[Check] = []
    sealed = {**steps_document, "digest": content_digest(steps_document)}
    try:
        Steps(sealed, None, None, checks, 60.0, None).run()
    except Refused as refusal:
        return checks, str(refusal)
    return checks, ""


@pytest.fixture(scope="module")
def steps_document() -> dict[str, Any]:
    return copy.deepcopy(dict(certify(triangle(), ["fix"]).document))


def test_all_checks_are_told_in_order(steps_document: dict[str, Any]) -> None:
    checks, refusal = walked(steps_document)
    assert refusal == ""
    names = [check.name for check in checks]
    assert names[:4] == ["form", "operator", "protection", "witness"]
    assert names.index("margin") > names.index("null-space property")
    assert len(set(names)) == len(names)
    assert all(check.detail and check.seconds >= 0.0 for check in checks)


def test_nothing_comes_after_a_refusal(steps_document: dict[str, Any]) -> None:
    checks, refusal = walked({**steps_document, "regime": {**steps_document["regime"], "name": "noise"}})
    assert "regime" in refusal
    assert [check.name for check in checks][-1] == "error bounds"


@pytest.fixture(scope="module")
def made() -> Certificate:
    return rrf.certify(triangle(epsilon=None, sigma=0.004), ["fix"], amplitude=2.0)


def check(made: Certificate, steps_document: dict[str, Any], name: str) -> str:
    checks: dict[str, Callable[[], str]] = {
        "uncertainty": lambda: _check_uncertainty(steps_document, made.record),
        "noise": lambda: check_noise(steps_document, made.record),
        "error": lambda: check_errors(steps_document, made.record),
        "regime": lambda: _check_regime(steps_document),
    }
    return checks[name]()


def test_what_certify_writes_is_accepted(made: Certificate) -> None:
    assert check(made, made.document, "uncertainty").startswith("eta =")
    assert check(made, made.document, "noise").startswith("chi, radius")
    assert check(made, made.document, "error").startswith("error bound")
    assert check(made, made.document, "regime") == "computation"


@pytest.mark.parametrize(
    ("section", "key", "value", "reason"),
    [
        ("uncertainty", "eta", 0.0, "smaller than the root"),
        ("uncertainty", "global_lower", 0.995, "more than the margin minus eta"),
        ("uncertainty", "robust_lower", 0.5, "not the larger"),
        ("uncertainty", "confidence", 1.5, "between 0 and 1"),
        ("noise", "kind", "pink", "unknown"),
        ("noise", "rows", 3, "but those blocks have 4"),
        ("noise", "blocks", ["ab", "ab"], "different blocks"),
        ("noise", "epsilon", 1e-3, "too small"),
        ("noise", "epsilon", None, "must be a radius"),
        ("noise", "sigma", None, "belong to random noise"),
        ("noise", "confidence", 1.0, "between 0 and 1"),
        ("error", "confidence", 0.999, "more than the certified numbers imply"),
        ("regime", "name", "noise", "is computation"),
        ("regime", "consequence", "buy", "not the specified one"),
    ],
)
def test_one_changed_value(made: Certificate, section: str, key: str, value: Any, reason: str) -> None:
    steps_document = copy.deepcopy(made.document)
    steps_document[section][key] = value
    with pytest.raises(Refused, match=reason):
        check(made, steps_document, section)


def test_an_audit_goes_with_its_margin(made: Certificate) -> None:
    from fractions import Fraction

    steps_document = copy.deepcopy(made.document)
    assert _check_audit(steps_document, Fraction(0)) == "witness checked directly"
    with pytest.raises(Refused, match="leaves more"):
        _check_audit(steps_document, Fraction(10**6))
    steps_document["audit"]["sensitivity"] = 2.0
    with pytest.raises(Refused, match="not one over"):
        _check_audit(steps_document, Fraction(0))
    steps_document["margin"]["upper"] = 0.0
    with pytest.raises(Refused, match="a pair belongs to a zero margin"):
        _check_audit(steps_document, Fraction(0))
    steps_document["audit"] = {"residual": 0.0, "sensitivity": None, "pair": {"first": ["a"], "second": ["c"]}}
    with pytest.raises(Refused, match="not a division"):
        _check_audit(steps_document, Fraction(0))
    steps_document["witness"]["support"] = ["a", "c"]
    steps_document["audit"]["pair"] = {"first": ["a", "c"], "second": []}
    with pytest.raises(Refused, match="more than k nodes"):
        _check_audit(steps_document, Fraction(0))


@pytest.mark.parametrize("shared", [{"correlation": 0.5}, {"covariance": [[0.25, 0.1], [0.1, 0.25]]}])
def test_noise_that_is_shared_must_be_covered(shared: dict[str, Any]) -> None:
    labels = [{"id": name, "node": name.upper(), "sigma": 0.5, "value": 0.0} for name in ("a", "b")]
    noise = [{"id": "annotator", "blocks": ["a", "b"], **shared}]
    made = rrf.certify(rrf.Problem(nodes=[{"id": "A"}, {"id": "B"}], anchors=labels, noise=noise))
    assert rrf.verify(made).valid
    assert check(made, made.document, "noise").startswith("correlated, radius")
    for key, value in (
        ("dilation", 1.3),
        ("members", 1),
        ("blocks", ["a", "a"]),
        ("blocks", ["c"]),
        ("correlation", -1.0),
    ):
        steps_document = copy.deepcopy(made.document)
        steps_document["noise"]["shared"][0][key] = value
        with pytest.raises(Refused, match=r"noise\.shared\[0\]"):
            check(made, steps_document, "noise")
    steps_document = copy.deepcopy(made.document)
    steps_document["noise"]["shared"] = []
    with pytest.raises(Refused, match="names no block"):
        check(made, steps_document, "noise")
