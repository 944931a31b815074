"""Answers in words and structures: a vector of truth values, a field of a JSON object, one of several choices."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from rrf_design.errors import InputError
from rrf_design.responses.parsed import Parsed, Parser, ParseStatus, failure, numbers

_TRUTH = re.compile(r"(?<!\w)(yes|no|true|false)(?!\w)", re.IGNORECASE)
_STRICT_TRUTH = re.compile(r"(?:yes|no)(?:[\s,;]+(?:yes|no))*\.?", re.IGNORECASE)
_TRUE = frozenset({"yes", "true"})


class YesNoParser(Parser):
    """``count`` truth values as ones and zeros, in the order of the text."""

    name = "yes-no"

    def __init__(self, count: int = 1) -> None:
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise InputError(f"parser 'yes-no': count is {count!r}; it must be a whole number, 1 or more")
        self.dim = count

    def parse(self, text: str) -> Parsed:
        words = [word.lower() for word in _TRUTH.findall(text)]
        if not words:
            return failure("neither yes nor no in the text")
        if self.dim == 1:
            opening = _TRUTH.match(text.lstrip(" \t\n*\"'("))
            if opening is None and len({word in _TRUE for word in words}) > 1:
                return failure("both yes and no in the text", ParseStatus.AMBIGUOUS)
            words = [opening.group(1).lower()] if opening else words[:1]
        elif len(words) != self.dim:
            # One claim a line, each with its reason: the first verdict of a line counts.
            hits = [_TRUTH.search(line) for line in text.splitlines()]
            words = [hit.group(1).lower() for hit in hits if hit is not None]
        if len(words) != self.dim:
            return failure(f"{len(words)} verdicts where {self.dim} were asked for")
        truths = [word in _TRUE for word in words]
        strict = _STRICT_TRUTH.fullmatch(text.strip()) is not None
        canonical = " ".join("yes" if truth else "no" for truth in truths)
        return numbers([int(truth) for truth in truths], strict=strict, canonical=canonical)

    @property
    def grammar(self) -> str:
        more = ' " " verdict' * (self.dim - 1)
        return f'root ::= verdict{more}\nverdict ::= "yes" | "no"'

    @property
    def spec(self) -> Mapping[str, Any]:
        return {"name": self.name, "count": self.dim}


class JsonParser(Parser):
    """The number, or the list of ``dim`` numbers, at a dotted path of the first JSON object that has it."""

    name = "json"

    def __init__(self, field: str, *, dim: int = 1) -> None:
        if not isinstance(field, str) or not field:
            raise InputError("parser 'json': field must name where the answer stands, as in \"result.total\"")
        if not isinstance(dim, int) or isinstance(dim, bool) or dim < 1:
            raise InputError(f"parser 'json': dim is {dim!r}; it must be a whole number, 1 or more")
        self.field = field
        self.dim = dim

    def parse(self, text: str) -> Parsed:
        found = [(value, strict) for document, strict in _objects(text) for value in self._at(document)]
        if not found:
            return failure(f"no JSON object with the field {self.field!r} in the text")
        value, strict = found[0]
        entries = value if isinstance(value, list) else [value]
        if len(entries) != self.dim:
            return failure(f"{self.field!r} has {len(entries)} entries where {self.dim} were asked for")
        exact = [_number(entry) for entry in entries]
        fractions = [number for number in exact if number is not None]
        if len(fractions) != self.dim:
            return failure(f"{self.field!r} is not a number")
        typed = all(not isinstance(entry, str) for entry in entries)
        canonical = " ".join(str(number) for number in fractions)
        return numbers(fractions, strict=strict and typed, canonical=canonical)

    def _at(self, document: object) -> list[object]:
        for part in self.field.split("."):
            if not isinstance(document, dict) or part not in document:
                return []
            document = document[part]
        return [document]

    @property
    def grammar(self) -> str:
        number = 'number ::= "-"? [0-9]+ ("." [0-9]+)?'
        value = "number" if self.dim == 1 else '"[" number' + ' ", " number' * (self.dim - 1) + ' "]"'
        parts = self.field.split(".")
        opening = "".join(json.dumps("{" + json.dumps(part) + ": ") + " " for part in parts)
        return f'root ::= {opening}value "{"}" * len(parts)}"\nvalue ::= {value}\n{number}'

    @property
    def spec(self) -> Mapping[str, Any]:
        return {"name": self.name, "field": self.field, "dim": self.dim}


def _objects(text: str) -> list[tuple[object, bool]]:
    """Every JSON object in the text; strict if it is the whole text. Bounded, since the text may be hostile."""
    decoder = json.JSONDecoder()
    found: list[tuple[object, bool]] = []
    bare = text.strip()
    position = bare.find("{")
    for _ in range(64):
        if position < 0:
            break
        try:
            document, end = decoder.raw_decode(bare, position)
        except (ValueError, RecursionError):
            position = bare.find("{", position + 1)
            continue
        found.append((document, position == 0 and end == len(bare)))
        position = bare.find("{", end)
    return found


def _number(entry: object) -> Fraction | None:
    if isinstance(entry, bool):
        return None
    if isinstance(entry, str):
        entry = entry.strip().replace(",", "")
        if not re.fullmatch(r"[+-]?\d{1,400}(?:\.\d{1,400})?", entry, re.ASCII):
            return None
        return Fraction(entry)
    if isinstance(entry, float):
        return Fraction(entry) if math.isfinite(entry) else None
    return Fraction(entry) if isinstance(entry, int) else None


class ChoiceParser(Parser):
    """One of ``options`` as a one-hot vector. With ``letters``, "B" or "(b)" also names the second option."""

    name = "choice"

    def __init__(self, options: Sequence[str], *, letters: bool = False) -> None:
        if isinstance(options, str) or len(options) < 2 or not all(isinstance(o, str) and o for o in options):
            raise InputError(f"parser 'choice': options must be two or more words, not {options!r}")
        if len({_fold(option) for option in options}) != len(options):
            raise InputError("parser 'choice': two options are the same")
        if letters and len(options) > 26:
            raise InputError("parser 'choice': letters name at most 26 options")
        self.options = tuple(options)
        self.letters = letters
        self.dim = len(options)

    def parse(self, text: str) -> Parsed:
        bare = _fold(text)
        for index, option in enumerate(self.options):
            if bare == _fold(option):
                return self._chosen(index, strict=True)
        if self.letters and (letter := re.match(r"\s*\(?([A-Za-z])\)?(?=[\s.:,)]|$)", text)):
            index = ord(letter.group(1).upper()) - ord("A")
            # "A city in France" opens with an article; a letter alone, closed by a mark, or upper case and not A.
            marked = re.match(r"\s*(?:\([A-Za-z]\)|[A-Za-z][.:)])", text) is not None
            if index < self.dim and (marked or text.strip() == letter.group(1)):
                return self._chosen(index, strict=text.strip() == letter.group(1))
        mentioned = self._mentioned(text.casefold())
        if not mentioned:
            return failure("none of the options in the text")
        if len(mentioned) > 1:
            listed = ", ".join(self.options[index] for index in sorted(mentioned))
            return failure(f"several options in the text: {listed}", ParseStatus.AMBIGUOUS)
        return self._chosen(mentioned.pop(), strict=False)

    def _mentioned(self, text: str) -> set[int]:
        """Options in the text; a longer option hides the shorter one it contains."""
        found: set[int] = set()
        for index in sorted(range(self.dim), key=lambda i: -len(self.options[i])):
            pattern = rf"(?<!\w){re.escape(self.options[index].casefold())}(?!\w)"
            text, hits = re.subn(pattern, " ", text)
            if hits:
                found.add(index)
        return found

    def _chosen(self, index: int, *, strict: bool) -> Parsed:
        onehot = [int(index == other) for other in range(self.dim)]
        return numbers(onehot, strict=strict, canonical=self.options[index])

    @property
    def grammar(self) -> str:
        return "root ::= " + " | ".join(json.dumps(option, ensure_ascii=False) for option in self.options)

    @property
    def spec(self) -> Mapping[str, Any]:
        return {"name": self.name, "options": list(self.options), "letters": self.letters}


def _fold(text: str) -> str:
    return text.strip().strip("*\"'").rstrip(".!").strip().casefold()
