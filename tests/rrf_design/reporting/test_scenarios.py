from __future__ import annotations

import json
from pathlib import Path

import pytest

from rrf_design import InputError
from rrf_design.reporting import write_report
from rrf_design.reporting._scenarios import _conditions_card

DOCUMENT = {
    "format": "rrf-scenario",
    "version": 1,
    "name": "transition",
    "title": "Where it <turns>",
    "question": "When?",
    "about": "About it.",
    "size": "quick",
    "parameters": {"seeds": 3},
    "expectations": [
        {"key": "a", "text": "it turns at six", "status": "met", "seen": "6"},
        {"key": "b", "text": "never", "status": "violated", "seen": "1"},
    ],
    "notes": ["A note."],
    "tables": [{"name": "curve", "caption": "the curve", "columns": ["anchors", "gamma"], "rows": 100}],
    "figures": [{"name": "curve", "caption": "the figure"}],
    "parts": 3,
    "part_seconds": 1.5,
    "environment": {"python": "3.11", "packages": {"numpy": "2"}},
    "finished": "2026-01-01",
}


def published(folder: Path, **changes: object) -> Path:
    (folder / "result.json").write_text(json.dumps({**DOCUMENT, **changes}))
    (folder / "curve.csv").write_text("anchors,gamma\n" + "".join(f"{i},{i / 7!r}\n" for i in range(100)))
    (folder / "curve.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>")
    return folder


def test_a_directory_becomes_a_page(tmp_path: Path) -> None:
    made = write_report(published(tmp_path), tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Where it &lt;turns&gt;" in made
    assert "1 of 2" in made
    assert "it turns at six" in made
    assert "data:image/svg+xml;base64," in made
    assert "alert(1)" not in made
    assert "0.14286" in made
    assert "40 more rows in curve.csv" in made
    assert 'The same as tables: <a href="#part-3">curve</a>' in made
    assert '<section id="part-3"><h2>curve</h2>' in made


def test_an_answer_and_its_picture_come_before_the_conditions(tmp_path: Path) -> None:
    folder = published(tmp_path, answer="It turns at six & stays.")
    made = write_report(folder, tmp_path / "page.html").read_text(encoding="utf-8")
    places = [made.index(text) for text in ("It turns at six &amp; stays.", "data:image/svg+xml", "it turns at six")]
    assert places == sorted(places)
    assert made.count("data:image/svg+xml") == 1


def test_files_elsewhere_are_not_read(tmp_path: Path) -> None:
    folder = published(tmp_path, figures=[{"name": "../../etc/x", "caption": ""}])
    with pytest.raises(InputError, match="beside its document"):
        write_report(folder, tmp_path / "page.html")


def test_a_condition_that_was_not_judged_is_no_failure() -> None:
    def card(*statuses: str) -> tuple[str, str, str]:
        made = _conditions_card([{"status": status} for status in statuses])
        return made.value, made.note, made.kind

    assert card("met", "met") == ("2 of 2", "stated before the run", "good")
    assert card("met", "not judged") == ("1 of 2", "stated before the run; 1 not judged", "unsure")
    assert card("not judged", "violated") == ("0 of 2", "stated before the run; 1 violated; 1 not judged", "bad")
