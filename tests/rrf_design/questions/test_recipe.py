"""Recipes in both forms, and the lines that their faults lead back to."""

from __future__ import annotations

from pathlib import Path

import pytest

from rrf_design.errors import InputError
from rrf_design.files import is_recipe, parse_text
from rrf_design.questions.recipe import _lines_by_entry, dumps_recipe, load_recipe, recipe_from_document

SHORT = '[answer]\nof = "a"\n[[ask]]\nid = "a"\nprompt = "{{ x }}"\n'


def made(text: str) -> object:
    return recipe_from_document(parse_text(text, ".toml"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[anser]\n", "unknown section 'anser'; did you mean 'answer'"),
        (SHORT + "[data]\ntabel = 't.csv'\n", r"\[data\]: unknown key 'tabel'; did you mean 'table'"),
        (SHORT.replace('of = "a"', 'off = "a"'), r"\[answer\]: of is missing"),
        (
            SHORT.replace('of = "a"', 'of = "a"\ntolerence = 1.0'),
            r"\[answer\]: unknown key 'tolerence'; did you mean 'tolerance'",
        ),
        (SHORT.replace('of = "a"', 'of = "b"'), r"\[answer\]: of = 'b' is no ask"),
        (SHORT + 'promt = "x"\n', "ask 'a': unknown key 'promt'; did you mean 'prompt'"),
        (
            SHORT + 'model = "mini"\n[models]\nmino = "embedded"\n',
            "ask 'a': model 'mini' is not in .models.; did you mean 'mino'",
        ),
        (SHORT + 'zebra = "x"\n', "ask 'a': unknown key 'zebra'; known: id, prompt, .*weight, when"),
        (SHORT + "[zebra]\n", "unknown section 'zebra'; known: data, "),
        (
            SHORT.replace('of = "a"', 'of = "a"\ntolerance = -1'),
            r"\[answer\]: tolerance must be greater than 0, not -1(\.0)? \(\[answer\] tolerance",
        ),
        (
            SHORT.replace('of = "a"', 'of = "a"\ntolerance = "{{ x }} cents"'),
            r"\[answer\] tolerance, .*must be a number, or one placeholder",
        ),
        (SHORT + 'model = ["m", "m"]\n', "none of them twice"),
        (SHORT + "[models]\nm = { name = 'x' }\n", r"\[models\]: m: it needs use"),
        (SHORT + "[problem]\nk = 1\n", "short form and .problem. of the long one"),
        (SHORT + 'parse = "decimals"\n', "ask 'a': unknown parser 'decimals'; did you mean 'decimal'"),
        (SHORT + 'parse = { jsn = "x" }\n', "ask 'a': parse must be"),
        (SHORT + 'like = "b"\n', "like = 'b' is no other ask"),
        (SHORT + 'like = "a"\n', "like = 'a' is no other ask"),
        (SHORT + "change = { scale = 2.0 }\n", "say which with like"),
        (SHORT + 'change = {}\nlike = "a"\n', "give scale, shift or both"),
        (SHORT + 'buy = "if needed"\n', "needs a cost"),
        (SHORT + 'buy = "never"\n', "ask 'a': buy must be 'always' or 'if needed'"),
        (SHORT + "repeat = 0\n", "ask 'a': repeat must be greater than or equal to 1"),
        (SHORT + 'when = "{{ y }}"\n', "delivered for every row"),
        (SHORT + 'cost = "much"\nbuy = "if needed"\n', r"cost must be a number, not 'much' \(ask 'a'"),
        (SHORT + 'cost = "{{ x }} cents"\n', "must be a number, or one placeholder"),
        (SHORT.replace("{{ x }}", "{{ x"), "ask 'a' prompt, the recipe: template"),
        (SHORT.replace('id = "a"', 'id = "a#2"'), "@ and # are for models and repeats"),
        (SHORT + '[[ask]]\nid = "a"\nprompt = "?"\n', "ask 'a': this id stands twice"),
        (SHORT + '[[check]]\nid = "c"\nof = "b"\nby = { person = "?" }\n', "check 'c': of = 'b' is no ask"),
        (SHORT + '[[check]]\nid = "c"\nof = "a"\nby = { persons = "?" }\n', "exactly one of .*did you mean 'person'"),
        (SHORT + '[[check]]\nid = "c"\nof = "a"\nby = { value = 1, gold = 2 }\n', "unknown key 'gold' beside value"),
        (SHORT + '[[check]]\nid = "c"\nof = "a"\nby = "person"\n', "check 'c': by must be a table"),
        (SHORT + "[promise]\nrisk = 2.0\n", r"\[promise\]: risk must be less than 1"),
        ("[answer]\nof = 'a'\n", "nothing is asked"),
        ("[[ask]]\nid = 'a'\nprompt = '?'\n", r"needs \[answer\]"),
        ("[data]\nid = 'no'\n", "the field is empty"),
        ("[data]\n[[nodes]]\nid = 'a'\nprompt = '?'\nunit = '{{ x }}'\n", "unit is the same for every row"),
        ("[data]\n[[nodes]]\nid = 'a'\ncolour = 1\n", "node 'a': unknown key 'colour'"),
        ("[data]\n[[nodes]]\nprompt = '?'\n", "node number 1: id is missing"),
        (
            "[data]\n[[nodes]]\nid = 'a'\n[[relations]]\nid = 'r'\ntail = 'a'\nhead = 'b'\n",
            "relation 'r': unknown node 'b'",
        ),
    ],
)
def test_faults_are_one_line_that_names_the_entry(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        made(text)
    assert "\n" not in str(caught.value)


def test_a_fault_names_the_file_and_its_line(invoices: Path) -> None:
    path = invoices / "rrf.toml"
    path.write_text(
        path.read_text().replace('like = "total"\nprompt = "How', 'like = "total"\nweight = -1\nprompt = "How')
    )
    with pytest.raises(InputError) as caught:
        load_recipe(path)
    line = path.read_text().splitlines().index('id = "cents"')
    assert str(caught.value).startswith(f"{path}: relation 'cents like total': weight")
    assert str(caught.value).endswith(f"(ask 'cents', line {line} of rrf.toml)")


def test_the_long_form_is_a_recipe_of_its_own_and_means_the_same(invoices: Path) -> None:
    recipe = load_recipe(invoices / "rrf.toml")
    text = dumps_recipe(recipe)
    again = recipe_from_document(parse_text(text, ".toml"))
    assert again.long == recipe.long
    assert again.document() == recipe.document()
    assert dumps_recipe(again) == text


def test_what_makes_a_file_a_recipe() -> None:
    assert is_recipe({"data": {}})
    assert is_recipe({"ask": []})
    assert not is_recipe({"problem": {}, "nodes": []})
    assert not is_recipe([])


def test_a_recipe_given_for_a_problem_says_what_to_do(invoices: Path) -> None:
    import rrf_design as rrf

    with pytest.raises(InputError, match=r"makes this a recipe.*--data"):
        rrf.load(invoices / "rrf.toml")


def test_models_and_promise(invoices: Path) -> None:
    recipe = load_recipe(invoices / "rrf.toml")
    assert recipe.models == {
        "mini": {"use": "scripted:mini.json", "max_tokens": 200},
        "other": {"use": "scripted:other.json"},
    }
    assert recipe.promise is not None
    assert (recipe.promise.risk, recipe.promise.confidence) == (0.02, 0.95)


TEXT = '''# a remark
[answer]
of = "a"

[[ask]]  # first
id = "a"
prompt = """
[[ask]]
id = "not this"
"""
[[ask]]
  id = "b"
prompt = \'\'\'x\'\'\'
cost = 1
'''


def test_lines_of_entries_and_keys() -> None:
    lines = _lines_by_entry(TEXT)
    assert lines["answer", 0, "of"] == 3
    assert lines["ask", 0, ""] == 5
    assert lines["ask", 0, "prompt"] == 7
    assert lines["ask", 1, ""] == 11
    assert lines["ask", 1, "cost"] == 14
    assert ("ask", 2, "") not in lines


def test_json_has_no_lines() -> None:
    assert _lines_by_entry('{"ask": [{"id": "a"}]}') == {}
