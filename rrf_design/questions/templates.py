"""Texts that speak of a row: Jinja2 in an immutable sandbox, where an undefined name is an error
and every step is counted.

A template comes from the recipe's author, a cell from anybody: cells are filled in and never read
as templates. What a template may do is an allow-list (placeholders, conditions, loops, plain
filters), and loops, products and joined texts are metered, so that a slip of the pen ends in one
line and not in a full memory. JSON needs no escaping, since a single brace is a character like any
other; only `{name}` of a known name is refused, because nobody means that. A column whose name is
no word is called `row["a name"]`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError, Undefined, UndefinedError, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension
from jinja2.filters import sync_do_map
from jinja2.lexer import Token, TokenStream
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

from rrf_design.errors import InputError
from rrf_design.files import suggestion
from rrf_design.texts import cell_json

LONGEST_TEXT = 4_000_000
"""Characters of one filled-in text: beyond every context window there is."""
MOST_STEPS = 100_000
"""Rounds of all loops of one text together."""

# fmt: off
_FILTERS = [
    "abs", "capitalize", "count", "d", "default", "e", "escape", "first", "float", "int", "items", "join", "last",
    "length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "replace", "reverse", "round", "select",
    "selectattr", "sort", "string", "sum", "title", "tojson",
    "trim", "truncate", "unique", "upper", "wordcount", "changed",
]
_METHODS = {
    "strip", "lstrip", "rstrip", "lower", "upper", "title", "capitalize", "casefold", "split", "splitlines",
    "startswith", "endswith", "replace", "removeprefix", "removesuffix", "count", "find", "isdigit", "isalpha", "get",
    "keys", "values", "items",
}
_TESTS = [
    "defined", "undefined", "none", "number", "string", "boolean", "even", "odd", "divisibleby", "equalto", "eq", "ne",
    "lt", "le", "gt", "ge", "in", "mapping", "sequence", "true", "false", "==", "!=", "<", "<=", ">", ">=",
]
# fmt: on
_ALLOWED = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.Assign, nodes.Name, nodes.Const),
    *(nodes.Tuple, nodes.List, nodes.Dict, nodes.Pair, nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Compare),
    *(nodes.Operand, nodes.CondExpr, nodes.And, nodes.Or, nodes.Not, nodes.Neg, nodes.Pos, nodes.Add, nodes.Sub),
    *(nodes.Mul, nodes.Div, nodes.FloorDiv, nodes.Mod, nodes.Concat, nodes.Filter, nodes.Test, nodes.Call),
    *(nodes.Keyword, nodes.Scope),
)
_PLAIN = (nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name)
_MARKS = ("{{", "{%", "{#")
_METER, _JOIN, _ROW = "_rrf_meter", "_rrf_join", "_rrf_row"
_SINGLE = re.compile(r"(?<!\{)\{\s*([^\W\d]\w*)\s*\}")
_ONE_PLACEHOLDER = re.compile(r"\s*\{\{(?!.*\}\}.*\{\{)(.*)\}\}\s*", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)


class _RowCells(Extension):
    """Reads `row["a name"]`, and nothing else that speaks of `row`, as a cell of the row."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        tokens = list(stream)
        kinds = [token.type for token in tokens]
        for at, token in enumerate(tokens):
            cell = token.test("name:row") and kinds[at + 1 : at + 4] == ["lbracket", "string", "rbracket"]
            yield Token(token.lineno, "name", _ROW) if cell and kinds[at - 1] != "dot" else token


class _Row:
    """The cells of a row, by name."""

    __slots__ = ("cells",)

    def __init__(self, cells: Mapping[str, Any]) -> None:
        self.cells = cells


class _Sandbox(ImmutableSandboxedEnvironment):
    """The allow-list, and the sizes of products and sums checked before they are computed."""

    intercepted_binops = frozenset({"*", "+", "%"})

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "%" and isinstance(left, str):
            raise SecurityError("text % values is not available; use {{ value }}")
        texts = (str, list, tuple)
        if operator == "*" and (isinstance(left, texts) or isinstance(right, texts)):
            raise SecurityError("a text can't be multiplied")
        return _short_enough(super().call_binop(context, operator, left, right))

    def getitem(self, obj: Any, argument: Any) -> Any:
        if isinstance(obj, _Row):
            return obj.cells[argument] if argument in obj.cells else self.undefined(name=argument)
        return super().getitem(obj, argument)

    def wrap_str_format(self, value: Any) -> None:
        """No `"...".format`, which can print a thousand million blanks: without a wrapper it is a
        method like others.
        """

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if callable(value):
            return attr in _METHODS and isinstance(obj, str | Mapping)
        return super().is_safe_attribute(obj, attr, value)

    def call(self, context: Any, function: Any, *arguments: Any, **named: Any) -> Any:
        owner = getattr(function, "__self__", None)
        if isinstance(owner, str) and function.__name__ == "replace":
            return _replace(owner, *arguments, **named)
        return super().call(context, function, *arguments, **named)


