"""Every anchor source: what it refuses before anything is bought, and what it gives."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from fields import scripted

import rrf_design as rrf
from rrf_design.acquisition.sources import Asked, Toolbox, Unreachable, build, calibrate
from rrf_design.errors import InputError
from rrf_design.models.base import Attempt, Outcome, Usage

NOTHING = Asked({}, {})
COMMANDS = Toolbox(allow_commands=True)


def anchored(source: Any, *, dim: int = 1, **anchor: Any) -> rrf.Problem:
    node = {"id": "n", "dim": dim, "prompt": "?", "variables": {"a": 12, "b": 7}}
    return rrf.Problem(k=1, nodes=[node], anchors=[{"id": "A", "node": "n", "cost": 1.0, "source": source, **anchor}])


def made(source: Any, tools: Toolbox | None = None, **more: Any) -> Any:
    problem = anchored(source, **more)
    return build(problem.anchors[0], problem, tools or Toolbox())


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "no value and no source"),
        ("value", "no value and no source"),
        ("vlaue", "did you mean 'value'"),
        ("expression: 1 +", "not an expression"),
        ("expression: a + c", "no number called 'c'"),
        ("expression: [1, 2]", "gives 2 numbers, but the anchor has 1 rows"),
        ({"expression": "a", "tests": [[1]]}, "exactly one of"),
        ({"nothing": 1}, "exactly one of"),
        ({"expression": "a", "nonsense": 1}, "unknown key 'nonsense'"),
        ({"tests": [[1]]}, "either expected values or a reference"),
        ({"tests": [[1], [2]], "expected": [1, 2]}, "2 tests for 1 rows"),
        ({"tests": [1], "expected": [1]}, "each test is a list of arguments"),
        ({"tests": [[1]], "expected": [1.5]}, "expected values are integers"),
        ({"command": ["true"]}, "only with --allow-commands"),
        ({"verifier": "scripted", "prompt": "?"}, "never truth; declare the sigma"),
        ({"verifier": "scripted"}, "needs a prompt"),
    ],
)
def test_refusals_name_the_anchor(source: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        made(source)
    assert str(caught.value).startswith("anchor 'A': ")
    assert message in str(caught.value)


def test_known_value_and_expression() -> None:
    assert made(None, value=3.0).fetch(NOTHING).value == (3.0,)
    assert made("value", dim=2, value=[1.0, 2.0]).fetch(NOTHING).value == (1.0, 2.0)
    found = made("expression: (a + b) / 3").fetch(NOTHING)
    assert found.value == (19 / 3,)
    assert found.evidence["exact"] == ["19/3"]
    assert made({"expression": "x * a", "variables": {"x": 2}}).fetch(NOTHING).value == (24.0,)


def test_public_tests_give_the_expected_outputs_and_run_the_program_as_evidence() -> None:
    source = made({"tests": [[1], [3]], "expected": [1, 9]}, dim=2)
    wrong = "```python\ndef solve(n):\n    return 3 * n - 2\n```"
    found = source.fetch(Asked({"n": wrong}, {}))
    assert found.value == (1.0, 9.0)
    assert found.evidence["execution"]["tests"] == ["right", "wrong"]
    assert source.fetch(NOTHING).value == (1.0, 9.0)


def test_a_reference_program_is_run_in_the_sandbox() -> None:
    found = made({"tests": [[4]], "reference": "def solve(n):\n    return n * n"}).fetch(NOTHING)
    assert found.value == (16.0,)
    broken = made({"tests": [[4]], "reference": "def solve(n):\n    return n / 0"}).fetch(NOTHING)
    assert not broken.ok
    assert "reference program" in broken.outcome


def verifier(script: Any, *, sigma: float = 2.0, **source: Any) -> Any:
    model = scripted(script)
    given = {"verifier": "scripted", "prompt": "Is {{ answer }} = {{ a }} + {{ b }}? Say the number.", **source}
    return made(given, Toolbox(model=lambda name: model), sigma=sigma)


def test_a_verifier_is_a_noisy_measurement_that_sees_the_answer() -> None:
    seen = []

    def script(request: Any) -> str:
        seen.append(request.prompt)
        return "It is 19."

    found = verifier(script).fetch(Asked({"n": "18 {braces}"}, {}))
    assert found.value == (19.0,)
    assert seen == ["Is 18 {braces} = 12 + 7? Say the number."]
    assert found.calls == 1
    assert found.evidence["format"] == "rrf-answer"


def test_a_verifier_that_can_not_be_read_or_reached() -> None:
    assert verifier(lambda request: "no idea").fetch(NOTHING).outcome == "parse failure"
    gone = Attempt(Outcome.UNREACHABLE, usage=Usage(), detail="nobody there")
    with pytest.raises(Unreachable, match="nobody there"):
        verifier(lambda request: gone).fetch(NOTHING)


def test_a_verifiers_sigma_lowers_the_margin() -> None:
    """It is weighed by its measured noise: half the precision, half the margin."""
    given = {"verifier": "scripted", "prompt": "?"}
    margins = [anchored(given, sigma=sigma).margin("all").value for sigma in (1.0, 2.0)]
    assert margins[0] == pytest.approx(2 * margins[1])


def test_calibration_measures_error_with_bias_and_rounds_up() -> None:
    found = calibrate([1.0, -1.0, 2.0, 0.0], unread=1)
    assert found.rms == pytest.approx((6 / 4) ** 0.5)
    assert found.bias == 0.5
    assert found.sigma > found.rms
    assert calibrate([1.0, -1.0] * 500).sigma == pytest.approx(1.0, rel=0.05)
    with pytest.raises(InputError, match="at least two"):
        calibrate([1.0])


def test_people_are_asked_through_the_queue() -> None:
    source = made("person: Look it up.")
    assert source.deferred
    assert source.question == "Look it up."
    assert made({"person": "?"}).deferred
    with pytest.raises(InputError, match="review file"):
        source.fetch(NOTHING)


@pytest.mark.parametrize(
    ("program", "value", "outcome"),
    [
        ("import json, sys; d = json.load(sys.stdin); print(d['values']['n'][0] * 2)", (6.0,), "commanded"),
        ("print('[4]')", (4.0,), "commanded"),
        ("print('four')", None, "the command printed no number"),
        ("print([1, 2])", None, "2 numbers where 1 are needed"),
        ("import sys; sys.exit(3)", None, "the command ended with code 3"),
        ("print('NaN')", None, "a number that is not finite"),
    ],
)
def test_commands(program: str, value: Any, outcome: str) -> None:
    source = made({"command": [sys.executable, "-c", program]}, COMMANDS)
    found = source.fetch(Asked({"n": "three"}, {"n": (3.0,)}))
    assert (found.value, found.outcome) == (value, outcome)


def test_a_command_that_is_not_there() -> None:
    assert made({"command": ["no-such-program-here"]}, COMMANDS).fetch(NOTHING).outcome == "the command was not found"
    with pytest.raises(InputError, match="list of a program"):
        made({"command": []}, COMMANDS)


def test_a_verifier_never_reads_an_answer_as_a_template() -> None:
    seen: list[str] = []

    def script(request: Any) -> str:
        seen.append(request.prompt)
        return "3"

    verifier(script).fetch(Asked({"n": "{{ a }} {answer}"}, {}))
    assert seen == ["Is {{ a }} {answer} = 12 + 7? Say the number."]
