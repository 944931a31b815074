"""A program of the user's: only when allowed, only with numbers on its output."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from fields import source_of

from rrf_design.acquisition.sources import Asked, Toolbox
from rrf_design.errors import InputError

NOTHING = Asked({}, {})
COMMANDS = Toolbox(allow_commands=True)


def test_commands_run_only_when_they_are_allowed() -> None:
    with pytest.raises(InputError, match="only with --allow-commands"):
        source_of({"command": ["true"]})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"command": []}, "list of a program"),
        ({"command": "true"}, "command is 'true'; give a list of a program"),
        ({"command": 5}, "list of a program"),
        ({"command": ["true", 5]}, "list of a program"),
        ({"command": ["true"], "seconds": "soon"}, "seconds is 'soon'; give a number"),
        ({"command": ["true"], "seconds": 0}, "more than zero"),
        ({"command": ["true"], "seconds": -1.5}, "seconds is -1.5"),
    ],
)
def test_refusals_before_anything_is_bought(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        source_of(given, COMMANDS)


@pytest.mark.parametrize(
    ("program", "value", "outcome"),
    [
        ("import json, sys; d = json.load(sys.stdin); print(d['values']['n'][0] * 2)", (6.0,), "commanded"),
        ("print('[4]')", (4.0,), "commanded"),
        ("print('four')", None, "the command printed no number"),
        ("print('true')", None, "the command printed no number"),
        ("print('[null]')", None, "the command printed no number"),
        ("print('[' * 100000)", None, "the command printed no number"),
        ("print([1, 2])", None, "2 numbers where 1 are needed"),
        ("import sys; sys.exit(3)", None, "the command ended with code 3"),
        ("print('NaN')", None, "a number that is not finite"),
        ("print('1' * 400)", None, "a number that no double can hold"),
    ],
)
def test_what_it_prints(program: str, value: Any, outcome: str) -> None:
    source = source_of({"command": [sys.executable, "-S", "-c", program]}, COMMANDS)
    found = source.fetch(Asked({"n": "three"}, {"n": (3.0,)}))
    assert (found.value, found.outcome) == (value, outcome)
    assert len(found.evidence["output"]) <= 2000


def test_a_command_that_is_not_there_or_takes_too_long() -> None:
    missing = source_of({"command": ["no-such-program-here"]}, COMMANDS)
    assert missing.fetch(NOTHING).outcome == "the command was not found"
    endless = source_of({"command": [sys.executable, "-S", "-c", "while True: pass"], "seconds": 0.05}, COMMANDS)
    assert endless.fetch(NOTHING).outcome == "the command failed: TimeoutExpired"


def test_it_is_told_of_its_own_nodes_only() -> None:
    program = "import json, sys; d = json.load(sys.stdin); print(len(d['texts']) + 10 * len(d['values']))"
    source = source_of({"command": [sys.executable, "-S", "-c", program]}, COMMANDS)
    assert source.fetch(Asked({"n": "x", "m": "y"}, {"m": (1.0,)})).value == (1.0,)
