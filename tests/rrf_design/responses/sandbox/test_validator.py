from __future__ import annotations

import ast
import re

import pytest

from rrf_design.responses.sandbox._validator import violation


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import os", "import"),
        ("from os import path", "import"),
        ("def f():\n    import os", r"import \(line 2\)"),
        ("def f():\n    global x", "global"),
        ("def f():\n    x = 1\n    def g():\n        nonlocal x", "nonlocal"),
        ("class A: pass", "class"),
        ("async def f(): pass", "async function"),
        ("().__class__", "dunder name __class__"),
        ("__builtins__", "dunder name"),
        ("def __f(): pass", "dunder name"),
        ("f(__x=1)", "dunder name"),
        ("def f(__x): pass", "dunder name"),
        ("match x:\n    case int(__class__=y): pass", "dunder name"),
        ("match x:\n    case {**__y}: pass", "dunder name"),
        ("'{0.__class__}'.format(x)", "a string with a dunder"),
        ("f'{x.__class__}'", "dunder name"),
        ("b'__class__'", "a string with a dunder"),
        ("eval('1')", "dynamic primitive eval"),
        ("e = exec", "dynamic primitive exec"),
        ("compile", "dynamic primitive"),
        ("open('x')", "dynamic primitive"),
        ("getattr(x, 'a')", "dynamic primitive"),
        ("type(x)", "dynamic primitive"),
        ("g.gi_frame", "attribute gi_frame"),
        ("e.tb_frame", "attribute"),
        ("f.f_globals", "attribute"),
        ("'{x}'.format_map(y)", "attribute format_map"),
    ],
)
def test_rejected(source: str, reason: str) -> None:
    found = violation(ast.parse(source))
    assert found is not None
    assert re.search(reason, found)


@pytest.mark.parametrize(
    "source",
    [
        "def solve(n):\n    return sum(int(d) for d in str(n))",
        "def solve(xs):\n    xs = sorted(set(xs))\n    return xs[-2] if len(xs) > 1 else 0",
        "solve = lambda a, b: a if b == 0 else solve(b, a % b)",
        (
            "def solve(n):\n    memo = {}\n    def f(k):\n        if k not in memo: memo[k] = k if k < 2 else f(k-1) +"
            " f(k-2)\n        return memo[k]\n    return f(n)"
        ),
        "def solve(n):\n    try:\n        return 10 // n\n    except ZeroDivisionError:\n        return 0",
        "def solve(a_b, _c):\n    return '{} {}'.format(a_b, _c).count(' ')",
    ],
)
def test_accepted(source: str) -> None:
    assert violation(ast.parse(source)) is None
