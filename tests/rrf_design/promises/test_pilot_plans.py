from __future__ import annotations

from typing import Any

import pytest

from rrf_design.errors import InputError
from rrf_design.promises import PilotSettings
from rrf_design.promises._pilot_design import settings_of
from rrf_design.risk import Statement


def test_too_small_a_pilot_says_what_it_can_prove_at_best(make_world: Any) -> None:
    world = make_world(items=320)
    with pytest.raises(InputError, match=r"200 labels can prove a risk of 1\.49 % at best.*needs at least 299"):
        world.plan(PilotSettings(200, 0.01))
    world.plan(PilotSettings(299, 0.01))


def test_a_pilot_too_small_for_its_own_test_is_refused(make_world: Any) -> None:
    world = make_world(items=200)
    with pytest.raises(InputError, match=r"hold at every moment.*needs more than 30"):
        world.plan(PilotSettings(30, 0.1, sequential=True))
    with pytest.raises(InputError, match="the statement 'rest'"):
        world.plan(PilotSettings(10, 0.1, statement=Statement.REST))
    with pytest.raises(InputError, match="without strata"):
        PilotSettings(80, 0.1, stratify="kind", sequential=True)


def test_what_is_not_said_comes_from_the_promise(make_world: Any) -> None:
    world = make_world(items=100, extra="\n[promise]\nrisk = 0.2\npilot = 30\n")
    assert settings_of(world.dataset, labels=None, risk=None, confidence=None) == (30, 0.2, 0.95)
    assert settings_of(world.dataset, labels=50, risk=0.1, confidence=0.9) == (50, 0.1, 0.9)
    with pytest.raises(InputError, match="no risk to keep"):
        settings_of(make_world(items=20).dataset, labels=None, risk=None, confidence=None)


def test_a_gold_column_that_a_question_shows_is_refused(make_world: Any) -> None:
    world = make_world(items=80)
    world.recipe.write_text(world.recipe.read_text().replace("{{ text }}", "{{ text }} {{ booked }}"))
    with pytest.raises(InputError, match="gold column"):
        world.plan(PilotSettings(70, 0.1))


def test_a_check_that_shows_the_gold_is_refused(make_world: Any) -> None:
    extra = '\n[[check]]\nid = "leak"\nof = "total"\nby = { value = "{{ booked }}" }\n'
    world = make_world(items=80, extra=extra)
    with pytest.raises(InputError, match="gold column"):
        world.plan(PilotSettings(70, 0.1))


@pytest.mark.parametrize("price", ['"x"', "-1", "true"])
def test_what_a_withheld_item_costs_is_a_price(make_world: Any, price: str) -> None:
    world = make_world(items=200, wrong=0.05, extra=f"\n[ladder]\nwithheld = {price}\n")
    with pytest.raises(InputError, match=r"\[ladder\]: withheld = .* should be a price"):
        world.document(PilotSettings(100, 0.1))


def test_a_pilot_of_all_items_leaves_no_rest(make_world: Any) -> None:
    world = make_world(items=60)
    with pytest.raises(InputError, match="a pilot of all 60 items leaves no rest"):
        world.plan(PilotSettings(60, 0.1, statement=Statement.REST))
    for statement in (Statement.FRESH, Statement.POLICY, Statement.FILE):
        assert len(world.plan(PilotSettings(60, 0.1, statement=statement)).drawn) == 60
    with pytest.raises(InputError, match="a pilot of 61 items; the table has 60"):
        world.plan(PilotSettings(61, 0.1))
    with pytest.raises(InputError, match="a pilot of 0 items"):
        world.plan(PilotSettings(0, 0.1))
