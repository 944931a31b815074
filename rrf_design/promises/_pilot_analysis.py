"""A pilot: random items with known truth, every policy played on them, every test recorded
(docs/algorithms.md, facts 23 and 31 to 34).

What the acceptance rules assume about k is tested here and not believed. Nothing is looked at
before the order of tests is fixed (`ordering`).

A pilot is looked at once, or in an order of tests that stays: what would make a second look
another chance is refused.

Truths that the questions already show: what no template may name can still stand in a column
that is a copy of it.

The gold column itself reaches no text (`questions.preflight`, and rows are filled in without it).
Here the columns that prompts do show are held against the truths of the drawn items, and of no
others: a column that is the truth in every one of them is refused, because a pilot of questions
that show their answers says nothing about questions that do not. A column that gives it away by
rounding or by one line (truth = a · cell + b), and items whose text stands in the recipe itself as
an example, are named and left to the author: net amounts beside gross ones are honest questions.

What nothing here can see is said in docs/promises.md: texts that contain the truth are what reading
an invoice is about.

A pilot that grows until its answer is clear: tests that hold at every moment, so that stopping
early costs nothing of the promise.

It is clear when more labels could not pay: what the cheapest policy that still looks good would
save on the items left, against the policy in hand (or against checking everything), is less than
the next labels cost. That is a rule about money only; whatever it decides, the promise holds.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from rrf_design.checker.promise_words import PROVEN, UNPROVEN, why_everything
from rrf_design.checks import decides, delivered_node, is_person, known_value
from rrf_design.documents import checked
from rrf_design.errors import InputError, Refused
from rrf_design.problem import Problem
from rrf_design.promises._measure import disputed_gold, measured
from rrf_design.promises._pilot_design import PilotPlan, PilotSettings, tested_limit
from rrf_design.promises._pilot_order import order_of_tests
from rrf_design.promises._play import PlayedPolicy, at_worst, play, unrecorded
from rrf_design.promises._policies import CHECK_EVERYTHING, CascadePolicy, LastStage
from rrf_design.promises._sheets import AnswerSheet
from rrf_design.promises._truths import Said, Truth, cannot_tell, read_truth, worded
from rrf_design.questions import find_slots
from rrf_design.questions.datasets import Dataset
from rrf_design.questions.templates import strict_number
from rrf_design.responses.parsed import Parser
from rrf_design.risk import Among, PolicyChoice, Scope, Statement, Stream, assess, first_look


@dataclass(frozen=True, slots=True)
class PilotResult:
    """The choice with everything that proves it; `chosen` is None where checking everything is the
    answer.
    """

    plan: PilotPlan
    choice: PolicyChoice
    played: Mapping[str, PlayedPolicy]
    chosen: CascadePolicy | None
    why: str
    truth_source: str
    measured: Mapping[str, Any]
    aside: int
    """So many items, the last of the draw, made the order of tests."""
    leaks: Sequence[Mapping[str, Any]] = ()
    """Columns and texts that may give the truth away."""


def gold_truths(plan: PilotPlan, reviews: Mapping[str, Any] | None = None) -> tuple[dict[str, Truth], list[str]]:
    """The truth of each drawn item that has one, and the ids of those that people still have to
    say.
    """
    found: dict[str, Truth] = {}
    missing: list[str] = []
    for place in plan.drawn:
        row = plan.sheet.rows[place]
        cell = (reviews or {}).get(row.id)
        if cannot_tell(cell):
            found[row.id] = Truth.unknown()
            continue
        if cell is None and plan.rule.column is not None:
            cell = row.item.gold
        if cell is None and plan.rule.column is None:
            cell = checked_value(row.item.problem)
        try:
            truth = read_truth(cell, row.parser, plan.rule.within(row.template.problem.delta))
        except InputError as error:
            raise InputError(f"{plan.dataset.table.name}: item {row.id!r}: {error}") from None
        if truth is None:
            missing.append(row.id)
        else:
            found[row.id] = truth
    return found, missing


def checked_value(problem: Problem) -> list[float] | None:
    """What an exact check says that nobody has to be asked for: a value, or arithmetic over what
    the item knows.
    """
    for anchor in problem.anchors:
        if decides(problem, anchor, delivered_node(problem)) and not is_person(anchor):
            value = known_value(problem, anchor)
            if value is not None:
                return [float(number) for number in value]
    return None


def run_pilot(
    plan: PilotPlan, truths: Mapping[str, Truth], *, truth_source: str, before: Mapping[str, Any] | None = None
) -> PilotResult:
    """Play, test, choose, measure.

    `before`: the policy that an earlier look at this pilot wrote; its order of tests stays.
    """
    settings = plan.settings
    pilot, aside = plan.pilot, plan.aside
    known = [truths[name] for name in pilot.ids]
    shown = leaks_of(plan.dataset, pilot, known)
    played = [at_worst(one, pilot) for one in play(plan.policies, pilot, last=plan.last, truths=known)]
    streams, ordered_by = order_of_tests(plan, aside) if before is None else earlier_look(before, played)
    finite = settings.statement is not Statement.FRESH
    if finite and settings.among is Among.DELIVERED and plan.models is None:
        played = _with_counts(plan, played)
    limit = tested_limit(plan)
    choice = assess(
        played,
        limit,
        settings.confidence,
        order=streams,
        statement=Scope(settings.statement, len(pilot), len(plan.population) if finite else None),
        sequential=settings.sequential,
        ordered_by=ordered_by,
    )
    chosen, why = _decide(plan, choice, {p.name: p for p in played})
    measured = _measure(plan, pilot, aside, known)
    kept = len(aside) if before is None else int(before["aside"])
    return PilotResult(plan, choice, {p.name: p for p in played}, chosen, why, truth_source, measured, kept, shown)


def _with_counts(plan: PilotPlan, played: Sequence[PlayedPolicy]) -> list[PlayedPolicy]:
    """How many of all items each policy delivers: known from the answers alone, where all are there
    that it asks for.
    """
    found, sheet = [], plan.whole
    for one, everywhere in zip(played, play(plan.policies, sheet, last=plan.last), strict=True):
        known = not unrecorded(everywhere, sheet).any()
        found.append(replace(one, delivers=int(everywhere.delivered.sum())) if known else one)
    return found


def _decide(
    plan: PilotPlan, choice: PolicyChoice, played: Mapping[str, PlayedPolicy]
) -> tuple[CascadePolicy | None, str]:
    if choice.chosen is None:
        return None, UNPROVEN
    chosen = played[choice.chosen]
    mean = float(chosen.cost.mean())
    if chosen.policy.last is LastStage.PERSON and mean >= plan.last.check:
        return None, why_everything(mean, plan.last.check)
    return chosen.policy, PROVEN


def _measure(plan: PilotPlan, pilot: AnswerSheet, aside: AnswerSheet, truths: Sequence[Truth]) -> dict[str, Any]:
    sure, settings = plan.settings.confidence, plan.settings
    disputed = disputed_gold(pilot, truths, aside)
    # When a pilot that grows stops depends on what it showed, so its bounds are those of the first
    # look, whose size does not.
    size = min(len(pilot), first_look(settings.risk, sure)) if settings.sequential else len(pilot)
    found = measured(pilot.only(range(size)), truths[:size], plan.dataset.recipe, sure)
    return {**found, "disputed_gold": disputed, "basis": _basis(plan, size)}


def _basis(plan: PilotPlan, size: int) -> str:
    """What the measured bounds rest on, where that is not the whole of a simple draw."""
    if size < len(plan.drawn):
        return (
            f"from the first {size:,} of the {len(plan.drawn):,} items, because when a pilot that grows stops depends"
            " on what it showed, and the size of its first look does not"
        )
    if plan.settings.stratify is not None:
        return (
            f"of items that are mixed over the strata of {plan.settings.stratify!r} as the drawn ones are, not as"
            " all are"
        )
    return ""


def refuse_second_look(document: Mapping[str, Any], plan: PilotPlan) -> Mapping[str, Any] | None:
    """The earlier look at this pilot, or None where the document is about another table.

    A pilot is tested once. Testing it again with more labels or another goal, after looking, would
    break its promise; a sequential one may grow.
    """
    settings = plan.settings
    checked(document, "rrf-policy", what="policy")
    people = document.get("population")
    if not isinstance(people, Mapping) or people.get("digest") != plan.population.digest:
        return None
    _sound(document)
    said = [document.get(key) for key in ("seed", "risk", "confidence", "statement", "among", "order", "random_checks")]
    now = [
        settings.seed,
        settings.risk,
        settings.confidence,
        str(settings.statement),
        str(settings.among),
        settings.order,
        any(policy.random_checks for policy in plan.policies),
    ]
    sequential = bool((document.get("choice") or {}).get("sequential")) and settings.sequential
    labels = len(document.get("drawn") or ())
    if said != now or (labels != settings.labels and not (sequential and settings.labels >= labels)):
        raise Refused(
            f"this table was piloted already, with {labels} labels, risk {document.get('risk')} and seed"
            f" {document.get('seed')}; another look at it would void the promise. A pilot that is to grow while it is"
            " looked at is --sequential from the beginning"
        )
    most = len(plan.population) - int(document.get("aside") or 0)
    if settings.order == "front" and settings.labels > most:
        raise Refused(
            f"the order of tests was made from the last items of the draw; this pilot can grow to {most} labels"
        )
    return document


def _sound(document: Mapping[str, Any]) -> None:
    """What an earlier look wrote is gone on with only where it proves itself."""
    from rrf_design.checker.promises import prove_policy

    try:
        prove_policy(document)
    except Refused as error:
        raise Refused(
            f"the policy that is there can't be gone on with: {error}; write to another file to begin anew"
        ) from None


def earlier_look(document: Mapping[str, Any], played: Sequence[PlayedPolicy]) -> tuple[tuple[Stream, ...], str]:
    """The order of tests of an earlier look.

    Another order for the same items would be another chance; so would other truths for items that
    were looked at.
    """
    choice = document["choice"]
    marks = {entry["policy"]: entry["marks"] for entry in document["policies"]}
    if set(marks) != {one.name for one in played}:
        raise Refused(
            "the policies are not those of the earlier look at this pilot; pilot a changed recipe in another file"
        )
    changed = [one.name for one in played if not one.marks.startswith(marks[one.name])]
    if changed:
        raise Refused(
            f"items of the pilot come out otherwise than at the first look ({changed[0]}): a truth or an answer was"
            " changed after looking, which voids the promise"
        )
    streams = [Stream(Fraction(one["share"]), tuple(one["names"]), one["pooled"]) for one in choice["streams"]]
    return tuple(streams), choice["ordered_by"]


FEWEST = 10
"""Items below which a column may be the truth by accident."""
FEWEST_VALUES = 3
"""Different truths below which any two columns lie on a line."""
LONG = 40
"""Characters of a text that stands nowhere else by accident."""
SHORT = 12
"""Characters below which a text may stand anywhere."""
DIGITS = 3
_SIGNS = re.compile(r"^(?:[A-Z]{3}(?![A-Za-z])|[€$£¥])\s*|\s*(?:(?<![A-Za-z])[A-Z]{3}|[€$£¥%])$")
_DIGITS = re.compile(r"[+-]?\d[\d.,'’ \u00a0\u202f]*")
_GAPS = re.compile(r"['’ \u00a0\u202f]")
TOLD = (("prompt",), ("system",), ("variables",), ("command",))
"""What of a check's source is shown to somebody who answers: a judge, a program."""


