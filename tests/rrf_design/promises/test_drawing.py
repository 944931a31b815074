from __future__ import annotations

from collections import Counter

import pytest

from rrf_design.errors import InputError
from rrf_design.promises._pilot_design import Population
from rrf_design.questions import dataset

RECIPE = {
    "data": {"id": "no", "gold": "booked"},
    "answer": {"of": "a"},
    "ask": [{"id": "a", "prompt": "{{ text }}"}],
}


def population(*, stratify: str | None = None, size: int = 60) -> Population:
    rows = [{"no": str(i), "text": f"t{i % 50}", "kind": "x" if i % 3 else "y", "booked": i} for i in range(size)]
    return Population.of(dataset(RECIPE, rows), stratify=stratify)


def test_the_draw_is_the_seed_and_the_digest() -> None:
    one = population()
    assert one.order(3) == population().order(3)
    assert one.order(3) != one.order(4)
    assert one.order(3) != population(size=61).order(3)[:60]
    assert sorted(one.order(3)) == list(range(60))


def test_gold_is_no_part_of_the_digest() -> None:
    rows = [{"no": "1", "text": "t", "booked": 1}]
    other = [{"no": "1", "text": "t", "booked": 2}]
    assert Population.of(dataset(RECIPE, rows)).digest == Population.of(dataset(RECIPE, other)).digest


def test_strata_are_drawn_in_proportion() -> None:
    found = population(stratify="kind")
    drawn = found.order(1)[:30]
    assert found.labels is not None
    assert Counter(found.labels[place] for place in drawn) == {"x": 20, "y": 10}
    assert [(s.population, s.drawn) for s in found.strata(drawn)] == [(40, 20), (20, 10)]


def test_strata_of_the_truth_are_refused() -> None:
    with pytest.raises(InputError, match="gold"):
        population(stratify="booked")


def test_items_that_ask_the_same_on_both_sides_are_noticed() -> None:
    found = population()
    twins = found.twins([0, 1, 2])  # items 50, 51, 52 ask the same
    assert twins == [{"item": str(50 + i), "pilot_item": str(i)} for i in range(3)]
    assert population(size=50).twins([0, 1]) == []


def test_twins_are_noticed_whatever_their_id_case_and_spacing() -> None:
    """A person's question names the id, so that no two items ask word for word the same; and a copy
    is seldom made letter by letter.
    """
    clerk = {"id": "clerk", "of": "a", "by": {"person": "Total of {{ no }}?"}, "cost": 3.0}
    rows = [
        {"no": "1", "text": "Pay 12", "booked": 1},
        {"no": "2", "text": "  pay  12\n", "booked": 2},
        {"no": "3", "text": "Pay 13", "booked": 1},
    ]
    found = Population.of(dataset({**RECIPE, "check": [clerk]}, rows))
    assert len(set(found.asked)) == 3
    assert found.twins([0]) == [{"item": "2", "pilot_item": "1"}]
    assert found.twins([2]) == []
