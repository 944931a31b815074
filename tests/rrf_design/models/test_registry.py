from __future__ import annotations

from pathlib import Path

import pytest

from rrf_design import models
from rrf_design.errors import InputError
from rrf_design.models.scripted import ScriptedModel


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("embeded", "did you mean 'embedded'"),
        ("nonsense-name", "Known: embedded"),
        ("gpt-4o", "did you mean 'openai:gpt-4o'"),
        ("claude-sonnet-4", "did you mean 'anthropic:claude-sonnet-4'"),
        ("opnai:gpt-4o", "did you mean 'openai:gpt-4o'"),
        ("antropic:claude", "did you mean 'anthropic:claude'"),
        ("anthropic:", "Known: embedded"),
        ("embedded:x", "write it as embedded"),
        ("openai", "write it as openai:NAME"),
        ("scripted:", "write it as scripted:FILE"),
        ("no/such/model.gguf", "there is no such file"),
        ("scripted:no/such/file.json", "can't read the script"),
        ("replay:no/such/file.jsonl", "can't read the answer log"),
    ],
)
def test_bad_names(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        models.get(spec)


def test_unknown_option_suggests(tmp_path: Path) -> None:
    script = tmp_path / "s.json"
    script.write_text('{"default": "7"}')
    with pytest.raises(InputError, match="did you mean 'slots'"):
        models.get(f"scripted:{script}", slot=3)
    model = models.get(f"scripted:{script}", slots=3)
    assert model.slots == 3
    assert model.ask(models.Request("anything")).text == "7"


def test_adapter_objects_pass_through() -> None:
    model = ScriptedModel(lambda request: "5")
    assert models.get(model) is model
    with pytest.raises(InputError, match="ready adapter object"):
        models.get(model, slots=2)


def test_every_kind_is_listed() -> None:
    assert "embedded" in models.names()
    assert "openai:NAME" in models.names()
