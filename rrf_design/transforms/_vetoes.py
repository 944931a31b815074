"""Free checks: what an answer can't be right about, seen without asking anybody.

A veto can say "wrong" and never "right": an amount that stands nowhere in the document is not its
total, one that stands there may be. A vetoed answer counts as unread, so the place of its error is
known: margins are over S ∪ E with |S| ≤ 2k and E what was vetoed (docs/algorithms.md, fact 38), and
the premise is about the other answers alone. So a veto that is wrong costs an answer, and never
makes another value right.

`vetoed` is asked wherever answers are read: by tables, live runs and the repair of one problem.
Everything here leans to silence: a value that may stand in the text in any written form, a number
of a country whose check digits nobody listed, a text that can't be read are not vetoed.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design import documents
from rrf_design.errors import InputError
from rrf_design.files import suggestion
from rrf_design.market import exact
from rrf_design.responses import Parsed, ParseStatus, day_occurs, number_occurs, words_occur
from rrf_design.transforms._checksums import DIGITS, refuted

if TYPE_CHECKING:
    from rrf_design.problem import Problem


def evaluated(text: str, variables: Mapping[str, Any]) -> tuple[Fraction, ...]:
    """`checks.evaluate`, which is imported late: it knows problems, and problems know vetoes."""
    from rrf_design.checks import evaluate

    return evaluate(text, variables)


Rule = Mapping[str, Any]
KINDS = ("in_text", "within", "digits", "lookup", "regex", "returns")
"""What a veto may look at, beside the equations between the fields of one answer."""
_KEYS = (*KINDS, "near", "scale", "shift", "tests")
_EQUATION = ("sum", "equals", "within", "coefficients")
VETOED = "vetoed"
"""The status of an answer that can't be right, whatever the others say: it counts as unread."""


def vetoed(rules: Mapping[str, Sequence[Rule]], said: Mapping[str, Parsed]) -> dict[str, str]:
    """The nodes among these whose answers break what is said of them.

    Parameters
    ----------
    rules : by node what it may not break, as `veto` of a node has it.
    said : by node what was read; nothing is said of nodes that are missing here.

    Returns
    -------
    dict
        By vetoed node what its answer breaks, in words.

    >>> from rrf_design.responses import parsers
    >>> from rrf_design.transforms._vetoes import vetoed
    >>> read = parsers.get("decimal").parse
    >>> rules = {"total": [{"in_text": "Gesamt 1.190,00 EUR"}]}
    >>> vetoed(rules, {"total": read("1190")}), vetoed(rules, {"total": read("1290")})
    ({}, {'total': '1290 does not stand in the text'})
    """
    found: dict[str, str] = {}
    for node, listed in rules.items():
        for rule in listed if node in said else ():
            why = _unequal(rule, said) if "sum" in rule else _refused(rule, said[node])
            if why is not None:
                found[node] = why
    return found


def rules_of(problem: Problem) -> dict[str, tuple[Rule, ...]]:
    """The vetoes of a problem, by node."""
    return {node.id: node.veto for node in problem.nodes if node.veto}


def stated(value: Sequence[float], text: str = "") -> Parsed:
    """Numbers that were recorded without their text, as if they had been read."""
    return Parsed(ParseStatus.PARSED, tuple(value), True, text)


def not_counted(unread: Mapping[str, str]) -> str:
    """What vetoes add to a premise: of whom it no longer speaks; empty where nothing was vetoed."""
    names = [name for name, status in unread.items() if status == VETOED]
    return f", not counting what a veto struck out ({', '.join(names)})" if names else ""


def check_rules(rules: Sequence[Rule], *, folder: Path | None = None) -> None:
    """InputError for a rule that can't be followed; with a folder also for one whose table is not
    there.
    """
    for rule in rules:
        keys = _EQUATION if "sum" in rule else _KEYS
        for key in rule:
            if key not in keys:
                raise InputError(f"veto: unknown key {key!r}{suggestion(key, keys)}")
        given = [key for key in KINDS if key in rule]
        if "sum" in rule:
            continue
        if len(given) != 1:
            raise InputError(f"veto: give one of {', '.join(KINDS)}, not {' and '.join(given) or 'none of them'}")
        _CHECKS[given[0]](rule[given[0]])
        if given[0] == "lookup" and folder is not None:
            _keys(_placed(rule["lookup"], folder))


def placed(rule: Rule, folder: Path) -> Rule:
    """A rule whose table is looked for in the folder of its recipe."""
    return {**rule, "lookup": _placed(rule["lookup"], folder)} if "lookup" in rule else rule


