"""A number in a JSON object, as models write JSON: fenced, with text around it, raw line breaks and
stray commas.

What is broken in the object decides nothing as long as the field itself is whole. Numbers in
strings go through the same tokenizer as any text. Several objects, or one key twice, must give the
same answer; a field that the end of the text cuts off is no answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from rrf_design.errors import InputError
from rrf_design.responses._finding import LONGEST, FoundNumber, Page, page, the_number
from rrf_design.responses._numeric import check_decimal
from rrf_design.responses.parsed import Parsed, Parser, ParseStatus, failure, numbers

_MOST_OBJECTS = 64  # the text may be hostile
_ESCAPE = re.compile(r'\\(?:["\\/bfnrtu])|\\')
_TRAILING = re.compile(r",(\s*[}\]])")
_JSON_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")


class _Repeated(dict[str, Any]):
    """An object in which a key stands twice with different values."""


class _Constant:
    """NaN or Infinity: no number."""


class _Digits(str):
    """A JSON number as it is written, so that no digit is lost."""


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) == len(pairs):
        return document
    for key, value in pairs:
        if document[key] != value:
            return _Repeated(document)
    return document


_DECODER = json.JSONDecoder(
    strict=False,  # raw line breaks inside strings
    object_pairs_hook=_pairs,
    parse_float=_Digits,
    parse_int=_Digits,
    parse_constant=lambda _: _Constant(),
)


class _JsonParser(Parser):
    """The number, or the list of ``dim`` numbers, at a dotted path of a JSON object; a list of
    paths is a vector too.
    """

    name = "json"

    def __init__(self, field: str | Sequence[str], *, dim: int | None = None, decimal: str | None = None) -> None:
        fields = [field] if isinstance(field, str) else list(field)
        if not fields or not all(isinstance(entry, str) and entry for entry in fields):
            raise InputError("parser 'json': field must name where the answer stands, as in \"result.total\"")
        size = len(fields) if dim is None else dim
        if not isinstance(size, int) or isinstance(size, bool) or size < 1 or (len(fields) > 1 and size != len(fields)):
            raise InputError(f"parser 'json': dim is {dim!r}; it must be a whole number, 1 or more, one per field")
        self.fields = tuple(fields)
        self.dim = size
        self.decimal = check_decimal(decimal, self.name)

    def parse(self, text: str) -> Parsed:
        if len(text) > LONGEST:
            return failure(f"a text of more than {LONGEST} characters")
        prepared = page(text, self.decimal)
        if isinstance(prepared, FoundNumber):
            return _refused(prepared)
        documents = _objects(text)
        values: list[Fraction] = []
        strict = True
        for field in self.fields:
            found = [(value, exactly) for document, exactly in documents for value in _at(document, field)]
            key = field.rpartition(".")[2]
            found = found or [(value, False) for value in _loose(text, key) or _labelled(text, key)]
            results = [self._numbers(field, value, prepared) for value, _ in found]
            if not results:
                return failure(f"no JSON object with the field {field!r} in the text")
            for result in results:
                if isinstance(result, Parsed):
                    return result
                if result != results[0]:
                    return failure(f"{field!r} stands in the text with different values", ParseStatus.AMBIGUOUS)
                values.extend(result if result is results[0] else ())
            value, exactly = found[0]
            strict = strict and exactly and all(isinstance(v, _Digits) for v in _listed(value))
        return numbers(values, strict=strict, canonical=" ".join(map(str, values)))

    def _numbers(self, field: str, value: Any, prepared: Page) -> list[Fraction] | Parsed:
        """The numbers that the value of a field stands for, or why there are none."""
        if isinstance(value, _Repeated):
            return failure(f"{field!r}: a key stands twice in its object, with different values", ParseStatus.AMBIGUOUS)
        entries = _listed(value)
        wanted = self.dim if len(self.fields) == 1 else 1
        if len(entries) != wanted:
            return failure(f"{field!r} has {len(entries)} entries where {wanted} were asked for")
        found = [_number(entry, prepared) for entry in entries]
        exact = [entry.value for entry in found if entry.value is not None]
        if len(exact) == wanted:
            return exact
        first = next(entry for entry in found if entry.value is None)
        return _refused(FoundNumber(None, f"{field!r}: {first.why}", first.ambiguous))

    @property
    def grammar(self) -> str | None:
        number = 'number ::= "-"? [0-9]+ ("." [0-9]+)?'
        if len(self.fields) > 1:
            if any("." in field for field in self.fields):
                return None
            pairs = ' ", " '.join(f"{json.dumps(json.dumps(field) + ': ')} number" for field in self.fields)
            return f'root ::= "{{" {pairs} "}}"\n{number}'
        value = "number" if self.dim == 1 else '"[" number' + ' ", " number' * (self.dim - 1) + ' "]"'
        parts = self.fields[0].split(".")
        opening = "".join(json.dumps("{" + json.dumps(part) + ": ") + " " for part in parts)
        return f'root ::= {opening}value "{"}" * len(parts)}"\nvalue ::= {value}\n{number}'

    @property
    def schema(self) -> Mapping[str, Any] | None:
        if self.decimal is not None:
            return None  # amounts are wanted as they are written, which is no JSON number
        number: dict[str, Any] = {"type": "number"}
        size = {"minItems": self.dim, "maxItems": self.dim}
        listed = {"type": "array", "items": number, **size} if len(self.fields) == 1 and self.dim > 1 else number
        root: dict[str, Any] = _object()
        for field in self.fields:
            *path, last = field.split(".")
            inner = root
            for part in path:
                inner = inner["properties"].setdefault(part, _object())
                if "properties" not in inner:
                    return None  # one field stands inside another one's number
            inner["properties"][last] = listed
        return _required(root)

    @property
    def spec(self) -> Mapping[str, Any]:
        field = self.fields[0] if len(self.fields) == 1 else list(self.fields)
        spec: dict[str, Any] = {"name": self.name, "field": field, "dim": self.dim}
        return spec if self.decimal is None else {**spec, "decimal": self.decimal}


def json_parser(
    *, field: str | list[str], dim: int | None = None, decimal: str | None = None, of: Any = None
) -> Parser:
    """The number or numbers at a field, or with `of` what another parser reads there."""
    if of is None:
        return _JsonParser(field, dim=dim, decimal=decimal)
    if not isinstance(field, str) or dim is not None or decimal is not None:
        raise InputError("parser 'json': with `of`, one `field`; the other options belong to the parser it names")
    from rrf_design.responses.parsers import get

    return _FieldParser(field, get(of))


class _FieldParser(Parser):
    """The text at a field of a JSON object, read by another parser: a choice, a literal, a
    label.
    """

    name = "json"

    def __init__(self, field: str, of: Parser) -> None:
        if not isinstance(field, str) or not field:
            raise InputError("parser 'json': field must name where the answer stands, as in \"result.total\"")
        self.field = field
        self.of = of
        self.dim = of.dim

    def parse(self, text: str) -> Parsed:
        if len(text) > LONGEST:
            return failure(f"a text of more than {LONGEST} characters")
        found = [value for document, _ in _objects(text) for value in _at(document, self.field)]
        key = self.field.rpartition(".")[2]
        found = found or [value for value in _loose(text, key) or _labelled(text, key) if value != _CUT]
        if not found:
            return failure(f"no JSON object with the field {self.field!r} in the text")
        if any(isinstance(value, _Repeated) for value in found):
            return failure(f"{self.field!r}: a key stands twice in its object", ParseStatus.AMBIGUOUS)
        try:
            texts = [value if isinstance(value, str) else _json_text(value) for value in found]
        except RecursionError:
            return failure(f"{self.field!r} is nested without end")
        readings = [self.of.parse(inner) for inner in texts]
        unread = next((reading for reading in readings if not reading.ok), None)
        if unread is not None:
            return unread
        if len({(reading.value, reading.label) for reading in readings}) > 1:
            return failure(f"{self.field!r} stands in the text with different values", ParseStatus.AMBIGUOUS)
        return readings[0]

    @property
    def spec(self) -> Mapping[str, Any]:
        return {"name": self.name, "field": self.field, "of": dict(self.of.spec)}


def _json_text(value: Any) -> str:
    """A value that is no string, as it would stand in Python: what a parser of literals expects."""
    if isinstance(value, list):
        return f"[{', '.join(map(_json_text, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_json_text(entry)}" for key, entry in value.items()) + "}"
    return str(value) if isinstance(value, _Digits) or not isinstance(value, str) else repr(value)


def _refused(found: FoundNumber) -> Parsed:
    return failure(found.why, ParseStatus.AMBIGUOUS if found.ambiguous else ParseStatus.PARSE_FAILURE)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _at(document: Any, field: str) -> list[Any]:
    for part in field.split("."):
        if not isinstance(document, dict) or part not in document:
            return []
        if isinstance(document, _Repeated):
            return [document]
        document = document[part]
    return [document]


def _objects(text: str) -> list[tuple[Any, bool]]:
    """Every JSON object in the text, mended where that takes no guess; strict if it is the whole
    text as it stands.
    """
    bare = text.strip()
    found = [(document, position == 0 and end == len(bare)) for document, position, end in _decoded(bare)]
    if found:
        return found
    # LaTeX in strings makes escapes that JSON does not have, and lists end in commas.
    mended = _TRAILING.sub(r"\1", _ESCAPE.sub(lambda m: m.group() if len(m.group()) > 1 else "\\\\", bare))
    return [] if mended == bare else [(document, False) for document, _, _ in _decoded(mended)]


def _decoded(text: str) -> list[tuple[Any, int, int]]:
    found: list[tuple[Any, int, int]] = []
    position = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if position < 0:
            break
        try:
            document, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            position = text.find("{", position + 1)
            continue
        found.append((document, position, end))
        position = text.find("{", end)
    return found


def _loose(text: str, key: str) -> list[str]:
    """Values of ``"key":`` where the object around them can't be decoded."""
    return _after(text, re.compile(rf'["\'\u201c]{re.escape(key)}["\'\u201d]\s{{0,8}}:\s{{0,8}}'))


