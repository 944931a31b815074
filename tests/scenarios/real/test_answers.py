"""The log of a model's answers: one model's, kept once each, the same bytes for the same answers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from rrf_design.errors import InputError
from rrf_design.models import Reply, Request, Usage
from rrf_design.models.base import Outcome
from scenarios.real.answers import Log


def reply(text: str, **identity: object) -> Reply:
    known = {"adapter": "embedded", "sha256": "ab", **identity}
    return Reply(text, Outcome.ANSWERED, Usage(), known, {}, {}, 0.0, 1)


def test_a_request_keeps_its_first_answer() -> None:
    log = Log()
    log.add(Request("2 + 2"), reply("4"))
    log.add(Request("2 + 2"), reply("5"))
    assert (len(log), log.text(Request("2 + 2"))) == (1, "4")


def test_answers_of_two_models_are_never_mixed() -> None:
    log = Log()
    log.add(Request("2 + 2"), reply("4"))
    with pytest.raises(InputError, match="never mixed"):
        log.add(Request("3 + 3"), reply("6", sha256="cd"))


def test_a_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    log = Log(spec="embedded")
    log.add(Request("2 + 2"), reply("4"), at="noon")
    (tmp_path / "log.gz").write_bytes(log.dumps())
    again = Log.read(tmp_path / "log.gz")
    assert again.dumps() == log.dumps()
    assert again.same_words(log) == 1


def test_a_log_that_counted_slots_goes_on_with_any_number_of_them(tmp_path: Path) -> None:
    """Version 0.1 wrote slots into the identity: such a log is still that model's."""
    header = {
        "format": "rrf-scenario-answers",
        "version": 1,
        "model": "embedded",
        "identity": {"adapter": "embedded", "sha256": "ab", "slots": 1},
    }
    (tmp_path / "old.gz").write_bytes(gzip.compress((json.dumps(header) + "\n").encode()))
    log = Log.read(tmp_path / "old.gz")
    log.add(Request("2 + 2"), reply("4"))
    assert len(log) == 1


@pytest.mark.parametrize(
    "content",
    [b"no gzip", gzip.compress(b""), gzip.compress(b'{"format": "x"}\n')],
    ids=["no gzip", "empty", "another format"],  # without names the clock in gzip's header would name the cases
)
def test_what_is_no_log_is_refused_by_its_name(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.gz").write_bytes(content)
    with pytest.raises(InputError, match=r"bad\.gz"):
        Log.read(tmp_path / "bad.gz")
