"""Plans are documents, and belong to one problem."""

from __future__ import annotations

import json

import pytest

from rrf_design.errors import InputError, Refused
from rrf_design.planning import plan, read_plan, write_plan


def test_round_trip(tmp_path, pairs):
    made = plan(pairs, budget=6.0, method="greedy")
    write_plan(made, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json", pairs) == made
    document = json.loads((tmp_path / "plan.json").read_text())
    assert (document["format"], document["version"]) == ("rrf-plan", 2)
    assert {"selected", "cost", "gamma", "upper_bound", "gap", "status", "trajectory"} <= set(document)
    assert {"block", "cost", "gamma", "support"} <= set(document["trajectory"][0])


def test_a_plan_for_another_problem_is_refused(tmp_path, pairs, clique_and_pair):
    write_plan(plan(pairs, budget=1.0, method="greedy"), tmp_path / "plan.json")
    with pytest.raises(Refused, match=r"made for 'pairs' with digest .* not for 'clique and pair'"):
        read_plan(tmp_path / "plan.json", clique_and_pair)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a readable plan"),
        ("[]", "not a plan: the format should be 'rrf-plan'"),
        ('{"format": "rrf-certificate"}', "not a plan"),
        ('{"format": "rrf-plan", "version": 99}', "plan version 99 is not known here"),
        ('{"format": "rrf-plan", "version": 2}', "the plan is damaged"),
    ],
)
def test_damaged_files(tmp_path, text, message):
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(InputError, match=message):
        read_plan(tmp_path / "plan.json")
    with pytest.raises(InputError, match="no such file"):
        read_plan(tmp_path / "other.json")