def leaks_of(dataset: Dataset, sheet: AnswerSheet, truths: Sequence[Truth]) -> list[dict[str, Any]]:
    """What should be looked at: `column`, `how` and `items`.

    Refused for a column that is a copy of the truth.
    """
    found = []
    for column, where in _shown(dataset).items():
        cells = [row.item.cells.get(column) for row in sheet.rows]
        pairs = [(cell, truth) for cell, truth in zip(cells, truths, strict=True) if truth.values]
        parsers = [row.parser for row, truth in zip(sheet.rows, truths, strict=True) if truth.values]
        if len(pairs) < FEWEST or len({truth.values for _, truth in pairs}) < 2:
            continue
        if all(_is(cell, truth, parser) for (cell, truth), parser in zip(pairs, parsers, strict=True)):
            raise Refused(
                f"{where}: column {column!r} is the truth in all {len(pairs)} drawn items; a pilot of questions that"
                " show their answers proves nothing about others. Take it out (as a check it may stay: by = { value ="
                " ... })"
            )
        how = _gives_away(pairs)
        if how is not None:
            found.append({"column": column, "how": how, "items": [row.id for row in sheet.rows]})
    return [*found, *_examples(dataset, sheet)]


def _shown(dataset: Dataset) -> dict[str, str]:
    """Columns that questions to models and judges show, and programs are given, with where they
    first are. What a check states is no question: it may be the truth.
    """
    found: dict[str, str] = {}
    for slot in find_slots(dataset.recipe):
        asked = slot.section == "nodes" and slot.path[0] in ("prompt", "system", "variables")
        told = slot.section == "anchors" and slot.path[0] == "source" and slot.path[1:2] in TOLD
        if asked or told:
            for column in sorted(slot.columns):
                found.setdefault(column, slot.where)
    return found


