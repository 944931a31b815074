"""The sliced operator is the assembled one, prices are and the ceiling is a bound."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from fields import ring

import rrf_design as rrf
from rrf_design.acquisition._candidates import Candidates
from rrf_design.derive import realised
from rrf_design.market import exact
from rrf_design.structure import share


def costly() -> rrf.Problem:
    """A node on sale, an owned relation that waits for it, requirements, exclusions, a rule and a
    tier.
    """
    return rrf.Problem(
        k=1,
        nodes=[{"id": "a"}, {"id": "b"}, {"id": "c", "cost": 0.5}],
        relations=[
            {"id": "ab", "tail": "a", "head": "b", "family": "f"},
            {"id": "bc", "tail": "b", "head": "c", "family": "f"},
            {"id": "ac", "tail": "a", "head": "c", "transport": {"scale": 2.0}, "cost": 0.1},
        ],
        anchors=[
            {"id": "A", "node": "a", "cost": 1.0, "requires": ["ac"]},
            {"id": "B", "node": "b", "cost": 1.0, "excludes": ["A"]},
            {"id": "C", "node": "c", "cost": 1.0},
            {"id": "C2", "node": "c", "cost": 1.0},
        ],
        rules=[{"id": "few", "blocks": ["C", "C2", "B"], "at_most": 2}],
        tiers=[{"id": "bulk", "blocks": ["C", "C2"], "prices": [0.9, 0.3]}],
    )


def test_money_is_what_was_written() -> None:
    assert exact(0.1) * 3 == exact(0.3)
    assert exact(1) == Fraction(1)


@pytest.mark.parametrize("held", [[], ["c"], ["c", "C"], ["c", "ac", "A", "C2"], ["B"]])
def test_slices_equal_the_assembled_operator(held: list[str]) -> None:
    problem = costly()
    mine, theirs = problem.structure.holding(held).slice(problem), problem.operator(held)
    assert (mine.node_ids, mine.block_ids) == (theirs.node_ids, theirs.block_ids)
    np.testing.assert_array_equal(mine.matrix.toarray(), theirs.matrix.toarray())
    np.testing.assert_array_equal(mine.target, theirs.target)
    assert mine.groups[-1].tolist() == theirs.groups[-1].tolist()


def test_closures_come_in_buying_order_with_their_price() -> None:
    design = Candidates(costly())
    assert design.closure("A", ()) == ("c", "ac", "A")
    assert design.price(design.closure("A", ())) == Fraction(16, 10)
    assert design.closure("A", {"c", "ac"}) == ("A",)


def test_tiers_rules_and_exclusions() -> None:
    design = Candidates(costly())
    assert design.price(["C"]) == Fraction(9, 10)
    assert design.price(["C2"], {"C"}) == Fraction(3, 10)
    assert design.price(["C", "C2"]) == Fraction(12, 10)
    assert not design.allowed(["B"], {"A"})
    assert not design.allowed(["A"], {"B"})
    assert not design.allowed(["B"], {"C", "C2"})
    names = {offer.names[-1] for offer in design.offers({"c", "C"}, (), most=Fraction(1, 2))}
    assert names == {"ac", "C2"}


def test_a_node_wakes_the_relations_that_waited_for_it() -> None:
    design = Candidates(costly())
    assert design.wakes(["c"], ()) == ["bc"]
    assert design.wakes(["c", "C"], ()) == ["C", "bc"]
    assert [offer.names for offer in design.offers((), (), most=Fraction(1, 2))] == [("c",)]


def test_energies_add_up_to_the_witness_norm() -> None:
    design = Candidates(ring())
    margin = design.margin(["r1", "a0"])
    energy = design.energies(margin.witness)
    assert sum(energy[name] for name in margin.operator.block_ids) == pytest.approx(margin.value**2, abs=1e-12)


def test_margins_kept_up_to_date_equal_margins_computed_afresh() -> None:
    problem = ring(20)
    design, held = Candidates(problem, incremental=True), list[str]()
    for name in ("r1", "a0", "r5", "a7", "r3", "r7", "a12"):
        held.append(name)
        assert design.margin(held).value == pytest.approx(problem.margin(held).value, abs=1e-9)
    assert design.margin(held[:2]).value == pytest.approx(problem.margin(held[:2]).value, abs=1e-9)
    failed = design.margin(held, ["n4"])
    assert failed.unread == ("n4",)
    assert failed.lower <= design.margin(held).upper  # whoever knows which answer is missing knows less than with it


def test_equal_fields_share_what_was_computed_and_others_do_not() -> None:
    problems = (ring(), ring(name="same"), ring(6))
    structures = share(problems)
    assert structures[0] is structures[1] is not structures[2]
    first, same, other = (Candidates(p, structure=s) for p, s in zip(problems, structures, strict=True))
    assert first.margin(["r1"]).solved is same.margin(["r1"]).solved
    assert other.margin(["r1"]).value == pytest.approx(ring(6).margin(["r1"]).value)


def test_unread_nodes_stay_with_their_rows_and_failed_checks_go() -> None:
    design = Candidates(ring())
    operator = design.margin(["r1", "a2", "a3"], ["n2", "a3"]).operator
    assert "n2" in operator.node_ids
    assert set(operator.block_ids) == {"r0", "r1", "r2", "r4", "a2"}


@pytest.mark.parametrize("seed", range(6))
def test_ceiling_bounds_every_choice(seed: int) -> None:
    rng = np.random.default_rng(seed)
    design = Candidates(ring(4) if seed % 2 else costly())
    held: tuple[str, ...] = ()
    offers = design.offers(held, (), most=Fraction(2))
    ceiling = design.ceiling(held, (), offers)
    for _ in range(20):
        chosen = [b for b in offers if rng.random() < 0.5]
        names = {name for offer in chosen for name in offer.names}
        assert design.margin(names).lower <= ceiling * (1 + 1e-9)


def test_realised_keeps_every_row_that_stays() -> None:
    problem = costly()
    turned_out = realised(problem, failed={"c", "B"}, values={"A": (4.0,)})
    assert [node.id for node in turned_out.nodes] == ["a", "b"]
    assert turned_out.block_by_id["A"].value == (4.0,)  # type: ignore[union-attr]
    assert turned_out.block_by_id["A"].requires == ()
    before = Candidates(problem).margin(["A"], ["c", "B"]).operator
    np.testing.assert_allclose(turned_out.operator(["A"]).matrix.toarray(), before.matrix.toarray(), rtol=1e-15)


@pytest.mark.parametrize("premise", [{"deliver": ["n3"]}, {"wrong_checks": 1}])
@pytest.mark.parametrize("incremental", [True, False])
def test_a_shop_asks_the_question_of_its_problem(premise: dict[str, Any], incremental: bool) -> None:
    """Also on a field so large that plain margins are kept up to date."""
    problem = ring(20, **premise)
    shop = Candidates(problem, incremental=incremental)
    for held in ([], ["a3"], ["a3", "r3", "a4"]):
        assert shop.margin(held).value == problem.margin(held).value
        assert shop.settled_margin(held, ()).value == problem.margin(held).value
    assert shop.supports_below([], (), factor=1.2, most=5) == ()
    offers = shop.offers([], (), most=None)
    assert shop.ceiling([], (), offers) >= problem.margin("all").value * (1 - 1e-9)


def test_a_delivered_answer_that_could_not_be_read_is_determined_by_the_others_or_not_at_all() -> None:
    problem = ring(5, deliver=["n3"])
    held = ["r1", "r3", "a3", "a4"]
    assert Candidates(problem).margin(held).value > 0.5
    assert Candidates(problem).margin(held, ["n3"]).value > 0.0  # its check and its neighbours state it
    assert Candidates(problem).margin([], ["n3"]).value == 0.0
    assert Candidates(problem).margin(held, ["n1"]).value > 0.0
    left = realised(problem, failed=["n3", "a0"], values={})
    assert left.deliver == ("n3",)
    assert left.margin("all").value == 0.0


def test_a_live_run_does_not_take_one_answer_for_a_mean() -> None:
    import rrf_design as rrf
    from rrf_design.acquisition._candidates import Candidates

    shop = Candidates(rrf.Problem(nodes=[{"id": "x", "sigma": 0.1, "repeats": 3}]))
    assert shop.asked({"x"}, ()).node_by_id["x"].repeats == 3
    assert shop.asked({"x"}, {"x ×2", "x ×3"}).node_by_id["x"].repeats == 1  # as many as could be read
