"""Open answers as classes: a literal, a label, a function call, each reduced by a declared
normaliser to one string.

Two answers are the same if their canonical strings are. The classes of an item are known only when
its answers are, so these parsers give a label and no vector (``dim`` is 0); :class:`Classes` makes
the one-hot vectors of an item.
"""

from __future__ import annotations

import ast
import json
import math
import re
import unicodedata
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from rrf_design.errors import InputError
from rrf_design.responses._finding import marked
from rrf_design.responses.parsed import Parsed, Parser, ParseStatus, failure, labelled

# A class that nobody can read is no class, and the compiler's own limits are far above this.
LONGEST_LABEL = 4000
_FENCE = re.compile(r"\A```[\w+-]*\n(.*?)\n?```\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Classes:
    """The different answers of one item, in order of appearance."""

    labels: tuple[str, ...]

    @classmethod
    def of(cls, readings: Iterable[Parsed]) -> Self:
        return cls(tuple(dict.fromkeys(reading.label for reading in readings if reading.label is not None)))

    def vector(self, reading: Parsed) -> tuple[float, ...] | None:
        """One where the reading's class stands; None for an answer that was not read."""
        if reading.label is None:
            return None
        return tuple(float(reading.label == label) for label in self.labels)


class _OpenParser(Parser):
    """An answer as a class.

    ``canonical`` gives its string, or None where the text is none of the kind.
    """

    dim = 0
    what: str

    def parse(self, text: str) -> Parsed:
        bare = unwrapped(text)
        whole = self._canonical(bare)
        if whole is not None:
            return labelled(whole, strict=bare == text.strip())
        return self._marked(text)

    def _marked(self, text: str) -> Parsed:
        """The class that all marked answers of the kind belong to."""
        spans = marked(text)
        if spans is None:
            return failure("more marked answers than anybody reads", ParseStatus.AMBIGUOUS)
        pieces = [unwrapped(span[1:].strip().rstrip(".")) for span in spans]
        found = {label for piece in pieces if (label := self._canonical(piece)) is not None}
        if len(found) > 1:
            return failure(f"several different answers, each a {self.what}", ParseStatus.AMBIGUOUS)
        return labelled(found.pop(), strict=False) if found else failure(f"the answer is no {self.what}")

    def _canonical(self, text: str) -> str | None:
        return self.canonical(text) if len(text) <= LONGEST_LABEL else None

    @abstractmethod
    def canonical(self, text: str) -> str | None:
        """The string of the class of ``text``; never raises."""


def unwrapped(text: str) -> str:
    """Without white space, a code fence or back-quotes around it."""
    bare = text.strip()
    fenced = _FENCE.match(bare) if len(bare) <= LONGEST_LABEL else None
    bare = fenced.group(1).strip() if fenced is not None else bare
    if len(bare) > 3 and bare[:2] == bare[-2:] == '\\"':  # a string that was quoted once too often
        bare = bare.replace('\\"', '"')
    return bare[1:-1].strip() if len(bare) > 1 and bare[0] == bare[-1] == "`" and "`" not in bare[1:-1] else bare


class LiteralParser(_OpenParser):
    """A Python literal, compared by value: quotes, spaces and the order of sets and dictionaries do
    not matter.

    With ``bare = "string"`` what is no literal is the string it looks like; without, it is refused.
    """

    name = "literal"
    what = "Python literal"

    def __init__(self, bare: str | None = None) -> None:
        if bare not in (None, "string"):
            raise InputError(f"parser 'literal': bare is {bare!r}; it can only be \"string\"")
        self.bare = bare

    def parse(self, text: str) -> Parsed:
        if self.bare is None:
            return super().parse(text)
        bare = unwrapped(text)
        if len(bare) > LONGEST_LABEL:
            return failure(f"a text of more than {LONGEST_LABEL} characters is no literal")
        value = _literal(bare)
        if value is None and bare[:1] in ("'", '"'):
            return failure("it opens with a quote and is no literal", ParseStatus.AMBIGUOUS)
        # White space is part of a string that has no quotes; a fence around it is not.
        string = text if bare == text.strip() else bare
        label = _shown(value.value if value is not None else string)
        return (
            failure("a value that can't be written down")
            if label is None
            else labelled(label, strict=value is not None)
        )

    def canonical(self, text: str) -> str | None:
        value = _literal(text)
        return None if value is None else _shown(value.value)

    @property
    def spec(self) -> Mapping[str, Any]:
        return {"name": self.name} if self.bare is None else {"name": self.name, "bare": self.bare}


@dataclass(frozen=True, slots=True)
class _Value:
    value: Any


def _literal(text: str) -> _Value | None:
    tree = _tree(text)
    if tree is None and "\n" in text and text[:1] in ("'", '"'):  # a string with its line breaks left in
        tree = _tree(text.replace("\r", "\\r").replace("\n", "\\n"))
    if tree is None:
        return None
    try:
        return _Value(ast.literal_eval(tree))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _tree(text: str) -> ast.expr | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # "\d" in a string is odd Python and still a literal
            return ast.parse(text, mode="eval").body
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _shown(value: Any, depth: int = 0) -> str | None:
    """One way of writing a literal; None for what has no such way (not a number, nesting without
    end).
    """
    if depth > 60:
        return None
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return repr(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, dict):
        pairs = [(_shown(key, depth + 1), _shown(entry, depth + 1)) for key, entry in value.items()]
        if any(key is None or entry is None for key, entry in pairs):
            return None
        return "{" + ", ".join(sorted(f"{key}: {entry}" for key, entry in pairs)) + "}"
    if isinstance(value, list | tuple | set):
        entries = [_shown(entry, depth + 1) for entry in value]
        if any(entry is None for entry in entries):
            return None
        texts = [entry for entry in entries if entry is not None]
        if isinstance(value, list):
            return f"[{', '.join(texts)}]"
        if isinstance(value, tuple):
            return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"
        return "{" + ", ".join(sorted(texts)) + "}" if texts else "set()"
    try:
        return repr(value)
    except ValueError:  # an integer of thousands of digits, written in hexadecimal
        return None


class CallParser(_OpenParser):
    """A function call with literal arguments, ``f(1, unit="km")`` or ``{"name": "f", "arguments":
    {"unit": "km"}}``.

    Keyword arguments may stand in any order.
    """

    name = "call"
    what = "function call"

    def canonical(self, text: str) -> str | None:
        tree = _tree(text)
        if isinstance(tree, ast.Call):
            return _called(tree)
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(document, dict) or not isinstance(document.get("name"), str):
            return None
        arguments = document.get("arguments", document.get("parameters", {}))
        if not isinstance(arguments, dict) or not document["name"].replace(".", "_").isidentifier():
            return None
        return _written(document["name"], [], arguments)


def _called(tree: ast.Call) -> str | None:
    if any(keyword.arg is None for keyword in tree.keywords):
        return None
    try:
        positional = [ast.literal_eval(argument) for argument in tree.args]
        named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in tree.keywords}
        function = ast.unparse(tree.func)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    return _written(function, positional, named) if re.fullmatch(r"\w+(?:\.\w+)*", function) else None