def _is(cell: Any, truth: Truth, parser: Parser | None = None) -> bool:
    """Whether a cell is one of the values that are right: as a number however it is written, as a
    list of numbers, as the same words, or as the parser reads short ones.
    """
    if any(truth.right((number,)) for number in _readings(cell)) or truth.right(_listed(cell)):
        return True
    plain = _plain(str(cell))
    words = {_plain(truth.text), *(_plain(value) for value in truth.values if type(value) is str)}
    if plain in words:
        return bool(plain)
    if not isinstance(cell, str) or not 0 < len(plain) < LONG or not worded(parser):
        return False
    assert parser is not None
    read = parser.parse(cell)
    return read.ok and truth.right(read.label if read.label is not None else read.value)


def _readings(cell: Any) -> list[float]:
    """The numbers that a cell may mean: 1234.5, 1,234.50, 1.234,50, each with a currency or a
    percent sign.
    """
    number = _number(cell)
    bare = _SIGNS.sub("", str(cell).strip()).replace("−", "-") if isinstance(cell, str) else ""
    found = [] if number is None else [number]
    if _DIGITS.fullmatch(bare):
        grouped = _GAPS.sub("", bare)
        for text in (grouped.replace(",", ""), grouped.replace(".", "").replace(",", ".")):
            read = _number(text)
            found += [] if read is None else [read]
    return found


