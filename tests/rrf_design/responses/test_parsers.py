from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import pytest

from rrf_design.errors import InputError
from rrf_design.responses import parsers

SPECS: list[dict[str, Any]] = [
    {"name": "integer", "decimal": "."},
    {"name": "integer-strict"},
    {"name": "integer-last"},
    {"name": "integer-first"},
    {"name": "rational"},
    {"name": "decimal"},
    {"name": "yes-no", "count": 2},
    {"name": "json", "field": "a.b", "dim": 2},
    {"name": "choice", "options": ["left", "right"], "letters": False},
    {"name": "literal", "bare": "string"},
    {"name": "label", "normalise": ["casefold", "space"], "words": 5},
    {"name": "call"},
    {"name": "mathematics", "seconds": 2.0},
    {"name": "code", "tests": [[1, 2], [3, 4]], "entry": "f", "seconds": 0.5, "require": "seccomp"},
]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("integer-lst", "did you mean 'integer-last'"),
        ("qqq", "known: integer, integer-strict"),
        ({"options": []}, "unknown parser None"),
        ({"name": "choice"}, "parser 'choice': it needs 'options'"),
        ({"name": "choice", "option": ["a", "b"]}, "unknown option 'option'; did you mean 'options'"),
        ({"name": "call", "x": 1}, "unknown option 'x'; it takes none"),
    ],
)
def test_bad_specs(spec: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parsers.get(spec)


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: str(spec["name"]))
def test_a_parser_rebuilds_itself(spec: dict[str, Any]) -> None:
    if spec["name"] == "mathematics":
        pytest.importorskip("math_verify")
    parser = parsers.get(spec)
    assert dict(parser.spec) == spec
    assert parsers.get(parser) is parser
    assert parsers.get(parser.spec).dim == parser.dim


def test_all_names_are_covered() -> None:
    assert set(parsers.names()) == {spec["name"] for spec in SPECS}


# What the model may say under a parser's grammar: the parser must read it, and as strict.
SAID = {
    "integer-strict": "-12",
    "integer-last": "-12",
    "rational": "-3/4",
    "decimal": "-1.25",
    "yes-no": "yes no",
    "json": '{"a": {"b": [1, -2.5]}}',
    "choice": "right",
}


@pytest.mark.parametrize("spec", [spec for spec in SPECS if spec["name"] in SAID], ids=lambda spec: str(spec["name"]))
def test_grammar_and_parser_agree(spec: dict[str, Any]) -> None:
    parser = parsers.get(spec)
    assert parser.grammar is not None
    assert parser.grammar.startswith("root ::= ")
    parsed = parser.parse(SAID[parser.name])
    assert parsed.ok
    assert parsed.strict_ok
    assert parsed.value is not None
    assert len(parsed.value) == parser.dim


def test_parsers_of_other_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    offered = {"theirs": EntryPoint("theirs", "rrf_design.responses.numeric:DecimalParser", "rrf_design.parsers"),
               "broken": EntryPoint("broken", "no_such_module:x", "rrf_design.parsers")}  # fmt: skip
    monkeypatch.setattr(parsers, "_offered", lambda: offered)
    assert parsers.names()[-2:] == ("theirs", "broken")
    assert parsers.get({"name": "theirs", "decimal": ","}).parse("1.234").value == (1234.0,)
    with pytest.raises(InputError, match="can't be loaded"):
        parsers.get("broken")
