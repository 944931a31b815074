from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from rrf_design.errors import InputError
from rrf_design.questions.templates import LONGEST_TEXT, TextTemplate, render, strict_number, template

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


def test_an_honest_long_text_passes() -> None:
    assert len(render("{{ b }}", {"b": "x" * (LONGEST_TEXT - 1)})) == LONGEST_TEXT - 1


def test_the_caller_s_values_stay_as_they_are() -> None:
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
