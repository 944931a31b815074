"""Numbers as they stand in a text: with sign, currency, unit and power, each a value, unclear, or
no number at all.

One run of digits and separators is one numeral: read whole, or not at all. It is read under a
convention: which mark separates the decimals, "." or ",". Nobody says which one they use, so a
numeral counts as read only if every convention that it fits gives the same number: ``1,234.50``,
``1.234,50``, ``12.5``, ``170,00``, ``12'345`` and ``1,234,567`` do, ``1,234`` and ``1.234`` do not.
A declared convention, or other numerals of the same text that fit one convention only, settles
those.

A mention is *unclear* when a reader would have to guess: two conventions that differ, a range, a
power, ``5k``, a bound ("at least 42", "42 or more", "≥ 42", "nearly 42"), the name of an answer
("option 4"), a calculation that nobody has done yet (sqrt(16), "half of 10", "5!"), another base
(101₂). "About 42" and "≈ 42" are read: whoever asks for a number is content with what somebody
rounded. An unclear mention is never skipped in favour of another number: whoever picks it gets a
refusal. Dates, times, ordinals and digits inside words are no numbers and are passed over. Every
look around a numeral is bounded, so reading is linear.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

POINT, COMMA = ".", ","
BOTH = (POINT, COMMA)
# Longer digit strings are no answer to anything, and converting them costs quadratic time.
MOST_DIGITS = 400

HARD = "\u00a0"  # stands for every space that keeps digits together
ARABIC_DECIMAL, ARABIC_GROUP = "\u066b", "\u066c"
RUN = rf"[0-9]+(?:[.,'_ {HARD}{ARABIC_DECIMAL}{ARABIC_GROUP}][0-9]+)*"
_SEPARATOR = re.compile(r"[^0-9]")
_GROUPING = (COMMA, POINT, " ", HARD, "'", "_", ARABIC_GROUP)
_NUMERAL = re.compile(RUN)
_DATE = re.compile(r"(?:[0-3]?[0-9]\.[01]?[0-9]\.(?:[0-9]{2}|[0-9]{4})|[0-9]{4}\.[01]?[0-9]\.[0-3]?[0-9])")

_INVISIBLE = "\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff"
_HIDING = re.compile(
    "[\u202d\u202e]"  # an override shows the characters in another order than they stand
    rf"|\d[.,'{ARABIC_DECIMAL}{ARABIC_GROUP}]?[{_INVISIBLE}]+[.,'{ARABIC_DECIMAL}{ARABIC_GROUP}]?\d"
    rf"|\d[{_INVISIBLE}]*[\u0300-\u036f\u20d0-\u20f0]"  # struck out, overlined, enclosed
)
_STRETCH = re.compile(r"\d(?:[.,'_ ]?\d)+")
_CHARACTERS = {
    **dict.fromkeys(map(ord, "\u2212\u2010\u2011\u2013\ufe63\uff0d"), "-"),
    **dict.fromkeys(map(ord, "\u00a0\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000"), HARD),
    **dict.fromkeys(map(ord, "\u2018\u2019\u02bc\u00b4\uff07"), "'"),
    **dict.fromkeys(map(ord, "\u2044\u2215\uff0f"), "/"),
    **{ord("\uff0c"): ",", ord("\uff0e"): ".", ord("\uff05"): "%", ord("\u066a"): "%", ord("\uff04"): "$"},
    **{ord("\uffe5"): "\u00a5", ord("\ufe69"): "$", ord("\uff0b"): "+", ord("\uff1d"): "=", ord("\uff1a"): ":"},
}
_FORMATTING = re.compile(f"[{_INVISIBLE}]")


class _Table(dict[int, "str | int"]):
    """Translation of single characters; digits of every script become ASCII digits."""

    def __missing__(self, code: int) -> str | int:
        digit = unicodedata.decimal(chr(code), None)
        self[code] = code if digit is None else str(digit)
        return self[code]


_TABLE = _Table(_CHARACTERS)


def hidden(text: str) -> str | None:
    """Why what is shown may differ from what is stored, or None: invisible, struck-out, mixed or
    reordered digits.
    """
    if text.isascii():
        return None
    if _HIDING.search(text):
        return "invisible or reordering characters at its digits"
    for stretch in _STRETCH.finditer(text):
        digits = [c for c in stretch.group() if c.isdecimal()]
        if len({ord(c) - unicodedata.decimal(c) for c in digits}) > 1:
            return "digits of several scripts in one number"
    return None


def plain(text: str) -> str:
    """The text with ASCII digits, one kind of minus, hard space, apostrophe and slash, and no
    invisible characters.
    """
    return text if text.isascii() else _FORMATTING.sub("", text).translate(_TABLE)


@lru_cache(256)  # one numeral is looked at for the conventions of its text, and again for its value
def reading(run: str, decimal: str) -> Fraction | None:
    """The number a run stands for when ``decimal`` separates its decimals; None if it does not
    fit.
    """
    marks = _SEPARATOR.findall(run)
    groups = _SEPARATOR.split(run)
    if sum(map(len, groups)) > MOST_DIGITS:
        return None
    decimals = ""
    if marks and marks[-1] in (decimal, ARABIC_DECIMAL):
        decimals = groups.pop()
        marks.pop()
    if marks and not _grouped(marks, groups, decimal):
        return None
    return Fraction(int("".join(groups) + decimals), 10 ** len(decimals))


def _grouped(marks: list[str], groups: list[str], decimal: str) -> bool:
    """Digits in threes, or as in India in twos before the last three, between one and the same
    mark.
    """
    mark = marks[0]
    if set(marks) != {mark} or mark == decimal or mark not in _GROUPING:
        return False
    head, *middle, tail = map(len, groups)
    if groups[0].startswith("0") or tail != 3:
        return False
    threes = head <= 3 and all(size == 3 for size in middle)
    indian = mark == COMMA and bool(middle) and head <= 2 and all(size == 2 for size in middle)
    return threes or indian


def readings(run: str, decimals: Iterable[str] = BOTH) -> frozenset[Fraction]:
    """All numbers the run may stand for under the given conventions."""
    return frozenset(value for decimal in decimals if (value := reading(run, decimal)) is not None)


def _is_date(run: str) -> bool:
    return _DATE.fullmatch(run) is not None


# A symbol before the amount and a comma before three digits: nobody writes dollars with three
# decimals and a comma.
_MONEY_COMMA = re.compile(r"[$\u00a3\u20b9] ?[0-9]{1,3},[0-9]{3}(?![0-9.,])")


def conventions(text: str) -> tuple[str, ...]:
    """The conventions that the numerals of a (plain) text leave open: one if all that show one show
    the same, else both.

    What shows one: both marks in a numeral, several groups, decimals that are no group of three. A
    comma before one digit may be a list (``3,5``) and shows nothing.
    """
    shown: set[str] = {POINT} if _MONEY_COMMA.search(text) else set()
    for match in _NUMERAL.finditer(text):
        run = match.group()
        if len(run) > 40 or _is_date(run) or ("." not in run and "," not in run):
            continue
        fits = [decimal for decimal in BOTH if reading(run, decimal) is not None]
        pair = run.count(",") == 1 and "." not in run and len(run.rpartition(",")[2]) == 1 and not run.startswith("0,")
        if len(fits) == 1 and not pair:
            shown.add(fits[0])
            if len(shown) > 1:
                break
    return (shown.pop(),) if len(shown) == 1 else BOTH


_SPACE = f"[ {HARD}]"
_SIGN = re.compile(
    rf"(?:[<>\u2264\u2265\u2a7d\u2a7e\u226a\u226b]=?|=<|\\(?:le|ge|leq|geq|lt|gt|leqslant|geqslant)\b){_SPACE}?\Z"
)
_SIGN_BEHIND = re.compile(
    rf"{_SPACE}[<>]=?{_SPACE}|{_SPACE}?[\u2264\u2265\u2a7d\u2a7e]|{_SPACE}?\\(?:le|ge|leq|geq|lt|gt)\b"
)
_ARROW = re.compile(rf"(?:[-=]>|\u2192){_SPACE}?\Z")
_ENGLISH = (
    r"(?:more|less|fewer|greater|larger|smaller|bigger|higher|lower) than(?: or equal"
    r" to)?|over|under|above|below|beyond|"
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
    rf"{_SPACE}(?:(?:or|and)"
    r" (?:more|less|fewer|higher|lower|greater|larger|smaller|bigger|above|below|over|under|up)|upwards|at (?:the"
    r" )?(?:least|most)|"
    r"minimum|maximum|max|plus(?! ?(?:or minus|tax|VAT)))\b",
    re.IGNORECASE,
)
_SOME = re.compile(r"-(?:something|odd|ish)\b")

_FUNCTION = re.compile(
    r"\b(?:sqrt|cbrt|log(?:10|2)?|ln|lg|exp|sin|cos|tan|cot|sec|csc|floor|ceil|round|abs|trunc|gcd|lcm|[fgO])"
    rf"{_SPACE}?\({_SPACE}?\Z|\b(?:sqrt|log|ln|lg|sin|cos|tan){_SPACE}\Z|[\u230a\u2308]\Z"
)
_PART = re.compile(
    r"\b(?:(?:square|cube|cubic) root of|half(?: of)?|a (?:third|quarter|fifth|tenth)"
    r" of|twice|thrice|double|triple|factorial of|reciprocal of)\s\Z",
    re.IGNORECASE,
)
_POWER = re.compile(rf"{_SPACE}(?:squared|cubed|to the (?:power|[0-9]+(?:st|nd|rd|th)))\b", re.IGNORECASE)
_CIRCLE = re.compile(rf"{_SPACE}?(?:pi\b|\u03c0)")
_NAMED = re.compile(r"\b(?:options?|choices?|alternatives?)\s[(\"'*]*\Z", re.IGNORECASE)
_BASE = re.compile(rf"[\u2080-\u2089]|{_SPACE}\(?(?:in )?(?:base\b|hex\b|hexadecimal\b|binary\b|octal\b)")
_RATE = re.compile(rf"{_SPACE}?[\u2030\u2031]")
# A sentence that ends with a number may end with an exclamation mark; a number that stands alone,
# or in a formula, has no reason to.
_FACTORIAL = re.compile(r"!+(?![\w!])")
_ALONE = re.compile(r"(?:\A|[=*/+(\u00d7\u00b7\u22c5-])\s*[-+]?\s*\Z")


def _is_bound(left: str, right: str) -> bool:
    """Whether what stands around a numeral makes it a bound."""
    if _SIGN.search(left) and not _ARROW.search(left):
        return True
    return bool(_BEFORE.search(left) or _AFTER.match(right) or _SIGN_BEHIND.match(right) or _SOME.match(right))


def _is_name(left: str) -> bool:
    """Whether the numeral says which of several answers is meant, not what it is."""
    return bool(_NAMED.search(left))


def _unfinished(left: str, right: str) -> str | None:
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


_VULGAR = "\u00bc-\u00be\u2150-\u215e"
# Runs that touch through a colon, slash or dash are one thing: a time, a fraction, a date, a range.
# A fraction may have spaces.
_CLUSTER = re.compile(rf"{RUN}(?:{_SPACE}?/{_SPACE}?{RUN}|[:/-]{RUN})*(?:{_SPACE}?[{_VULGAR}])?|[{_VULGAR}]")
_JOINT = re.compile(rf"{_SPACE}?/{_SPACE}?|[:-]")
_DATED = re.compile(r"[0-9]{1,2}/[0-9]{1,2}/(?:[0-9]{2}|[0-9]{4})|[0-9]{4}/[0-9]{1,2}/[0-9]{1,2}")
_REACH = 32  # how far to look around a numeral
_REMEMBERED = 4096  # surroundings that are kept: the answers of a table mostly put other numbers into the same words

_CODES = (
    "USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|"
    "BRL|MXN|ZAR|RUB|TRY|KRW|SGD|HKD|Rs|Fr|kr|z\u0142|K\u010d"
)
_SYMBOLS = "$\u20a0-\u20bf\u00a3\u00a5\u0e3f"
MONEY = rf"(?:(?:\b[A-Z]{{1,3}})?[{_SYMBOLS}]|\b(?:{_CODES})\.?)"
_LEFT = re.compile(rf"(?P<sign>[-+])?(?P<gap>{_SPACE}?)(?:(?P<money>{MONEY}{_SPACE}?)(?P<inner>[-+])?)?\Z")
_UNITS = re.compile(
    rf"(?:{_CODES}|kg|g|mg|lbs?|oz|km|cm|mm|mi|ft|in|yds?|ml|cl|dl|l|L|hrs?|h|mins?|min|secs?|s|ms|kWh|kW|W|V|Hz|MB|GB|TB|"
    r"kcal|cal|cents?|euros?|dollars?|km/h|mph|pts?)(?![^\W\d_])"
)
_ORDINAL = re.compile(r"(?:st|nd|rd|th)(?!\w)|[\u00ba\u00aa]")
_CLOCK = re.compile(rf"{_SPACE}?(?:[ap]\.?m\b|[AP]\.?M\b|o'clock|Uhr\b)")
_MONTH = (
    r"(?:Jan(?:uary|uar)?|Feb(?:ruary|ruar)?|Mar(?:ch)?|M\u00e4rz|Apr(?:il)?|May|Mai|Ju(?:ne|ni|ly|li|n|l)|Aug(?:ust)?|"
    r"Sept?(?:ember)?|O[ck]t(?:ober)?|Nov(?:ember)?|De[cz](?:ember)?)"
)
_DAY_BEFORE = re.compile(rf"\b{_MONTH}\.?{_SPACE}\Z")
_DAY_AFTER = re.compile(rf"\.?{_SPACE}(?:of{_SPACE})?{_MONTH}\b")
_EXPONENT = re.compile(r"[eE]([+-]?[0-9]{1,3})(?![\w.,]*\w)")
_TIMES_TEN = re.compile(
    rf"{_SPACE}?[x\u00d7*\u00b7\u22c5]{_SPACE}?10(?:{_SPACE}?(?:\^|\*\*){_SPACE}?\{{?([+-]?[0-9]{{1,3}})\}}?|"
    r"([\u207a\u207b]?[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]{1,3}))(?![0-9])"
)
_SUPERSCRIPT = "\u00b2\u00b3\u00b9\u2070-\u207f"
_MULTIPLES = {"hundred": 100, "thousand": 1000, "million": 1_000_000}
_MULTIPLE = re.compile(rf"[ {HARD}-](hundred|thousand|million)s?\b", re.IGNORECASE)
# Billions and dozens differ between languages and questions, the abbreviations between everybody.
_VAGUE = re.compile(
    rf"{_SPACE}?(?:(?:[mb]illiarden?|milliard|billion|trillion|dozen|lakh|lac|crore|millionen|millones|tausend|mille|mio|mrd|"
    r"tsd|bn|mn|cr|k)s?\b|[\u4e07\u842c\u5104\u4ebf\u5343\u767e\ub9cc\uc5b5])|m\b",
    re.IGNORECASE,
)
_VAGUE_LETTER = re.compile(rf"{_SPACE}[MB]\b")
_VAGUE_MONEY = re.compile(rf"{_SPACE}?[kmbtKMBT]\b")
_MONEY_BEFORE = re.compile(rf"{MONEY}{_SPACE}?\Z")
# 1h30, 6ft2, 5.O0: letters and then digits again, all in one.
_GLUED = re.compile(r"[.,]?[^\W\d_]{1,6}[0-9]")
_STRAY_AFTER = re.compile(rf"[.,'_]{{2,}}[0-9]|{_SPACE}[.,][0-9]")
_STRAY_BEFORE = re.compile(r"(?:^|[\s.,])[.,]\Z")
_LEADING_POINT = re.compile(rf"(?:^|[\s(\[=:+*/-]|{MONEY})\.\Z")
_MONEY_END = re.compile(rf"{MONEY}\Z")
_NUMBER_SIGN = re.compile(r"(?<!#)#\Z")
_HYPHENATED = re.compile(r"[0-9]+(?:-[0-9]+){2,}")
_RAISED = re.compile(f"[{_SUPERSCRIPT}]")
_FORMULA_AFTER = re.compile(r"\\[a-zA-Z]|\(|\\\(")
_FORMULA_BEFORE = re.compile(r"\\[a-zA-Z]+\{\Z|\u221a\Z")
_SPREAD_BEFORE = re.compile(rf"(?:\u00b1|\+/-){_SPACE}?\Z")
_SIGN_AFTER = re.compile(r"-(?![\w(>])|\+(?![\w(])")
_TERM_AFTER = re.compile(r"[+-]\s*[0-9(]")
_GOES_ON = re.compile(r"\.{2,}|\u2026")
_PAIR_BEFORE = re.compile(r"[(\[]\s*\Z")
_PAIR_AFTER = re.compile(r"\s*[)\]]")
_TERM_BEFORE = re.compile(r"(?:(?:^|[^\w])[a-zA-Z]|[0-9]\s?[a-zA-Z]+)\Z")
_ENDS_VULGAR = re.compile(f"[{_VULGAR}]")
_LONE_POINT = re.compile(r"(?:^|[^\w.])\.\Z")
_OPENED = re.compile(rf"(?:^|[^\w])\({_SPACE}?(?:{MONEY}{_SPACE}?)?\Z")
_SPREAD = re.compile(rf"{_SPACE}?(?:\u00b1|\+/-|\+-|\\pm)")
_NEGATED = re.compile(
    r"(?:(?:\bnot|n't|\bnever|\bcannot)(?: be| equal)?|\u2260|!=|\bneither|\bnor|\bexcept|\banything but|\bother"
    r" than|\bwrong:)[\s\"'*$]*\Z",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"[\"'*$]*\s(?:is|was) (?:wrong|incorrect|false|mistaken|not (?:right|correct|the))\b", re.IGNORECASE
)
# A dash at a word that stands before the number: a currency that nobody listed, or a bullet.
_MINUS_WORD = re.compile(rf"(?:^|[\s:=(\[*\"'])-[^\W\d_]{{1,12}}\.?{_SPACE}?\Z")
_SPACES_BEFORE = re.compile(rf"{_SPACE}+\Z")
_PERCENT = re.compile(rf"{_SPACE}?(?:%|percent\b|per cent\b|pct\b)")
_CLOSED = re.compile(rf"{_SPACE}?\)")
_SPOKEN_MINUS = re.compile(r"\b(?:minus|negative|neg\.)\s\Z", re.IGNORECASE)
_MINUS_AFTER = re.compile(rf"{_SPACE}(?:negative|below zero)\b", re.IGNORECASE)
# Signs that are none, or not surely: a superscript or subscript minus, minus-plus, figure dash and
# horizontal bar.
_STRANGE_SIGN = re.compile(
    rf"(?:[\u207b\u208b\u2213\u2012]{_SPACE}?|(?:^|[^\w.,;:!?)\]{_SPACE[1:-1]}])[\u2014\u2015]|^[\u2014\u2015])\Z"
)
_SAYS = frozenset({"is", "was", "be", "equals", "of", "answer", "about", "ist", "result"})
_TWO_SIGNS = re.compile(rf"[-+](?:{_SPACE}?\({_SPACE}?)?[-+]\Z")
_BARS = re.compile(r"\|[-+]\Z")
_APART_EXPONENT = re.compile(rf"{_SPACE}[eE][+-]?[0-9]")
_OPERATOR_BEFORE = re.compile(
    rf"[\w)\]}}%](?:{_SPACE}*[/*\u00d7\u00f7\u00b7\u22c5^]{_SPACE}*|{_SPACE}+[+-]{_SPACE}+|[+-]{_SPACE}*|"
    rf"{_SPACE}+(?:plus|minus|times|over|divided by){_SPACE}+)(?:{MONEY}{_SPACE}?)?\Z"
)
_OPERATOR_AFTER = re.compile(
    rf"{_SPACE}*(?:[+*\u00d7\u00f7\u00b7\u22c5-]{_SPACE}*(?:[0-9({_SYMBOLS}\\]|[b-hj-z]\b)|/{_SPACE}*[0-9({_SYMBOLS}])"
)


@dataclass(frozen=True, slots=True)
class Mention:
    """``value`` is None where the mention is unclear, and ``why`` says so.

    ``operand``: a part of a calculation.
    """

    start: int
    end: int
    text: str
    value: Fraction | None
    why: str = ""
    percent: bool = False
    operand: bool = False
    whole: Fraction | None = None
    """What it is if it must be a whole number: ``1,234`` is unclear, but as a whole number it is
    1234.
    """
    spaced: bool = False
    """Its groups are parted by common spaces, so that next to other numbers it may be two."""
    bracketed: bool = False
    """It stands in brackets of its own: a remark, or a negative amount."""
    impossible: bool = False
    """No number at all rather than one of several: a division by zero, thousands of digits."""


def mentions_in(text: str, decimals: Sequence[str]) -> Iterator[Mention]:
    """Every value and every unclear mention of a plain text, in order."""
    read_to = 0
    for match in _CLUSTER.finditer(text):
        if match.start() < read_to:  # the power of ten of the number before
            continue
        found = _mention(text, match.start(), match.end(), decimals)
        if found is not None:
            read_to = found.end
            yield found


def _mention(text: str, start: int, end: int, decimals: Sequence[str]) -> Mention | None:
    written = text[start:end]
    left, right = text[max(0, start - _REACH) : start], text[end : end + _REACH]
    left = _SPACES_BEFORE.sub(" ", left)
    if _is_no_number(written, left, right):
        return None
    shown = written if len(written) <= 40 else f"{written[:37]}..."
    percent = _PERCENT.match(right) is not None
    factor, length = _factor(right)
    operand = _is_operand(left, right[length:])

    def unclear(why: str, whole: Fraction | None = None) -> Mention:
        return Mention(start, end, shown, None, f"{shown!r} {why}", percent, operand, whole)

    impossible = _impossible(written)
    if impossible is not None:
        return Mention(start, end, shown, None, f"{shown!r} {impossible}", impossible=True)

    why = _obstacle(written, left, right)
    if why is not None:
        return unclear(why)
    sign = _sign(left)
    if sign is None:
        return unclear("has a dash before it that may be a minus or a bullet")
    values = _values(written, left, decimals)
    if not values:
        return unclear("fits no declared or known way of writing a number")
    end += length
    if sign != 1 or length:
        values = {sign * factor * value for value in values}
    if len(values) > 1:
        # A whole number has no decimals, so that a comma in it parts thousands. A point may be that
        # of somebody who was
        # asked for a whole number and gave another one.
        grouped = reading(written, POINT) if "." not in written else None
        grouped = None if grouped is None else sign * factor * grouped
        return unclear(f"may be {' or '.join(_show(v) for v in sorted(values))}; declare `decimal`", grouped)
    value = values.pop()
    spaced = " " in written and "/" not in written
    bracketed = _OPENED.search(left) is not None and _CLOSED.match(text[end : end + 2]) is not None
    return Mention(start, end, shown, value, "", percent, operand, value, spaced, bracketed)


@lru_cache(_REMEMBERED)
def _is_operand(left: str, right: str) -> bool:
    return _OPERATOR_AFTER.match(right) is not None or _OPERATOR_BEFORE.search(left) is not None


def _impossible(written: str) -> str | None:
    if sum(map(str.isdigit, written)) > MOST_DIGITS:
        return f"has more than {MOST_DIGITS} digits"
    parts = _JOINT.split(written)
    return "divides by zero" if len(parts) == 2 and "/" in written and not parts[1].strip("0") else None


def _is_no_number(written: str, left: str, right: str) -> bool:
    """Digits of a word, an ordinal, a date, a time, an identifier."""
    if _in_a_word(left, right) or ":" in written or _is_date(written):
        return True
    return _DATED.fullmatch(written) is not None or _HYPHENATED.fullmatch(written) is not None


@lru_cache(_REMEMBERED)
def _in_a_word(left: str, right: str) -> bool:
    before = left[-1:]
    if before.isalpha() and ord(before) < 0x2E80 and not _MONEY_END.search(left):
        return True
    if before in ("_", "\u7b2c") or left.endswith(("_{", "^{", "^", "**")) or _NUMBER_SIGN.search(left):
        return True
    return _ORDINAL.match(right) is not None


def _obstacle(written: str, left: str, right: str) -> str | None:
    """What keeps a reader from taking the numeral for a number, or None."""
    if "-" in written:
        return "is a time of day" if _CLOCK.match(right) else "is a range, a difference or an identifier"
    return _obstacle_around(left, right, "." in written, "," in written)


@lru_cache(_REMEMBERED)
def _obstacle_around(left: str, right: str, point: bool, comma: bool) -> str | None:
    """The obstacles that what stands beside a numeral puts up; of the numeral itself only its marks
    matter.
    """
    if _CLOCK.match(right):
        return "is a time of day"
    if _EXPONENT.match(right) or _TIMES_TEN.match(right):
        return None
    if right[:1] in ("^", "\u221a") or right.startswith("**") or _RAISED.match(right):
        return "is raised to a power"
    if _GLUED.match(right):
        return "is glued to letters and further digits"
    if _APART_EXPONENT.match(right):
        return "has something after it that may be an exponent"
    if _VAGUE.match(right) or _VAGUE_LETTER.match(right) or (_MONEY_BEFORE.search(left) and _VAGUE_MONEY.match(right)):
        return "comes with a multiple that has several meanings"
    if right[:1].isalpha() and ord(right[0]) < 0x2E80 and not _UNITS.match(right):
        return "is joined to letters"
    if _FORMULA_AFTER.match(right) or _FORMULA_BEFORE.search(left):
        return "is part of a formula"
    if _SPREAD.match(right) or _SPREAD_BEFORE.search(left):
        return "comes with a tolerance"
    if _SIGN_AFTER.match(right) and not _TERM_AFTER.match(right):
        return "has a sign after it"
    if _MINUS_AFTER.match(right) or (_BARS.search(left) and right[:1] == "|"):
        return "may be negative or not"
    if _STRAY_AFTER.match(right) or (_STRAY_BEFORE.search(left) and not _LEADING_POINT.search(left)):
        return "has a separator that belongs to no number"
    if point and _GOES_ON.match(right):
        return "goes on"
    if _is_bound(left, right):
        return "is a bound"
    if _is_name(left):
        return "is the name of an option"
    open_ = _unfinished(left, right)
    if open_ is not None:
        return open_
    if _DAY_BEFORE.search(left) or _DAY_AFTER.match(right):
        return "is a day of a month"
    if _TWO_SIGNS.search(left):
        return "has two signs"
    if _NEGATED.search(left) or _DENIED.match(right):
        return "is what the answer is not"
    if comma and _PAIR_BEFORE.search(left) and _PAIR_AFTER.match(right):
        return "may be a pair"
    return None


@lru_cache(_REMEMBERED)
def _sign(left: str) -> int | None:
    """1 or -1; None where a dash may be a minus or a bullet."""
    if left[-1:] in ("\u8d1f", "\u8ca0") or _STRANGE_SIGN.search(left):
        return None
    left = left.removesuffix(".")  # of ".5"
    spoken = _SPOKEN_MINUS.search(left)
    if spoken is not None:
        word = (left[: spoken.start()].split() or [":"])[-1]
        if word.lower() in _SAYS or word[-1] in ":=(":
            return -1
        return 1 if word[-1].isdigit() or word[-1] in ")]%" else None
    if _MINUS_WORD.search(left) and not _MONEY_BEFORE.search(left):
        return None
    match = _LEFT.search(left)
    if match is None:  # can't be: every part may be empty
        return 1
    if match["inner"] is not None:
        return -1 if match["inner"] == "-" else 1
    if match["sign"] != "-":
        return 1
    before = left[: match.start()]
    if not match["gap"]:
        # A sign counts only where no operand stands before it: "12-7" holds 12 and 7, not 12 and
        # -7.
        return 1 if before[-1:].isalnum() or before[-1:] in tuple(")]%._") else -1
    bare = before.rstrip(f" {HARD}")
    if bare[-1:] in tuple(":=([") and bare:
        return -1
    return 1 if bare[-1:].isdigit() or bare[-1:] in tuple(")]%") else (1 if _ends_as_term(bare) else None)


def _ends_as_term(bare: str) -> bool:
    """``x - 3``: a variable or a unit after a number stands before the dash."""
    return _TERM_BEFORE.search(bare) is not None


def _values(written: str, left: str, decimals: Sequence[str]) -> set[Fraction]:
    parts = _JOINT.split(written)
    if len(parts) > 2:
        return set()
    if len(parts) == 2:
        return _fraction(parts[0], parts[1])
    if _ENDS_VULGAR.match(written[-1]):
        whole = written[:-1].rstrip(f" {HARD}")
        return {int(whole or "0") + _vulgar(written[-1])} if whole.isdigit() or not whole else set()
    if _LONE_POINT.search(left):
        return set(readings(f"0.{written}", (".",))) if written.isdigit() else set()
    return set(readings(written, decimals))


def _fraction(top: str, bottom: str) -> set[Fraction]:
    """``3/4``, and ``3 1/2`` as a whole and a proper fraction; only plain digits, so that nothing
    has to be guessed.
    """
    pieces = top.replace(HARD, " ").split(" ")
    if not bottom.isdigit() or len(pieces) > 2 or not all(piece.isdigit() for piece in pieces):
        return set()
    if max(map(len, (*pieces, bottom))) > MOST_DIGITS or int(bottom) == 0:
        return set()
    part = Fraction(int(pieces[-1]), int(bottom))
    if len(pieces) == 1:
        return {part}
    return {int(pieces[0]) + part} if 0 < part < 1 else set()


def _vulgar(character: str) -> Fraction:
    top, _, bottom = unicodedata.normalize("NFKC", character).partition("\u2044")
    return Fraction(int(top), int(bottom))


@lru_cache(_REMEMBERED)
def _factor(right: str) -> tuple[Fraction, int]:
    """The power of ten or the multiple after a numeral, and how many characters it takes."""
    exponent = _EXPONENT.match(right)
    if exponent is not None:
        return Fraction(10) ** int(exponent.group(1)), exponent.end()
    times = _TIMES_TEN.match(right)
    if times is not None:
        power = times.group(1) or unicodedata.normalize("NFKC", times.group(2)).replace("\u2212", "-")
        return Fraction(10) ** int(power), times.end()
    multiple = _MULTIPLE.match(right)
    return (Fraction(1), 0) if multiple is None else (Fraction(_MULTIPLES[multiple.group(1).lower()]), multiple.end())


def _show(value: Fraction) -> str:
    return str(value.numerator) if value.denominator == 1 else f"{float(value):.15g}"
