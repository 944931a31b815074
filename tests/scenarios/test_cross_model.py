from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rrf_design.errors import InputError
from scenarios.cross_model import SCENARIO, _answer, _grouped, _tested, parts, report, run
from scenarios.kit.report import ConditionStatus
from scenarios.kit.scenario import Context, Done
from scenarios.real_model.answers import Log

REPORTS = Path(__file__).parents[2] / "reports"
CONTEXT = Context(SCENARIO.parameters(quick=True), True, REPORTS / SCENARIO.name)


def _rows(stratum: str, task: str, items: int, *, good: bool) -> list[dict[str, object]]:
    """Ten designs per item; errors fall with the margin, or rise with it."""
    return [
        {
            "stratum": stratum,
            "task": task,
            "item": f"{item}",
            "family": f"{item}",
            "error_number": 0,
            "gamma_1": place / 10,
            "error": (9 - place) / 9 if good else place / 9,
        }
        for item in range(items)
        for place in range(10)
    ]


def test_items_of_two_models_are_never_one_item() -> None:
    rows = _rows("code, a", "code", 3, good=True) + _rows("code, b", "code", 3, good=True)
    assert _tested(CONTEXT, rows, "both")["items"] == 6


def test_a_domain_whose_sign_is_turned_is_seen_beside_one_that_is_not() -> None:
    rows = _rows("code, a", "code", 6, good=True) + _rows("mathematics, a", "mathematics", 6, good=False)
    found = {row["group"]: row for row in _grouped(CONTEXT, rows)}
    assert found["code, all models"]["spearman"] == pytest.approx(1.0)
    assert found["mathematics, all models"]["spearman"] == pytest.approx(-1.0)
    assert found["code, a"]["p"] == pytest.approx(1 / 101)
    assert found["mathematics, a"]["p"] == pytest.approx(1.0)
    assert list(found)[-1] == "pooled"


def test_parts_name_models_and_no_paths() -> None:
    found = parts(CONTEXT)
    assert {part["log"] for part in found} == {0, 1}
    assert not any("/" in str(value) for part in found for value in part.values())


def test_another_seed_draws_other_replays_of_the_same_items() -> None:
    other = replace(CONTEXT, parameters={**CONTEXT.parameters, "seed": 7})
    found = parts(other)
    assert found == parts(CONTEXT)
    assert run(other, found[0])["natural"] == run(CONTEXT, found[0])["natural"]


def test_a_log_of_no_item_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl.gz"
    path.write_bytes(Log({"model": "m"}, spec="m").dumps())
    with pytest.raises(InputError, match="all answers to none of the protocol's items"):
        parts(replace(CONTEXT, parameters={**CONTEXT.parameters, "answers": str(path)}))


@pytest.mark.parametrize("recall", [True, False])
def test_logs_that_are_all_right_or_all_wrong_say_nothing(recall: bool, tmp_path: Path) -> None:
    """A model that knows everything, or nothing, leaves no error to replay: no condition is met,
    and nothing crashes.
    """
    value: dict[str, object] = {
        "stratum": "ours, a",
        "task": "ours",
        "wrong_nodes": 0 if recall else 4,
        "recall": recall,
        "replay": [],
        "natural": [],
    }
    context = Context(SCENARIO.parameters(), False, tmp_path)
    found = report(context, [Done({"model": "a"}, value, 0.0)])
    SCENARIO.check(found)
    assert {verdict.status for verdict in found.verdicts} == {ConditionStatus.NOT_JUDGED}
    assert found.answer.startswith("Nothing can be said")


def test_the_answer_says_no_where_the_association_is_not_shown() -> None:
    row = {"group": "pooled", "items": 3, "spearman": 0.2, "low": 0.1, "high": 0.3, "p": 0.01}
    weak = {**row, "low": -0.1}
    told = [_answer([one], [other], models=2, errors=5) for one in (row, weak) for other in (row, weak)]
    assert [text.split(",")[0] for text in told] == ["Yes for replayed errors"] * 2 + ["No for replayed errors"] * 2
    assert ["not shown" in text for text in told] == [False, True, False, True]