def _short_enough(value: Any) -> Any:
    if isinstance(value, str | list) and len(value) > LONGEST_TEXT:
        raise SecurityError(f"a text of more than {LONGEST_TEXT:,} characters")
    if isinstance(value, int) and abs(value) >= 10**400:
        raise SecurityError("a number of more than 400 digits")
    return value


def _replace(value: Any, old: str, new: str, count: int | None = None) -> str:
    text = str(value)
    hits = text.count(old) if count is None else min(count, text.count(old))
    if len(text) + hits * len(new) > LONGEST_TEXT:
        raise SecurityError(f"a text of more than {LONGEST_TEXT:,} characters")
    return text.replace(old, new, -1 if count is None else count)


def _join_texts(*parts: Any) -> str:
    return str(_short_enough("".join(_shown(part) for part in parts)))


def _join_filter(values: Iterable[Any], separator: str = "", attribute: Any = None) -> str:
    return separator.join(
        _measured((_shown(value if attribute is None else value[attribute]) for value in values), len(separator))
    )


@pass_context
def _map_filter(context: Any, values: Iterable[Any], *arguments: Any, **named: Any) -> Iterator[Any]:
    return _measured(sync_do_map(context, values, *arguments, **named))


def _changed(value: Any, scale: Any = 1, shift: Any = 0) -> int | float | str:
    """scale · value + shift in decimals: a text stays a text, with the decimals that it had."""
    numbers = []
    for one in (value, scale, shift):
        try:
            strict_number(one)
        except ValueError as error:
            raise SecurityError(f"what is changed {error}") from None
        numbers.append(Decimal(str(one).strip()))
    cell, times, more = numbers
    found = times * cell + more
    if isinstance(value, str):
        return f"{found:f}"
    return int(found) if found == found.to_integral_value() and not isinstance(value, float) else float(found)


def _measured(values: Iterable[Any], each: int = 0) -> Iterator[Any]:
    """The values, as long as all of them together are a text that may be."""
    length = 0
    for value in values:
        length += each + (len(value) if isinstance(value, str | list | tuple) else 1)
        if length > LONGEST_TEXT:
            raise SecurityError(f"a text of more than {LONGEST_TEXT:,} characters")
        yield value


def _shown(value: Any) -> Any:
    """What a placeholder prints: nothing for a cell that holds nothing, JSON for lists and
    tables.
    """
    if isinstance(value, list | tuple | dict):
        return cell_json(value)
    return "" if value is None else value if isinstance(value, Undefined) else str(value)


def _range(*limits: int) -> range:
    found = range(*limits)
    if len(found) > MOST_STEPS:
        raise SecurityError(f"a range of more than {MOST_STEPS:,} steps")
    return found


def _plain_parts(tree: nodes.Template) -> list[tuple[str | None, str]]:
    """Words, and names of columns, of a text that has nothing else."""
    outputs = (part for output in tree.body if isinstance(output, nodes.Output) for part in output.nodes)
    return [(one.name, "") if isinstance(one, nodes.Name) else (None, getattr(one, "data", "")) for one in outputs]


def _environment() -> _Sandbox:
    made = _Sandbox(
        undefined=StrictUndefined, keep_trailing_newline=True, finalize=_shown, cache_size=0, extensions=[_RowCells]
    )
    made.filters = {name: made.filters[name] for name in _FILTERS if name in made.filters}
    # JSON as a prompt wants it: no marks of HTML escaped, and the digits of a number kept.
    made.filters |= {"replace": _replace, "join": _join_filter, "map": _map_filter, "tojson": cell_json}
    made.filters |= {"changed": _changed}
    made.tests = {name: made.tests[name] for name in _TESTS}
    made.globals = {"range": _range, _JOIN: _join_texts}
    return made


_ENVIRONMENT = _environment()


