"""Words and signs beside a numeral that make it something else than the answer: a bound, an argument of a function, digits of another base.

"At least 42", "42 or more", "mindestens 42" and "≥ 42" say what a number is not below, "nearly 42" what it falls short of; "option 4" is the name of an answer; sqrt(16), "half of 10", "2 squared" and "5!" are calculations that nobody has
done yet; 101₂ is not a hundred and one. "About 42" and "≈ 42" are read: whoever asks for a number is content with what somebody rounded.
"""

from __future__ import annotations

import re

from rrf_design.responses.numerals import HARD

_SPACE = f"[ {HARD}]"
_SIGN = re.compile(
    rf"(?:[<>\u2264\u2265\u2a7d\u2a7e\u226a\u226b]=?|=<|\\(?:le|ge|leq|geq|lt|gt|leqslant|geqslant)\b){_SPACE}?\Z"
)
_SIGN_AFTER = re.compile(
    rf"{_SPACE}[<>]=?{_SPACE}|{_SPACE}?[\u2264\u2265\u2a7d\u2a7e]|{_SPACE}?\\(?:le|ge|leq|geq|lt|gt)\b"
)
_ARROW = re.compile(rf"(?:[-=]>|\u2192){_SPACE}?\Z")
_ENGLISH = (
    r"(?:more|less|fewer|greater|larger|smaller|bigger|higher|lower) than(?: or equal to)?|over|under|above|below|beyond|"
    r"up to|upwards? of|exceed(?:s|ing)|at (?:the )?(?:least|most)|a (?:minimum|maximum) of|not to exceed|"
    r"nearly|almost|not quite|close to|short of|shy of"
)
_OTHERS = (
    r"mindestens|h\u00f6chstens|wenigstens|maximal|minimal|mehr als|weniger als|bis zu|\u00fcber|unter|"
    r"au moins|au plus|plus de|moins de|jusqu'\u00e0|al menos|por lo menos|como m\u00e1ximo|como m\u00ednimo|a lo sumo|"
    r"m\u00e1s de|menos de|hasta|almeno|al massimo|pi\u00f9 di|meno di|"
    r"fast|beinahe|nahezu|presque|casi|quasi"
)
# "The maximum is 42" is an answer; "maximum 42" with nothing between is not.
_SHORT = r"(?:min(?:imum)?|max(?:imum)?)\.?"
_BEFORE = re.compile(
    rf"\b(?:{_ENGLISH}|{_OTHERS}|{_SHORT})\s(?:[$\u20a0-\u20bf\u00a3\u00a5]{_SPACE}?)?\Z", re.IGNORECASE
)
_AFTER = re.compile(
    rf"{_SPACE}(?:(?:or|and) (?:more|less|fewer|higher|lower|greater|larger|smaller|bigger|above|below|over|under|up)|upwards|at (?:the )?(?:least|most)|"
    r"minimum|maximum|max|plus(?! ?(?:or minus|tax|VAT)))\b",
    re.IGNORECASE,
)
_SOME = re.compile(r"-(?:something|odd|ish)\b")

_FUNCTION = re.compile(
    r"\b(?:sqrt|cbrt|log(?:10|2)?|ln|lg|exp|sin|cos|tan|cot|sec|csc|floor|ceil|round|abs|trunc|gcd|lcm|[fgO])"
    rf"{_SPACE}?\({_SPACE}?\Z|\b(?:sqrt|log|ln|lg|sin|cos|tan){_SPACE}\Z|[\u230a\u2308]\Z"
)
_PART = re.compile(
    r"\b(?:(?:square|cube|cubic) root of|half(?: of)?|a (?:third|quarter|fifth|tenth) of|twice|thrice|double|triple|factorial of|reciprocal of)\s\Z",
    re.IGNORECASE,
)
_POWER = re.compile(rf"{_SPACE}(?:squared|cubed|to the (?:power|[0-9]+(?:st|nd|rd|th)))\b", re.IGNORECASE)
_CIRCLE = re.compile(rf"{_SPACE}?(?:pi\b|\u03c0)")
_NAMED = re.compile(r"\b(?:options?|choices?|alternatives?)\s[(\"'*]*\Z", re.IGNORECASE)
_BASE = re.compile(rf"[\u2080-\u2089]|{_SPACE}\(?(?:in )?(?:base\b|hex\b|hexadecimal\b|binary\b|octal\b)")
_RATE = re.compile(rf"{_SPACE}?[\u2030\u2031]")
# A sentence that ends with a number may end with an exclamation mark; a number that stands alone, or in a formula, has no reason to.
_FACTORIAL = re.compile(r"!+(?![\w!])")
_ALONE = re.compile(r"(?:\A|[=*/+(\u00d7\u00b7\u22c5-])\s*[-+]?\s*\Z")


def is_bound(left: str, right: str) -> bool:
    """Whether what stands around a numeral makes it a bound."""
    if _SIGN.search(left) and not _ARROW.search(left):
        return True
    return bool(_BEFORE.search(left) or _AFTER.match(right) or _SIGN_AFTER.match(right) or _SOME.match(right))


def is_name(left: str) -> bool:
    """Whether the numeral says which of several answers is meant, not what it is."""
    return bool(_NAMED.search(left))


def unfinished(left: str, right: str) -> str | None:
    """Why the number is still to be computed from the numeral, or None."""
    if _FUNCTION.search(left) or _PART.search(left) or _CIRCLE.match(right):
        return "is part of a calculation that is not done"
    if _POWER.match(right):
        return "is raised to a power"
    if _BASE.match(right):
        return "may be in another base"
    if _RATE.match(right):
        return "is a rate per thousand"
    if _FACTORIAL.match(right) and _ALONE.search(left):
        return "may be a factorial"
    return None
