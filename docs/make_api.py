"""Writes api.md and command-line.md from docstrings and help texts: `make docs`, or `python
docs/make_api.py`.

Everything a user may rely on is in some package's `__all__` or a verb of the command; nothing is
described twice by hand.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import re
import sys
import textwrap
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PACKAGES = (
    "rrf_design",
    "solvers",
    "rrf_design.questions",
    "rrf_design.tables",
    "rrf_design.planning",
    "rrf_design.certificates",
    "rrf_design.repairing",
    "rrf_design.acquisition",
    "rrf_design.risk",
    "rrf_design.models",
    "rrf_design.responses",
    "rrf_design.reporting",
    "rrf_design.testing",
    "scenarios",
    "scenarios.conformance",
)
NOTE = "<!-- Written by docs/make_api.py from docstrings; change those and run `make docs`. -->"


def api() -> str:
    """The API reference."""
    seen: set[int] = set()
    parts = [
        NOTE,
        "# API reference",
        "Public names by package. The command line is described in [its own page](command-line.md).",
    ]
    for name in PACKAGES:
        package = importlib.import_module(name)
        entries = [entry for public in getattr(package, "__all__", []) for entry in _entry(package, public, seen)]
        if entries:
            parts += [f"## `{name}`", _doc(package), *entries]
    return "\n\n".join(part for part in parts if part) + "\n"


def _entry(package: Any, public: str, seen: set[int]) -> Iterator[str]:
    thing = getattr(package, public)
    if inspect.ismodule(thing):  # a package named like its main function is that function when called
        thing = getattr(thing, public, thing)
    if public.startswith("__") or inspect.ismodule(thing) or id(thing) in seen:
        return
    seen.add(id(thing))
    if inspect.isclass(thing):
        yield from _class(public, thing)
    elif callable(thing):
        yield f"### `{public}{_signature(thing)}`"
        yield _doc(thing)


def _class(public: str, thing: type) -> Iterator[str]:
    yield f"### class `{public}`"
    yield _doc(thing)
    rows = list(_members(thing))
    if rows:
        yield "\n".join(["| member | type | meaning |", "| --- | --- | --- |", *rows])


def _members(thing: type) -> Iterator[str]:
    notes = _field_notes(thing)
    if issubclass(thing, Enum):
        for member in thing:
            yield _row(f"{member.name} = {member.value!r}", "", notes.get(member.name, ("", ""))[1])
        return
    fields = getattr(thing, "__dataclass_fields__", None) or getattr(thing, "model_fields", {})
    for name in fields:
        if not name.startswith("_"):
            yield _row(name, *notes.get(name, ("", "")))
    for name, member in vars(thing).items():
        if name.startswith("_") or name in fields:
            continue
        if isinstance(member, property) or type(member).__name__ == "cached_property":
            plain = getattr(member, "fget", None) or member.func
            yield _row(name, _returns(plain), _first(inspect.getdoc(plain) or ""))
        elif inspect.isfunction(member) or isinstance(member, classmethod | staticmethod):
            plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
            call = f"{name}{_signature(plain, method=not isinstance(member, staticmethod))}"
            yield _row(call, _returns(plain), _first(inspect.getdoc(plain) or ""))


def _row(name: str, kind: str, text: str) -> str:
    name, kind = (part.replace("|", "\\|") for part in (name, kind))
    return f"| `{name}` | {f'`{kind}`' if kind else ''} | {_first(text)} |"


def _returns(thing: Any) -> str:
    return str(thing.__annotations__.get("return", ""))


def _field_notes(thing: type) -> dict[str, tuple[str, str]]:
    """Type and docstring of each field, for the class and those it is made from."""
    notes: dict[str, tuple[str, str]] = {}
    for base in reversed(thing.__mro__):
        if base.__module__.partition(".")[0] not in ("rrf_design", "solvers", "scenarios"):
            continue
        try:
            body = ast.parse(textwrap.dedent(inspect.getsource(base))).body[0].body  # type: ignore[attr-defined]
        except (OSError, TypeError, SyntaxError):
            continue
        for entry, after in itertools.pairwise([*body, ast.Pass()]):
            if isinstance(entry, ast.AnnAssign) and isinstance(entry.target, ast.Name):
                name, kind = entry.target.id, ast.unparse(entry.annotation)
            elif isinstance(entry, ast.Assign) and isinstance(entry.targets[0], ast.Name):
                name, kind = entry.targets[0].id, ""
            else:
                continue
            described = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            text = " ".join(str(after.value.value).split()) if described else ""  # type: ignore[attr-defined]
            notes[name] = (re.sub(r"Annotated\[(\w+), .*\]", r"\1", kind), text)
    return notes


def _signature(thing: Any, *, method: bool = False) -> str:
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return "()"
    parameters = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    text = str(
        signature.replace(
            parameters=parameters[1:] if method else parameters, return_annotation=inspect.Signature.empty
        )
    )
    return re.sub(r"<[^<>]*>", "…", text)


def _doc(thing: Any) -> str:
    text = inspect.getdoc(thing) or ""
    return "" if text.startswith(f"{getattr(thing, '__name__', '')}(") else _fenced(text.replace("``", "`"))


def _fenced(text: str) -> str:
    """Paragraphs that are examples become blocks of their own, and headed sections lists."""
    parts = [f"```pycon\n{part}\n```" if part.startswith(">>> ") else _headed(part) for part in text.split("\n\n")]
    return "\n\n".join(parts)


def _headed(part: str) -> str:
    """A section of a docstring as numpy writes them: a heading, and names with indented texts."""
    heading, line, *rest = [*part.split("\n"), "", ""]
    if not line or set(line) != {"-"}:
        return part
    entries: list[str] = []
    for text in filter(None, rest):
        if text.startswith(" ") and entries:
            entries[-1] += " " + text.strip()
        else:
            entries.append(f"- `{text}`:" if heading == "Parameters" else text)
    return "\n".join([f"**{heading}**", "", *entries])


def _first(text: str) -> str:
    """The first paragraph on one line, fit for a table."""
    return " ".join(text.split("\n\n")[0].split()).replace("``", "`").replace("|", "\\|")


def command_line() -> str:
    """Every verb with its options."""
    import typer

    from rrf_design.cli.app import app

    parts = [
        NOTE,
        "# The command line",
        (
            "Every verb takes `--json`: exactly one JSON object on standard output and nothing else there; progress and"
            " messages go to standard error. Exit codes: 0 done and the answer is yes; 1 done and the answer is no; 2"
            " the input or the call is wrong, with one line that says what and where; 75 try again later (a scheduler,"
            " server or store went away; nothing is lost, `--resume` goes on); 130 interrupted (Ctrl-C), with"
            " the best bounds so far. `rrf-design --install-completion` teaches your shell the verbs and options."
        ),
    ]
    for path, command in _verbs("rrf-design", typer.main.get_command(app)):
        parts += [f"## `{path}`", inspect.cleandoc(command.help or "").replace("Example: ", "Example: `", 1)]
        parts[-1] = re.sub(r"Example: `(.*)$", r"Example: `\1`", parts[-1], count=1, flags=re.MULTILINE)
        rows = [
            _option(parameter)
            for parameter in command.params
            if not getattr(parameter, "hidden", False) and parameter.name != "help"
        ]
        parts.append("\n".join(["| argument or option | |", "| --- | --- |", *rows]))
    return "\n\n".join(parts) + "\n"


def _verbs(path: str, command: Any) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "list_commands"):
        yield path, command
        return
    for name in command.list_commands(None):
        yield from _verbs(f"{path} {name}", command.get_command(None, name))


def _option(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    if parameter.param_type_name == "argument":
        names = f"`{str(parameter.name).upper()}`"
    default = parameter.default
    shown = "" if default in (None, False, ()) or callable(default) or parameter.required else f" Default: `{default}`."
    text = " ".join((getattr(parameter, "help", "") or "").split())
    return f"| {names} | {text.replace('|', chr(92) + '|')}{shown} |"


def pages() -> dict[Path, str]:
    return {HERE / "api.md": api(), HERE / "command-line.md": command_line()}


if __name__ == "__main__":
    sys.path.insert(0, str(HERE.parent))
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.name}")
