"""Another model's opinion: a measurement with declared noise, and never truth."""

from __future__ import annotations

from typing import Any

import pytest
from fields import anchored, right, scripted, source_of

from rrf_design.acquisition.sources import Asked, Toolbox, Unreachable
from rrf_design.errors import InputError
from rrf_design.models.base import Attempt, Outcome, Usage

NOTHING = Asked({}, {})


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
