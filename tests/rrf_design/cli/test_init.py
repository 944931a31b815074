from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.cli.init import RECIPES, SITUATIONS, recipe_files, template
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.responses import parsers

Run = Callable[..., Any]


def test_without_a_situation_they_are_listed(run: Run) -> None:
    made = run("init")
    assert made.code == 0
    for name in (*SITUATIONS, *RECIPES):
        assert name in made.out
    assert set(run("init", "--json").json["situations"]) == set(SITUATIONS) | set(RECIPES)


def test_an_unknown_situation_names_the_nearest(run: Run, tmp_path: Path) -> None:
    made = run("init", "paraphrases", "-o", tmp_path / "p.toml")
    assert made.code == 2
    assert "did you mean 'paraphrase'" in made.err
    assert made.err.count("\n") == 1
    assert not (tmp_path / "p.toml").exists()


def test_nothing_is_overwritten_unasked(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text("mine")
    assert run("init", "units", "-o", path).code == 2
    assert path.read_text() == "mine"
    assert run("init", "units", "-o", path, "--force").code == 0
    assert "unit conversion" in path.read_text()


@pytest.mark.parametrize("situation", SITUATIONS)
def test_each_file_loads_and_teaches_something(run: Run, tmp_path: Path, situation: str) -> None:
    path = tmp_path / "mine.toml"
    made = run("init", situation, "-o", path, "--json")
    assert made.code == 0
    assert made.json == {"file": str(path), "situation": situation}
    text = path.read_text(encoding="utf-8")
    assert f"rrf-design explain {path} " in text
    problem = rrf.load(path)
    # It starts below its target, and what is on sale within its budget reaches it: a plan has something to do.
    explained = run("explain", path, "--json")
    assert explained.code == 1
    mend = explained.json["mend"]
    assert mend is not None
    assert mend["cost"] <= problem.budget


RIGHT = {
    "paraphrase": ("It is 42.", (42.0,)),
    "units": ("1.609344", (1.609344,)),
    "code": ("def solve(a, b):\n    return a if a > b else b", (2.0, 5.0, -4.0)),
    "claims": ("Yes.", (1.0,)),
}


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_right_answer_is_read_by_the_parser_it_names(situation: str) -> None:
    text, value = RIGHT[situation]
    node = rrf.loads(template(situation)).nodes[0]
    assert node.parser is not None
    assert parsers.get(node.parser).parse(text).value == value


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_live_run_could_ask_every_node(situation: str) -> None:
    for node in rrf.loads(template(situation)).nodes:
        assert node.prompt
        assert node.parser is not None
        assert parsers.get(node.parser).dim == node.dim


def test_every_template_has_its_situation() -> None:
    import rrf_design

    folder = Path(rrf_design.__file__).parent / "templates"
    assert {path.stem for path in folder.glob("*.toml")} == set(SITUATIONS)
    assert {path.parent.name for path in folder.glob("*/rrf.toml")} == set(RECIPES)


@pytest.mark.parametrize("situation", RECIPES)
def test_a_recipe_comes_with_a_table_and_answers(run: Run, tmp_path: Path, situation: str) -> None:
    folder = tmp_path / "new" / "mine"
    made = run("init", situation, "-o", folder, "--json")
    assert made.code == 0
    assert made.json == {"folder": str(folder), "files": list(recipe_files(situation)), "situation": situation}
    assert sorted(path.name for path in folder.iterdir()) == sorted(made.json["files"])
    assert run("compile", folder / "rrf.toml").code == 0
    again = run("init", situation, "-o", folder)
    assert again.code == 2
    assert "is there already" in again.err
    assert run("init", situation, "-o", folder, "--force").code == 0


def test_a_recipe_s_folder_is_called_like_its_situation(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("init", "sums").code == 0
    monkeypatch.chdir(tmp_path / "sums")
    assert run("compile", "--item", "stamps").code == 0


# What is delivered for each item, by hand, and which answers were wrong; None where too little was read to tell.
DELIVERED: dict[str, dict[str, tuple[Any, tuple[str, ...]]]] = {
    "documents": {
        "1001": (49.98, ()), "1002": (47.6, ()), "1003": (142.8, ("total",)), "1004": (176.12, ()), "1005": (67.41, ("reworded",)),
    },
    "sums": {
        "pencils": (84, ()), "apples": (54, ()), "stamps": (120, ()), "bottles": (264, ()), "chairs": (182, ("plain",)),
        "books": (162, ("nineteen more",)),
    },
    "judges": {"q1": (1, ()), "q2": (0, ()), "q4": (0, ("backward@two",)), "q5": (1, ()), "q6": (1, ("backward@two",))},
    "programs": {"double": (2, ()), "square": (4, ("short",)), "parity": (1, ()), "triangle": (1, ("define",))},
    "statements": {"rhine": (1, ()), "oslo": (0, ()), "whale": (1, ("negation",)), "gold": (1, ("claim",)), "copper": (1, ())},
}  # fmt: skip


@pytest.mark.parametrize("situation", RECIPES)
def test_recorded_answers_are_repaired_without_a_call(situation: str) -> None:
    import rrf_design

    folder = Path(rrf_design.__file__).parent / "templates" / situation
    data = rrf.dataset(folder / "rrf.toml")
    (delivered,) = data.recipe.long["problem"]["deliver"]
    assert set(DELIVERED[situation]) < set(data) or situation == "sums"
    with RecordedAnswers(data, folder / "answers.jsonl") as answers:
        for name, (value, wrong) in DELIVERED[situation].items():
            responses = {node: answer.response for node, answer in answers.of(name).items()}
            assert set(responses) == {node.id for node in data[name].nodes}
            fixed = rrf.repair(data[name], responses)
            assert fixed.support == wrong, name
            assert fixed.repaired[delivered][0] == pytest.approx(value), name