def _labelled(text: str, key: str) -> list[str]:
    """Values after ``Key:`` where there is no JSON at all."""
    return _after(text, re.compile(rf"(?<!\w){re.escape(key)}[*_`]{{0,3}}:[*_`]{{0,3}}\s{{0,8}}", re.IGNORECASE))


def _after(text: str, label: re.Pattern[str]) -> list[str]:
    """What stands after each label up to the end of its string or line; ``_CUT`` for what the end
    of the text cuts off.
    """
    found: list[str] = []
    for match in label.finditer(text):
        if len(found) == _MOST_OBJECTS:
            break
        rest = text[match.end() : match.end() + 2000]
        pattern = _QUOTED if rest[:1] == '"' else _UNQUOTED
        closed = pattern.match(rest)
        found.append(_CUT if closed is None else closed.group(1))
    return found


_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_UNQUOTED = re.compile(r"([^\n{}\[\]\"]+?)\s*(?:\"?,?\s*\n|,\s*\"|\"?\s*\}|\])")
_CUT = "\N{REPLACEMENT CHARACTER}"


def _number(entry: object, prepared: Page) -> FoundNumber:
    """The number that an entry stands for.

    A JSON number has a decimal point; a string follows what the text shows.
    """
    if isinstance(entry, _Digits):
        if len(entry) > 400 or _JSON_NUMBER.fullmatch(entry) is None:
            return FoundNumber(None, "a number of more than 400 digits")
        return FoundNumber(Fraction(entry))
    if not isinstance(entry, str) or entry == _CUT:
        return FoundNumber(None, "cut off" if entry == _CUT else "not a number")
    inner = page(entry, prepared.decimals[0] if len(prepared.decimals) == 1 else None)
    return inner if isinstance(inner, FoundNumber) else the_number(inner)


def _object() -> dict[str, Any]:
    return {"type": "object", "properties": {}}


def _required(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with every property that it names required."""
    if "properties" not in schema:
        return schema
    inside = {name: _required(inner) for name, inner in schema["properties"].items()}
    return {**schema, "properties": inside, "required": list(inside)}
