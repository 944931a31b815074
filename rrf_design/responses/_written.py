"""Whether a number, a day or a name is written in a text, in whatever form.

`_numerals` reads a numeral or refuses it. Here the question is the other one: could anybody have
taken this value from that text? So every reading of a numeral counts, both conventions and both
signs, pieces of a run, percents, multiples, cents; and where the text can't be read (hidden digits,
numbers in words, a script whose months nobody listed) the value may stand there. What is denied is
then denied for certain, as far as the text writes its numbers in digits.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from datetime import date
from fractions import Fraction
from functools import lru_cache
from itertools import islice

from rrf_design.responses._finding import MOST_NUMBERS, FoundNumber, page
from rrf_design.responses._numerals import MOST_DIGITS, RUN, readings

_RUN = re.compile(RUN)
_FRACTION = re.compile(r"(?:(\d{1,12})\s+)?(\d{1,12})\s?/\s?(\d{1,12})")
_VULGAR = re.compile("(\\d{1,12})?\\s?([\u00bc-\u00be\u2150-\u215e])")
_MONEY_INSIDE = re.compile(r"(\d[\d.,' ]{0,15})\s?[$€£¥]\s?(\d{2})(?!\d)")
_PERCENT = re.compile(r"\s?(?:%|percent\b|per cent\b|pct\b|‰|p\.\s?c\.|bps?\b|v\.\s?h\.)", re.IGNORECASE)
_MULTIPLE = re.compile(
    r"[\s-]?(?:hundreds?|thousands?|millions?|billions?|trillions?|dozens?|lakhs?|lacs?|crores?|millionen|milliarden?|"
    r"tausend|mille|millones|milliards?|mio|mrd|mia|tsd|tds|bn|mn|mm|cr|k|m|b|t)\b|\s?[万萬億亿千百십백천만억]",
    re.IGNORECASE,
)
_CENTS = re.compile(r"\s?(?:cents?|ct|c|¢|p|pence|pf|øre|öre|grosz[ey]?)\b|\s?¢", re.IGNORECASE)
_POWER = re.compile(r"[eE][+-]?\d|\s?[x×*·]\s?10|[\^⁺⁻⁰¹²³⁴-⁹]|\*\*")
_SPELLED = re.compile(
    r"\b(?:ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|"
    r"ninety|hundred|thousand|million|dozen|half)\b",
    re.IGNORECASE,
)
_SMALL = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_PIECES = 12
"""Of a run whose digits are parted by spaces, so many parts are looked at."""


def number_occurs(text: str, value: Fraction, near: Fraction = Fraction(0)) -> bool:
    """Whether the `text` has a numeral that may stand for the number `value`, its sign aside, up to
    `near`.

    True as well where that can't be told.

    >>> from fractions import Fraction
    >>> from rrf_design.responses import number_occurs
    >>> number_occurs("Gesamt: 1.190,00 EUR", Fraction(1190))
    True
    >>> number_occurs("Gesamt: 1.190,00 EUR", Fraction(1290))
    False
    """
    numerals = _numerals(text)
    if numerals is None:
        return True
    wanted = abs(value)
    slack = max(near, wanted / 10**9)
    digits = _digits(wanted)
    for numbers, scaled, strings in numerals:
        if any(abs(number - wanted) <= slack for number in numbers):
            return True
        if scaled and digits is not None and digits in strings:
            return True
    plain = text.casefold()
    small = wanted.denominator == 1 and wanted < len(_SMALL) and re.search(rf"\b{_SMALL[int(wanted)]}\b", plain)
    return bool(small) or _spells_numbers(plain)


def numbers_written(text: str) -> tuple[float, ...]:
    """Every number that a numeral of the `text` may stand for, its sign aside, smallest first: the
    candidates of a discrete repair. Nothing of a text that can't be read, and no number in words.

    >>> from rrf_design.responses import numbers_written
    >>> numbers_written("net 40.00, VAT 7.60, total 47.60")
    (7.6, 40.0, 47.6)
    """
    return tuple(sorted({float(number) for numbers, _, _ in _numerals(text) or () for number in numbers}))


@lru_cache(128)
def _numerals(text: str) -> tuple[tuple[tuple[Fraction, ...], bool, frozenset[str]], ...] | None:
    """Of every numeral: what it may stand for, whether its digits may be at any power of ten, and
    these digits; None for a text that can't be read.
    """
    prepared = page(text, None)
    if isinstance(prepared, FoundNumber):
        return None
    found: list[tuple[tuple[Fraction, ...], bool, frozenset[str]]] = []
    plain = prepared.text
    for match in islice(_RUN.finditer(plain), MOST_NUMBERS + 1):
        if len(match.group()) > MOST_DIGITS or len(found) == MOST_NUMBERS:
            return None
        found.append(
            _meanings(match.group(), plain[max(0, match.start() - 2) : match.start()], plain[match.end() :][:24])
        )
    found.append((tuple(_fractions(plain)), False, frozenset()))
    return tuple(found)


def _meanings(run: str, left: str, right: str) -> tuple[tuple[Fraction, ...], bool, frozenset[str]]:
    numbers: set[Fraction] = set()
    strings: set[str] = set()
    whole = readings(run)
    for piece in _parts(run):
        numbers |= readings(piece)
        strings.add(re.sub(r"\D", "", piece).strip("0"))
    if not whole or re.search(r"\d,\d{1,2}(?!\d)", run):  # no known way of writing, a date, or a list
        numbers |= {Fraction(int(group)) for group in re.findall(r"\d+", run)}
    if left[-1:] in (".", ",") and left[-2:-1] not in tuple("0123456789") and run.isdigit():
        numbers.add(Fraction(int(run), 10 ** len(run)))
    if _PERCENT.match(right):
        numbers |= {number / power for number in set(numbers) for power in (100, 1000, 10000)}
    if _CENTS.match(right):
        numbers |= {number / 100 for number in set(numbers)}
    scaled = not whole or _MULTIPLE.match(right) is not None or _POWER.match(right) is not None
    if scaled:
        numbers |= {12 * number for number in set(numbers)} if "doz" in right.casefold() else set()
    return tuple(numbers), scaled, frozenset(strings)


def _parts(run: str) -> Iterator[str]:
    """The run, and what of it stands between spaces: a space may part thousands or two numbers."""
    yield run
    pieces = re.split("[ \u00a0]", run)
    if 1 < len(pieces) <= _PIECES:
        spans = ((i, j) for i in range(len(pieces)) for j in range(i + 1, len(pieces) + 1))
        yield from (" ".join(pieces[i:j]) for i, j in spans)
    elif len(pieces) > _PIECES:
        yield from pieces


def _fractions(text: str) -> Iterator[Fraction]:
    for match in islice(_FRACTION.finditer(text), MOST_NUMBERS):
        if int(match[3]):
            part = Fraction(int(match[2]), int(match[3]))
            yield from (part, part + int(match[1] or 0))
    for match in islice(_VULGAR.finditer(text), MOST_NUMBERS):
        top, _, bottom = unicodedata.normalize("NFKC", match[2]).partition("\u2044")
        part = Fraction(int(top), int(bottom))
        yield from (part, part + int(match[1] or 0))
    for match in islice(_MONEY_INSIDE.finditer(text), MOST_NUMBERS):
        yield from (number + Fraction(int(match[2]), 100) for number in readings(match[1].strip()))


def _digits(number: Fraction) -> str | None:
    """The digits of a number whatever the place of its point; None where they do not end."""
    scaled = number * 10**12
    return str(scaled.numerator).strip("0") if scaled.denominator == 1 else None


def _spells_numbers(text: str) -> bool:
    """Whether numbers may be written in words alone: then nobody knows which are there."""
    for match in islice(_SPELLED.finditer(text), MOST_NUMBERS):
        if not re.search(r"\d[\s-]?\Z", text[: match.start()][-3:]):
            return True
    return False


_MONTHS = (
    *("jan|gen|ene|sty|led", "feb|fév|fev|lut|úno", "mar|mär|maa|mrt|brez", "apr|avr|abr|kwi|dub"),
    *("may|mai|mei|mag|maj|kvě", "jun|juin|giu|cze|červen", "jul|juil|lug|lip|červenec", "aug|aoû|aou|ago|sie|srp"),
    *("sep|set|wrz|zář", "oct|okt|ott|out|paź|říj", "nov|lis|kas", "dec|dez|dic|déc|des|gru|pro"),
)
_ORDINAL = re.compile(
    r"\b(?:first|second|third|(?:four|fif|six|seven|eigh|nin|ten|eleven|twelf|twentie|thirtie)th|\w+teenth|erste|"
    r"premier|primero)\b",
    re.IGNORECASE,
)
_REACH = 24
"""Day and month of one date stand no further apart than this."""


def day_occurs(text: str, day: date) -> bool:
    """Whether the `text` may name this `day`: its day and month near each other, and its year
    anywhere.

    True as well where that can't be told.

    >>> from datetime import date
    >>> from rrf_design.responses import day_occurs
    >>> day_occurs("Rechnung vom 3. Mai 2024", date(2024, 5, 3))
    True
    >>> day_occurs("Rechnung vom 3. Mai 2024", date(2024, 5, 4))
    False
    """
    prepared = page(text, None)
    if isinstance(prepared, FoundNumber):
        return True
    plain = prepared.text.casefold()
    foreign = sum(not c.isascii() and c.isalpha() and ord(c) > 0x24F for c in plain)
    if 4 * foreign > sum(map(str.isalpha, plain)):
        return True  # another script: which month its words name is not known here
    years = {f"{day.year}", f"{day.year % 100:02d}"}
    tokens = [(match.start(), match.end(), match.group()) for match in re.finditer(r"\d+", plain)]
    if len(tokens) > MOST_NUMBERS:
        return True
    two = (f"{day.month:02d}", f"{day.day:02d}")
    packed = {first + second for y in years for first, second in ((y, "".join(two)), ("".join(two), y))}
    packed |= {"".join(two[::-1]) + y for y in years}
    if any(one in token for _, _, token in tokens for one in packed):
        return True
    if not any(token in years or token.startswith(f"{day.year}") for _, _, token in tokens):
        return False
    names = [match.start() for match in re.finditer(rf"\b(?:{_MONTHS[day.month - 1]})\w*", plain)]
    if names and _ORDINAL.search(plain):
        return True
    months = [*names, *(start for start, _, token in tokens if int(token[:4]) == day.month and len(token) <= 2)]
    days = [start for start, _, token in tokens if len(token) <= 2 and int(token) == day.day]
    return any(at != other and abs(at - other) <= _REACH for at in days for other in months)


_SPELLINGS = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "æ": "ae", "ø": "oe", "å": "aa"})


def words_occur(text: str, words: str) -> bool:
    """Whether the `text` has the letters and digits of these `words` in a row: case, spaces,
    punctuation, hyphens at the end of a line and accents aside. True for words without any.

    >>> from rrf_design.responses import words_occur
    >>> words_occur("Muster-\\nfirma GmbH, Köln", "Musterfirma GmbH")
    True
    """
    here, wanted = _foldings(text), _foldings(words)
    return any(one in other for one, other in zip(wanted, here, strict=True))


def _foldings(text: str) -> tuple[str, str, str]:
    """Letters and digits alone: as they are, without accents, and with them written out."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    bare = "".join(c for c in unicodedata.normalize("NFKD", folded) if not unicodedata.combining(c))
    return _squashed(folded), _squashed(bare), _squashed(folded.translate(_SPELLINGS))


def _squashed(text: str) -> str:
    return "".join(filter(str.isalnum, text))
