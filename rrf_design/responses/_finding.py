"""Which number of a text is the answer: the one it marks as such, else the only one there is.

The last number of an answer is often not the answer ("416.14 (incl. 19% VAT)"), so position decides
nothing here. Marks are tried from the strongest to the weakest, and the first kind that occurs
decides:

1. ``\\boxed{...}``, ``#### ...``, an answer field or label (``"answer": ...``, ``Answer: ...``);
2. "the answer is ...";
3. a conclusion: the last sentence if it opens with so, thus, hence or therefore, or what the last
   line has in bold;
4. the right-hand side of the equation that ends the text;
5. the whole text, remarks in brackets left out.

All marks of a kind must name one and the same number, otherwise the text is ambiguous.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, islice

from rrf_design.responses._numerals import MONEY, Mention, conventions, hidden, mentions_in, plain

# Beyond these a text is no answer that anybody reads: characters, numbers looked at, marks of an
# answer.
LONGEST = 1_000_000
MOST_NUMBERS = 10_000
MOST_MARKS = 100
_SPAN = 240  # how far a mark reaches at most

_WORD = r"(?:final[ _-]?)?(?:answer|antwort|ergebnis|r\u00e9ponse|respuesta|risposta|resposta)"
_LABEL = re.compile(rf"(?<![^\W_])[\"'*_]{{0,4}}{_WORD}[\"'*_]{{0,4}}\s?[:=][*_]{{0,4}}\s{{0,4}}", re.IGNORECASE)
_SAID = re.compile(
    r"\banswer\b(?: to [^.\n:]{1,80}?)?\s(?:is|equals|would be|must be|will be|comes to)\b\s?:?", re.IGNORECASE
)
_HASHES = re.compile(r"####[ \t]*")
_BOLD = re.compile(r"\*\*([^*\n]{1,200})\*\*")
_CONCLUDES = re.compile(r"\W{0,3}(?:so|thus|hence|therefore|in total|in conclusion|altogether)\b", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_REMARK = re.compile(r"\((?![^()]*\b(?:or|base)\b)[^()]*\)|\[(?![^\[\]]*\bor\b)[^\[\]]*\]")
_UNKNOWN = re.compile(
    r"\b(?:unknown|unclear|undetermined|none|cannot|can't|impossible|not enough|n/a)\b", re.IGNORECASE
)
_EQUALS = re.compile(rf"(?:=|\u2248)\s{{0,3}}[-+]?\s?(?:{MONEY}\s?)?[-+.]?\Z")
_NO_EQUATION = re.compile(r"(?:[<>\u2260\u2264\u2265]\s?|!)=\Z")
_VARIABLE = re.compile(r"(?<![\w)])([A-Za-z]\w{0,12})\s{0,3}=(?!=)")

_LATEX = (
    (re.compile(r"\\n(?![a-z])"), "\n"),
    (re.compile(r"(?<=[-+])\\[dt]?frac\{([0-9]{1,40})\}\{([0-9]{1,40})\}"), r"\1/\2"),
    (re.compile(r"\\[dt]?frac\{([0-9]{1,40})\}\{([0-9]{1,40})\}"), r" \1/\2"),
    (re.compile(r"\\[dt]?frac([0-9])([0-9])"), r" \1/\2"),
    (re.compile(r"\\(?:text|mathrm|mathbf|textbf|textit|mbox|operatorname)\s?\{([^{}]{0,200})\}"), r" \1 "),
    (re.compile(r"(?<=[0-9])(?:\{,\}|,\\!)(?=[0-9])"), ","),
    (re.compile(r"(?<=[0-9])(?:\\[,;: ]|~)(?=[0-9])"), "\u00a0"),
    (re.compile(r"\^\{?\\circ\}?|\\degree\b"), "\u00b0"),
    (re.compile(r"\\(?:times|cdot)\b"), "\u00d7"),
    (re.compile(r"\\approx\b"), "\u2248"),
    (re.compile(r"\\([$%#&])"), r"\1"),
    (re.compile(r"\\[()\[\],;:! ]|\\q?quad\b|\\left\b|\\right\b"), " "),
    (re.compile(r"\\\""), '"'),
)
_TAG = re.compile(r"<<[^<>\n]{0,200}>>|</?[a-zA-Z][^<>\n]{0,100}>")
_EMPHASIS = re.compile(r"(?<![\w)*])\*\*(?=\S)|(?<=\S)\*\*(?![\w(*])")
_UNDERLINED = re.compile(r"(?<![\w_])__([^\s_][^_\n]{0,40})__(?![\w_])")
_ITALIC = re.compile(r"(?<![\w*)])\*([^\s*][^*\n]{0,40})\*(?![\w*])")


@dataclass(frozen=True, slots=True)
class FoundNumber:
    """``value``, or None and why; ``ambiguous`` is False where there is no number at all."""

    value: Fraction | None
    why: str = ""
    ambiguous: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A text made plain, with the conventions its numerals leave open."""

    text: str
    marked: str
    """The same with its emphasis left in, for bold conclusions."""
    decimals: tuple[str, ...]

    def mentions(self, text: str | None = None) -> Iterator[Mention]:
        """The numbers of a piece of it, or of all of it.

        One too many is an unclear one, which nobody can pick.
        """
        for number, mention in enumerate(mentions_in(self.text if text is None else text, self.decimals)):
            if number == MOST_NUMBERS:
                yield Mention(
                    mention.start, mention.end, mention.text, None, f"more than {MOST_NUMBERS} numbers in the text"
                )
                return
            yield mention


