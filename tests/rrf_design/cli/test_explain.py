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


def judges(count: int, ties: list[tuple[int, int]], *, label: bool = False) -> str:
    """Each judge answers in both orders, which must agree, and fails as a whole; the first orders that are tied must agree, too."""
    lines = ['[problem]\nname = "judges"\n']
    for j in range(count):
        lines += [f'[[nodes]]\nid = "{way}@{j}"\nmodel = "m{j}"\nunit = "m{j}"\n' for way in ("ab", "ba")]
        lines.append(f'[[relations]]\nid = "orders {j}"\ntail = "ab@{j}"\nhead = "ba@{j}"\n')
    lines += [f'[[relations]]\nid = "{a} and {b}"\ntail = "ab@{a}"\nhead = "ab@{b}"\n' for a, b in ties]
    if label:
        lines.append('[[anchors]]\nid = "label"\nnode = "ab@0"\n')
    return "".join(lines)


@pytest.mark.parametrize(
    ("text", "each", "model"),
    [
        (judges(2, [(0, 1)]), 0.618, 0.0),
        (judges(3, [(0, 1), (1, 2)]), 0.618, 0.416),
        (judges(3, [(0, 1), (1, 2), (0, 2)]), 0.765, 0.618),
        (judges(2, [(0, 1)], label=True), 0.618, 0.416),
    ],
)
def test_the_judges_show_which_assumption_decides(
    run: Run, tmp_path: Path, text: str, each: float, model: float
) -> None:
    path = tmp_path / "judges.toml"
    path.write_text(text)
    made = run("explain", path, "--json")
    assert made.code == (0 if model else 1)
    told = made.json["assumptions"]
    assert told["each answer fails on its own"] == pytest.approx(each, abs=1e-3)
    assert told["a model fails as a whole"] == pytest.approx(model, abs=1e-3)
    assert told["a model fails as a whole"] == pytest.approx(made.json["gamma"])
    assert "a wording fails in all its asks" in told
    assert f"{made.json['gamma']:.4g} if a model fails as a whole, as this file says" in run("explain", path).out
