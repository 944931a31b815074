"""Problems as such, and why a margin is no larger."""

from __future__ import annotations

from typing import Any

import pytest

from rrf_design import InputError, Node, Problem, Relation, _explain
from rrf_design._explain import Cause, explain, nothing_helps, words


def pair(**more: object) -> Problem:
    content = {"nodes": [{"id": "a"}, {"id": "b"}], "relations": [{"id": "r", "tail": "a", "head": "b"}], "anchors": []}
    return Problem(**{**content, **more})


def test_a_node_that_nothing_touches(problem: Problem) -> None:
    found = explain(problem)
    assert found.cause is Cause.UNTOUCHED
    assert found.margin.support == ("isolate",)
    assert "Nothing in this design touches isolate" in words(found)
    assert not found.enough


def test_a_shared_error_is_called_consistent_and_false() -> None:
    found = explain(pair())
    assert found.cause is Cause.SHARED
    assert found.blind == ("r",)
    assert "consistent, and false" in words(found)
    assert found.mend is None
    assert found.singles == ()


def test_an_error_that_cancels() -> None:
    anchors = [{"id": "sum", "nodes": ["a", "b"], "rows": [[1.0, 1.0]]}]
    found = explain(pair(relations=[], anchors=anchors))
    assert found.cause is Cause.CANCELLING
    assert found.blind == ("sum",)


def test_a_small_margin_names_what_noise_can_hide(problem: Problem) -> None:
    found = explain(problem, ["a3"])
    assert found.cause is Cause.WEAK
    assert found.sees
    assert f"{2 / found.margin.value:.4g} ε" in words(found)


def test_what_is_wanted() -> None:
    assert explain(pair(target=0.3)).wanted == 0.3
    assert explain(pair(epsilon=0.1, delta=0.5)).wanted == pytest.approx(0.4)
    assert explain(pair(target=0.1, epsilon=0.1, delta=0.5)).wanted == pytest.approx(0.4)
    assert explain(pair()).wanted is None


def growing(**goal: float) -> Problem:
    """What is bought raises γ, and what is uncertain with it."""
    doubtful = [{"id": x, "node": x.lower(), "value": 1.0, "cost": 1.0, "uncertainty": 0.3} for x in "BC"]
    return Problem(
        k=1,
        nodes=[{"id": x, "range": [0, 2]} for x in "abc"],
        relations=[{"id": x + y, "tail": x, "head": y, "uncertainty": 0.1} for x, y in ("ab", "bc", "ca")],
        anchors=[{"id": "A", "node": "a", "value": 1.0}, *doubtful],
        **goal,
    )


def test_a_target_is_held_against_the_margin_that_is_named() -> None:
    """γ is 1.41421, more than 0.99, and what uncertain relations leave of it is less."""
    found = explain(growing(target=0.99), ["B"])
    assert not found.enough
    assert nothing_helps(found).startswith(
        "Nothing on sale reaches the margin 0.99 with declared uncertainty taken off."
    )
    (offer,) = found.singles
    assert (offer.gamma, offer.robust_lower) == (pytest.approx(2**0.5), pytest.approx(0.955956, rel=1e-5))
    assert offer.error_bound is None
    assert found.standing.compared() == "0.82916 with declared uncertainty taken off, wanted 0.99"


def test_an_error_is_held_against_the_error_that_is_promised() -> None:
    """The margin that δ asks for grows with what is bought, so no sentence about a purchase names
    that of the present design.
    """
    found = explain(growing(delta=0.8), ["B"])
    assert nothing_helps(found).startswith("Nothing on sale reaches an error of at most 0.8.")
    (offer,) = found.singles
    after = found.problem.design("all").standing(found.problem)
    assert offer.error_bound == after.error_bound
    assert offer.robust_lower is None
    assert found.standing.compared() == "the promised error is 1.31782, wanted at most 0.8"
    assert found.to_json()["goal"] == "an error of at most 0.8"
    unbounded = growing(delta=0.8).model_copy(update={"nodes": Problem(nodes=[{"id": x} for x in "abc"]).nodes})
    assert explain(unbounded, mend=False).standing.compared() == "no error is promised, wanted at most 0.8"


