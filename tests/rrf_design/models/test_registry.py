"""From names to adapters, and keys from a `.env` file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rrf_design import models
from rrf_design.acquisition.redaction import Redactor
from rrf_design.errors import InputError
from rrf_design.models.registry import _read_env
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


FILE = """# keys
OPENAI_API_KEY=sk-from-the-file-0123456789
export OTHER = "two words \\"and\\" more"   # a remark
SINGLE='as it $is'
BARE=value # a remark
EMPTY=
"""


def test_what_a_file_says(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(FILE)
    assert _read_env(tmp_path / ".env") == {
        "OPENAI_API_KEY": "sk-from-the-file-0123456789",
        "OTHER": 'two words "and" more',
        "SINGLE": "as it $is",
        "BARE": "value",
        "EMPTY": "",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [("A=1\nsk-secret-secret", "line 2: this is not NAME=value"), ('A="sk-secret', "line 1: a quotation mark is not")],
)
def test_a_bad_line_is_named_and_not_shown(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / ".env").write_text(text)
    with pytest.raises(InputError, match=message) as caught:
        _read_env(tmp_path / ".env")
    assert "secret" not in str(caught.value)


def test_models_find_their_keys_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        "OPENAI_API_KEY",
        "RRF_OPENAI_API_KEY",
        "RRF_OPENAI_BASE_URL",
        "OPENAI_BASE_URL",
        "OTHER",
        "SINGLE",
        "BARE",
        "EMPTY",
    ):
        monkeypatch.setenv(name, "")  # so that what is set below is taken away again
        monkeypatch.delenv(name)
    with pytest.raises(InputError, match="set OPENAI_API_KEY"):
        models.get("openai:m")
    (tmp_path / ".env").write_text(FILE)
    monkeypatch.setenv("BARE", "the environment's own")
    with models.get("openai:m") as model:
        assert "sk-from-the-file" not in repr(model) + str(model.identity)
    assert os.environ["BARE"] == "the environment's own"
    assert "sk-from-the-file" not in Redactor().text("the key is sk-from-the-file-0123456789")
