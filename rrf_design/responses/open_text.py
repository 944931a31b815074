"""Answers in words: truth values, one of several choices, and open ones as classes (a literal, a
label, a function call), each reduced by a declared normaliser to one string.

Two open answers are the same if their canonical strings are. The classes of an item are known only
when its answers are, so these parsers give a label and no vector (``dim`` is 0); :class:`Classes`
makes the one-hot vectors of an item.
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
from rrf_design.responses._finding import LONGEST, marked
from rrf_design.responses.parsed import Parsed, Parser, ParseStatus, failure, labelled, numbers

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
            return labelled(whole, strict=bare == text.strip(), said=bare)
        return self._marked(text)

    def _marked(self, text: str) -> Parsed:
        """The class that all marked answers of the kind belong to."""
        spans = marked(text)
        if spans is None:
            return failure("more marked answers than anybody reads", ParseStatus.AMBIGUOUS)
        pieces = [unwrapped(span[1:].strip().rstrip(".")) for span in spans]
        found = {label: piece for piece in pieces if (label := self._canonical(piece)) is not None}
        if len(found) > 1:
            return failure(f"several different answers, each a {self.what}", ParseStatus.AMBIGUOUS)
        for label, piece in found.items():
            return labelled(label, strict=False, said=piece)
        return failure(f"the answer is no {self.what}")

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


_TRUTH = re.compile(r"(?<!\w)(yes|no|true|false)(?!\w)", re.IGNORECASE)
_STRICT_TRUTH = re.compile(r"(?:yes|no)(?:[\s,;]+(?:yes|no))*\.?", re.IGNORECASE)
_CONCLUSION = re.compile(r"\W{0,3}(?:so|thus|hence|therefore|overall|in conclusion|based on)\b", re.IGNORECASE)
_PRAISE = re.compile(
    r"\b(?:is|as|would be|seems)\s+(?:clearly\s+)?(?:the\s+|a\s+)?(?:more\s)?(?:better|best|correct|right|preferred)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
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


_NEGATED = re.compile(
    r"\b(?:not|neither|nor|never|cannot|incorrect|wrong|worse|fails?|instead of|rather than)\b|n't\b", re.IGNORECASE
)
_ITEM = re.compile(r"^[ \t]*(?:\(([A-Za-z])\)|([A-Z])[.:)]|([a-z])\))(?=\s|$)", re.MULTILINE)
_ANOTHER = re.compile(r"[)\].\s]{0,2}\s?(?:,|/|&|and|or)\s?[(\[]?([A-Za-z])[)\]]?(?![\w'])")
_NEAR = 80  # an option further from its mark belongs to another thought
_LETTER = re.compile(
    r"[*_$\s]{0,4}(?:option|choice|answer)?[*_$\s]{0,2}(?:\\text\{)?[(\[]?([A-Z])[)\]]?(?![\w'])", re.IGNORECASE
)


class ChoiceParser(Parser):
    """One of ``options`` as a one-hot vector.

    With ``letters``, "B" or "(b)" also names the second option.

    A text may name several options on its way; what counts is the one it gives: the whole text,
    what it marks as its answer, its first line, its conclusion, else the only option it names.
    Options of one letter count only where they are marked or stand alone, since "a" is also a word.
    """

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
        named = [(index, option) for index, option in enumerate(options) if len(option) > 1]
        # A longer option hides the shorter one it contains.
        self._patterns = [
            (index, re.compile(rf"(?<!\w){re.escape(option.casefold())}(?!\w)"))
            for index, option in sorted(named, key=lambda entry: -len(entry[1]))
        ]
        self._letters = {option.upper(): index for index, option in enumerate(options) if len(option) == 1}
        if letters:
            self._letters = {chr(ord("A") + index): index for index in range(self.dim)}

    def parse(self, text: str) -> Parsed:
        if len(text) > LONGEST:
            return failure(f"a text of more than {LONGEST} characters")
        bare = _fold(text)
        for index, option in enumerate(self.options):
            if bare == _fold(option):
                return self._chosen(index, strict=True)
        alone = self._letters.get(text.strip().upper())
        if alone is not None:
            return self._chosen(alone, strict=True)
        spans = marked(text)
        if spans is None:
            return failure("more marked answers than anybody reads", ParseStatus.AMBIGUOUS)
        told = [named for span in spans if (named := self._given(span[1:_NEAR]))]
        for found, where in ((told, "marked as the answer"), (self._verdicts(text), "given as the verdict")):
            if found:
                return self._settled(found, where)
        return self._settled([self._mentioned(text)], "in the text")

    def _settled(self, found: Sequence[set[int]], where: str) -> Parsed:
        """The one option that all of ``found`` name."""
        if not all(found):
            return failure("none of the options in the text")
        named = set().union(*found)
        if len(named) > 1:
            listed = ", ".join(self.options[index] for index in sorted(named))
            return failure(f"several options {where}: {listed}", ParseStatus.AMBIGUOUS)
        return self._chosen(named.pop(), strict=False)

    def _given(self, span: str) -> set[int]:
        """The options that a marked piece names: by a letter at its start, else by their words."""
        letter = _LETTER.match(span)
        if letter is not None and letter.group(1).upper() in self._letters and not _NEGATED.match(span.strip()):
            rest = span[letter.end() :]
            also = _ANOTHER.match(rest)
            if also is not None and also.group(1).upper() in self._letters:
                return set(range(self.dim))
            # "A city in France" opens with an article.
            if not (letter.group().strip() in ("A", "a", "I", "i") and rest.strip()[:1].isalpha()):
                return {self._letters[letter.group(1).upper()]}
        return self._mentioned(span)

    def _verdicts(self, text: str) -> list[set[int]]:
        """What the text opens with, concludes on its way, and ends with, where these are
        verdicts.
        """
        opening = self._opening(text)
        sentences = [piece for piece in _SENTENCE.split(text) if piece.strip()]
        found = [opening] if opening else []
        for number, sentence in enumerate(sentences):
            praise, concludes = _PRAISE.search(sentence) is not None, _CONCLUSION.match(sentence) is not None
            first, last = number == 0 and not opening, number == len(sentences) - 1
            # A conclusion without an end was cut off: what it was going to say of the option is not
            # known.
            closed = sentence.rstrip("*_\"')\u201d ")[-1:] in (".", "!", "?")
            if (praise and (first or last or concludes)) or (last and concludes and closed):
                found.append(self._verdict(sentence))
        return [named for named in found if named]

    def _opening(self, text: str) -> set[int]:
        """An option that is all of the first line, or a letter closed by a mark ("B.

        Rome") that opens no list of options.
        """
        letters = {hit.group(hit.lastindex or 0).upper() for hit in _ITEM.finditer(text)}
        letter = _ITEM.match(text.lstrip())
        if letter is not None and len(letters) == 1 and letters <= self._letters.keys():
            return {self._letters[letters.pop()]}
        line = text.strip().partition("\n")[0]
        return {index for index, o in enumerate(self.options) if line == o or (len(o) > 1 and _fold(line) == _fold(o))}

    def _verdict(self, sentence: str) -> set[int]:
        """The option a sentence is for: "X is better than Y" is for X; all of them where it says no
        to one.
        """
        praise = _PRAISE.search(sentence)
        before = self._mentioned(sentence[: praise.start()]) if praise is not None else set()
        return before or self._mentioned(sentence)

    def _mentioned(self, text: str) -> set[int]:
        """Options named in the text; all of them where it also says no to something close by."""
        text = text.casefold()
        found: set[int] = set()
        for index, pattern in self._patterns:
            for hit in pattern.finditer(text):
                found.add(index)
                if _NEGATED.search(text[max(0, hit.start() - 24) : hit.start()]):
                    return set(range(self.dim))
            text = pattern.sub(" ", text)
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
