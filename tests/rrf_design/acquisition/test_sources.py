"""Sources of anchors, one by one."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

import pytest
from fields import anchored, right, scripted, source_of
from scipy.stats import chi2

from rrf_design.acquisition.sources.base import (
    SOURCES,
    Asked,
    Attempted,
    Fetched,
    Source,
    Toolbox,
    Unreachable,
    _source_class,
    ask,
    refuse_unanswered,
    schema_of,
)
from rrf_design.errors import InputError
from rrf_design.models.base import Attempt, Outcome, Reply, Request, Usage
from rrf_design.promises._judging import _calibrate
from rrf_design.responses import parsers


@pytest.mark.parametrize(
    ("numbers", "value", "outcome"),
    [
        ((Fraction(1, 4), 2), (0.25, 2.0), "given"),
        ((1.0,), None, "1 numbers where 2 are needed"),
        ((1.0, 2.0, 3.0), None, "3 numbers where 2 are needed"),
        ((1.0, float("nan")), None, "a number that is not finite"),
        ((float("-inf"), 1.0), None, "a number that is not finite"),
        ((1.0, 10**400), None, "a number that no double can hold"),
        ((Fraction(-(10**400)), 1.0), None, "a number that no double can hold"),
    ],
)
def test_only_finite_numbers_for_every_row_are_a_value(numbers: Any, value: Any, outcome: str) -> None:
    found = source_of("value", dim=2, value=[0.0, 0.0]).fitting(numbers, "given", money=0.5)
    assert (found.value, found.outcome, found.money) == (value, outcome, 0.5)
    assert found.ok is (value is not None)


def reply(outcome: Outcome, *, calls: int = 2, doubtful: int = 1) -> Reply:
    usage = Usage(calls=calls, doubtful=doubtful)
    return Reply("", outcome, usage, {}, {}, None, 0.0, calls, "nobody there")


@pytest.mark.parametrize("outcome", list(Outcome))
@pytest.mark.parametrize("money", [0.0, 0.25])
@pytest.mark.parametrize("passing", [None, False, True])
def test_who_gave_no_answer_is_asked_again_unless_it_was_paid_for(
    outcome: Outcome, money: float, passing: bool | None
) -> None:
    """Paid attempts are settled only where nothing is known about the server's other calls."""
    nobody = outcome in (Outcome.UNREACHABLE, Outcome.RATE_LIMITED)
    if not nobody or (passing is None and money > 0.0):
        refuse_unanswered(reply(outcome), money, passing=passing)
        return
    with pytest.raises(Unreachable, match="nobody there") as caught:
        refuse_unanswered(reply(outcome), money, passing=passing)
    assert "_" not in str(caught.value)
    assert caught.value.used == Attempted(2, money, 1)
    assert caught.value.passing is bool(passing)


def test_what_was_used_up_for_nothing_says_only_what_there_was() -> None:
    assert Attempted().document() == {}
    assert Attempted(3, 0.0, 1).document() == {"calls": 3, "doubtful": 1}


def test_repetitions_must_be_allowed() -> None:
    asked: list[str] = []

    def script(request: Request) -> str:
        asked.append(request.prompt)
        return "7"

    model = scripted(script)
    assert ask(model, Request("?"), None).text == "7"
    assert ask(model, Request("?"), lambda: False).text == "7"  # the first call is no repetition
    assert asked == ["?", "?"]


def test_a_schema_is_sent_only_to_a_model_that_takes_one() -> None:
    class Plain:
        supports_schema = False

    class Strict:
        supports_schema = True

    wants = parsers.get({"name": "json", "field": "total"})
    assert schema_of(wants, Plain()) == {}  # type: ignore[arg-type]
    assert '"total"' in schema_of(wants, Strict())["schema"]  # type: ignore[arg-type]
    assert schema_of(parsers.get("integer-last"), Strict()) == {}  # type: ignore[arg-type]


def test_nothing_is_allowed_unless_it_is_said() -> None:
    tools = Toolbox()
    assert (tools.model, tools.price, tools.allow_commands, tools.isolation) == (None, None, False, "seccomp")
    assert tools.options("any") == {}
    assert not Fetched("failed").ok
    assert Asked({}, {}).again is None


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "no value and no source"),
        ("value", "no value and no source"),
        ("vlaue", "did you mean 'value'"),
        ("expression:", "is unknown"),
        ("expression: 1 +", "not an expression"),
        ("expression: a + c", "no number called 'c'"),
        ("expression: [1, 2]", "gives 2 numbers, but the anchor has 1 rows"),
        ({"expression": "a", "tests": [[1]]}, "exactly one of"),
        ({"nothing": 1}, "exactly one of"),
        ({"expression": "a", "nonsense": 1}, "unknown key 'nonsense'"),
    ],
)
def test_refusals_name_the_anchor_once(source: Any, message: str) -> None:
    with pytest.raises(InputError) as caught:
        source_of(source)
    assert str(caught.value).count("anchor 'A': ") == 1
    assert str(caught.value).startswith("anchor 'A': ")
    assert message in str(caught.value)


