"""Parsers of numbers: the number that the answer is, the paper's rule of the first or last
standalone integer, and numbers in a JSON object.

All read through one tokenizer (`_numerals`, `_finding`). Where a number is picked that a reader
would have to guess at, the result is ``ambiguous``: an erasure, never a value and never the next
best number.

JSON is read as models write it: fenced, with text around it, raw line breaks and stray commas. What
is broken in the object decides nothing as long as the field itself is whole. Numbers in strings go
through the same tokenizer as any text. Several objects, or one key twice, must give the same
answer; a field that the end of the text cuts off is no answer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from rrf_design.errors import InputError
from rrf_design.responses._finding import LONGEST, FoundNumber, Page, page, the_number
from rrf_design.responses._numerals import BOTH, MOST_DIGITS, Mention
from rrf_design.responses.parsed import Parsed, Parser, ParseStatus, failure, numbers

_STRICT_INTEGER = re.compile(r"[+-]?\d+", re.ASCII)
_STRICT_DECIMAL = re.compile(r"[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)
_STRICT_RATIONAL = re.compile(r"[+-]?\d+(?:/\d+)?", re.ASCII)


# What needs no looking around: one way to read it, whatever the convention. Three decimals may be
# thousands, and are not here.
_PLAIN = re.compile(r"[+-]?[0-9]{1,15}(?:\.(?:[0-9]{1,2}|[0-9]{4,15}))?", re.ASCII)


def check_decimal(decimal: object, parser: str) -> str | None:
    """The declared decimal mark; None leaves it to what the text shows."""
    if decimal is not None and decimal not in BOTH:
        raise InputError(f'parser {parser!r}: decimal is {decimal!r}; it must be "." or ","')
    return decimal if isinstance(decimal, str) else None


def _parsed_number(found: FoundNumber, *, strict: bool, whole: bool = False) -> Parsed:
    """What was found as a reading; ``whole`` refuses fractions."""
    if found.value is None:
        return _refused(found)
    if whole and found.value.denominator != 1:
        return failure("the number is not whole")
    return numbers([found.value], strict=strict, canonical=str(found.value))


class _NumberParser(Parser):
    """One number; ``strict`` is the format that was asked for, and is read as it stands."""

    strict: re.Pattern[str]
    whole: bool = False

    def __init__(self, decimal: str | None = None) -> None:
        self.decimal = check_decimal(decimal, self.name)

    def parse(self, text: str) -> Parsed:
        bare = text.strip()
        strict = self.strict.fullmatch(bare) is not None
        if strict and self.decimal != "," and _PLAIN.fullmatch(bare) is not None:
            return _parsed_number(FoundNumber(Fraction(bare)), strict=True, whole=self.whole)
        return self.searched(text, bare, strict=strict)

    def searched(self, text: str, bare: str, *, strict: bool) -> Parsed:
        """The reading of any text: what it marks as its answer, found by looking at all of it."""
        if strict and len(bare) > MOST_DIGITS:
            return failure(f"a number of more than {MOST_DIGITS} digits")
        prepared = page(text, self.decimal)
        found = prepared if isinstance(prepared, FoundNumber) else self.find(prepared)
        return _parsed_number(found, strict=strict, whole=self.whole)

    def find(self, prepared: Page) -> FoundNumber:
        return the_number(prepared, whole=self.whole)

    @property
    def spec(self) -> Mapping[str, Any]:
        return {"name": self.name} if self.decimal is None else {"name": self.name, "decimal": self.decimal}


class IntegerParser(_NumberParser):
    """``integer-strict``, ``integer-last``, ``integer-first``: by place in the text; ``integer``:
    by what it marks.
    """

    strict = _STRICT_INTEGER
    whole = True

    def __init__(self, which: str = "", decimal: str | None = None) -> None:
        self.name = f"integer-{which}" if which else "integer"
        self._which = which
        super().__init__(decimal)

    def parse(self, text: str) -> Parsed:
        if self._which == "strict" and _STRICT_INTEGER.fullmatch(text.strip()) is None:
            return failure("no bare signed integer in the text")
        return super().parse(text)

    def find(self, prepared: Page) -> FoundNumber:
        if not self._which:
            return the_number(prepared, whole=True)
        return _by_place(prepared, first=self._which == "first")

    grammar = 'root ::= "-"? [0-9]+'


def _by_place(prepared: Page, *, first: bool) -> FoundNumber:
    """The first or last number, which must then be a readable whole one; parts of a fraction or a
    power are none.

    A share in percent beside amounts, and a number in brackets with nothing before it, are remarks
    as likely as answers.
    """
    found = [mention for mention in prepared.mentions() if not _part(prepared.text, mention)]
    if not found:
        return FoundNumber(None, "no standalone integer in the text")
    chosen = found[0 if first else -1]
    value = chosen.whole if chosen.value is None else chosen.value
    if value is None:
        return FoundNumber(None, chosen.why, ambiguous=not chosen.impossible)
    if (chosen.percent and not all(mention.percent for mention in found)) or (chosen.spaced and len(found) > 1):
        return FoundNumber(None, f"{chosen.text!r} may be a remark or two numbers", ambiguous=True)
    before = prepared.text[: chosen.start].rpartition("(")[0].rstrip()[-1:]
    if chosen.bracketed and before in ("", ":", "="):
        return FoundNumber(None, f"{chosen.text!r} stands in brackets: a remark, or a negative amount", ambiguous=True)
    return FoundNumber(value)


def _part(text: str, mention: Mention) -> bool:
    around = text[max(0, mention.start - 2) : mention.start].rstrip()[-1:], text[mention.end : mention.end + 2].strip()
    return "/" in mention.text or around[0] in ("/", "^") or around[1].startswith(("^", "**"))


class RationalParser(_NumberParser):
    """The number the answer is: a fraction, decimal or integer, as an exact rational in lowest
    terms.
    """

    name = "rational"
    strict = _STRICT_RATIONAL

    grammar = 'root ::= "-"? [0-9]+ ("/" [1-9] [0-9]*)?'


class DecimalParser(_NumberParser):
    """The number the answer is, scientific notation and fractions included."""

    name = "decimal"
    strict = _STRICT_DECIMAL

    grammar = 'root ::= "-"? [0-9]+ ("." [0-9]+)?'


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
    paths is a vector too. With ``total`` a list of any length stands for its sum.
    """

    name = "json"

    def __init__(
        self,
        field: str | Sequence[str],
        *,
        dim: int | None = None,
        decimal: str | None = None,
        total: bool = False,
    ) -> None:
        fields = [field] if isinstance(field, str) else list(field) if isinstance(field, list | tuple) else []
        if not fields or not all(isinstance(entry, str) and entry for entry in fields):
            raise InputError("parser 'json': field must name where the answer stands, as in \"result.total\"")
        size = len(fields) if dim is None else dim
        if not isinstance(size, int) or isinstance(size, bool) or size < 1 or (len(fields) > 1 and size != len(fields)):
            raise InputError(f"parser 'json': dim is {dim!r}; it must be a whole number, 1 or more, one per field")
        if total and size != 1:
            raise InputError("parser 'json': total adds up one list; name one field, and no dim")
        self.fields = tuple(fields)
        self.dim = size
        self.total = total
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
            found = _found(text, documents, field)
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
        if self.total and isinstance(value, list):
            wanted = max(1, len(entries))
        if len(entries) != wanted:
            return failure(f"{field!r} has {len(entries)} entries where {wanted} were asked for")
        found = [_number(entry, prepared) for entry in entries]
        exact = [entry.value for entry in found if entry.value is not None]
        if len(exact) == wanted:
            return [sum(exact, Fraction(0))] if self.total else exact
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
        value = (
            '"[" number (", " number)* "]"'
            if self.total
            else "number"
            if self.dim == 1
            else '"[" number' + ' ", " number' * (self.dim - 1) + ' "]"'
        )
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
        if self.total:
            listed = {"type": "array", "items": number}
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
        spec |= {"total": True} if self.total else {}
        return spec if self.decimal is None else {**spec, "decimal": self.decimal}