def with_tests(rule: Rule, spec: Any) -> Rule:
    """A property of a program, beside the tests of the parser that reads it."""
    if "returns" not in rule:
        return rule
    if rule["returns"].strip():
        _check_returns(rule["returns"])  # a cell may have said it
    if "tests" in rule:
        return rule
    if not isinstance(spec, Mapping) or not isinstance(spec.get("tests"), list | tuple):
        raise InputError(f"veto: returns = {rule['returns']!r} speaks of a program (parse = code with tests)")
    return {**rule, "tests": spec["tests"]}


def _broken(rule: Rule, answer: Parsed) -> str | None:
    """The first test on which a program breaks a property; nothing is said of tests with other
    arguments than numbers.
    """
    if not rule["returns"].strip():
        return None
    left, sign, right = _sides(rule["returns"])
    for arguments, out in zip(rule.get("tests", ()), answer.value or (), strict=False):
        if not all(isinstance(one, int | float) for one in arguments):
            continue
        known = {**dict(zip(_ARGUMENTS, arguments, strict=False)), "out": out}
        try:
            one, other = (evaluated(side, known)[0] for side in (left, right))
        except InputError:
            continue  # a division by zero, or a name that this test has not
        if not _HOLDS[sign](one, other):
            called = ", ".join(f"{number:g}" for number in arguments)
            return f"for ({called}) it returns {out:g}, which is not {rule['returns']}"
    return None


