from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

PAIR = """
[problem]
name = "pair"
k = 1
[[nodes]]
id = "a"
[[nodes]]
id = "b"
[[relations]]
id = "same"
tail = "a"
head = "b"
"""
LABEL = '[[anchors]]\nid = "label"\nnode = "a"\ncost = 2.0\n'


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    path = tmp_path / "pair.toml"
    path.write_text(PAIR + LABEL)
    return path


def test_a_zero_margin_in_words(run: Run, pair: Path) -> None:
    made = run("explain", pair)
    assert made.code == 1
    assert "γ_1 = 0 (exact)" in made.out
    assert "a and b form a connected part of 2 nodes without an anchor" in made.out
    assert "blind to it: same" in made.out
    assert "buy label for 2" in made.out


def test_mended(run: Run, pair: Path) -> None:
    made = run("explain", pair, "--select", "label")
    assert made.code == 0
    assert "a positive margin already" in made.out


def test_nothing_on_sale_helps(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(PAIR)
    made = run("explain", path)
    assert made.code == 1
    assert "Nothing on sale reaches a positive margin" in made.out


def test_json(run: Run, pair: Path) -> None:
    made = run("explain", pair, "--json")
    assert made.code == 1
    assert made.json["cause"] == "shared"
    assert made.json["blind"] == ["same"]
    assert made.json["mend"]["ids"] == ["label"]
    assert made.json["gamma"] == 0.0


def test_a_wrong_file_is_one_line(run: Run, tmp_path: Path) -> None:
    made = run("explain", tmp_path / "none.toml")
    assert made.code == 2
    assert made.err.count("\n") == 1