def page(text: str, decimal: str | None) -> Page | FoundNumber:
    """The text, ready to be searched; or why it can't be."""
    if len(text) > LONGEST:
        return FoundNumber(None, f"a text of more than {LONGEST} characters")
    concealed = hidden(text)
    if concealed is not None:
        return FoundNumber(None, f"the text has {concealed}", ambiguous=True)
    marked = plain(html.unescape(text) if "&" in text else text)  # as a browser shows it: &minus;12 is negative
    if "\\" in marked or "{,}" in marked:
        for pattern, replacement in _LATEX:
            marked = pattern.sub(replacement, marked)
    if "<" in marked:
        marked = _TAG.sub(" ", marked)
    if "__" in marked:
        marked = _UNDERLINED.sub(r"**\1**", marked)
    bare = _ITALIC.sub(r"\1", _EMPHASIS.sub("", marked)) if "*" in marked else marked
    return Page(bare, marked, conventions(bare) if decimal is None else (decimal,))


def _settle(found: Sequence[Mention] | Iterator[Mention], *, whole: bool = False) -> FoundNumber:
    """The one number that all mentions are; ambiguous if they differ, or one of them is unclear."""
    first: Mention | None = None
    value: Fraction | None = None
    for mention in found:
        current = mention.whole if whole and mention.value is None else mention.value
        if current is None:
            return FoundNumber(None, mention.why, ambiguous=not mention.impossible)
        if mention.operand:
            return FoundNumber(None, f"{mention.text!r} is part of a calculation", ambiguous=True)
        if mention.bracketed:
            return FoundNumber(
                None, f"{mention.text!r} stands in brackets: a remark, or a negative amount", ambiguous=True
            )
        if first is None:
            first, value = mention, current
        elif current != value or first.spaced or mention.spaced:
            return FoundNumber(
                None, f"{first.text!r} and {mention.text!r}: neither is marked as the answer", ambiguous=True
            )
    return FoundNumber(None, "no number in the text") if value is None else FoundNumber(value)


def the_number(prepared: Page, *, whole: bool = False) -> FoundNumber:
    """The number that the text gives as its answer."""
    text = prepared.text
    for spans in (_strong(text), said(text), _conclusion(prepared)):
        if spans:
            if len(spans) > MOST_MARKS:
                return FoundNumber(None, f"more than {MOST_MARKS} numbers are marked as the answer", ambiguous=True)
            return _agree([_in_span(prepared, span, whole) for span in spans])
    return _in_span(prepared, text, whole)


