from __future__ import annotations

from pathlib import Path

import pytest

from rrf_design.errors import InputError
from rrf_design.models import Request, read_records, record, write_records
from rrf_design.models.scripted import ScriptedModel


def test_round_trip(tmp_path: Path) -> None:
    model = ScriptedModel(lambda request: f"Unicode line\u2028separator, {request.prompt}")
    requests = [Request("ä"), Request("b\nc")]
    entries = [record(request, model.ask(request), node="n") for request in requests]
    write_records(tmp_path / "log.jsonl", entries)
    assert list(read_records(tmp_path / "log.jsonl")) == entries
    assert entries[0]["node"] == "n"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: not JSON"),
        ("[]", "line 2: not a recorded answer"),
        ('{"format": "other"}', "line 2: not a recorded answer"),
        ('{"format": "rrf-answer", "version": 99}', "version 99 is not known"),
    ],
)
def test_bad_lines(tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "log.jsonl").write_text("\n" + line + "\n")
    with pytest.raises(InputError, match=message):
        list(read_records(tmp_path / "log.jsonl"))
