"""What a policy tells of its pilot is what the pilot came to, and it proves itself."""

from __future__ import annotations

from typing import Any

import pytest

from rrf_design.checker.promise_words import nothing_delivered
from rrf_design.promises import CHECK_EVERYTHING, PilotSettings, prove_policy
from rrf_design.promises.policy_document import policy_document
from rrf_design.risk import Statement


@pytest.mark.parametrize("statement", list(Statement))
def test_what_is_written_is_what_was_counted(make_world: Any, statement: Statement) -> None:
    result = make_world(items=200, wrong=0.03).pilot(PilotSettings(100, 0.15, statement=statement))
    document = policy_document(result)
    assert prove_policy(document).policy == document["policy"] == result.chosen.name
    assert document["cost_per_item"] == pytest.approx(float(result.played[result.chosen.name].cost.mean()))
    for entry in document["policies"]:
        played = result.played[entry["policy"]]
        assert (entry["delivered"], entry["wrong"]) == (int(played.delivered.sum()), int(played.wrong.sum()))


def test_a_table_over_random_checks_is_promised_on_average(make_world: Any) -> None:
    """How many of the wrong ones a draw finds is chance: the number left is bounded on average
    only, and the sentence says so.
    """
    settings = PilotSettings(40, 0.05, statement=Statement.POLICY, random_checks=True)
    document = policy_document(make_world(items=200, wrong=0.1).pilot(settings))
    prove_policy(document)
    assert document["ladder"]["random_checks"] > 0
    assert "are wrong on average over what is checked at random under this policy" in document["sentence"]


def test_checking_everything_says_why(make_world: Any) -> None:
    document = policy_document(make_world(items=120, wrong=0.5).pilot(PilotSettings(60, 0.05)))
    assert document["policy"] == CHECK_EVERYTHING
    assert document["sentence"] == nothing_delivered(document["because"])
    assert document["ladder"] is None
