from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rrf_design.cli.items import is_dataset, open_dataset
from rrf_design.errors import InputError


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "rrf.toml"
    path.write_text('[data]\ntable = "t.csv"\n[answer]\nof = "a"\n[[ask]]\nid = "a"\nprompt = "{{ x }}"\n')
    (tmp_path / "t.csv").write_text("x\n" + "".join(f"q{i}\n" for i in range(9)))
    return path


def test_the_options_choose_a_part(recipe: Path) -> None:
    assert len(open_dataset(recipe)) == 9
    assert list(open_dataset(recipe, item="3")) == ["3"]
    assert list(open_dataset(recipe, limit=2)) == ["1", "2"]
    assert list(open_dataset(recipe, sample=3, seed=1)) == list(open_dataset(recipe, sample=3, seed=1))
    with pytest.raises(InputError, match="give one of"):
        open_dataset(recipe, item="3", limit=1)


def test_what_speaks_of_many_items(recipe: Path, tmp_path: Path) -> None:
    plain = tmp_path / "problem.toml"
    plain.write_text('[[nodes]]\nid = "a"\nprompt = "{{ x }}"\n')
    assert is_dataset(recipe, None)
    assert not is_dataset(plain, None)
    assert is_dataset(plain, tmp_path / "t.csv")
    assert len(open_dataset(plain, tmp_path / "t.csv")) == 9


@pytest.mark.parametrize("verb", [["margin"], ["explain"], ["certify", "-o", "c.json"], ["report", "-o", "r.html"]])
def test_verbs_of_one_problem_take_a_table(
    run: Any, recipe: Path, verb: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(recipe.parent)
    chosen: dict[int | None, list[object]] = {
        9: ["--data", "t.csv"],
        3: ["--limit", 3],
        2: ["--sample", 2, "--seed", 3],
        None: ["--item", 4],
    }
    for count, options in chosen.items():
        ran = run(*verb, *options, "--json")
        assert ran.code in (0, 1), ran.err
        assert verb[0] == "report" or ran.json.get("items") == count
    assert run(*verb, "--item", "4", "--limit", 1).code == 2
    (recipe.parent / "p.toml").write_text('[[nodes]]\nid = "a"\n')
    ran = run(verb[0], "p.toml", *verb[1:], "--limit", 1)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "goes with a table" in ran.err