def _written(function: str, positional: Sequence[Any], named: Mapping[str, Any]) -> str | None:
    first = [_shown(argument) for argument in positional]
    rest = [(key, _shown(named[key])) for key in sorted(named)]
    if any(text is None for text in first) or any(text is None for _, text in rest):
        return None
    return f"{function}({', '.join([*map(str, first), *(f'{key}={text}' for key, text in rest)])})"


def _no_punctuation(text: str) -> str:
    return "".join(" " if unicodedata.category(character)[0] == "P" else character for character in text)


def _no_articles(text: str) -> str:
    return re.sub(r"(?<!\w)(?:the|an|a)(?!\w)", " ", text, flags=re.IGNORECASE)


NORMALISERS: dict[str, Callable[[str], str]] = {
    "unicode": lambda text: unicodedata.normalize("NFKC", text),
    "casefold": str.casefold,
    "punctuation": _no_punctuation,
    "articles": _no_articles,
    "space": lambda text: " ".join(text.split()),
}
"""What a label may be reduced by; they are applied in this order, whatever order they are
named in.
"""


class LabelParser(_OpenParser):
    """A short text as a class.

    ``normalise`` names what does not matter; more than ``words`` words are an explanation.
    """

    name = "label"
    what = "short label"

    def __init__(self, normalise: Sequence[str] | None = None, words: int = 12) -> None:
        normalise = ("unicode", "casefold", "punctuation", "space") if normalise is None else normalise
        unknown = (
            [name for name in normalise if name not in NORMALISERS] if not isinstance(normalise, str) else [normalise]
        )
        if unknown:
            known = ", ".join(NORMALISERS)
            raise InputError(f"parser 'label': normalise is a list of {known}; {unknown[0]!r} is none of them")
        if not isinstance(words, int) or isinstance(words, bool) or words < 1:
            raise InputError(f"parser 'label': words is {words!r}; it must be a whole number, 1 or more")
        self.normalise = tuple(name for name in NORMALISERS if name in normalise)
        self.words = words

    def parse(self, text: str) -> Parsed:
        # "The answer is Paris" is short enough for a label itself, so marks come first.
        return self._marked(text) if marked(text) else super().parse(text)

    def canonical(self, text: str) -> str | None:
        for name in self.normalise:
            text = NORMALISERS[name](text)
        return text if text.strip() and len(text.split()) <= self.words else None

    @property
    def spec(self) -> Mapping[str, Any]:
        return {"name": self.name, "normalise": list(self.normalise), "words": self.words}
