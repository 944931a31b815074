"""Filled prompts and other wordings of them."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.errors import InputError
from rrf_design.models.scripted import ScriptedModel
from rrf_design.questions._slots import SlotKind, find_slots, read_exactly
from rrf_design.questions.filling import Filler, check_columns
from rrf_design.questions.recipe import AskEntry, RecipeFile, load_recipe, recipe_from_document
from rrf_design.questions.rewording import _lost, dumps_rewordings, write_rewordings
from rrf_design.structure import structure_key

ROW = {"no": "007", "text": "T", "ledger": "119.00", "fee": "25", "minutes": "2", "net": "100", "tax": "19"}


@pytest.fixture
def filler(invoices: Path) -> Filler:
    return Filler(load_recipe(invoices / "rrf.toml"))


def one(check: dict[str, Any] | None = None, **ask: Any) -> Filler:
    checks = [] if check is None else [{"id": "c", "of": "a", "cost": 1.0, **check}]
    return Filler(
        recipe_from_document({"answer": {"of": "a"}, "ask": [{"id": "a", "prompt": "{{ x }}", **ask}], "check": checks})
    )


def test_a_row_becomes_a_problem(filler: Filler) -> None:
    problem = filler.problem(ROW, name="007")
    assert problem.name == "007"
    assert problem.delta == 0.005
    assert problem.deliver == ("total",)
    assert problem.node_by_id["parts"].dim == 2
    blocks = problem.block_by_id
    assert blocks["clerk"].cost == 2.0
    assert blocks["clerk"].source == {"person": "Gross total of invoice 007"}  # type: ignore[union-attr]
    assert blocks["cents like total"].offset == 25.0  # type: ignore[union-attr]
    assert blocks["ledger"].value == 119.0  # type: ignore[union-attr]
    assert blocks["ledger"].trusted is False
    assert blocks["sum"].source == {"expression": "net + 19", "variables": {"net": 100}}  # type: ignore[union-attr]


def test_when_leaves_out_what_is_empty(filler: Filler) -> None:
    assert "ledger" not in filler.problem({**ROW, "ledger": " "}, name="x").block_by_id
    assert "ledger" in filler.problem({**ROW, "ledger": "0"}, name="x").block_by_id


@pytest.mark.parametrize(
    ("cell", "there"), [(0, True), (False, False), (None, False), ("", False), ([], False), ("no", True)]
)
def test_what_counts_as_empty(cell: Any, there: bool) -> None:
    filler = one({"by": {"person": "?"}, "when": "{{ f }}"})
    assert ("c" in filler.problem({"x": "?", "f": cell}, name="i").block_by_id) is there


def test_an_ask_that_a_row_has_not_takes_its_relations_along() -> None:
    asks = [{"id": "a", "prompt": "?"}, {"id": "b", "prompt": "?", "like": "a", "when": "{{ b }}"}]
    filler = Filler(recipe_from_document({"answer": {"of": "a"}, "ask": asks}))
    assert [node.id for node in filler.problem({"b": ""}, name="i").nodes] == ["a"]
    assert filler.problem({"b": ""}, name="i").relations == ()
    assert len(filler.problem({"b": "x"}, name="i").relations) == 1


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"minutes": "two"}, r"column 'minutes' is 'two', not a number .*\(check 'clerk' cost, line \d+ of rrf.toml\)"),
        ({"fee": ""}, r"column 'fee' is empty \(ask 'cents' change, line"),
        ({"ledger": "1.234,50"}, r"column 'ledger' is '1.234,50'.*\(check 'ledger' by, line"),
    ],
)
def test_faults_name_column_and_line(filler: Filler, cells: dict[str, Any], message: str) -> None:
    row = {**ROW, **cells}
    (fault,) = filler.faults(row)
    with pytest.raises(InputError, match=message) as caught:
        filler.problem(row, name="x")
    assert str(caught.value) == fault


def test_faults_of_one_row_are_told_together(filler: Filler) -> None:
    assert len(filler.faults({**ROW, "ledger": "x", "fee": "y"})) == 2
    assert filler.faults(ROW) == []
    assert len(filler.faults({key: cell for key, cell in ROW.items() if key != "text"})) == 4  # one for each prompt


def test_a_prompt_must_not_be_empty() -> None:
    assert one().faults({"x": ""}) == ["column 'x' is empty (ask 'a' prompt, the recipe)"]
    assert one(prompt="{% if x %}{{ x }}{% endif %}").faults({"x": " "}) == [
        "column 'x' is empty (ask 'a' prompt, the recipe)"
    ]
    assert one(system="{{ y }}").faults({"x": "?", "y": ""}) == ["column 'y' is empty (ask 'a' system, the recipe)"]
    assert one(prompt="{{ x }}?").faults({"x": ""}) == []
    assert one(prompt="{{ x | upper }} {{ x / 2 }}").faults({"x": "q"})[0].startswith("template")


def test_the_parts_agree_with_the_whole(filler: Filler) -> None:
    """The fast ways against the obvious one, on random rows."""
    rng = random.Random(1)
    for _ in range(30):
        row: dict[str, Any] = {**ROW, "text": rng.choice(["a", "{{ b }}", "{c}"]), "fee": str(rng.randint(-9, 9))}
        row |= {"ledger": rng.choice(["", "1", "2.5"]), "minutes": rng.choice([1, "2", Decimal("3.5")])}
        problem = filler.problem(row, name="x")
        assert filler.prompts(row) == {node.id: node.prompt for node in problem.nodes}
        offsets = {relation.id: relation.offset for relation in problem.relations if relation.id in filler.offsets(row)}
        assert filler.offsets(row) == offsets
        assert filler.values(row) == {anchor.id: anchor.value for anchor in problem.anchors if anchor.value is not None}


def test_equal_patterns_have_equal_structures(filler: Filler) -> None:
    rng = random.Random(2)
    keys: dict[Any, str] = {}
    for _ in range(40):
        row = {
            **ROW,
            "ledger": rng.choice(["", "1"]),
            "minutes": rng.choice("12"),
            "fee": str(rng.random()),
            "text": str(rng.random()),
        }
        key = structure_key(filler.problem(row, name=str(rng.random())))
        assert keys.setdefault(filler.pattern(row), key) == key
    assert len(keys) == len(set(keys.values())) == 4


def test_a_value_in_the_words_of_the_parser() -> None:
    worded = one({"by": {"value": "{{ v }}"}}, parse={"name": "choice", "options": ["red", "blue"]})
    assert worded.values({"x": "?", "v": "Blue"}) == {"c": (0.0, 1.0)}
    assert worded.values({"x": "?", "v": [1, 0]}) == {"c": (1.0, 0.0)}
    with pytest.raises(InputError, match=r"column 'v' is 'green', not an answer to the parser 'choice'"):
        worded.values({"x": "?", "v": "green"})
    with pytest.raises(InputError, match="column 'v' is empty"):
        worded.values({"x": "?", "v": ""})
    assert one({"by": {"value": "{{ v }}"}}, parse="yes-no").values({"x": "?", "v": "yes"}) == {"c": 1.0}
    assert one({"by": {"value": ["{{ v }}", 2.0]}}, parse={"json": ["n", "t"]}).values({"x": "?", "v": "3"}) == {
        "c": (3.0, 2.0)
    }


def test_choices_of_each_row() -> None:
    filler = Filler(
        recipe_from_document({"answer": {"of": "a", "choices": "{{ options }}"}, "ask": [{"id": "a", "prompt": "?"}]})
    )
    problem = filler.problem({"options": ["x", "y", "z"]}, name="i")
    assert problem.nodes[0].dim == 3
    assert problem.nodes[0].parser == {"name": "choice", "options": ["x", "y", "z"]}
    assert filler.problem({"options": '["x", "y"]'}, name="i").nodes[0].dim == 2
    assert filler.pattern({"options": ["x", "y"]}) == filler.pattern({"options": ["u", "v"]})
    assert filler.pattern({"options": ["x", "y"]}) != filler.pattern({"options": ["u", "v", "w"]})
    with pytest.raises(InputError, match=r"column 'options' is 'x\|y', not a list"):
        filler.problem({"options": "x|y"}, name="i")


def test_choices_that_are_none_are_found_before_the_run() -> None:
    asks = [{"id": "a", "prompt": "?"}]
    filler = Filler(recipe_from_document({"answer": {"of": "a", "choices": ["{{ p }}", "{{ q }}"]}, "ask": asks}))
    assert filler.faults({"p": "yes", "q": "no"}) == []
    (fault,) = filler.faults({"p": "same", "q": "Same"})
    assert fault == "node 'a': parser 'choice': two options are the same (ask 'a', the recipe)"


def test_tests_of_each_row() -> None:
    filler = one(
        {"by": {"tests": "{{ t }}", "expected": "{{ e }}"}},
        parse={"name": "code", "tests": "{{ t }}", "entry": "solve"},
    )
    problem = filler.problem({"x": "?", "t": "[[1], [2]]", "e": "[1, 4]"}, name="i")
    assert problem.nodes[0].dim == 2
    assert problem.anchors[0].source == {"tests": [[1], [2]], "expected": [1, 4]}


def test_a_verifier_gets_the_cells_it_speaks_of_and_no_text_is_filled_in_twice() -> None:
    filler = one({"by": {"verifier": "scripted:x", "prompt": "{{ x }}: {{ answer }}?"}, "sigma": 1.0})
    source = filler.problem({"x": "{{ answer }}", "y": 1}, name="i").anchors[0].source
    assert source == {"verifier": "scripted:x", "prompt": "{{ x }}: {{ answer }}?", "variables": {"x": "{{ answer }}"}}


def test_variables_of_a_long_form() -> None:
    document = {
        "data": {},
        "nodes": [{"id": "n", "prompt": "{{ a }} + {{ x }}", "variables": {"a": 2, "b": "{{ x }}"}}],
        "anchors": [{"id": "c", "node": "n", "cost": 1.0, "source": "expression: a + x"}],
    }
    problem = Filler(recipe_from_document(document)).problem({"x": "3"}, name="i")
    assert problem.nodes[0].prompt == "2 + 3"
    assert problem.nodes[0].variables is None
    assert problem.anchors[0].source == {"expression": "a + x", "variables": {"a": 2, "x": 3}}


def test_a_broken_number_leads_back_to_the_recipe(filler: Filler) -> None:
    with pytest.raises(InputError, match=r"anchor 'clerk': cost .* \(check 'clerk', line \d+ of rrf.toml\)"):
        filler.problem({**ROW, "minutes": "-2"}, name="x")


COLUMNS = ["no", "text", "booked", "ledger", "fee", "minutes", "net", "tax"]


def test_every_placeholder_needs_its_column(invoices: Path) -> None:
    filler = Filler(load_recipe(invoices / "rrf.toml"))
    check_columns(filler, COLUMNS, "t.csv")
    for column in ("text", "ledger", "fee", "minutes", "tax"):
        with pytest.raises(InputError, match=rf"^t.csv: no column '{column}'.* of rrf.toml\)$"):
            check_columns(filler, [name for name in COLUMNS if name != column], "t.csv")


def test_what_a_verifier_learns_later_is_no_column() -> None:
    by = {"verifier": "scripted:x", "prompt": "{{ answer }} {{ a }} {{ x }}"}
    recipe = recipe_from_document(
        {
            "answer": {"of": "a"},
            "ask": [{"id": "a", "prompt": "?"}],
            "check": [{"id": "c", "of": "a", "by": by, "sigma": 1.0}],
        }
    )
    check_columns(Filler(recipe), ["x"], "t.csv")
    with pytest.raises(InputError, match="no column 'x'"):
        check_columns(Filler(recipe), ["y"], "t.csv")


def test_shapes_are_checked_before_a_row_is_seen() -> None:
    asks = [{"id": "a", "prompt": "?", "parse": {"json": ["x", "y"]}}, {"id": "b", "prompt": "?", "like": "a"}]
    with pytest.raises(InputError, match=r"relation 'b like a': .*dimension.*\(ask 'b'"):
        recipe_from_document({"answer": {"of": "a"}, "ask": asks})


def test_kinds_follow_from_places(invoices: Path) -> None:
    slots = find_slots(load_recipe(invoices / "rrf.toml"))
    kinds = {(slot.where.split(",")[0], slot.kind, slot.own) for slot in slots}
    assert ("ask 'total' prompt", SlotKind.TEXT, True) in kinds
    assert ("ask 'cents' change", SlotKind.NUMBER, True) in kinds  # an offset: the same structure
    assert ("check 'clerk' cost", SlotKind.NUMBER, False) in kinds
    assert ("check 'clerk' by", SlotKind.TEXT, True) in kinds
    assert ("check 'ledger' by", SlotKind.VALUE, True) in kinds
    assert ("check 'ledger' when", SlotKind.WHEN, False) in kinds
    assert ("check 'sum' by", SlotKind.EXPRESSION, True) in kinds


@pytest.mark.parametrize("key", ["family", "requires", "node", "id"])
def test_names_are_the_same_for_every_row(key: str) -> None:
    anchor: dict[str, Any] = {"id": "c", "node": "n", "cost": 1.0, key: "{{ x }}"}
    with pytest.raises(InputError, match=f"{key} is the same for every row"):
        recipe_from_document({"data": {}, "nodes": [{"id": "n"}], "anchors": [anchor]})


def test_a_scale_decides_the_structure_and_a_shift_does_not() -> None:
    asks = [
        {"id": "a", "prompt": "?"},
        {"id": "b", "prompt": "?", "like": "a", "change": {"scale": "{{ s }}", "shift": "{{ t }}"}},
    ]
    slots = find_slots(recipe_from_document({"answer": {"of": "a"}, "ask": asks}))
    assert {(slot.template.column, slot.own) for slot in slots} == {("s", False), ("t", True)}


def test_whole_numbers_of_an_expression_stay_exact() -> None:
    assert read_exactly("n", "123456789012345678901234567890") == 123456789012345678901234567890
    assert read_exactly("n", "1.5") == 1.5
    with pytest.raises(InputError, match="column 'n' is 'x', not a number"):
        read_exactly("n", "x")


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
        ({"reword": {"scale": 3.0}, "prompt": "?"}, "give a prompt, or transform"),
        ({}, "give a prompt, or transform"),
        ({"reword": {}}, "give scale, shift or both"),
        ({"reword": {"unit": "m"}}, "give unit and scale = how many of them"),
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
    assert _lost(original, "Is it so that with 19 % tax on {{  net }}: A) yes, B) no?") == []
    assert any(words.startswith(kind) for words in _lost(original, text))


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
