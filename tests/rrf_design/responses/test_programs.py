from __future__ import annotations

import pytest

from rrf_design.errors import InputError
from rrf_design.responses import ParseStatus, parsers
from rrf_design.responses.programs import extract

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
