"""What may be believed: premise, goal, verdict."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import inf
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from rrf_design.checker.noise import NoiseKind, NoiseRadius
from rrf_design.checker.wording import assumption
from rrf_design.derive import realised
from rrf_design.errors import InputError
from rrf_design.goal import Goal, Standing, reaches
from rrf_design.noise import Radius
from rrf_design.operators import Operator
from rrf_design.premise import Premise, protected, protected_unread
from rrf_design.repairing._decoding import Decoding
from rrf_design.verdict import Evidence, Explained, Verdict, counted, decide, dispute, worst

SURE = Evidence(Explained.UNIQUELY, Goal(), lower=0.5, robust_lower=0.5, bound=0.2)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, Verdict.CONSISTENT),
        ({"explained": Explained.NOT}, Verdict.CONTRADICTED),
        ({"explained": Explained.OPEN}, Verdict.INCOMPLETE),
        ({"explained": Explained.OTHERWISE}, Verdict.AMBIGUOUS),
        ({"explained": Explained.OTHERWISE, "exact": True, "bound": 0.0}, Verdict.CONSISTENT),
        ({"bound": None}, Verdict.AMBIGUOUS),
        ({"blank": ("x",)}, Verdict.AMBIGUOUS),
        ({"goal": Goal(delta=0.2)}, Verdict.CONSISTENT),
        ({"goal": Goal(delta=0.2), "explained": Explained.OTHERWISE}, Verdict.CONSISTENT),
        ({"goal": Goal(delta=0.1)}, Verdict.INCOMPLETE),
        ({"goal": Goal(target=0.5)}, Verdict.CONSISTENT),
        ({"goal": Goal(target=0.6)}, Verdict.INCOMPLETE),
        ({"goal": Goal(target=0.4), "robust_lower": 0.2}, Verdict.INCOMPLETE),
        ({"goal": Goal(target=0.4), "bound": None}, Verdict.INCOMPLETE),
        ({"goal": Goal(target=0.0), "lower": 0.0, "robust_lower": 0.0}, Verdict.INCOMPLETE),
        ({"goal": Goal(delta=0.2), "blank": ("x",)}, Verdict.AMBIGUOUS),
        ({"goal": Goal(delta=0.2), "explained": Explained.NOT}, Verdict.CONTRADICTED),
        ({"broken": True}, Verdict.CONTRADICTED),
        ({"goal": Goal(delta=0.1), "broken": True}, Verdict.CONTRADICTED),
    ],
)
def test_each_line(change: dict[str, object], expected: Verdict) -> None:
    assert decide(replace(SURE, **change)) is expected  # type: ignore[arg-type]


def test_a_data_set_is_as_good_as_its_worst_item() -> None:
    assert worst([Verdict.CONSISTENT, Verdict.CONTRADICTED, Verdict.AMBIGUOUS]) is Verdict.CONTRADICTED
    assert worst([]) is None
    assert counted([Verdict.CONSISTENT, Verdict.CONSISTENT]) == {
        "checked": 0,
        "consistent": 2,
        "ambiguous": 0,
        "incomplete": 0,
        "contradicted": 0,
    }


def test_the_premise_in_words_also_where_it_allows_everything() -> None:
    assert assumption(1, 3) == "at most 1 of 3 answers is wrong"
    assert assumption(2, 3, "relations hold exactly") == "at most 2 of 3 answers are wrong, and relations hold exactly"
    assert assumption(0, 3) == "no answer is wrong"
    assert assumption(2, 1) == "the only answer may be wrong"
    assert assumption(1, 1, called="models") == "the only model may be wrong"
    assert assumption(2, 2, "checks hold exactly") == "any of the 2 answers may be wrong, and checks hold exactly"
    assert assumption(1, 2) == "at most 1 of 2 answers is wrong"


def test_the_order_of_disputes() -> None:
    """What is surely wrong, then what is open, then what was hardly asked; among equals what
    disagrees most, then who is blamed most.
    """
    listed = [
        (Verdict.CONTRADICTED, 3.0, 0),
        (Verdict.CONTRADICTED, 1.0, 0),
        (Verdict.AMBIGUOUS, 2.0, 2),
        (Verdict.AMBIGUOUS, 2.0 + 1e-12, 1),
        (Verdict.INCOMPLETE, 9.0, 9),
        (Verdict.CONSISTENT, 9.0, 9),
    ]
    shuffled = [listed[i] for i in (4, 1, 5, 3, 0, 2)]
    assert sorted(shuffled, key=lambda entry: dispute(*entry)) == listed


def judges(count: int, *, units: bool = True, triangle: bool = False, label: bool = False) -> rrf.Problem:
    """Judges asked in both orders: the two orders of each tied, and the first orders of
    neighbours.
    """
    names = "abc"[:count]
    nodes = [{"id": f"{j}{o}", "model": j} | ({"unit": j} if units else {}) for j in names for o in (1, 2)]
    pairs = [(names[i], names[i + 1]) for i in range(count - 1)] + ([("a", "c")] if triangle else [])
    relations = [{"id": f"own {j}", "tail": f"{j}1", "head": f"{j}2"} for j in names]
    relations += [{"id": f"{a}{b}", "tail": f"{a}1", "head": f"{b}1"} for a, b in pairs]
    return rrf.Problem(
        nodes=nodes, relations=relations, anchors=[{"id": "label", "node": "a1", "value": 1.0}] if label else []
    )


def invoice(**settings: Any) -> rrf.Problem:
    """A total asked twice and checked, and a split of it that only its sum is known of."""
    return rrf.Problem(
        nodes=[{"id": "total"}, {"id": "again"}, {"id": "net"}, {"id": "tax"}],
        relations=[{"id": "same", "tail": "total", "head": "again"}],
        anchors=[
            {"id": "ledger", "node": "total", "value": 119.0},
            {"id": "sum", "nodes": ["net", "tax", "total"], "rows": [[1.0, 1.0, -1.0]], "value": 0.0},
            {"id": "split", "node": "net", "value": 100.0, "cost": 0.8},
        ],
        **settings,
    )


def generated(seed: int) -> rrf.Problem:
    """A small field with some of: shared units, delivered nodes, suspect checks, several
    coordinates.
    """
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    nodes: list[dict[str, Any]] = [{"id": f"n{i}", "dim": 1 + int(rng.random() < 0.2)} for i in range(n)]
    for node in nodes:
        if rng.random() < 0.6:
            node["unit"] = f"u{rng.integers(3)}"
    ends = [(i, j) for i in range(n) for j in range(i) if nodes[i]["dim"] == nodes[j]["dim"] and rng.random() < 0.6]
    relations: list[dict[str, Any]] = [
        {"id": f"r{i}{j}", "tail": f"n{j}", "head": f"n{i}", "transport": {"scale": float(rng.choice([1, 2, -1]))}}
        for i, j in ends
    ]
    anchors: list[dict[str, Any]] = [{"id": f"a{i}", "node": f"n{i}"} for i in range(n) if rng.random() < 0.7]
    settings: dict[str, Any] = {}
    if rng.random() < 0.6:
        settings["deliver"] = [f"n{i}" for i in sorted(rng.choice(n, size=int(rng.integers(1, 3)), replace=False))]
    if rng.random() < 0.5:
        settings["wrong_checks"] = 1
        for block in (*relations, *anchors):
            if rng.random() < 0.4:
                block["trusted"] = True
    return rrf.Problem(nodes=nodes, relations=relations, anchors=anchors, **settings)


def enumerated(operator: Operator, k: int) -> float:
    """min ‖B_{−R} h‖ with ‖h_D‖ = 1 over all unions of 2k units and all sets R of 2a suspects, by
    dense algebra.
    """
    premise, names = operator.premise, operator.node_ids
    units = list(premise.partition(names).values())
    suspects = [j for j, name in enumerate(operator.block_ids) if name in premise.suspects]
    owner = np.repeat(np.arange(len(operator.block_ids)), np.diff(operator.block_offsets))
    dense, least = operator.matrix.toarray(), np.inf
    for chosen in combinations(units, min(2 * k, len(units))):
        nodes = [operator.node_index[name] for unit in chosen for name in unit]
        inside = np.concatenate([operator.groups[i] for i in nodes])
        wanted = np.isin(inside, [c for n in premise.wanted(names) for c in operator.groups[operator.node_index[n]]])
        if not wanted.any():
            continue
        for gone in combinations(suspects, min(2 * premise.wrong_checks, len(suspects))):
            part = dense[~np.isin(owner, gone)][:, inside]
            rest = part[:, ~wanted]
            left = part[:, wanted] - rest @ (np.linalg.pinv(rest) @ part[:, wanted])
            padded = np.vstack([left, np.zeros((left.shape[1], left.shape[1]))])
            least = min(least, float(np.linalg.svd(padded, compute_uv=False)[-1]))
    return least


@pytest.mark.parametrize("block", range(10))
def test_the_margin_of_a_premise_is_that_of_plain_enumeration(block: int) -> None:
    seen = set()
    for seed in range(block * 30, block * 30 + 30):
        problem = generated(seed)
        found = problem.margin()
        truth = enumerated(problem.operator(), problem.k)
        assert found.lower <= truth * (1 + 1e-9) + 1e-12
        assert found.value == pytest.approx(truth, rel=1e-7, abs=1e-8)
        premise = problem.structure.operator.premise
        assert premise.count(found.support) <= 2 * problem.k
        assert len(found.wrong) <= 2 * premise.wrong_checks
        kept = problem.operator()
        left = {name: 0.0 if name in found.wrong else energy for name, energy in found.seen_by().items()}
        delivered = kept.stack({n: found.witness.get(n, (0.0,) * problem.node_by_id[n].dim) for n in kept.node_ids})
        wanted = [c for n in premise.wanted(kept.node_ids) for c in kept.groups[kept.node_index[n]]]
        assert float(np.linalg.norm(delivered[wanted])) == pytest.approx(1.0)
        assert np.sqrt(sum(left.values())) == pytest.approx(found.value, abs=1e-7)
        seen.add((bool(premise.units), premise.deliver is not None, bool(premise.wrong_checks), found.value > 0))
    assert len(seen) >= 6


def test_what_fails_together_decides() -> None:
    assert judges(2, units=False).margin().value == pytest.approx(0.6180, abs=1e-4)
    both = judges(2).margin()
    assert (both.value, both.units, both.support) == (0.0, ("a", "b"), ("a1", "a2", "b1", "b2"))
    assert judges(3).margin().value == pytest.approx(0.4158, abs=1e-4)
    assert judges(3, triangle=True).margin().value == pytest.approx(0.6180, abs=1e-4)
    assert judges(2, label=True).margin().value == pytest.approx(0.4158, abs=1e-4)


def test_only_what_is_delivered_must_be_right() -> None:
    assert invoice().margin().value == 0.0
    found = invoice(deliver=["total"]).margin()
    assert found.value == pytest.approx(enumerated(invoice(deliver=["total"]).operator(), 1))
    assert found.value > 0.5


def test_a_check_that_may_be_wrong_takes_its_rows_with_it() -> None:
    def field(**label: Any) -> rrf.Problem:
        anchors = [{"id": "x", "node": "n", **label}, {"id": "y", "node": "n"}, {"id": "z", "node": "n"}]
        return rrf.Problem(nodes=[{"id": "n"}], anchors=anchors, wrong_checks=1)

    assert field().margin().value == pytest.approx(1.0)  # one of three is left when two are taken away
    assert field(trusted=True).margin().value == pytest.approx(1.0)
    alone = field(trusted=False).margin()  # the only suspect
    assert alone.value == pytest.approx(np.sqrt(2.0))
    assert alone.wrong == ("x",)


def test_a_delivered_node_that_is_not_asked_has_no_margin() -> None:
    problem = rrf.Problem(
        nodes=[{"id": "a"}, {"id": "b", "cost": 1.0}],
        relations=[{"id": "r", "tail": "a", "head": "b"}],
        anchors=[{"id": "x", "node": "a"}, {"id": "y", "node": "b", "cost": 1.0}],
        deliver=["b"],
    )
    assert problem.margin().value == 0.0
    assert problem.margin().support == ("b",)
    assert problem.margin(["b"]).value == pytest.approx(0.7071, abs=1e-4)
    assert rrf.plan(problem, target=0.5).selected == ("b",)


def test_suspects_are_those_named_or_else_all_that_are_not_trusted() -> None:
    anchors: list[dict[str, Any]] = [{"id": name, "node": "n"} for name in "xyz"]
    anchors[1]["trusted"] = True
    problem = rrf.Problem(nodes=[{"id": "n"}], anchors=anchors, wrong_checks=1)
    assert Premise.of(problem).suspects == {"x", "z"}
    anchors[2]["trusted"] = False
    problem = rrf.Problem(nodes=[{"id": "n"}], anchors=anchors, wrong_checks=1)
    assert Premise.of(problem).suspects == {"z"}
    gone = realised(problem, failed=["z"], values={})
    assert not Premise.of(gone).wrong_checks, "x does not become a suspect when the one that was named is gone"


def test_what_k_counts_is_called_by_its_name() -> None:
    assert Premise.of(judges(2)).called == "models"
    assert Premise.of(judges(2, units=False)).plain
    some = rrf.Problem(nodes=[{"id": "a", "unit": "u"}, {"id": "b", "unit": "u"}, {"id": "c"}])
    assert Premise.of(some).called == "units"
    assert Premise.of(some).partition(["c", "a", "b"]) == {"\0c": ["c"], "u": ["a", "b"]}
    alone = rrf.Problem(nodes=[{"id": "a", "unit": "b"}, {"id": "b"}])
    assert Premise.of(alone).plain, "a unit that is called like another node is no unit with it"


def test_an_option_that_a_margin_does_not_know_is_refused() -> None:
    operator = invoice(deliver=["total"]).operator()
    assert protected(operator, 1, time_limit=5.0).solved.value > 0
    with pytest.raises(rrf.InputError, match="method: does not apply to the margin of delivered values"):
        protected(operator, 1, method="enumerate")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"deliver": []}, r"\[problem\]: deliver is empty"),
        ({"deliver": ["totl"]}, r"deliver names the unknown node 'totl'.*total"),
        ({"deliver": ["total", "total"]}, "deliver names a node twice"),
        ({"wrong_checks": -1}, "wrong_checks"),
    ],
)
def test_bad_input_is_refused_in_one_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(rrf.InputError, match=message) as caught:
        invoice(**change)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("key", "value", "why"), [("uncertainty", 0.1, "uncertain"), ("sigma", 0.1, "noisy")])
def test_an_exact_check_is_neither_uncertain_nor_noisy(key: str, value: float, why: str) -> None:
    with pytest.raises(rrf.InputError, match=f"trusted = true says that it is exact, but it is declared {why}"):
        rrf.Problem(nodes=[{"id": "n"}], anchors=[{"id": "x", "node": "n", "trusted": True, key: value}])


def test_units_are_called_models_only_where_nodes_name_them():
    def called(*nodes):
        return rrf.Problem(nodes=[{"id": f"n{i}", **node} for i, node in enumerate(nodes)]).whole.premise.called

    assert called({"unit": "document"}, {"unit": "document"}) == "units"
    assert called({"unit": "mini", "model": "mini"}, {"unit": "mini", "model": "mini"}) == "models"
    assert called({"unit": "a", "model": "mini"}, {"unit": "a", "model": "other"}) == "units"
    assert called({"unit": "a", "model": "mini"}, {"unit": "a"}) == "units"


def field(seed: int, **settings: Any) -> rrf.Problem:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 6))
    pairs = [(i, j) for i in range(n) for j in range(i) if rng.random() < 0.6]
    return rrf.Problem(
        k=1,
        nodes=[{"id": f"n{i}"} for i in range(n)],
        relations=[
            {
                "id": f"r{i}{j}",
                "tail": f"n{i}",
                "head": f"n{j}",
                "transport": {"scale": float(rng.choice([1.0, 2.0, -1.0]))},
            }
            for i, j in pairs
        ],
        anchors=[{"id": f"a{i}", "node": f"n{i}", "value": 1.0} for i in range(n) if rng.random() < 0.6],
        **settings,
    )


def enumerated_unread(matrix: Any, gone: tuple[int, ...], wanted: list[int]) -> float:
    """min ‖Bh‖/‖h_D‖ over h on R and two more nodes: by eigenvalues of what is left when the rest
    is chosen best.
    """
    rest = [i for i in range(matrix.shape[1]) if i not in gone]
    best = inf
    for two in combinations(rest, min(2, len(rest))):
        index = [*gone, *two]
        inside = [i for i in index if i in wanted]
        free = [i for i in index if i not in wanted]
        if not inside:
            continue
        part = matrix[:, inside]
        if free:
            basis, sizes, _ = np.linalg.svd(matrix[:, free], full_matrices=False)
            basis = basis[:, sizes > 1e-10]
            part = part - basis @ (basis.T @ part)
        value = np.linalg.svd(part, compute_uv=False)[-1] if part.shape[0] >= part.shape[1] else 0.0
        best = min(best, float(value))
    return best


@pytest.mark.parametrize("seed", range(40))
def test_it_is_the_least_over_what_unread_answers_and_two_more_can_hide(seed: int) -> None:
    rng = np.random.default_rng(1000 + seed)
    problem = field(seed, **({"deliver": ["n1"]} if seed % 2 else {}))
    operator = problem.operator()
    n = len(operator.node_ids)
    gone = tuple(sorted(rng.choice(n, size=int(rng.integers(1, n)), replace=False).tolist()))
    found = protected_unread(operator, 1, unread=gone)
    wanted = [1] if seed % 2 else list(range(n))
    truth = enumerated_unread(operator.matrix.toarray(), gone, wanted)
    assert found.solved.value == pytest.approx(truth, abs=1e-9)
    assert found.solved.lower <= truth + 1e-12
    assert Decoding(operator, k=1, erased=gone).facts.lower == found.solved.lower
    lost = [f"n{i}" for i in gone]
    assert problem.structure.holding((), lost).margin().lower == found.solved.lower


@pytest.mark.parametrize("settings", [{"deliver": ["n1"]}, {"wrong_checks": 1}, {"deliver": ["n0"], "wrong_checks": 1}])
def test_a_bound_is_below_the_margin_and_says_that_it_is_one(
    settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = {seed: protected_unread(field(seed, **settings).operator(), 1, unread=(2,)) for seed in range(12)}
    monkeypatch.setattr("solvers.decoding.unread_margin", lambda *_, **__: None)

    for seed, truth in exact.items():
        found = protected_unread(field(seed, **settings).operator(), 1, unread=(2,))
        assert found.bound
        assert found.solved.upper == inf
        assert found.solved.lower <= truth.solved.upper * (1 + 1e-9)


def radius(epsilon: float | None, spread: float | None = 0.0) -> Radius:
    kind = NoiseKind.NONE if epsilon is None else NoiseKind.DETERMINISTIC
    return Radius(NoiseRadius(kind, epsilon, rows=3), spread)


def test_the_wanted_margin_is_the_larger_of_target_and_two_epsilon_over_delta() -> None:
    assert Goal().wanted(radius(0.1)) is None
    assert Goal(target=0.5).wanted(radius(0.1)) == 0.5
    assert Goal(delta=0.4).wanted(radius(0.1)) == pytest.approx(0.5)
    assert Goal(target=0.1, delta=0.4).wanted(radius(0.1)) == pytest.approx(0.5)
    assert Goal(delta=0.4).wanted(radius(0.1, 0.1)) == pytest.approx(1.0)
    assert Goal(delta=0.4).wanted(radius(0.1, None)) == inf


def test_reached() -> None:
    near = {"lower": 0.5, "robust_lower": 0.2}
    assert Goal().reached(**near, radius=radius(None))
    assert not Goal(target=0.4).reached(**near, radius=radius(None))  # what is certain of the margin counts
    assert Goal(target=0.2).reached(**near, radius=radius(None))
    assert Goal(delta=0.4).reached(**near, radius=radius(0.1))
    assert not Goal(delta=0.39).reached(**near, radius=radius(0.1))
    assert not Goal(delta=100.0).reached(**near, radius=radius(0.1, None))
    assert not Goal(target=0.0).reached(lower=0.0, robust_lower=0.0, radius=radius(0.0))


def test_a_hair_below_is_reached_and_more_is_not() -> None:
    assert reaches(0.5 * (1 - 1e-10), 0.5)
    assert not reaches(0.5 * (1 - 1e-8), 0.5)
    assert reaches(1e-9, None)
    assert not reaches(0.0, None)


def test_bounds() -> None:
    assert radius(0.1).bound(0.5) == pytest.approx(0.4)
    assert radius(0.1, None).bound(0.5) is None
    assert radius(0.1).bound(0.0) is None
    standing = Standing(Goal(delta=1.0), 1, 0.5, 0.5, radius(0.1))
    assert standing.to_json() == {
        "wanted": pytest.approx(0.2),
        "reached": True,
        "epsilon": 0.1,
        "robust_lower": 0.5,
        "error_bound": pytest.approx(0.4),
    }
    assert Standing(Goal(delta=1.0), 1, 0.5, 0.5, radius(0.1, None)).wanted is None
    diffuse = replace(radius(0.1), tail=0.2, image=0.4)
    assert diffuse.bound(0.5) == pytest.approx(2.2)  # the tail itself, and 2(ε + ‖Br‖)/γ
    assert Goal(delta=1.2).wanted(diffuse) == pytest.approx(1.0)
    assert Goal(delta=0.2).wanted(diffuse) == inf
    assert not Goal(delta=2.1).reached(lower=0.5, robust_lower=0.5, radius=diffuse)
    assert Goal(delta=2.3).reached(lower=0.5, robust_lower=0.5, radius=diffuse)
    assert "range" in Standing(Goal(delta=1.0), 1, 0.5, 0.5, radius(0.1, None)).words()


@pytest.mark.parametrize("wrong", [{"target": -1.0}, {"target": inf}, {"delta": 0.0}, {"delta": float("nan")}])
def test_wishes_that_are_none(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        Goal(**wrong)