def test_without_uncertainty_a_target_is_held_against_the_margin(problem: Problem) -> None:
    found = explain(problem, ["a3"], mend=False)
    assert found.goal == "the margin 0.4"
    assert found.standing.compared() == "wanted 0.4"


def test_the_json_has_the_margin_and_the_reasons(problem: Problem) -> None:
    made = explain(problem).to_json()
    for key in (
        "k",
        "gamma",
        "lower",
        "upper",
        "status",
        "support",
        "witness",
        "cause",
        "words",
        "blind",
        "purchases",
        "mend",
    ):
        assert key in made


def test_what_is_assumed_decides() -> None:
    nodes = [{"id": f"forward@{m}" if o == 1 else f"backward@{m}", "unit": m, "model": m} for m in "ab" for o in (1, 2)]
    relations = [{"id": f"own {m}", "tail": f"forward@{m}", "head": f"backward@{m}"} for m in "ab"]
    relations.append({"id": "ab", "tail": "forward@a", "head": "forward@b"})
    found = explain(Problem(nodes=nodes, relations=relations))
    assert found.assumptions == {
        "each answer fails on its own": pytest.approx(0.618, abs=1e-3),
        "a model fails as a whole": 0.0,
        "a wording fails in all its asks": 0.0,
    }
    assert "no method can guarantee to find 1 wrong model" in words(found)
    assert "0.618 if each answer fails on its own; 0 if a model fails as a whole" in words(found)
    assert found.to_json()["units"] == ["a", "b"]


def test_what_is_delivered_and_suspected_is_told_as_well() -> None:
    problem = Problem(
        nodes=[{"id": "a"}, {"id": "b"}],
        anchors=[{"id": f"x{i}", "node": "a"} for i in range(3)],
        deliver=["a"],
        wrong_checks=1,
    )
    found = explain(problem)
    assert found.margin.value == pytest.approx(1.0)
    assert found.assumptions["every value must be right"] == 0.0
    assert found.assumptions["no check is wrong"] == pytest.approx(3**0.5)
    plain = explain(problem.model_copy(update={"deliver": None, "wrong_checks": 0}))
    assert plain.assumptions == {}


def sold_pair(**more: object) -> Problem:
    content = {"nodes": [{"id": "a"}, {"id": "b"}], "relations": [{"id": "r", "tail": "a", "head": "b"}], "anchors": []}
    return Problem(**{**content, **more})  # type: ignore[arg-type]


def test_every_purchase_named_has_the_margin_it_claims(problem: Problem) -> None:
    found = explain(problem)
    assert found.singles
    for offer in found.singles:
        assert problem.margin(offer.ids).value == pytest.approx(offer.gamma)
        assert offer.cost == float(problem.design(offer.ids).price)


def test_the_mend_reaches_what_is_wanted_and_needs_all_of_it(problem: Problem) -> None:
    found = explain(problem)
    assert found.wanted == 0.4
    assert found.mend is not None
    assert problem.margin(found.mend.ids).lower >= 0.4
    for left_out in found.mend.ids:
        fewer = [name for name in found.mend.ids if name != left_out]
        assert problem.margin(fewer).lower < 0.4


def test_a_cheap_single_purchase_wins_over_a_dear_one() -> None:
    anchors = [{"id": "dear", "node": "a", "cost": 4.0}, {"id": "cheap", "node": "a", "sigma": 2.0, "cost": 1.0}]
    found = explain(sold_pair(anchors=anchors))
    assert found.mend is not None
    assert found.mend.ids == ("cheap",)


def test_needs_are_bought_along(problem: Problem) -> None:
    names, price = problem.structure.market.offer("r3u", set())
    assert (names, price) == (("unasked", "r3u"), 1)


