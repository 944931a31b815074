"""Recorded answers or truths that changed between pilot and run: a policy tested on others is
refused.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from rrf_design.errors import Refused
from rrf_design.promises import PilotSettings, run_policy
from rrf_design.questions.answers import RecordedAnswers

SETTINGS = PilotSettings(60, 0.1)


def run(world: Any, document: Any, **options: Any) -> Any:
    data = world.dataset
    with RecordedAnswers(data, world.answers) as answers:
        return run_policy(data, answers, document, **options)


def rewritten(path: Any, change: Any) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row) + "\n" for row in map(change, rows) if row is not None))


@pytest.mark.parametrize("off", [1, 100])
def test_other_answers_of_a_piloted_item_are_noticed(make_world: Any, off: int) -> None:
    """Another model's answers in the file of recorded ones; the answers of one item are enough."""
    world = make_world(items=120, wrong=0.03)
    document = world.document(SETTINGS)
    run(world, document)
    item = document["drawn"][3]
    rewritten(world.answers, lambda row: {**row, "text": str(int(row["text"]) + off)} if row["id"] == item else row)
    with pytest.raises(Refused, match=f"item '{item}' of the pilot was right when .* and is (wrong|not delivered) now"):
        run(world, document)


def test_a_corrected_gold_is_noticed_and_one_outside_the_pilot_is_none_of_it(make_world: Any) -> None:
    world = make_world(items=120, wrong=0.03)
    document = world.document(SETTINGS)
    table = world.folder / "table.jsonl"
    rewritten(table, lambda row: row if row["no"] in document["drawn"] else {**row, "booked": 1})
    run(world, document)
    rewritten(table, lambda row: {**row, "booked": 1} if row["no"] == document["drawn"][0] else row)
    with pytest.raises(Refused, match="was right when the policy was tested, and is wrong now"):
        run(world, document)


def test_a_pilot_that_is_not_recorded_any_more_is_passed_over(make_world: Any) -> None:
    world = make_world(items=120, wrong=0.03)
    document = world.document(SETTINGS)
    whole = run(world, document)
    rewritten(world.answers, lambda row: None if row["id"] in document["drawn"] else row)
    assert run(world, document).sentence == whole.sentence
    with pytest.raises(Refused, match="the pilot asked its models live, and none of its items is among the recorded"):
        run(world, {**document, "models": {"model": {"name": "m"}}})


def test_truths_by_people_are_compared_where_they_are_at_hand(make_world: Any) -> None:
    world = make_world(items=120, wrong=0.03)
    document = world.document(SETTINGS)
    item = document["drawn"][5]
    with pytest.raises(Refused, match=f"item '{item}' of the pilot"):
        run(world, document, reviews={item: "?"})
