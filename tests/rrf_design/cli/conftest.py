"""Runs the command in this process, as a user would: arguments in; exit code, output and messages
out.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from rrf_design.cli import main


def field_text(settings: str, nodes: str, relations: str, *blocks: str) -> str:
    """A problem file: the names of nodes, relations as `tail>head`, other blocks as they are."""
    pairs = (pair.split(">") for pair in relations.split())
    parts = [f"[problem]\n{settings}\n", *(f'[[nodes]]\nid = "{name}"\n' for name in nodes.split())]
    parts += [f'[[relations]]\nid = "{tail}{head}"\ntail = "{tail}"\nhead = "{head}"\n' for tail, head in pairs]
    return "".join([*parts, *blocks])


@dataclass(frozen=True, slots=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """Standard output as exactly one JSON object."""
        assert self.out.count("\n") == 1
        document: dict[str, Any] = json.loads(self.out)
        return document


@pytest.fixture(autouse=True)
def _no_kept_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written into the cache folder of whoever runs the tests."""
    monkeypatch.setenv("RRF_CACHE", "off")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    def call(*arguments: object) -> Ran:
        from rrf_design.cli.output import _console

        _console.cache_clear()  # a console holds on to the stream it was made with
        with pytest.raises(SystemExit) as caught:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(int(caught.value.code or 0), captured.out, captured.err)

    return call