class TextTemplate:
    """One text of a recipe, compiled once.

    `names` are the columns it speaks of; `fill` never changes the row.
    """

    __slots__ = ("_evaluate", "_parts", "_render", "column", "names", "plain_names", "says_something", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        try:
            tree = _ENVIRONMENT.parse(source)
            _check(tree)
            cells = _row_cells(tree)
            own = {id(part) for cell in cells for part in (cell, *cell.iter_child_nodes())}
            self.plain_names = all(isinstance(part, _PLAIN) or id(part) in own for part in _walk(tree))
            """Nothing but `{{ column }}` placeholders: where the columns are there, filling in
            can't fail.
            """
            self._parts = None if own or not self.plain_names else _plain_parts(tree)
            self.names = frozenset(find_undeclared_variables(tree)) - {"range", _ROW} | set(cells.values())
            self.says_something = any(
                isinstance(part, nodes.TemplateData) and part.data.strip()
                for output in tree.body
                if isinstance(output, nodes.Output)
                for part in output.nodes
            )
            """It has words of its own outside conditions and loops, so that it is never empty."""
            inside = _ONE_PLACEHOLDER.fullmatch(source)
            self._evaluate: Callable[..., Any] | None = None
            self.column: str | None = None
            """The column, where the text is `{{ column }}` and nothing else: no need to fill
            anything in.
            """
            if inside is not None:
                _check(_ENVIRONMENT.parse("{{" + inside[1] + "}}"))
                self._evaluate = _ENVIRONMENT.compile_expression(inside[1], undefined_to_none=False)
                self.column = inside[1].strip() if inside[1].strip().isidentifier() else None
            self._render = _ENVIRONMENT.from_string(_metered(tree)) if any(mark in source for mark in _MARKS) else None
        except TemplateSyntaxError as error:
            raise InputError(f"template {_short(source)}: {_plain(error)} (line {error.lineno} of the text)") from None
        except (SecurityError, RecursionError) as error:
            raise InputError(f"template {_short(source)}: {_plain(error) or 'nested too deeply'}") from None

    def __reduce__(self) -> tuple[Callable[[str], TextTemplate], tuple[str]]:
        """A pickle holds the source alone, so that a data set can go to another process."""
        return template, (self.source,)

    @property
    def plain(self) -> bool:
        """Nothing to fill in."""
        return self._render is None

    @property
    def one_placeholder(self) -> bool:
        """The whole text is one `{{ ...

        }}`: where a number or a list is expected, it stands for that.
        """
        return self._evaluate is not None

    def refuse_single_braces(self, known: Iterable[str]) -> None:
        """`{name}` of a known name is a slip: nothing would be filled in.

        The remedy is in the message.
        """
        known = set(known)
        data = (part.data for part in _ENVIRONMENT.parse(self.source).find_all(nodes.TemplateData))
        for name in (match[1] for part in data for match in _SINGLE.finditer(part)):
            if name in known:
                raise InputError(
                    f"template {_short(self.source)}: {{{name}}} is not filled in; write {{{{ {name} }}}},"
                    f" or {{{{ '{{{name}}}' }}}} for the characters themselves"
                )

    def fill(self, values: Mapping[str, Any]) -> str:
        """The text with these values in it; InputError names what is missing or went wrong."""
        if self._render is None:
            return self.source
        if self._parts is not None and self.names <= values.keys():
            found = "".join([text if name is None else str(_shown(values[name])) for name, text in self._parts])
            if len(found) <= LONGEST_TEXT:
                return found
        return str(self._guarded(values, lambda given: self._whole(given)))

    def value(self, values: Mapping[str, Any]) -> Any:
        """What the one placeholder stands for, as it is: a cell, a number, a list.

        Otherwise the filled-in text.
        """
        if self.column is not None and self.column in values:
            return values[self.column]
        evaluate = self._evaluate
        if evaluate is None:
            return self.fill(values)
        found = self._guarded(values, lambda given: evaluate(given))
        if isinstance(found, Undefined):
            raise InputError(self._missing(_plain(UndefinedError(found._undefined_message)), values))
        return found

    def _whole(self, given: Mapping[str, Any]) -> str:
        assert self._render is not None
        parts, length = [], 0
        for part in self._render.generate(given):
            length += len(part)
            if length > LONGEST_TEXT:
                raise SecurityError(f"a text of more than {LONGEST_TEXT:,} characters")
            parts.append(part)
        return "".join(parts)

    def _guarded(self, values: Mapping[str, Any], work: Callable[[Mapping[str, Any]], Any]) -> Any:
        try:
            return work({**values, _ROW: _Row(values), _METER: _meter()})
        except UndefinedError as error:
            raise InputError(self._missing(_plain(error), values)) from None
        except (TemplateError, SecurityError) as error:
            raise InputError(f"template {_short(self.source)}: {_plain(error)}") from None
        except Exception as error:  # a filter or an operation on a value it can't take: the values are anybody's
            raise InputError(
                f"template {_short(self.source)}: {type(error).__name__}: {_plain(error)}".rstrip(": ")
            ) from None

    def _missing(self, message: str, values: Mapping[str, Any]) -> str:
        absent = sorted(name for name in self.names if name not in values)
        if not absent:
            return f"template {_short(self.source)}: {message}"
        listed = ", ".join(sorted(map(str, values))[:12]) or "none"
        return (
            f"template {_short(self.source)}: no variable {absent[0]!r}{suggestion(absent[0], values)} (there are:"
            f" {listed})"
        )


@lru_cache(maxsize=4096)
def template(source: str) -> TextTemplate:
    """The compiled template of a text; the same text is compiled once."""
    return TextTemplate(source)


def render(source: str, variables: Mapping[str, object]) -> str:
    """Fill a text in; `{name}` of one of the variables is refused with the remedy."""
    found = template(source)
    found.refuse_single_braces(variables)
    return found.fill(variables)


def strict_number(value: Any) -> float:
    """The number that a cell is, read strictly: 1200.50 or 12e3, no thousands marks, no units;
    ValueError says what it is instead.
    """
    if isinstance(value, bool) or value is None:
        raise ValueError("is empty" if value is None else f"is {value!r}, not a number")
    if isinstance(value, int | float | Decimal):
        number = _as_float(value)
    else:
        text = value.strip() if isinstance(value, str) else ""
        if not text:
            raise ValueError("is empty" if isinstance(value, str) else f"is {_short(value)}, not a number")
        if not _NUMBER.fullmatch(text):
            raise ValueError(f"is {_short(value)}, not a number (digits with a decimal point are read, nothing else)")
        number = _as_float(text)
    if number - number != 0:
        raise ValueError(f"is {_short(value)}, not a finite number")
    return number


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except (OverflowError, ValueError):
        return float("inf")


def _check(tree: nodes.Template) -> None:
    """Every part of the template is on the allow-list; anything else is named."""
    rows = {id(part) for cell in _row_cells(tree) for part in cell.iter_child_nodes()}
    for part in _walk(tree):
        if isinstance(part, nodes.For) and part.recursive:
            raise SecurityError("recursive loops are not available in these texts")
        if isinstance(part, nodes.Pow):
            raise SecurityError("powers are not available in these texts")
        if not isinstance(part, _ALLOWED):
            raise SecurityError(f"{type(part).__name__.lower()} is not available in these texts")
        if isinstance(part, nodes.Filter) and part.name not in _FILTERS:
            raise SecurityError(f"no filter {part.name!r}{suggestion(part.name, _FILTERS)}")
        if not isinstance(part, nodes.Name) or id(part) in rows:
            continue
        if part.name == "self" or part.name.startswith("_rrf_"):
            raise SecurityError(f"the name {part.name!r} is reserved")


def _row_cells(tree: nodes.Template) -> dict[nodes.Getitem, str]:
    """The parts that are `row["a name"]`, each with the name."""
    found = {}
    for part in _walk(tree):
        if not (isinstance(part, nodes.Getitem) and isinstance(part.arg, nodes.Const)):
            continue
        if isinstance(part.node, nodes.Name) and part.node.name == _ROW and isinstance(part.arg.value, str):
            found[part] = part.arg.value
    return found


def _walk(tree: nodes.Node) -> Iterator[nodes.Node]:
    queue: list[nodes.Node] = [tree]
    while queue:
        part = queue.pop()
        yield part
        queue += part.iter_child_nodes()


def _metered(tree: nodes.Template) -> nodes.Template:
    """The same template, its loops counted and its joined texts measured."""
    for part in list(_walk(tree)):
        for name, child in part.iter_fields():
            if isinstance(child, nodes.Concat):
                setattr(part, name, _call(_JOIN, child.nodes, child))
            elif isinstance(child, list):
                child[:] = [_call(_JOIN, one.nodes, one) if isinstance(one, nodes.Concat) else one for one in child]
        if isinstance(part, nodes.For):
            part.iter = _call(_METER, [part.iter], part)
    return tree


def _call(name: str, arguments: list[Any], at: nodes.Node) -> nodes.Call:
    made = nodes.Call(nodes.Name(name, "load"), arguments, [], None, None, lineno=at.lineno)
    made.set_environment(_ENVIRONMENT)
    made.node.set_lineno(at.lineno)
    return made


def _meter() -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Counts the rounds of all loops of one filling-in together."""
    steps = 0

    def counted(values: Iterable[Any]) -> Iterator[Any]:
        nonlocal steps
        for value in values:
            steps += 1
            if steps > MOST_STEPS:
                raise SecurityError(f"more than {MOST_STEPS:,} rounds of its loops")
            yield value

    return counted


def _plain(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