def _listed(cell: Any) -> Said | None:
    """A list of numbers, or one that a table holds as text."""
    if isinstance(cell, str) and cell.strip().startswith("["):
        try:
            cell = json.loads(cell)
        except (ValueError, RecursionError):
            return None
    numbers = [_number(part) for part in cell] if isinstance(cell, list | tuple) else []
    return tuple(part for part in numbers if part is not None) if numbers and None not in numbers else None


def _gives_away(pairs: Sequence[tuple[Any, Truth]]) -> str | None:
    """How numbers in the column say the truth of every item; None where they do not."""
    points: list[tuple[float, float]] = []
    for cell, truth in pairs:
        number, value = next(iter(_readings(cell)), None), _single(truth.values)
        if number is None or value is None:
            return None
        points.append((number, value))
    if len({value for _, value in points}) < FEWEST_VALUES:
        return None
    for digits in range(DIGITS):
        if all(round(value, digits) == number for number, value in points):
            return f"it is the truth, rounded to {digits} decimals"
    line = _line(points)
    return None if line is None else f"the truth is {line}"


def _line(points: Sequence[tuple[float, float]]) -> str | None:
    """truth = a · cell + b through all points, in rationals up to the rounding of what was
    written.
    """
    first = points[0]
    other = next((point for point in points if point[0] != first[0]), None)
    if other is None:
        return None
    slope = (Fraction(other[1]) - Fraction(first[1])) / (Fraction(other[0]) - Fraction(first[0]))
    shift = Fraction(first[1]) - slope * Fraction(first[0])
    close = all(
        abs(slope * Fraction(x) + shift - Fraction(y)) <= Fraction(1, 10**9) * max(Fraction(1), abs(Fraction(y)))
        for x, y in points
    )
    return (
        f"{float(slope):.6g} · the cell {'+' if shift >= 0 else '−'} {abs(float(shift)):.6g}"
        if close and slope
        else None
    )