def json_parser(
    *, field: str | list[str], dim: int | None = None, decimal: str | None = None, of: Any = None, total: bool = False
) -> Parser:
    """The number or numbers at a field, or with `of` what another parser reads there; with `total`
    the sum of a list.
    """
    if of is None:
        return _JsonParser(field, dim=dim, decimal=decimal, total=total)
    if not isinstance(field, str) or dim is not None or decimal is not None or total:
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
        found = [value for value, _ in _found(text, _objects(text), self.field) if value != _CUT]
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


def _found(text: str, documents: list[tuple[Any, bool]], field: str) -> list[tuple[Any, bool]]:
    """What stands at a field, and whether in a strict document: in the objects of a text, else
    after ``"key":`` where the object around it can't be decoded, else after ``Key:`` where there is
    no JSON at all.
    """
    found = [(value, exactly) for document, exactly in documents for value in _at(document, field)]
    key = re.escape(field.rpartition(".")[2])
    loose = rf'["\'\u201c]{key}["\'\u201d]\s{{0,8}}:\s{{0,8}}'
    labelled = rf"(?i:(?<!\w){key}[*_`]{{0,3}}:[*_`]{{0,3}}\s{{0,8}})"
    return found or [(value, False) for value in _after(text, loose) or _after(text, labelled)]


def _after(text: str, label: str) -> list[str]:
    """What stands after each label up to the end of its string or line; ``_CUT`` for what the end
    of the text cuts off.
    """
    found: list[str] = []
    for match in re.finditer(label, text):
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
