"""Sums, products, capitals and a small program, each asked in four wordings, with two more and a
check for sale; and what a run over them got right. Then a table of capitals to hand over.

Numbers come from a seeded generator, not from what the model happens to know. The truth is used in
two places only: inside an anchor, which the run has to buy, and after the run, to judge it. The
theorem promises: where the margin is certified and at most k answers are wrong, the repair is the
truth. So every field is put into one of the boxes of `FieldVerdict`, and `BROKEN` must stay empty:
it would be a bug, not bad luck.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.problem import Problem
from rrf_design.questions.templates import render
from rrf_design.responses import parsers

if TYPE_CHECKING:
    from rrf_design.acquisition import Acquisition, ItemResult

K = 2
"""Wrong answers per field that must not be able to hide."""
TARGET = 0.4
WORDING = 2.0
"""Price of one more wording: another call of the model."""
CALCULATOR = 1.0
TESTS = 1.0
ATLAS = 3.0
"""Prices of a check: a calculator is cheaper than another call, a person with an atlas is
dearer.
"""

_SUM = (  # name, question, and how much more its answer is
    ("plain", "Compute {{ a }} + {{ b }}.", 0),
    ("swapped", "Compute {{ b }} + {{ a }}.", 0),
    ("worded", "Compute the sum {{ a }} + {{ b }}.", 0),
    ("one more", "Compute {{ a }} + {{ c }}.", 1),
    ("plus", "Compute {{ a }} plus {{ b }}.", 0),
    ("add", "Add {{ a }} + {{ b }}.", 0),
)
_PRODUCT = (
    ("plain", "Compute {{ a }} * {{ b }}.", 0),
    ("swapped", "Compute {{ b }} * {{ a }}.", 0),
    ("worded", "Compute the product {{ a }} * {{ b }}.", 0),
    ("times", "Compute {{ a }} times {{ b }}.", 0),
    ("question", "What is {{ a }} * {{ b }}?", 0),
    ("multiply", "Multiply {{ a }} * {{ b }}.", 0),
)
_CAPITAL = (
    ("plain", "What is the capital of {{ x }}?", 0),
    ("tell", "Tell me the capital of {{ x }}.", 0),
    ("name", "Name the capital of {{ x }}.", 0),
    ("city", "What is the capital city of {{ x }}?", 0),
    ("which", "Which city is the capital of {{ x }}?", 0),
    ("seat", "In which city does the government of {{ x }} sit?", 0),
)
_PROGRAM = (
    ("plain", "Write a Python function solve(n) that returns {{ x }}.", 0),
    ("define", "Define solve(n) in Python. It returns {{ x }}.", 0),
    ("short", "Python: def solve(n) which returns {{ x }}. Only code.", 0),
    ("please", "Please write the Python function solve(n). It should return {{ x }}.", 0),
    ("one line", "Write solve(n) in one line of Python; it returns {{ x }}.", 0),
    ("code", "Give me the code of a Python function solve(n) returning {{ x }}.", 0),
)
_PLACES: Mapping[str, Sequence[str]] = {
    "Spain": ("Madrid", "Barcelona", "Seville", "Valencia"),
    "Egypt": ("Cairo", "Alexandria", "Luxor", "Giza"),
    "Australia": ("Canberra", "Sydney", "Melbourne", "Perth"),
    "Turkey": ("Ankara", "Istanbul", "Izmir", "Bursa"),
    "Switzerland": ("Bern", "Zurich", "Geneva", "Basel"),
}
"""The capital first, then the cities that are often taken for it."""
_INPUTS = ([2], [3], [7])
_PROGRAMS = (("n squared", (4, 9, 49)), ("n plus one", (3, 4, 8)))


CAPITALS = {
    **{"Australia": "Canberra", "Austria": "Vienna", "Belgium": "Brussels", "Brazil": "Brasilia"},
    **{"Bulgaria": "Sofia", "Canada": "Ottawa", "Chile": "Santiago", "China": "Beijing"},
    **{"Croatia": "Zagreb", "Cuba": "Havana", "Denmark": "Copenhagen", "Egypt": "Cairo"},
    **{"Finland": "Helsinki", "France": "Paris", "Germany": "Berlin", "Greece": "Athens"},
    **{"Hungary": "Budapest", "Indonesia": "Jakarta", "Iran": "Tehran", "Iraq": "Baghdad"},
    **{"Ireland": "Dublin", "Italy": "Rome", "Japan": "Tokyo", "Kenya": "Nairobi"},
    **{"Latvia": "Riga", "Lithuania": "Vilnius", "Netherlands": "Amsterdam", "Norway": "Oslo"},
    **{"Peru": "Lima", "Poland": "Warsaw", "Portugal": "Lisbon", "Romania": "Bucharest"},
    **{"Russia": "Moscow", "Spain": "Madrid", "Sweden": "Stockholm", "Switzerland": "Bern"},
    **{"Thailand": "Bangkok", "Turkey": "Ankara", "Vietnam": "Hanoi", "Uruguay": "Montevideo"},
}
"""The table that is handed over, and the atlas that people look into."""
_TAKEN_FOR = ("Sydney", "Rio", "Toronto", "Shanghai", "Milan", "Barcelona", "Zurich", "Geneva", "Istanbul", "Saigon")
"""Cities that are no capital and often taken for one."""
_CAPITAL_ASKS = (
    ("asked", "What is the capital of {{ country }}?"),
    ("city", "{{ country }}: which city is its capital? Answer with the city only."),
    ("named", "Which city is the capital of {{ country }}?"),
)


def write_capitals(folder: Path) -> Path:
    """The table of capitals and its recipe, in files; the recipe's path."""
    rows = "".join(f"{country},{capital}\n" for country, capital in CAPITALS.items())
    (folder / "capitals.csv").write_text(f"country,capital\n{rows}", encoding="utf-8")
    lines = ["[data]", 'table = "capitals.csv"', 'id = "country"', 'gold = "capital"', ""]
    lines += ["[answer]", 'of = "asked"', "k = 1", f"choices = {json.dumps([*CAPITALS.values(), *_TAKEN_FOR])}", ""]
    for name, prompt in _CAPITAL_ASKS:
        lines += ["[[ask]]", f'id = "{name}"', f'prompt = "{prompt}"', "max_tokens = 12", "cost = 1.0"]
        lines += [*(['like = "asked"'] if name != "asked" else []), ""]
    person = 'by = { person = "What is the capital of {{ country }}?" }'
    lines += ["[[check]]", 'id = "atlas"', 'of = "asked"', person, "cost = 10.0", ""]
    lines += ["[promise]", "risk = 0.1", "confidence = 0.95", ""]
    path = folder / "rrf.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@dataclass(frozen=True, slots=True)
