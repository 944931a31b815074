"""Answers in words: a vector of truth values, one of several choices."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from rrf_design.errors import InputError
from rrf_design.responses._finding import LONGEST, marked
from rrf_design.responses.parsed import Parsed, Parser, ParseStatus, failure, numbers

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
