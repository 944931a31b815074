"""A model that refuses at first and is wrong when it is asked again: no item has a second chance
that the pilot's items had not.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.errors import Refused
from rrf_design.models.scripted import ScriptedModel
from rrf_design.promises import (
    LadderPolicy,
    LiveModels,
    PilotSettings,
    gold_truths,
    plan_pilot,
    policy_document,
    run_pilot,
    run_policy,
)
from rrf_design.promises._pilot_design import buy_pilot, checks_to_fetch
from rrf_design.promises._reuse import recalled, recalled_pilot

RECIPE = """[data]
id = "no"
gold = "booked"

[answer]
of = "a"
k = 1

[[ask]]
id = "a"
prompt = "{{ text }} a?"
cost = 1.0

[[check]]
id = "clerk"
of = "a"
by = { person = "{{ text }}?" }
cost = 30.0
"""


class Reluctant:
    """Every third question is refused when it comes first, and answered wrongly when it comes
    again.
    """

    def __init__(self) -> None:
        self.seen: dict[str, int] = {}

    def __call__(self, request: Any) -> str:
        times = self.seen[request.prompt] = self.seen.get(request.prompt, 0) + 1
        number = int(request.prompt.split()[1])
        if number % 3:
            return str(number)
        return "I'm sorry, but I can't help with that." if times == 1 else str(number + 1)


def test_items_that_made_the_order_keep_the_answers_they_gave(tmp_path: Any) -> None:
    (tmp_path / "rrf.toml").write_text(RECIPE)
    data = rrf.dataset(
        tmp_path / "rrf.toml", [{"no": f"i{n}", "text": f"item {n}", "booked": n} for n in range(10, 100)]
    )
    script = Reluctant()
    model = ScriptedModel(script)
    model.kept = True

    def live(journal: str) -> LiveModels:
        return LiveModels(model, tmp_path / journal, {"cache": tmp_path / "cache"})

    settings = PilotSettings(40, 0.1, aside=40)
    bought = buy_pilot(data, settings, live("journal.sqlite"))
    plan = plan_pilot(data, bought, settings)
    document = policy_document(run_pilot(plan, gold_truths(plan)[0], truth_source="gold column 'booked'"))
    assert LadderPolicy.from_json(document["ladder"]).order == ("a",)
    run = run_policy(data, live("journal.sqlite"), document)
    truth = {item.id: item.gold for item in data.items_in_order()}
    outside = [(name, row) for name, row in zip(run.ids, run.rows, strict=True) if name not in document["drawn"]]
    assert all(row["answer"] in (None, truth[name]) for name, row in outside)
    assert sum(row["answer"] is None for _, row in outside) > 10
    assert max(script.seen.values()) == 1
    names = [name for name, _ in outside]
    known = recalled(data, live("journal.sqlite"), document["runs"], names)
    assert len(known.answers) == 40
    assert all(known.of(name) == bought.of(name) for name in known.answers)
    # another journal, or a run of other questions, says nothing
    assert not recalled(data, live("other.sqlite"), document["runs"], names).answers
    assert not recalled(data, live("journal.sqlite"), ["unknown"], names).answers
    (tmp_path / "rrf.toml").write_text(RECIPE.replace("a?", "now?"))
    changed = rrf.dataset(
        tmp_path / "rrf.toml", [{"no": f"i{n}", "text": f"item {n}", "booked": n} for n in range(10, 100)]
    )
    assert not recalled(changed, live("journal.sqlite"), document["runs"], names).answers


CHECKED = (
    RECIPE
    + """
[[check]]
id = "judge"
of = "a"
by = { verifier = "scripted:judge.json", prompt = "Is {{ text }} {{ a }}?" }
sigma = 1.0
cost = 2.0
"""
)


@pytest.mark.parametrize("recipe", [RECIPE, CHECKED])
def test_a_later_look_takes_what_earlier_ones_bought(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, recipe: str
) -> None:
    """Two looks were bought in two pieces; the next one has them in one, and asks nobody anything
    twice, though there is no cache and some were refused.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judge.json").write_text('{"rules": [{"pattern": "Is item", "text": "12"}]}')
    (tmp_path / "rrf.toml").write_text(recipe)
    data = rrf.dataset(
        tmp_path / "rrf.toml", [{"no": f"i{n}", "text": f"item {n}", "booked": n} for n in range(10, 70)]
    )
    script = Reluctant()
    live = LiveModels(ScriptedModel(script), tmp_path / "journal.sqlite")
    first = PilotSettings(30, 0.2, sequential=True, aside=10)
    small = buy_pilot(data, first, live)
    both = buy_pilot(data, replace(first, labels=40), live, have=small)
    asked = script.seen.copy()
    checks = checks_to_fetch(data)
    assert bool(checks) == (recipe is CHECKED)
    known = recalled_pilot(data, live, both.runs, models=both.models, checks=checks)
    assert known == replace(both, money=0.0, calls=0)
    assert buy_pilot(data, replace(first, labels=40), live, have=known) == known
    assert script.seen == asked
    with pytest.raises(Refused, match="asked other models"):
        recalled_pilot(data, live, both.runs, models={"model": {"name": "another"}}, checks=checks)
