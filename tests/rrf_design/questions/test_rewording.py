"""Other wordings: what is built in changes the answer as the relation says; what a model wrote is
used only when reviewed and whole.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.models.scripted import ScriptedModel
from rrf_design.questions.recipe import AskEntry, RecipeFile, load_recipe, recipe_from_document
from rrf_design.questions.rewording import dumps_rewordings, lost, write_rewordings

BASE = {"id": "total", "prompt": 'From {{ first }} to {{ second }}? JSON: {"total": km}', "parse": {"json": "total"}}


def recipe(*asks: dict[str, Any], **answer: Any) -> Any:
    document = {"data": {}, "answer": {"of": "total", "tolerance": 0.1, **answer}, "ask": [BASE, *asks]}
    return recipe_from_document(document)


def long_form(**ask: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    found = recipe({"id": "other", "like": "total", **ask}).long
    return found["nodes"][1], found["relations"][0]


@pytest.mark.parametrize(
    ("reword", "sentence", "relation"),
    [
        ({"scale": 3.0}, "multiply the value by 3.", {"transport": {"scale": 3.0}}),
        ({"shift": 19.0}, "add 19 to the value.", {"offset": 19.0}),
        (
            {"scale": 1.8, "shift": 32.0},
            "multiply the value by 1.8 and then add 32 to it.",
            {"transport": {"scale": 1.8}, "offset": 32.0},
        ),
        ({"unit": "metres", "scale": 1000.0}, "State the value in metres.", {"transport": {"scale": 1000.0}}),
    ],
)
def test_built_in_wordings_say_what_the_relation_says(
    reword: dict[str, Any], sentence: str, relation: dict[str, Any]
) -> None:
    node, made = long_form(reword=reword)
    assert node["prompt"].startswith(str(BASE["prompt"]) + "\n")
    assert node["prompt"].endswith(sentence)
    assert node["parser"] == {"name": "json", "field": "total"}
    assert {key: made[key] for key in relation} == relation


def test_columns_change_places_and_the_change_says_what_that_does() -> None:
    node, made = long_form(reword={"swap": ["first", "second"]})
    assert node["prompt"] == 'From {{ second }} to {{ first }}? JSON: {"total": km}'
    assert "transport" not in made
    _, negated = long_form(reword={"swap": ["first", "second"]}, change={"scale": -1.0})
    assert negated["transport"] == {"scale": -1.0}


def test_permuted_options_are_tied_by_a_permutation() -> None:
    asks = [
        {"id": "pick", "prompt": "A) {{ first }} B) {{ second }}"},
        {"id": "turned", "like": "pick", "reword": {"swap": ["first", "second"]}, "change": {"permute": [1, 0]}},
    ]
    document = {"data": {"id": "no"}, "answer": {"of": "pick", "choices": ["A", "B"]}, "ask": asks}
    dataset = rrf.dataset(recipe_from_document(document), [{"no": "1", "first": "cat", "second": "dog"}])
    problem = dataset["1"]
    assert problem.node_by_id["turned"].prompt == "A) dog B) cat"
    assert rrf.repair(problem, {"pick": "A", "turned": "B"}).support == ()
    assert rrf.repair(problem, {"pick": "A", "turned": "A"}).alternatives


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        ({"reword": {"scale": 3.0}, "prompt": "?"}, "give a prompt, or reword"),
        ({}, "give a prompt, or reword"),
        ({"reword": {}}, "give scale, shift or both"),
        ({"reword": {"unit": "m"}}, "give scale, shift or both, a unit with its scale"),
        ({"reword": {"swap": ["first", "third"]}}, "does not speak of 'third'"),
        ({"reword": {"scale": 2.0}, "change": {"scale": 2.0}}, "leave change out"),
        ({"prompt": "?", "change": {"permute": [0, 2]}}, "is not a permutation of 0..1"),
    ],
)
def test_bad_wordings_are_one_line(ask: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        recipe({"id": "other", "like": "total", **ask})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Net {{ net }}, 91 % tax? A) yes B) no", "number"),
        ("Net, 19 % tax? A) yes B) no", "placeholder"),
        ("Net {{ net }}, 19 % tax? A) yes C) no", "option"),
        ('Net {{ net }}, 19 % tax? A) yes B) no {"x": 1}', "key"),
        ("Net {{ net }} and {{ net }}, 19 % tax? A) yes B) no", "placeholder"),
        ("Net {{ net }}, 19 and 19 % tax? A) yes B) no", "number"),
        ("Net {{ net }}, -19 % tax? A) yes B) no", "number"),
    ],
)
def test_what_the_answer_hangs_on_must_survive(text: str, kind: str) -> None:
    original = "Net {{ net }}, 19 % tax? A) yes B) no"
    assert lost(original, "Is it so that with 19 % tax on {{  net }}: A) yes, B) no?") == []
    assert any(words.startswith(kind) for words in lost(original, text))


def test_a_model_writes_and_only_reviewed_wordings_are_asked(tmp_path: Path) -> None:
    file = tmp_path / "rrf.toml"
    text = (
        '[data]\n[answer]\nof = "q"\ntolerance = 0.1\nrewordings = "w.toml"\n[[ask]]\nid = "q"\nprompt = "{{ a }} plus'
        ' 3?"\n'
    )
    file.write_text(text)
    said = iter(["What is 3 more than {{ a }}?", "What is 4 more than {{ a }}?", "Add 3 to {{ a }}."])
    asks = RecipeFile.model_validate(
        {"data": {}, "answer": {"of": "q"}, "ask": [{"id": "q", "prompt": "{{ a }} plus 3?"}]}
    ).ask
    entries = write_rewordings(asks, ScriptedModel(lambda request: next(said)))
    assert [entry.get("reviewed") for entry in entries] == [False, None, False]
    assert entries[1]["lost"] == ["number 3 (0 instead of 1)", "number 4 (1 instead of 0)"]
    written = dumps_rewordings(entries, "rrf.toml")
    (tmp_path / "w.toml").write_text(written)
    assert len(load_recipe(file).long["nodes"]) == 1
    (tmp_path / "w.toml").write_text(written.replace("reviewed = false", "reviewed = true", 1))
    found = load_recipe(file).long
    assert [node["id"] for node in found["nodes"]] == ["q", "q-1"]
    assert found["relations"][0] == {"id": "q-1 like q", "tail": "q", "head": "q-1"}
    (tmp_path / "w.toml").write_text(written.replace("lost =", "reviewed = true\nlost ="))
    with pytest.raises(InputError, match="marked as reviewed, but it changed number 3"):
        load_recipe(file)
    (tmp_path / "w.toml").write_text("reword = 3\n")
    with pytest.raises(InputError, match=r"rewordings are \[\[reword\]\] entries"):
        load_recipe(file)


def test_a_model_on_this_machine_does_not_write_the_same_wording_each_time() -> None:
    """Left alone it would be greedy: then a count of four is one wording, four times."""
    asked: list[tuple[float, float, int]] = []

    def script(request: Any) -> str:
        asked.append(request.sampling)
        return f"What is 3 more than {{{{ a }}}}, then ({'abcd'[len(asked) - 1]})?"

    asks = [AskEntry.model_validate({"id": "q", "prompt": "{{ a }} plus 3?"})]
    assert len(write_rewordings(asks, ScriptedModel(script), count=4)) == 4
    assert len({seed for _, _, seed in asked}) == 4
    assert all(temperature > 0 for temperature, _, _ in asked)
