"""Checks of machines as rungs: which there are, what they are shown, what a policy is bound to, and
attacks on that.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.errors import InputError, Refused
from rrf_design.promises import (
    PilotSettings,
    gold_truths,
    plan_pilot,
    policy_document,
    prove_policy,
    run_pilot,
    run_policy,
)
from rrf_design.promises._checks import is_known, machine_checks, may_run, program_digests, shown_to
from rrf_design.promises._pilot_design import buy_pilot, checks_to_fetch
from rrf_design.promises._policy_document import VOIDED_BY

ALL = ("tests", "command", "judge")
SETTINGS = PilotSettings(12, 0.4, order="holm")
TWO = """
[ladder]
order = ["total", "reworded"]
gate = "consistent"
within = 2
"""
"""Few policies, so that few labels prove one: two answers, and then whatever checks the frontier
holds.
"""


def piloted(world: Any, settings: PilotSettings = SETTINGS) -> dict[str, Any]:
    plan = plan_pilot(world.dataset, buy_pilot(world.dataset, settings, world.live()), settings)
    truths, _ = gold_truths(plan)
    found: dict[str, Any] = json.loads(json.dumps(policy_document(run_pilot(plan, truths, truth_source="gold"))))
    return found


def test_checks_of_machines_are_those_on_sale_that_nobody_makes_the_cheapest_first() -> None:
    problem = rrf.Problem(
        nodes=[{"id": "a"}, {"id": "b"}, {"id": "word", "parser": "label"}],
        relations=[{"id": "r", "tail": "a", "head": "b"}],
        anchors=[
            {"id": "owned", "node": "a", "value": 1.0},
            {"id": "clerk", "node": "a", "source": {"person": "?"}, "cost": 1.0},
            {"id": "program", "node": "a", "source": {"command": ["x"]}, "cost": 5.0},
            {"id": "ledger", "node": "a", "value": 1.0, "cost": 4.0},
            {"id": "sum", "node": "b", "source": "expression: 1 + 1", "cost": 6.0},
            {
                "id": "judge",
                "node": "b",
                "source": {"verifier": "m", "prompt": "{{ a }}: is {{ answer }} right?"},
                "sigma": 1.0,
                "cost": 2.0,
            },
            {"id": "word check", "node": "word", "source": {"command": ["x"]}, "cost": 1.0},
        ],
    )
    found = machine_checks(problem)
    assert [check.id for check in found] == ["judge", "ledger", "program", "sum"]
    assert {check.id: is_known(problem, check) for check in found} == {
        "judge": False,
        "ledger": True,
        "program": False,
        "sum": True,
    }
    assert {check.id: shown_to(problem, check) for check in found} == {
        "judge": ("a", "b"),
        "ledger": (),
        "program": ("a",),
        "sum": (),
    }


def test_a_check_is_bought_once_and_its_policy_is_run_verified_and_bound(make_checked_world: Any) -> None:
    """A pilot with all three kinds: what it fetches, what it measures, a run under its policy; then
    the same with something changed.
    """
    world = make_checked_world(ALL, items=20, wrong=0.5, extra=TWO)
    document = piloted(world)
    prove_policy(document)
    assert "tests" in document["ladder"]["further"]
    assert document["cost_per_item"] < document["check_cost"]
    assert {entry["check"]: entry["wrong"] for entry in document["measured"]["checks"]}["tests"] == 0
    assert [entry["judge"] for entry in document["measured"]["judges"]["judges"]] == ["judge"]
    assert set(document["programs"]) == {"command"}
    assert any("judge.json" in name for name in document["models"])
    run = run_policy(world.dataset, world.live(), document)
    truth = {item.id: item.gold for item in world.dataset.items_in_order()}
    assert run.complete
    assert all(row["answer"] == truth[name] for name, row in zip(run.ids, run.rows, strict=True))
    assert (
        run_policy(world.dataset, world.live(), document).rows == run.rows
    )  # found in the journal, and not made again
    with pytest.raises(Refused):
        prove_policy({**document, "ladder": {**document["ladder"], "further": ["total", "command"]}})
    judge = world.folder / "judge.json"
    judge.write_text(judge.read_text().replace("1", "2"))
    with pytest.raises(Refused, match="models have changed"):
        run_policy(world.dataset, world.live(), document)


def test_another_program_of_a_check_refuses_the_policy(make_checked_world: Any) -> None:
    world = make_checked_world(("command",), items=16, wrong=0.6, extra=TWO)
    document = piloted(world)
    assert document["ladder"]["further"] == ["total", "command"]
    (world.folder / "check.py").write_text("print(7)\n")
    with pytest.raises(Refused, match=r"programs of checks have changed since the pilot \(command\)"):
        run_policy(world.dataset, world.live(), document)
    # What a program or a judge asks outside nobody can see from here: that it may change is said.
    assert document["voided_by"] == VOIDED_BY
    assert "what a check asks outside" in VOIDED_BY


def test_commands_need_leave_before_anything_is_bought(make_checked_world: Any) -> None:
    world = make_checked_world(("command",), items=16)
    assert checks_to_fetch(world.dataset) == ["command"]
    with pytest.raises(InputError, match=r"check 'command' runs a command.*--allow-commands"):
        buy_pilot(world.dataset, SETTINGS, world.live(allow_commands=False))
    assert not (world.folder / "journal.sqlite").exists()
    may_run(world.dataset, ["tests"], allowed=False)
    assert list(program_digests(world.dataset)["command"])[-1] == "check.py"
    none = make_checked_world(("command",), items=16, extra='\n[ladder]\ncheck = ""\n')
    assert checks_to_fetch(none.dataset) == []


def test_programs_that_rows_name_are_bound_too(make_checked_world: Any) -> None:
    """The program of the last row stands in no example of a structure."""
    world = make_checked_world(("command",), items=16)
    program = "check.py"
    world.recipe.write_text(world.recipe.read_text().replace(program, "{{ prog }}"))
    rows = [json.loads(line) for line in (world.folder / "table.jsonl").read_text().splitlines()]
    other = world.folder / "other.py"
    other.write_text("1")
    told = [{**row, "prog": str(other) if at == 15 else program} for at, row in enumerate(rows)]
    (world.folder / "table.jsonl").write_text("".join(json.dumps(row) + "\n" for row in told))
    before = program_digests(world.dataset)
    assert {program, str(other)} <= set(before["command"])
    other.write_text("2")
    assert program_digests(world.dataset) != before


def test_what_has_to_be_fetched_has_a_price(make_checked_world: Any) -> None:
    world = make_checked_world(("judge",), items=16)
    priced = world.recipe.read_text()
    world.recipe.write_text(priced.replace("cost = 2.0\nsigma", "sigma"))
    with pytest.raises(InputError, match=r"check 'judge': it has to be fetched.*cost = 0 where it is free"):
        buy_pilot(world.dataset, SETTINGS, world.live())
    assert not (world.folder / "journal.sqlite").exists()
    world.recipe.write_text(priced.replace("cost = 2.0\nsigma", "cost = 0\nsigma"))
    assert checks_to_fetch(world.dataset) == ["judge"]


def test_a_check_that_sees_the_truth_is_a_leak(make_checked_world: Any) -> None:
    """The gold column reaches no check; a copy of it reaches no judge and no program that is asked,
    though it may be a check's own value.
    """
    world = make_checked_world(("judge",), items=16)
    honest = world.recipe.read_text()
    world.recipe.write_text(honest.replace("the double of", "(it is {{ booked }}) the double of"))
    with pytest.raises(InputError, match="'booked' is the gold column, which no question and no check may see"):
        piloted(world)
    world.recipe.write_text(honest.replace("the double of", "(it is {{ copy }}) the double of"))
    with pytest.raises(Refused, match="column 'copy' is the truth in all 12 drawn items"):
        piloted(world)
    told = make_checked_world(("command",), items=16)
    told.recipe.write_text(told.recipe.read_text().replace("{{ n }}", "{{ copy }}"))
    with pytest.raises(Refused, match="column 'copy' is the truth in all 12 drawn items"):
        piloted(told)


def test_recorded_answers_may_hold_what_checks_gave(make_checked_world: Any) -> None:
    """The same policy from a log as from the checks themselves; a check that nobody recorded is no
    rung, and one that a run lacks is named.
    """
    from rrf_design.questions.answers import RecordedAnswers

    world = make_checked_world(("tests", "judge"), items=16, wrong=0.5, extra=TWO)
    everything = PilotSettings(16, 0.4, order="holm")
    live = plan_pilot(world.dataset, buy_pilot(world.dataset, everything, world.live()), everything)
    rows = []
    for row in live.sheet.rows.values():
        for node, said in row.said.items():
            found: dict[str, Any] = {"status": "parse failure"} if said is None else {"value": said[0]}
            rows.append({"id": row.id, "node": node, **found})
        rows += [{"id": row.id, "node": name, "value": value[0]} for name, value in row.checked.items()]
    with RecordedAnswers(world.dataset, rows, checks=True) as answers:
        recorded = plan_pilot(world.dataset, answers, SETTINGS)
        assert recorded.policies == live.policies
        truths, _ = gold_truths(recorded)
        document = json.loads(json.dumps(policy_document(run_pilot(recorded, truths, truth_source="gold"))))
        assert document["programs"] == {}
        assert run_policy(world.dataset, answers, document).complete
    needed = next(step for step in document["ladder"]["further"] if step in ("tests", "judge"))
    fewer = [row for row in rows if row["id"] in document["drawn"] or row["node"] != needed]
    with (
        RecordedAnswers(world.dataset, fewer, checks=True) as answers,
        pytest.raises(InputError, match=f"the policy makes check '{needed}', which the recorded"),
    ):
        run_policy(world.dataset, answers, document)
    plain = [row for row in rows if row["node"] not in ("tests", "judge")]
    with RecordedAnswers(world.dataset, plain, checks=True) as answers:
        assert not any(policy.further for policy in plan_pilot(world.dataset, answers, SETTINGS).policies)
    words = [*plain, {"id": "i0", "node": "tests", "text": "12"}]
    with pytest.raises(InputError, match="check 'tests': what it gave is a value"):
        RecordedAnswers(world.dataset, words, checks=True)
    with pytest.raises(InputError, match="no node 'tests'"):  # a repair has no use for it
        RecordedAnswers(world.dataset, rows)


KILLER = """import os, signal, sys
from pathlib import Path