def test_a_tier_is_priced_as_the_market_prices_it() -> None:
    tiers = [{"id": "t", "blocks": ["one", "two"], "prices": [5.0, 2.0]}]
    anchors = [{"id": name, "node": node, "cost": 9.0} for name, node in (("one", "a"), ("two", "b"))]
    found = explain(sold_pair(anchors=anchors, tiers=tiers, target=0.9))
    assert [offer.cost for offer in found.singles] == [5.0, 5.0]
    assert found.mend is not None
    assert (found.mend.ids, found.mend.cost) == (("one", "two"), 7.0)


def test_the_cheapest_is_proven_where_the_planner_is_asked(problem: Problem) -> None:
    found = explain(problem)
    assert found.proven
    assert found.mend is not None


def test_without_the_planner_nothing_is_claimed(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_explain, "PLANNED", 0)
    found = explain(problem)
    assert not found.proven
    assert found.mend is not None
    assert problem.margin(found.mend.ids).lower >= 0.4


def test_what_is_selected_already_is_not_bought_again() -> None:
    anchors = [{"id": "one", "node": "a", "cost": 1.0}, {"id": "two", "node": "b", "cost": 1.0}]
    tier = [{"id": "t", "blocks": ["one", "two"], "prices": [1.0]}]
    found = explain(sold_pair(anchors=anchors, tiers=tier, target=0.9), ["one"])
    assert found.mend is not None
    assert found.mend.ids == ("two",)
    assert found.mend.cost == 1.0


def test_that_nothing_helps_is_proven_too() -> None:
    found = explain(sold_pair(anchors=[{"id": "x", "node": "a", "cost": 1.0}], target=5.0))
    assert found.mend is None
    assert found.proven