class Topic:
    """One field of the demonstration: the problem as the run sees it, and the truth for judging
    afterwards.
    """

    problem: Problem
    truth: Mapping[str, tuple[float, ...]]
    options: tuple[str, ...] = ()
    """What the coordinates of a choice mean."""

    def words(self, value: Sequence[float] | None) -> str:
        """A value as a person would say it."""
        if value is None:
            return "?"
        if self.options:
            one = [name for name, x in zip(self.options, value, strict=True) if abs(x - 1) < 1e-6]
            zero = sum(abs(x) < 1e-6 for x in value)
            return one[0] if len(one) == 1 and zero == len(value) - 1 else "mixed"
        return "/".join(f"{x:g}" for x in value)


def topics(
    seed: int = 7, *, sums: int = 4, products: int = 3, capitals: int = 5, programs: int = 1
) -> dict[str, Topic]:
    """The data set; fewer of each kind for a shorter demonstration."""
    rng = np.random.default_rng(seed)
    result: dict[str, Topic] = {}
    for sign, wordings, count in (("+", _SUM, sums), ("×", _PRODUCT, products)):
        pairs = [(a, b) for a, b in combinations(range(2, 10), 2)]
        for i in rng.choice(len(pairs), size=count, replace=False):
            a, b = rng.permutation(pairs[i]).tolist()
            name = f"{a} {sign} {b}"
            value = a + b if sign == "+" else a * b
            result[name] = _topic(
                name,
                wordings,
                {"a": a, "b": b, "c": b + 1},
                parser="integer-last",
                tokens=96,
                truth=[value],
                check={"source": f"expression: a {'+' if sign == '+' else '*'} b", "cost": CALCULATOR},
            )
    for place, options in list(_PLACES.items())[:capitals]:
        order = [int(i) for i in rng.permutation(4)]  # so that no position is the right one
        shown = tuple(options[i] for i in order)
        truth = [float(name == options[0]) for name in shown]
        result[f"capital of {place}"] = _topic(
            f"capital of {place}",
            _CAPITAL,
            {"x": place},
            parser={"name": "choice", "options": list(shown)},
            tokens=48,
            truth=truth,
            check={"value": truth, "cost": ATLAS},
            options=shown,
        )
    for words, outputs in _PROGRAMS[:programs]:
        expected = list(outputs)
        tests = [list(arguments) for arguments in _INPUTS]
        result[f"program: {words}"] = _topic(
            f"program: {words}",
            _PROGRAM,
            {"x": words},
            parser={"name": "code", "tests": tests},
            tokens=160,
            truth=expected,
            check={"source": {"tests": tests, "expected": expected}, "cost": TESTS},
        )
    return result


