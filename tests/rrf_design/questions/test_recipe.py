"""Recipes in two forms, and the templates in them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from rrf_design.errors import InputError
from rrf_design.files import is_recipe, parse_text
from rrf_design.questions.recipe import Recipe, _lines_by_entry, dumps_recipe, load_recipe, recipe_from_document
from rrf_design.questions.templates import LONGEST_TEXT, TextTemplate, render, strict_number, template

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


def entry(recipe: Recipe, section: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in recipe.long[section] if one["id"] == name)
    return found


def short(answer: dict[str, Any], *asks: dict[str, Any], check: list[dict[str, Any]] | None = None) -> Recipe:
    listed = [{"prompt": "?", **ask} for ask in asks]
    return recipe_from_document({"answer": answer, "ask": listed, "check": check or []})


def test_one_node_per_model_and_repeat(invoices: Path) -> None:
    recipe = load_recipe(invoices / "rrf.toml")
    names = [node["id"] for node in recipe.long["nodes"]]
    assert names == ["total", "reworded", "reworded#2", "reworded@other", "reworded@other#2", "cents", "parts"]
    assert recipe.nodes["reworded", "other", 2] == "reworded@other#2"
    assert recipe.nodes["reworded", None, 2] == "reworded#2"
    assert recipe.nodes["total", None, 1] == "total"
    assert entry(recipe, "nodes", "reworded@other")["model"] == "other"


def test_relations_anchors_and_prices(invoices: Path) -> None:
    recipe = load_recipe(invoices / "rrf.toml")
    assert recipe.long["problem"] == {"k": 1, "deliver": ["total"], "delta": 0.005, "wrong_checks": 1}
    assert entry(recipe, "relations", "reworded like total") == {
        "id": "reworded like total",
        "tail": "total",
        "head": "reworded",
        "trusted": True,
    }
    assert entry(recipe, "relations", "reworded@other#2 like reworded")["tail"] == "reworded"
    cents = entry(recipe, "relations", "cents like total")
    assert (cents["transport"], cents["offset"]) == ({"scale": 100}, "{{ fee }}")
    assert entry(recipe, "nodes", "cents")["cost"] == 0.01
    parts = entry(recipe, "relations", "parts sums to total")
    assert (parts["sum"], parts["head"]) == (["parts"], "total")
    assert entry(recipe, "anchors", "ledger")["trusted"] is False
    assert entry(recipe, "anchors", "clerk")["source"] == {"person": "Gross total of invoice {{ no }}"}


def test_every_node_and_block_has_its_way_back(invoices: Path) -> None:
    recipe = load_recipe(invoices / "rrf.toml")
    lines = (invoices / "rrf.toml").read_text().splitlines()
    for section in ("nodes", "relations", "anchors"):
        for one in recipe.long[section]:
            origin = recipe.origins[one["id"]]
            line = recipe.lines[origin.section, origin.place, "id"]
            assert lines[line - 1] == f'id = "{origin.id}"'
    assert (
        recipe.where("clerk", "by") == f"check 'clerk' by, line {lines.index(chr(91) * 2 + 'check]]') + 4} of rrf.toml"
    )


@pytest.mark.parametrize(
    ("together", "units"),
    [
        ("ask", [None, None, None, None]),
        ("wording", ["a", "b", "b", "c"]),
        ("model", ["m", "m", "m", "n"]),
    ],
)
def test_what_fails_together(together: str, units: list[str | None]) -> None:
    document = {
        "models": {"m": "embedded", "n": "embedded"},
        "answer": {"of": "a", "fails_together": together},
        "ask": [
            {"id": "a", "prompt": "?"},
            {"id": "b", "prompt": "?", "like": "a", "model": "m", "repeat": 2},
            {"id": "c", "prompt": "?", "model": "n"},
        ],
    }
    assert [node.get("unit") for node in recipe_from_document(document).long["nodes"]] == units


def test_choices_are_read_by_every_ask_and_need_no_tolerance() -> None:
    recipe = short(
        {"of": "a", "choices": ["A", "B"]},
        {"id": "a"},
        {"id": "b", "like": "a", "parse": {"name": "choice", "options": ["B", "A"]}},
    )
    assert recipe.long["problem"]["delta"] == 0.5
    assert entry(recipe, "nodes", "a")["parser"] == {"name": "choice", "options": ["A", "B"]}
    assert entry(recipe, "nodes", "a")["dim"] == 2
    assert entry(recipe, "nodes", "b")["parser"]["options"] == ["B", "A"]


def test_what_is_always_bought_has_a_price_and_nothing_to_plan() -> None:
    recipe = short({"of": "a"}, {"id": "a", "cost": 0.2}, {"id": "b", "like": "a", "cost": 0.3, "buy": "if needed"})
    assert entry(recipe, "nodes", "a")["price"] == 0.2
    assert "cost" not in entry(recipe, "nodes", "a")
    assert entry(recipe, "nodes", "b")["cost"] == 0.3


def test_an_ask_without_a_parser_reads_decimals() -> None:
    assert entry(short({"of": "a"}, {"id": "a"}), "nodes", "a")["parser"] == "decimal"


def test_parts_whose_number_a_row_decides_can_not_be_summed() -> None:
    with pytest.raises(InputError, match="the same for every row"):
        short({"of": "a"}, {"id": "a"}, {"id": "p", "sums_to": "a", "parse": {"name": "code", "tests": "{{ t }}"}})


@pytest.mark.parametrize(
    "by",
    [
        {"person": "?"},
        {"expression": "a + b"},
        {"tests": [[1]], "expected": [2]},
        {"verifier": "scripted:x", "prompt": "{{ answer }}?"},
        {"command": ["true"]},
    ],
)
def test_every_kind_of_check_is_a_source(by: dict[str, Any]) -> None:
    recipe = short({"of": "a"}, {"id": "a"}, check=[{"id": "c", "of": "a", "by": by, "cost": 1.0, "sigma": 2.0}])
    assert entry(recipe, "anchors", "c") == {"id": "c", "node": "a", "source": by, "cost": 1.0, "sigma": 2.0}


def test_a_judge_that_is_wrong_at_a_rate_says_so() -> None:
    check = {"id": "c", "of": "a", "by": {"value": 7.0}, "rate": 0.1}
    recipe = short({"of": "a", "tolerance": 0.1}, {"id": "a"}, check=[check])
    assert entry(recipe, "anchors", "c") == {"id": "c", "node": "a", "value": 7.0, "rate": 0.1}
    with pytest.raises(InputError, match="rate"):
        short({"of": "a"}, {"id": "a"}, check=[check | {"rate": 1.0}])


ROW: dict[str, Any] = {"a": 1, "b": "qq", "none": None, "list": ["x", "y"], "text": "Total: {{ a }} {% if %}"}
ROW |= {"a b": 2, 'q"}}{{': "z", "ü ß": "é", "row": {"x": 3}}
ROW |= {"table": {"n": Decimal("1.10"), "h": "<é>"}}


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("What is {{ a }} + {{ b }}?", "What is 1 + qq?"),
        ('{{ b }} JSON: {"total": amount, "more": {"n": 1}} {}', 'qq JSON: {"total": amount, "more": {"n": 1}} {}'),
        ("{{ text }}", "Total: {{ a }} {% if %}"),  # a cell is never read as a template
        ("[{{ none }}]", "[]"),
        ("{% if a == 1 %}one{% else %}more{% endif %}\n", "one\n"),
        ("{% for x in list %}{{ loop.index }}{{ x }} {% endfor %}", "1x 2y "),
        ("{{ b.strip().upper().replace('Q', 'z') }}{{ list | join('+') }}{{ b ~ a }}", "zzx+yqq1"),
        ("{% raw %}{{ x }}{% endraw %}{# a remark #}", "{{ x }}"),
        (r"\frac{1}{2} of {b2}", r"\frac{1}{2} of {b2}"),
        ("{{ '{a}' }}", "{a}"),
        ("""{{ row["a b"] }}{{ row['q"}}{{'] }}{{ row["ü ß"] | upper }}{{ row["b"] }}""", "2zÉqq"),
        ("""{{ row }}{% if row["x y"] is defined %}1{% endif %}{{ row[b ~ ''] is defined }}""", '{"x": 3}False'),
        ("{{ list }} {{ table }} {{ table | tojson }}", '["x", "y"] {"n": 1.10, "h": "<é>"} {"n": 1.10, "h": "<é>"}'),
        ("{{ list | map('upper') | join(', ') }} {{ [table] | map(attribute='h') | first }}", "X, Y <é>"),
    ],
)
def test_what_is_filled_in(source: str, text: str) -> None:
    assert render(source, ROW) == text


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{a}", r"\{a\} is not filled in; write \{\{ a \}\}"),
        ('{"x": { b }}', r"\{b\} is not filled in"),
        ("{{ c }}", r"no variable 'c' \(there are: a, a b, b, list, none, q.*, row, table, text, ü ß\)"),
        ("{{ txt }}", "no variable 'txt'; did you mean 'text'"),
        ("{{ a", "unexpected end"),
        ("{% if a %}\n\n{% endfor %}", "line 3 of the text"),
        ("{{ a.__class__ }}", "unsafe"),
        ("{{ b['__class__'] }}", "unsafe"),
        ("{{ list.append('z') }}", "not|unsafe"),
        ("{{ b.encode }}", "unsafe"),
        ("{{ list | map(attribute='__class__') | list }}", "unsafe"),
        ("{{ list | map('pprint') | list }}", "pprint"),
        ("{{ self }}", "reserved"),
        ("{{ _rrf_row }}", "reserved"),
        ("{{ row['a  b'] }}", "no variable 'a  b'; did you mean 'a b'"),
        ("{{ row['keys'] }}", "no variable 'keys'"),
        ("{{ _rrf_meter }}", "reserved"),
        ("{% include 'x' %}", "include is not available"),
        ("{% import 'x' as y %}", "import is not available"),
        ("{% macro m() %}{{ m() }}{% endmacro %}", "macro is not available"),
        ("{{ b | pprint }}", "no filter 'pprint'"),
        ("{{ b | uper }}", "did you mean 'upper'"),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{{ b + 1 }}", "TypeError"),
        ("{{ namespace(x=1) }}", "no variable 'namespace'"),
    ],
)
def test_what_is_refused(source: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        render(source, ROW)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "source",
    [
        "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
        "{% for i in range(999999999) %}{% endfor %}",
        "{{ 'a' * 9999999999 }}",
        "{{ [1] * 9999999999 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{% set x = b %}" + "{% set x = x ~ x %}" * 40 + "{{ x }}",
        "{% set x = b %}" + "{% set x = x + x %}" * 40 + "{{ x }}",
        "{% set x = 'aaaaaaaaaaaaaaaa' %}" + "{% set x = x.replace('a', x) %}" * 9 + "{{ x }}",
        "{% set x = 'aaaaaaaaaaaaaaaa' %}" + "{% set x = x | replace('a', x) %}" * 9 + "{{ x }}",
        "{{ '{:>999999999}'.format(1) }}",
        "{{ range(99999) | map('replace', '1', '" + "x" * 9999 + "') | list }}",
        "{{ range(99999) | join('" + "x" * 9999 + "') }}",
        "{{ '%999999999d' % 1 }}",
        "{{ b['format'](1) }}",
        "{% for i in range(99999) %}" + "y" * 1000 + "{% endfor %}",
        "{% set x = 99999999999 %}" + "{% set x = x * x %}" * 12 + "{{ x }}",
        "{{ " + "(" * 5000 + "a" + ")" * 5000 + " }}",
    ],
)
def test_a_slip_of_the_pen_is_one_line_and_not_a_full_memory(source: str) -> None:
    with pytest.raises(InputError) as caught:
        render(source, ROW)
    assert len(str(caught.value)) < 400


def test_honest_texts_pass_and_values_stay() -> None:
    assert len(render("{{ b }}", {"b": "x" * (LONGEST_TEXT - 1)})) == LONGEST_TEXT - 1
    row = {"list": [1, 2]}
    assert render("{{ list | reverse | list }}", row) == "[2, 1]"
    assert row == {"list": [1, 2]}


def test_one_placeholder_stands_for_the_value_itself() -> None:
    assert template("{{ list }}").value(ROW) == ["x", "y"]
    assert template(" {{ a + 1 }} ").value(ROW) == 2
    assert template("{{ a }}{{ b }}").one_placeholder is False
    assert template("{{ a }} euros").value(ROW) == "1 euros"
    assert template("{{ a }}").names == {"a"}
    assert template("{% for i in list %}{{ i }}{{ b }}{% endfor %}").names == {"list", "b"}
    with pytest.raises(InputError, match="no variable 'z'"):
        template("{{ z }}").value(ROW)
    assert TextTemplate("as it is").plain


@pytest.mark.parametrize(
    ("cell", "number"),
    [("12", 12.0), (" -1.50 ", -1.5), ("+.5e2", 50.0), (7, 7.0), (Decimal("1.10"), 1.1), (2.5, 2.5), ("007", 7.0)],
)
def test_numbers_are_read(cell: Any, number: float) -> None:
    assert strict_number(cell) == number


@pytest.mark.parametrize(
    "cell",
    [
        "",
        " ",
        None,
        "1,234",
        "1.234,50",
        "12 EUR",
        "1_000",
        "nan",
        "inf",
        "1e999",
        float("nan"),
        True,
        "٣",
        [1],
        10**400,
    ],
)
def test_what_only_looks_like_a_number_is_not_one(cell: Any) -> None:
    with pytest.raises(ValueError, match="is "):
        strict_number(cell)


def test_a_cell_of_the_row_is_a_column_like_others() -> None:
    made = template('{{ row["a b"] }}')
    assert made.names == {"a b"}
    assert made.plain_names
    assert made.value({"a b": [1]}) == [1]
    assert not template('{{ row["a b"].x }}').plain_names