@pytest.mark.parametrize("kind", sorted(SOURCES))
def test_every_source_is_found_under_the_name_that_it_records(kind: str) -> None:
    found = _source_class(kind)
    assert issubclass(found, Source)
    assert found.kind == kind


def test_spaces_around_the_words_do_not_matter() -> None:
    assert source_of(" person :  Look it up. ").question == "Look it up."
    assert source_of("expression:a").numbers == source_of("expression :  a ").numbers == (12,)


def test_the_problem_s_own_table_is_left_as_it_was() -> None:
    given = {"expression": "x", "variables": {"x": 2}}
    source_of(given)
    assert given == {"expression": "x", "variables": {"x": 2}}


NOTHING = Asked({}, {})


def test_the_value_of_the_file_or_nothing_to_reveal() -> None:
    found = source_of(None, value=3.0).fetch(NOTHING)
    assert (found.value, found.outcome, found.money, found.calls) == ((3.0,), "revealed", 0.0, 0)
    assert source_of("value", dim=2, value=[1.0, 2.0]).fetch(NOTHING).value == (1.0, 2.0)
    with pytest.raises(InputError, match="no value and no source"):
        source_of("value")


def test_the_class_is_given_as_text_and_not_as_numbers() -> None:
    source = source_of({"label": "sport"})
    found = source.fetch(Asked({}, {}))
    assert source.instant
    assert (found.outcome, found.value) == ("known", None)
    assert found.evidence == {"reply": {"text": "sport"}}


@pytest.mark.parametrize("label", ["", 5, ["sport"], True])
def test_a_class_is_a_text(label: Any) -> None:
    with pytest.raises(InputError, match="give the class as text"):
        source_of({"label": label})


def test_an_expression_is_exact_and_kept_as_evidence() -> None:
    source = source_of("expression: (a + b) / 3")
    found = source.fetch(NOTHING)
    assert source.instant
    assert found.value == (19 / 3,)
    assert found.outcome == "computed"
    assert found.evidence == {"expression": "(a + b) / 3", "exact": ["19/3"]}


def test_variables_of_its_own_go_before_the_node_s() -> None:
    assert source_of({"expression": "x * a", "variables": {"x": 2}}).fetch(NOTHING).value == (24.0,)
    assert source_of({"expression": "a", "variables": {"a": 5}}).fetch(NOTHING).value == (5.0,)


def test_a_number_beyond_the_doubles_is_refused_before_it_is_bought() -> None:
    with pytest.raises(InputError, match=r"anchor 'A': the expression gives a number that no double can hold"):
        source_of("expression: 10**400")
    assert source_of("expression: 10**400 / 10**399").fetch(NOTHING).value == (10.0,)


def test_people_are_asked_through_the_queue() -> None:
    source = source_of("person: Look it up.")
    assert source.deferred
    assert not source.local
    assert source.question == "Look it up."
    assert source_of({"person": "?"}).question == "?"
    with pytest.raises(InputError, match=r"anchor 'A': .*review file"):
        source.fetch(Asked({}, {}))


def test_without_words_the_question_is_empty() -> None:
    assert source_of("person").question == ""
    assert source_of({"person": True}).question == ""


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


def test_the_error_with_its_bias_is_rounded_up_and_grows_with_confidence() -> None:
    found = _calibrate([1.0, -1.0, 2.0, 0.0], unread=1)
    assert found.rms == pytest.approx((6 / 4) ** 0.5)
    assert found.bias == 0.5
    assert (found.count, found.unread) == (4, 1)
    assert found.sigma == pytest.approx(math.sqrt(6 / chi2.ppf(0.05, 4)))
    assert _calibrate([1.0, -1.0] * 500).sigma == pytest.approx(1.0, rel=0.05)
    sigmas = [_calibrate([1.0, -2.0, 0.5], confidence=confidence).sigma for confidence in (0.5, 0.9, 0.99)]
    assert sigmas == sorted(sigmas)
    assert sigmas[0] < sigmas[-1]