def _topic(
    name: str,
    wordings: Sequence[tuple[str, str, int]],
    variables: Mapping[str, object],
    *,
    parser: str | Mapping[str, Any],
    tokens: int,
    truth: Sequence[float],
    check: Mapping[str, Any],
    options: tuple[str, ...] = (),
) -> Topic:
    """Four wordings asked at once and two for sale, every pair compared for nothing, one check for
    sale.
    """
    dim = parsers.get(parser).dim
    nodes: list[dict[str, Any]] = [
        {"id": id_, "dim": dim, "prompt": render(text, variables), "parser": parser, "max_tokens": tokens}
        for id_, text, _ in wordings
    ]
    for node in nodes[4:]:
        node["cost"] = WORDING
    nodes[0] |= {"variables": dict(variables), "prompt": wordings[0][1]}
    problem = Problem(
        name=name,
        k=K,
        target=TARGET,
        nodes=nodes,
        relations=[
            {"id": f"{tail}-{head}", "tail": tail, "head": head, "offset": float(more - less)}
            for (tail, _, less), (head, _, more) in combinations(wordings, 2)
        ],
        anchors=[{"id": "check", "node": nodes[0]["id"], **check}],
    )
    values = {id_: tuple(float(x + more) for x in truth) for id_, _, more in wordings}
    return Topic(problem, values, options)


class FieldVerdict(StrEnum):
    CLEAN = "all right"
    REPAIRED = "repaired, as guaranteed"
    BROKEN = "PROMISE BROKEN"
    """Certified, within the corruption budget, and still not the truth. Never to be seen."""
    LUCKY = "repaired, not guaranteed"
    NOTICED = "too many wrong, noticed"
    """More wrong answers than the corruption budget, and no error on so few nodes explains what was
    measured.
    """
    FOOLED = "too many wrong, fooled"
    """More wrong answers than the corruption budget, and they agree on something false."""
    UNCERTAIN = "not repaired, nothing promised"


@dataclass(frozen=True, slots=True)
class FieldJudgement:
    """One field: what was asked, what was wrong, and what became of it."""

    item: str
    verdict: FieldVerdict
    asked: int
    wrong: tuple[str, ...]
    unread: tuple[str, ...]
    repaired_wrong: tuple[str, ...]
    """Wrong answers whose repaired value is the truth."""
    certified: bool
    within: bool
    """There are answers, and at most k of them are wrong (those that could not be read are missing,
    not wrong).
    """


@dataclass(frozen=True, slots=True)
class Grade:
    fields: tuple[FieldJudgement, ...]

    def count(self, *verdicts: FieldVerdict) -> int:
        return sum(field.verdict in verdicts for field in self.fields)

    @property
    def within(self) -> int:
        return sum(field.within for field in self.fields)

    @property
    def wrong(self) -> int:
        return sum(len(field.wrong) for field in self.fields)

    @property
    def repaired(self) -> int:
        return sum(len(field.repaired_wrong) for field in self.fields)

    @property
    def unread(self) -> int:
        return sum(len(field.unread) for field in self.fields)

    @property
    def asked(self) -> int:
        return sum(field.asked for field in self.fields)

    @property
    def kept(self) -> bool:
        """No promise was broken."""
        return self.count(FieldVerdict.BROKEN) == 0


def judge(run: Acquisition, topics: Mapping[str, Topic]) -> Grade:
    """Compare every field of a run with the truth."""
    return Grade(tuple(_field(entry, topics[entry.item]) for entry in run.items))


def _field(entry: ItemResult, topic: Topic) -> FieldJudgement:
    nodes = topic.problem.node_by_id
    wrong = tuple(name for name, value in entry.answers.items() if not _same(value, topic.truth[name]))
    unread = tuple(name for name in entry.failed if name in nodes)
    repair: Mapping[str, Any] = entry.repair or {}
    repaired: Mapping[str, Any] = repair.get("repaired") or {}
    # Values that nothing determines are not claimed, so they can't be wrong.
    given = {name: value for name, value in repaired.items() if value is not None}
    right = bool(given) and all(_same(value, topic.truth[name]) for name, value in given.items())
    within = bool(entry.answers) and len(wrong) <= entry.k
    sure = bool(repair.get("guaranteed"))
    return FieldJudgement(
        item=entry.item,
        verdict=_verdict(right=right, sure=sure, within=within, wrong=bool(wrong), repair=repair),
        asked=len(entry.answers) + len(unread),
        wrong=wrong,
        unread=unread,
        repaired_wrong=tuple(n for n in wrong if repaired.get(n) is not None and _same(repaired[n], topic.truth[n])),
        certified=entry.reached,
        within=within,
    )


def _verdict(*, right: bool, sure: bool, within: bool, wrong: bool, repair: Mapping[str, Any]) -> FieldVerdict:
    if right and not wrong:
        return FieldVerdict.CLEAN
    if right:
        return FieldVerdict.REPAIRED if sure and within else FieldVerdict.LUCKY
    if within:
        return FieldVerdict.BROKEN if sure else FieldVerdict.UNCERTAIN
    if not repair.get("repaired"):
        return FieldVerdict.UNCERTAIN
    return FieldVerdict.FOOLED if _quiet(repair) else FieldVerdict.NOTICED


def _quiet(repair: Mapping[str, Any]) -> bool:
    """The repair gives no sign that something is wrong."""
    return repair.get("certainty") not in ("unexplained", "ambiguous", "undecided")


def _same(value: Sequence[float] | None, truth: Sequence[float]) -> bool:
    return value is not None and all(abs(x - y) < 1e-6 for x, y in zip(value, truth, strict=True))
