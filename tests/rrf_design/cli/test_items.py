from __future__ import annotations

from pathlib import Path

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