_ARGUMENTS = tuple("abcdefgh")
_HOLDS: Mapping[str, Callable[[Any, Any], bool]] = {
    **{"<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne},
    **{"<": operator.lt, ">": operator.gt},
}


def _sides(given: Any) -> tuple[str, str, str]:
    """A comparison taken apart."""
    found = re.fullmatch(r"([^<>=!]+)(<=|>=|==|!=|<|>)([^<>=!]+)", given.strip()) if isinstance(given, str) else None
    if found is None:
        raise InputError(f'veto: returns = {given!r} is no comparison, as in "out >= a" (out: what is returned)')
    return found[1].strip(), found[2], found[3].strip()


def _unequal(rule: Rule, said: Mapping[str, Parsed]) -> str | None:
    """An equation within one answer: its fields can't all be within their tolerances of the truth
    when its two sides are further apart than these allow. Nothing is said where a field was not
    read.
    """
    parts, whole = list(rule["sum"]), rule["equals"]
    values = {name: said[name].value for name in (*parts, whole) if name in said}
    if len(values) <= len(parts) or None in values.values():
        return None
    numbers = {name: value[0] for name, value in values.items() if value is not None}
    factors = [Fraction(str(c)) for c in rule.get("coefficients") or [1] * len(parts)]
    total = sum((c * exact(numbers[name]) for c, name in zip(factors, parts, strict=True)), Fraction(0))
    if abs(total - exact(numbers[whole])) <= exact(rule.get("within", 0.0)):
        return None
    terms = " + ".join(n if c == 1 else f"{float(c):g} {n}" for c, n in zip(factors, parts, strict=True))
    return f"{terms} is {float(total):.10g}, and {whole} is {numbers[whole]:.10g}"


def _refused(rule: Rule, answer: Parsed) -> str | None:
    """What one answer breaks of one rule."""
    if "returns" in rule:
        return _broken(rule, answer)
    for value in _said(rule, answer):
        shown = value if isinstance(value, str) else f"{float(value):.10g}"
        if "in_text" in rule:
            if str(rule["in_text"]).strip() and not _occurs(str(rule["in_text"]), value, exact(rule.get("near", 0.0))):
                return f"{shown} does not stand in the text"
        elif "within" in rule:
            low, high = rule["within"]
            if not _inside(value, low, high, exact(rule.get("near", 0.0))):
                return f"{shown} is not within {low} and {high}"
        elif "digits" in rule:
            why = refuted(rule["digits"], str(value))
            if why is not None:
                return f"{shown} can't be right as {rule['digits']}: {why}"
        elif "lookup" in rule:
            if not _known(str(rule["lookup"]), value):
                return f"{shown} is not in {rule['lookup']}"
        elif not _fits(rule["regex"], str(value), answer):
            return f"{shown} is not of the form {rule['regex']}"
    return None


def _said(rule: Rule, answer: Parsed) -> Iterator[str | Fraction]:
    """The values of an answer: its words where it is a class or a choice, else its numbers, taken
    back to what the rule speaks of.
    """
    words = answer.canonical or answer.label or ""
    if answer.value is None or (words and not _NUMERIC.fullmatch(words)):
        yield words
        return
    numbers = [Fraction(part) for part in words.split()] if words else [exact(number) for number in answer.value]
    for number in numbers:
        yield (number - exact(rule.get("shift", 0.0))) / exact(rule.get("scale", 1.0))


_NUMERIC = re.compile(r"[+-]?\d+(?:/\d+)?(?: [+-]?\d+(?:/\d+)?)*")


def _day(value: str | Fraction) -> date | None:
    try:
        return date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _occurs(text: str, value: str | Fraction, near: Fraction) -> bool:
    if isinstance(value, Fraction):
        return number_occurs(text, value, near)
    day = _day(value)
    return words_occur(text, value) or (day is not None and day_occurs(text, day))


def _inside(value: str | Fraction, low: Any, high: Any, near: Fraction) -> bool:
    if isinstance(value, Fraction):
        return isinstance(low, str) or exact(low) - near <= value <= exact(high) + near
    day, first, last = _day(value), _day(low), _day(high)
    return day is None or first is None or last is None or first <= day <= last


def _fits(pattern: str, value: str, answer: Parsed) -> bool:
    """Whether the form fits the answer as it was written, or as it is compared with others."""
    written = (value, answer.label or "", re.sub(r"\s+", " ", value).strip())
    return any(re.fullmatch(pattern, one, re.IGNORECASE) for one in written)


def _plain(cell: Any) -> str:
    """A key without case, spaces, marks and leading zeros: 007 and 7 may be one."""
    bare = "".join(filter(str.isalnum, str(cell).casefold()))
    return bare.lstrip("0") or bare[:1]


def _known(where: str, value: str | Fraction) -> bool:
    keys, numbers = _keys(where)
    if isinstance(value, Fraction):
        return value in numbers or (value.denominator == 1 and _plain(value) in keys)
    return _plain(value) in keys


def _keys(where: str) -> tuple[frozenset[str], frozenset[Fraction]]:
    name, _, column = where.rpartition(":")
    try:
        changed = Path(name).stat().st_mtime_ns
    except OSError:
        raise InputError(f"veto: lookup = {where!r}: no such file {name!r}") from None
    return _read_keys(name, column, changed)


@lru_cache(16)
def _read_keys(name: str, column: str, changed: int) -> tuple[frozenset[str], frozenset[Fraction]]:
    """The keys of a table's column, as words and as the numbers that they may be."""
    suffix = Path(name).suffix.lower()
    if suffix not in (".csv", ".tsv"):
        raise InputError(f"veto: lookup reads a column of a .csv or .tsv file, not of {name!r}")
    text = Path(name).read_text(encoding="utf-8-sig")
    header, rows = documents.csv_rows(text.replace("\t", ",") if suffix == ".tsv" else text)
    if column not in header:
        raise InputError(f"veto: {name} has no column {column!r}{suggestion(column, header)}")
    cells = [str(row.get(column) or "").strip() for _, row in rows]
    numbers = []
    for cell in cells:
        try:
            numbers.append(Fraction(cell))
        except (ValueError, ZeroDivisionError):
            continue
    return frozenset(map(_plain, filter(None, cells))), frozenset(numbers)


def _placed(where: str, folder: Path) -> str:
    name, mark, column = where.rpartition(":")
    return f"{folder / name}{mark}{column}"


def _check_range(given: Any) -> None:
    pair = list(given) if isinstance(given, list | tuple) else []
    numbers = [isinstance(one, int | float) and not isinstance(one, bool) for one in pair]
    days = [_day(one) if isinstance(one, str) else None for one in pair]
    if len(pair) != 2 or not (all(numbers) or None not in days):
        raise InputError(f"veto: within = {given!r} is not two numbers or two dates such as 2024-01-31")
    if pair[0] > pair[1]:
        raise InputError(f"veto: within = {given!r}: the least comes first")


def _check_digits(given: Any) -> None:
    if given not in DIGITS:
        raise InputError(f"veto: digits = {given!r}{suggestion(str(given), DIGITS)}; known: {', '.join(DIGITS)}")


def _check_lookup(given: Any) -> None:
    name, mark, column = str(given).rpartition(":")
    if not (mark and name and column):
        raise InputError(f'veto: lookup = {given!r} names no file and column, as in "suppliers.csv:vat"')


def _check_regex(given: Any) -> None:
    try:
        re.compile(given)
    except (re.error, TypeError) as error:
        raise InputError(f"veto: regex = {given!r} is no pattern ({error})") from None


def _check_text(given: Any) -> None:
    if not isinstance(given, str) or not given.strip():
        raise InputError('veto: in_text is the text in which the value must stand, as in "{{ text }}"')


def _check_returns(given: Any) -> None:
    if isinstance(given, str) and "{{" in given:
        return  # a placeholder: looked at row by row
    known = {**dict.fromkeys(_ARGUMENTS, 3), "out": 5}
    for side in _sides(given)[::2]:
        try:
            evaluated(side, known)
        except InputError as error:
            if "division by zero" not in str(error):
                raise InputError(f"veto: returns = {given!r}: {error}") from None


_CHECKS: Mapping[str, Callable[[Any], None]] = {
    "in_text": _check_text,
    "within": _check_range,
    "digits": _check_digits,
    "lookup": _check_lookup,
    "regex": _check_regex,
    "returns": _check_returns,
}
