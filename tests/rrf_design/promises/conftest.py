"""A small world whose checks have to be fetched: a program in the sandbox, a command, a judge by a
scripted model.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

NODES = ("total", "reworded", "other")
COSTS = {"tests": 4.0, "command": 6.0, "judge": 2.0}
PROGRAM = "import sys\nnumber = int(sys.argv[1])\nprint(2 * number) if number % 4 else sys.exit(1)\n"
"""It fails now and then."""


@dataclass(frozen=True)
class CheckedWorld:
    """Items that ask for the double of a number."""

    folder: Path

    @property
    def recipe(self) -> Path:
        return self.folder / "rrf.toml"

    @property
    def dataset(self) -> Any:
        from rrf_design.questions import dataset

        return dataset(self.recipe)

    def live(self, journal: str = "journal.sqlite", **options: Any) -> Any:
        from rrf_design.promises import LiveModels

        given = {"allow_commands": True, "isolation": "limits", **options}
        return LiveModels("scripted:script.json", self.folder / journal, given)


@pytest.fixture
def make_checked_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., CheckedWorld]:
    """Recipes name their files from the folder they stand in: a path of this machine would change
    digests, and with them what is drawn.
    """
    monkeypatch.chdir(tmp_path)
    (tmp_path / "python").symlink_to(sys.executable)

    def make(
        kinds: Sequence[str],
        *,
        items: int = 8,
        seed: int = 0,
        wrong: float = 0.3,
        judge_wrong: float = 0.1,
        costs: Mapping[str, float] | None = None,
        seldom: Sequence[str] = (),
        extra: str = "",
    ) -> CheckedWorld:
        """`seldom`: kinds that every other item has."""
        draw = random.Random(seed)
        table, rules, judged = [], [], []
        for no in range(items):
            number = draw.randrange(10, 90)
            table.append({"no": f"i{no}", "text": f"item {no} ({number})", "inputs": [[number]], "n": number})
            table[-1] |= {"booked": 2 * number, "copy": 2 * number, "odd": "yes" if no % 2 else ""}
            for name in NODES:
                said = str(2 * number + (draw.randrange(1, 6) if draw.random() < wrong else 0))
                said = "no idea" if draw.random() < 0.05 else said
                rules.append({"prompt": f"item {no} ({number}) {name}?", "text": said})
            opinion = 2 * number + (3 if draw.random() < judge_wrong else 0)
            judged.append({"pattern": f"of item {no} \\(", "text": str(opinion)})
        (tmp_path / "table.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table))
        (tmp_path / "script.json").write_text(json.dumps({"rules": rules}))
        (tmp_path / "judge.json").write_text(json.dumps({"rules": judged}))
        (tmp_path / "check.py").write_text(PROGRAM)
        asks = "".join(_ask(name, 1.0 + at) for at, name in enumerate(NODES))
        prices = {**COSTS, **(costs or {})}
        checks = "".join(_check(kind, prices[kind], seldom=kind in seldom) for kind in kinds)
        (tmp_path / "rrf.toml").write_text(HEAD + asks + checks + PERSON + extra)
        return CheckedWorld(tmp_path)

    return make


LEDGER = """
[[check]]
id = "ledger"
of = "total"
by = { value = "{{ ledger }}" }
when = "{{ ledger }}"
cost = 5.0
"""


@pytest.fixture
def with_ledger() -> Callable[..., Any]:
    """A world whose rows have a ledger, or not; looking there costs less than a person."""
    return _with_ledger


def _with_ledger(make_world: Any, says: Any, **options: Any) -> Any:
    world = make_world(extra=LEDGER + options.pop("extra", ""), **options)
    path = world.folder / "table.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text(
        "".join(json.dumps({**row, "ledger": says(at, row["booked"])}) + "\n" for at, row in enumerate(rows))
    )
    return world


HEAD = """[data]
table = "table.jsonl"
id = "no"
gold = "booked"

[answer]
of = "total"
k = 1
tolerance = 0.5

"""
PERSON = """[[check]]
id = "clerk"
of = "total"
by = { person = "Double of {{ text }}?" }
cost = 30.0
"""


def _ask(name: str, cost: float) -> str:
    like = "" if name == "total" else 'like = "total"\n'
    return f'[[ask]]\nid = "{name}"\nprompt = "{{{{ text }}}} {name}?"\ncost = {cost}\n{like}\n'


def _check(kind: str, cost: float, *, seldom: bool) -> str:
    by = {
        "tests": '{ tests = "{{ inputs }}", reference = "def solve(n):\\n    return n + n" }',
        "command": '{ command = ["./python", "check.py", "{{ n }}"] }',
        "judge": '{ verifier = "scripted:judge.json", parser = "decimal",'
        ' prompt = "Is {{ answer }} or {{ reworded }} the double of {{ text }}?" }',
    }[kind]
    noise = "sigma = 0.05\n" if kind == "judge" else ""
    noise += 'when = "{{ odd }}"\n' if seldom else ""
    return f'[[check]]\nid = "{kind}"\nof = "total"\nby = {by}\ncost = {cost}\n{noise}\n'