@pytest.mark.parametrize(
    ("errors", "confidence", "message"),
    [
        ([1.0], 0.95, "at least two"),
        ([1.0, float("nan")], 0.95, "not a finite number"),
        ([float("inf"), 1.0], 0.95, "not a finite number"),
        ([1.0, 2.0], 1.0, "strictly between 0 and 1"),
        ([1.0, 2.0], 0.0, "strictly between 0 and 1"),
        ([1.0, 2.0], 95.0, "confidence is 95"),
    ],
)
def test_refusals(errors: list[float], confidence: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        _calibrate(errors, confidence=confidence)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"tests": [[1]]}, "either expected values or a reference"),
        ({"tests": [[1]], "expected": [1], "reference": ""}, "either expected values or a reference"),
        ({"tests": [[1], [2]], "expected": [1, 2]}, "2 tests for 1 rows"),
        ({"tests": [1], "expected": [1]}, "each test is a list of arguments"),
        ({"tests": [[1]], "expected": [1.5]}, "expected values are integers"),
        ({"tests": 5, "expected": [1]}, "tests is 5; give a list"),
        ({"tests": [[1]], "expected": 5}, "expected is 5; give a list"),
        ({"tests": [[1]], "reference": 5}, "reference is 5; give the program as text"),
    ],
)
def test_refusals_before_anything_is_bought_of_tested(source: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        source_of(source)


def test_public_tests_give_the_expected_outputs_and_run_the_program_as_evidence() -> None:
    source = source_of({"tests": [[1], [3]], "expected": [1, 9]}, dim=2)
    wrong = "```python\ndef solve(n):\n    return 3 * n - 2\n```"
    found = source.fetch(Asked({"n": wrong}, {}))
    assert found.value == (1.0, 9.0)
    assert found.evidence["execution"]["tests"] == ["right", "wrong"]
    assert source.fetch(NOTHING).value == (1.0, 9.0)


@pytest.mark.parametrize(
    ("body", "value", "outcome"),
    [
        ("n * n", (16.0,), "tested"),
        ("n / 0", None, "the reference program ended with: "),
        ("3 ** 2000", None, "a number that no double can hold"),
    ],
)
def test_a_reference_program_is_run_in_the_sandbox(body: str, value: Any, outcome: str) -> None:
    found = source_of({"tests": [[4]], "reference": f"def solve(n):\n    return {body}"}).fetch(NOTHING)
    assert found.value == value
    assert found.outcome.startswith(outcome)


def verifier(script: Any, *, sigma: float = 2.0, **source: Any) -> Any:
    model = scripted(script)
    given = {"verifier": "scripted", "prompt": "Is {{ answer }} = {{ a }} + {{ b }}? Say the number.", **source}
    return source_of(given, Toolbox(model=lambda name: model), sigma=sigma)


def test_it_must_say_how_good_it_is_and_what_it_asks() -> None:
    with pytest.raises(InputError, match="never truth; declare the sigma"):
        source_of({"verifier": "scripted", "prompt": "?"})
    with pytest.raises(InputError, match="needs a prompt"):
        source_of({"verifier": "scripted"})
    with pytest.raises(InputError, match="needs a model, and this run has none"):
        source_of({"verifier": "scripted", "prompt": "?"}, sigma=1.0)
    with pytest.raises(InputError, match="no variable 'anwser'; did you mean 'answer'"):
        verifier(right, prompt="{{ anwser }}")
    with pytest.raises(InputError, match="gives 1 numbers, but the anchor has 2 rows"):
        source_of(
            {"verifier": "scripted", "prompt": "?"}, Toolbox(model=lambda name: scripted(right)), sigma=1.0, dim=2
        )


def test_it_is_a_noisy_measurement_that_sees_the_answer() -> None:
    seen = []

    def script(request: Any) -> str:
        seen.append(request.prompt)
        return "It is 19."

    found = verifier(script).fetch(Asked({"n": "18 {braces}"}, {}))
    assert found.value == (19.0,)
    assert seen == ["Is 18 {braces} = 12 + 7? Say the number."]
    assert found.calls == 1
    assert found.evidence["format"] == "rrf-answer"


def test_one_that_can_not_be_read_or_reached() -> None:
    assert verifier(lambda request: "no idea").fetch(NOTHING).outcome == "parse failure"
    gone = Attempt(Outcome.UNREACHABLE, usage=Usage(), detail="nobody there")
    with pytest.raises(Unreachable, match="nobody there"):
        verifier(lambda request: gone).fetch(NOTHING)


def test_its_sigma_lowers_the_margin() -> None:
    """It is weighed by its measured noise: half the precision, half the margin."""
    given = {"verifier": "scripted", "prompt": "?"}
    margins = [anchored(given, sigma=sigma).margin("all").value for sigma in (1.0, 2.0)]
    assert margins[0] == pytest.approx(2 * margins[1])


def test_it_never_reads_an_answer_as_a_template() -> None:
    seen: list[str] = []

    def script(request: Any) -> str:
        seen.append(request.prompt)
        return "3"

    verifier(script).fetch(Asked({"n": "{{ a }} {answer}"}, {}))
    assert seen == ["Is {{ a }} {answer} = 12 + 7? Say the number."]


def test_its_own_settings_are_sent_and_others_are_left_unset() -> None:
    request = verifier(right, max_tokens=9).request_for(NOTHING)
    assert (request.max_tokens, request.temperature, request.seed) == (9, None, None)
