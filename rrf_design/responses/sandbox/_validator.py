"""The paper's AST validator: no imports, global or nonlocal, classes, dunder access or dynamic
execution.

A filter on syntax keeps honest mistakes and idle tricks out and gives them a name ("rejected"). It
is not what keeps the machine safe: the process that runs the program is, and it is tested with this
file switched off. Standard library only, because it runs there.
"""

from __future__ import annotations

import ast

LONGEST_SOURCE = 64 * 1024

_DYNAMIC = frozenset(
    {
        *("eval", "exec", "compile", "open", "input", "globals", "locals", "vars", "dir", "breakpoint", "help"),
        *("getattr", "setattr", "delattr", "hasattr", "type", "object", "super", "memoryview", "exit", "quit"),
    }
)
# Frames and code objects lead from a generator, a traceback or a function to everything else.
_INSIDES = ("gi_", "cr_", "ag_", "tb_", "f_", "co_", "func_")
_FORBIDDEN: dict[type[ast.AST], str] = {
    ast.Import: "import",
    ast.ImportFrom: "import",
    ast.Global: "global",
    ast.Nonlocal: "nonlocal",
    ast.ClassDef: "class",
    ast.AsyncFunctionDef: "async function",
    ast.AsyncFor: "async for",
    ast.AsyncWith: "async with",
    ast.Await: "await",
}
_NAMED = ("id", "attr", "name", "arg", "rest", "asname")


def violation(tree: ast.AST) -> str | None:
    """The first construct of the program that is not allowed, or None."""
    for node in ast.walk(tree):
        reason = _reason(node)
        if reason is not None:
            return f"{reason} (line {getattr(node, 'lineno', '?')})"
    return None


def _reason(node: ast.AST) -> str | None:
    if type(node) in _FORBIDDEN:
        return _FORBIDDEN[type(node)]
    names = [name for key in _NAMED if isinstance(name := getattr(node, key, None), str)]
    if isinstance(node, ast.MatchClass):
        names += node.kwd_attrs
    for name in names:
        if "__" in name:
            return f"dunder name {name[:40]}"
    if isinstance(node, ast.Name) and node.id in _DYNAMIC:
        return f"dynamic primitive {node.id}"
    if isinstance(node, ast.Attribute) and (node.attr.startswith(_INSIDES) or node.attr == "format_map"):
        return f"attribute {node.attr[:40]}"
    # "{0.__class__}".format(x) walks attributes from inside a string.
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
        if "__" in text:
            return "a string with a dunder name"
    return None