BASE: dict[str, Any] = {
    "nodes": [{"id": "a"}, {"id": "b"}, {"id": "later", "cost": 0.5}],
    "relations": [{"id": "ab", "tail": "a", "head": "b"}, {"id": "al", "tail": "a", "head": "later", "cost": 1.0}],
    "anchors": [{"id": "x", "node": "a"}, {"id": "y", "node": "b", "cost": 2.0}],
}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"k": 0}, "[problem]: k must be greater than or equal to 1, not 0"),
        ({"k": -3}, "[problem]: k must be greater than or equal to 1, not -3"),
        ({"k": True}, "[problem]: k must be a whole number, not True"),
        ({"k": 1.0}, "[problem]: k must be a whole number, not 1.0"),
        ({"k": "1"}, "[problem]: k must be a whole number, not '1'"),
        ({"name": ""}, "[problem]: name must be non-empty text, not ''"),
        ({"budget": -1}, "[problem]: budget must be greater than or equal to 0, not -1"),
        ({"budget": float("nan")}, "[problem]: budget must be a finite number, not nan"),
        ({"target": float("inf")}, "[problem]: target must be a finite number, not inf"),
        ({"target": True}, "[problem]: target must be a number, not True"),
        ({"epsilon": -1e-300}, "[problem]: epsilon must be greater than or equal to 0, not -1e-300"),
        ({"sigma": 0}, "[problem]: sigma must be greater than 0, not 0"),
        ({"epsilon": 0.1, "sigma": 0.1}, "[problem]: give epsilon or sigma, not both"),
        ({"confidence": 1}, "[problem]: confidence must be less than 1, not 1"),
        ({"delta": 0.0}, "[problem]: delta must be greater than 0, not 0.0"),
        ({"amplitude": "big"}, "[problem]: amplitude must be a number, not 'big'"),
        ({"shrinkage": 1.1}, "[problem]: shrinkage must be less than or equal to 1, not 1.1"),
        ({"variance_floor": -1.0}, "[problem]: variance_floor must be greater than or equal to 0, not -1.0"),
        ({"budgett": 3}, "[problem]: unknown key 'budgett'; did you mean 'budget'?"),
        ({"nodes": []}, "nodes: the field is empty; declare at least one node"),
        ({"nodes": 3}, "nodes: must be a list, not 3"),
        ({"nodes": [3]}, "node number 1: must be a table, not 3"),
        ({"nodes": [{"dim": 2}]}, "node number 1: id is missing"),
        ({"nodes": [{"id": ""}]}, "node number 1: id must be non-empty text, not ''"),
        ({"nodes": ({"id": 3} for _ in "x")}, "node number 1: id must be text, not 3"),
        ({"nodes": [{"id": "a"}, {"id": "a"}]}, "node 'a': this id stands twice, first as node; ids must be unique"),
        ({"anchors": [{"id": "ab", "node": "a"}]}, "anchor 'ab': this id stands twice, first as relation"),
        ({"relations": [{"id": "b", "tail": "a", "head": "a"}]}, "relation 'b': this id stands twice, first as node"),
        ({"relations": [{"id": "r", "tail": "a"}]}, "relation 'r': head is missing"),
        ({"rules": [{"id": "q", "blocks": ["x"]}]}, "rule 'q': 'x' is not a block on sale"),
        ({"rules": [{"id": "q", "blocks": ["yy"]}]}, "rule 'q': 'yy' is not a block on sale; did you mean 'y'?"),
        ({"rules": [{"id": "q", "blocks": ["y"], "at_most": -1}]}, "rule 'q': at_most must be greater than or equal to 0"),
        ({"rules": [{"id": "x", "blocks": ["y"]}]}, "rule 'x': this id stands twice, first as anchor"),
        ({"tiers": [{"id": "t", "blocks": ["y"], "prices": []}]}, "tier 't': prices must be a non-empty list, not []"),
        ({"tiers": [{"id": "t", "blocks": ["y"], "prices": [-1]}]}, "tier 't': prices[0] must be greater than or equal"),
    ],
)  # fmt: skip
def test_every_fault_is_one_line_that_names_the_entry(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Problem(**{**BASE, **bad})
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_long_values_are_cut_in_messages() -> None:
    with pytest.raises(InputError) as caught:
        Problem(nodes=[{"id": "a", "dim": "9" * 10_000}])
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("select", "expected"),
    [
        (None, ()),
        ([], ()),
        ("y", ("y",)),
        (["y", "al", "later", "y"], ("later", "al", "y")),
        ({"y", "x", "a", "ab"}, ("y",)),
        ((name for name in ["al"]), ("al",)),
        ("all", ("later", "al", "y")),
    ],
)
def test_selections_come_in_file_order_without_what_is_owned(select: Any, expected: tuple[str, ...]) -> None:
    assert Problem(**BASE).resolve(select) == expected


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("z", "select: nothing here is called 'z'"),
        (["latter"], "select: nothing here is called 'latter'; did you mean 'later'?"),
        ([3], "select: give ids, not [3]"),
        ([None, "y"], "select: give ids"),
        (3, "select: give ids, not 3"),
    ],
)
def test_unknown_selections(select: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        Problem(**BASE).resolve(select)
    assert str(caught.value).startswith(message)


def test_the_shop_window() -> None:
    problem = Problem(**BASE)
    assert problem.on_sale == ("al", "y")
    assert [block.id for block in problem.blocks] == ["ab", "al", "x", "y"]
    assert problem.block_by_id["y"].cost == 2.0
    assert problem.node_by_id["later"].cost == 0.5


def test_a_problem_of_objects_never_changes() -> None:
    made = Problem(nodes=[Node(id="a"), Node(id="b")], relations=[Relation(id="ab", tail="a", head="b")], k=2)
    assert made == Problem(nodes=BASE["nodes"][:2], relations=BASE["relations"][:1], k=2)
    with pytest.raises(ValueError, match="frozen"):
        Problem(**BASE).k = 2  # type: ignore[misc]


def test_validating_by_pydantic_checks_as_much() -> None:
    with pytest.raises(ValueError, match="stands twice"):
        Problem.model_validate({"nodes": [{"id": "a"}, {"id": "a"}]})