def _in_span(prepared: Page, span: str, whole: bool) -> FoundNumber:
    """The number of a piece of text: the end of an equation, else all that is outside remarks."""
    result = _right_hand_side(prepared, span, whole)
    if result is not None:
        return result
    outside = _REMARK.sub(" () ", span)  # the brackets stay, so that the factor of a sum is still seen as one
    if outside != span and next(prepared.mentions(outside), None) is not None:
        span = outside
    elif outside != span and _UNKNOWN.search(outside):
        return FoundNumber(None, "the answer is said to be unknown; a number stands in a remark only", ambiguous=True)
    return _settle(prepared.mentions(span), whole=whole)


def _right_hand_side(prepared: Page, span: str, whole: bool) -> FoundNumber | None:
    """``...

    = 460 miles.``: the last number, if an equals sign stands before it and no more than a few words
    after it.
    """
    at = max(span.rfind("="), span.rfind("\u2248"))
    if at < 0 or _NO_EQUATION.search(span[: at + 1]) or len(set(_VARIABLE.findall(span))) > 1:
        return None
    tail = list(islice(mentions_in(span[at:], prepared.decimals), 2))
    if len(tail) != 1 or not _EQUALS.search(span[at : at + tail[0].start]):
        return None
    after = span[at + tail[0].end :]
    return _settle(tail, whole=whole) if len(after.split()) <= 6 and not tail[0].operand else None


def _strong(text: str) -> list[str]:
    """What stands in boxes, after hashes and after answer labels; each piece begins with a colon.

    At most one too many.
    """
    boxes = (_braced(text, match.end()) for match in re.finditer(r"\\(?:boxed|fbox)\s?\{", text))
    hashes = (_line(text, match.end()) for match in _HASHES.finditer(text))
    labels = (_line(text, match.end()) for match in _LABEL.finditer(text))
    told = (label for label in labels if label.strip(": \n"))
    return list(islice(chain(boxes, hashes, told), MOST_MARKS + 1))


def said(text: str) -> list[str]:
    """What stands after "the answer is"; at most one too many."""
    return list(islice((_line(text, match.end()) for match in _SAID.finditer(text)), MOST_MARKS + 1))


def marked(text: str) -> list[str] | None:
    """All that is marked as the answer, strongest marks first; None for more than anybody reads."""
    found = _strong(text) + said(text) if len(text) <= LONGEST else []
    return found if len(text) <= LONGEST and len(found) <= MOST_MARKS else None


def _conclusion(prepared: Page) -> list[str]:
    end = prepared.text.rstrip()[-2 * _SPAN :]
    last = [piece for piece in _SENTENCE.split(end) if piece.strip()][-1:]
    if last and _CONCLUDES.match(last[0]) and next(prepared.mentions(last[0]), None) is not None:
        return last
    line = prepared.marked.rstrip().rpartition("\n")[2][-2 * _SPAN :]
    return [bold for bold in _BOLD.findall(line) if next(prepared.mentions(bold), None) is not None][-1:]


def _line(text: str, start: int) -> str:
    """From ``start`` to the end of the sentence, line or quoted string; the colon tells a minus
    from a bullet.
    """
    piece = text[start : start + _SPAN]
    if piece[:1] == '"':
        closing = piece.find('"', 1)
        return f":{piece[1:closing] if closing > 0 else piece[1:]}"
    return f":{_SENTENCE.split(piece, maxsplit=1)[0]}"


def _braced(text: str, start: int) -> str:
    depth = 1
    for position in range(start, min(len(text), start + _SPAN)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return f":{text[start:position]}"
    return f":{text[start : start + _SPAN]}"


def _agree(results: Sequence[FoundNumber]) -> FoundNumber:
    for result in results:
        if result.value is None:
            return result
    if len({result.value for result in results}) > 1:
        return FoundNumber(None, "the text gives several different answers", ambiguous=True)
    return results[0]
