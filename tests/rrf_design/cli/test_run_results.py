"""What a run came to, and what is said about going on with it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rrf_design.acquisition.redaction import HIDDEN
from rrf_design.cli.run_results import tell_next


def told(capsys: pytest.CaptureFixture[str], *, store: str | None = None, **more: Any) -> str:
    options = {name: more.pop(name) for name in ("review_file", "of_table") if name in more}
    run: Any = SimpleNamespace(**{"run": "r1", "stopped_because": "paused", "open_reviews": 0, "header": {}, **more})
    tell_next(run, store=store, **options)
    return capsys.readouterr().out.strip()


def test_a_stopped_run_says_how_to_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys) == "Go on with: rrf-design acquire --resume r1"
    assert told(capsys, store="x.sqlite") == "Go on with: rrf-design acquire --resume r1 --store x.sqlite"
    assert told(capsys, stopped_because="goal reached") == ""


def test_what_is_never_kept_has_to_be_given_again(capsys: pytest.CaptureFixture[str]) -> None:
    entry = {"use": "openai:m", "base_url": f"http://me:{HIDDEN}@host/v1"}
    said = told(capsys, header={"models": {"model": entry}}, store="postgresql://me:hunter2-abc@host/db")
    assert "--base-url ADDRESS (once more: its password is never kept)" in said
    assert "hunter2" not in said
    assert "--base-url" not in told(capsys, header={"models": {"model": {"use": "openai:m", "base_url": "http://h"}}})


@pytest.mark.parametrize("of_table", [False, True])
def test_open_questions_say_where_they_are(of_table: bool, capsys: pytest.CaptureFixture[str]) -> None:
    base = {"stopped_because": "waiting for review", "of_table": of_table}
    start = "rrf-design acquire ... --resume r1" if of_table else "rrf-design acquire --resume r1"
    bare = told(capsys, open_reviews=2, **base)
    assert (
        bare == f"2 questions wait for people: write them with --review-file, then go on with: {start} --reviews FILE"
    )
    written = told(capsys, open_reviews=1, review_file=Path("who.csv"), **base)
    assert written.startswith("1 question waits for people: they are in who.csv; ")
    assert written.endswith(f"{start} --reviews who.csv")
    assert "--review-file" not in written