log = Path(__file__).with_name("calls.txt")
with log.open("a") as file:
    file.write(sys.argv[1] + "\\n")
spared = int(log.with_name("spared.txt").read_text())
if len(log.read_text().split()) in (5, 17) and os.getppid() != spared:
    os.kill(os.getppid(), signal.SIGKILL)
print(2 * int(sys.argv[1]))
"""


def test_killed_while_checks_are_made_and_gone_on_with(make_checked_world: Any) -> None:
    """The check itself kills the pilot, and later the run, each in a process of its own: the same
    call goes on, and makes again what was under way and nothing else.
    """
    world = make_checked_world(("command",), items=20, wrong=0.6, extra=TWO)
    (world.folder / "check.py").write_text(KILLER)
    (world.folder / "spared.txt").write_text(str(os.getpid()))  # whatever the counts, never the tests themselves
    script = ["--model", "scripted:script.json", "--store", "journal.sqlite", "--cache", "off"]

    def killed(*words: str) -> bool:
        command = [sys.executable, "-c", "from rrf_design.cli import main; main()", *words, "--allow-commands", *script]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(command, cwd=world.folder, env=environment, capture_output=True, text=True, check=False)
        return done.returncode == -9

    def made() -> int:
        return len((world.folder / "calls.txt").read_text().split())

    assert killed("pilot", "rrf.toml", "--labels", "12", "--risk", "0.4", "--order", "holm", "-o", "policy.json")
    document = piloted(world)
    prove_policy(document)
    assert document["ladder"]["further"] == ["total", "command"]
    assert made() == 12 + 1
    (world.folder / "policy.json").write_text(json.dumps(document))
    assert killed("acquire", "rrf.toml", "--policy", "policy.json")
    run = run_policy(world.dataset, world.live(), document)
    climbed = [row for row in run.rows if row["reason"].startswith("the check 'command'")]
    assert made() == 12 + 1 + len(climbed) + 1
    assert run.complete


def test_programs_that_only_the_folder_of_the_recipe_has_are_named(
    make_checked_world: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Commands run where the call is made: from elsewhere the check would fail in silence, and the
    policy would be bound to no program.
    """
    world = make_checked_world(["command"])
    data = world.dataset
    may_run(data, ["command"], allowed=True)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(
        InputError, match=r"check 'command': '\./python' is in .*; call from there, or write the whole path"
    ):
        may_run(data, ["command"], allowed=True)