def _examples(dataset: Dataset, sheet: AnswerSheet) -> list[dict[str, Any]]:
    """Drawn items whose own text stands in the recipe, in a question or in what judges and programs
    are told: an example that is asked about is no evidence.

    A short text may stand there by accident, as names of kinds do; it counts where no other drawn
    item has it.
    """
    long = dataset.recipe.long
    told = [entry.get("source") for entry in long.get("anchors", [])]
    recipe = _plain(" ".join(_written([long.get("nodes", []), told])))
    named: dict[str, list[str]] = {}
    for column in _shown(dataset):
        texts = [_plain(str(row.item.cells.get(column))) for row in sheet.rows]
        often = Counter(texts)
        for row, text in zip(sheet.rows, texts, strict=True):
            alone = len(text) >= SHORT and often[text] == 1 and re.search(rf"(?<!\w){re.escape(text)}(?!\w)", recipe)
            if text in recipe and (len(text) >= LONG or alone):
                named.setdefault(column, []).append(row.id)
    return [
        {"column": column, "how": "its text stands in a prompt of the recipe, as an example does", "items": items}
        for column, items in named.items()
    ]


def _written(part: Any) -> Iterator[str]:
    if isinstance(part, str):
        yield part
    elif isinstance(part, Mapping | list | tuple):
        for inner in part.values() if isinstance(part, Mapping) else part:
            yield from _written(inner)


def _single(values: Sequence[Said]) -> float | None:
    value = values[0] if len(values) == 1 else None
    return value[0] if isinstance(value, tuple) and len(value) == 1 else None


def _number(cell: Any) -> float | None:
    try:
        return strict_number(cell)
    except ValueError:
        return None


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


GROWTH = 1.5


def stages(settings: PilotSettings, *, already: int = 0) -> list[PilotSettings]:
    """The looks at a pilot: one at its full size, or several of growing size where the tests allow
    it. `already`: labels of an earlier look.
    """
    if not settings.sequential:
        return [settings]
    size = max(first_look(settings.risk, settings.confidence), already)
    found = []
    while size < settings.labels:
        found.append(replace(settings, labels=size))
        size = max(size + 1, int(size * GROWTH))
    return [*found, settings]


def why_stop(result: PilotResult, more: int) -> str | None:
    """In words, why `more` further labels would not pay; None while they may."""
    plan = result.plan
    left = len(plan.population) - len(plan.drawn)
    price = plan.last.check + plan.panel
    now = plan.last.check if result.chosen is None else float(result.played[result.chosen.name].cost.mean())
    hopeful = [
        float(result.played[policy.name].cost.mean())
        for policy in result.choice.policies
        if policy.counts[0].marked <= plan.settings.risk * max(1, policy.counts[0].counted)
    ]
    gain = max(0.0, now - min(hopeful, default=now)) * left
    if gain >= more * price:
        return None
    held = CHECK_EVERYTHING if result.chosen is None else "the policy in hand"
    return (
        f"{more} more labels cost {more * price:.4g}, and nothing that still looks good saves more than {gain:.4g}"
        f" against {held}"
    )
