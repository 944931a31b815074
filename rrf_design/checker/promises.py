"""Policies and audits, re-proved: the whole document is made again from its inputs and compared
with what is stored.

Inputs of a policy: the table's size and digest, seed and strata, what every policy did with every
drawn item, prices, the goal, the order of tests. Inputs of an audit: the digest of the deliveries,
the seed and the labels. All else follows from them (the draw, counts, p-values, levels, which
policy is chosen, bounds, sentences) and is worked out here by code of its own (`tails`); nothing of
`rrf_design.risk` or `rrf_design.promises`, which made the document, is used. `compare` is the one
place that compares. Version 1 stores what follows as well, version 2 leaves most of it out.

Everything here is total: whatever it is given, it returns what is proven or raises `Refused`. What
a reader has to take on trust is said by `promise_words`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from itertools import pairwise
from json import dumps
from typing import Any

from rrf_design.checker._forms import (
    Document,
    Told,
    a_confidence,
    a_flag,
    a_fraction,
    a_list,
    a_number,
    a_share,
    a_whole,
    about,
    at_least,
    compare,
    equal_to,
    filled,
    inputs_of,
    one_of,
    some_names,
    total,
    typed,
    worded,
    written,
)
from rrf_design.checker._tails import (
    PRIOR,
    PromiseScope,
    at_every_moment,
    audit_bound,
    binomial,
    decided,
    first_look,
    is_drawn,
    promised,
    refutes,
    room,
)
from rrf_design.checker.promise_words import (
    CHECK_EVERYTHING,
    PROVEN,
    UNPROVEN,
    VOIDED_BY,
    audit_sentence,
    looks_words,
    nothing_delivered,
    percent,
    promise,
    why_everything,
)
from rrf_design.errors import Refused

POLICY, AUDIT = "rrf-policy", "rrf-audit"
MOST_PILOTED, MOST_AUDITED = 2_000_000, 10_000_000
"""Items of a table: redoing a draw from more is no matter of seconds, and no reader should be made
to wait by a forged figure.
"""
DEEPEST = 3
"""The largest k for which "more than k wrong" is told."""


@dataclass(frozen=True, slots=True)
class _ProvenPolicy:
    """What a policy's document proves: at most `risk` wrong, and the sentence that says of what."""

    policy: str
    risk: float
    tests: int
    drawn: int
    sentence: str
    document: Document
    """The document with all that follows from it, as version 1 stored it."""


@dataclass(frozen=True, slots=True)
class _ProvenAudit:
    """What an audit proves: at most `bound` of `population` items are wrong."""

    population: int
    drawn: int
    wrong: int
    bound: int
    confidence: Fraction
    document: Document


@total
def prove_policy(document: Any) -> _ProvenPolicy:
    """Make a policy again from its inputs: draw, counts, tests, choice, bounds and sentence.

    `Refused` where the document says anything else, and for what is no policy.
    """
    version = _version(document, POLICY)
    whole = _compared(document, _policy(document), version)
    everything = whole["policy"] == CHECK_EVERYTHING
    return _ProvenPolicy(
        whole["policy"],
        0.0 if everything else float(whole["risk"]),
        len(whole["policies"]),
        len(whole["drawn"]),
        "Everything is checked; nothing is delivered unchecked." if everything else whole["sentence"],
        whole,
    )


@total
def prove_audit(document: Any) -> _ProvenAudit:
    """Make an audit again from its seed and labels: draw, bound and sentence.

    `Refused` where the certificate says anything else, and for what is none.
    """
    version = _version(document, AUDIT)
    made = _audit(document)
    whole = _compared(document, made, version)
    bound = made["bound"].value
    return _ProvenAudit(
        made["population"], made["drawn"], made["wrong"], bound, Fraction(str(whole["confidence"])), whole
    )


def _version(document: Any, name: str) -> int:
    kind = document.get("format") if isinstance(document, Mapping) else None
    if kind != name:
        raise Refused(f"the format should be {name!r}, not {kind!r:.40}")
    version = document["version"]
    if type(version) is not int or version not in (1, 2):
        raise Refused(f"version {version!r:.40} is not known here; this release reads 1 and 2")
    return version


def _compared(document: Document, made: dict[str, Any], version: int) -> dict[str, Any]:
    """The whole document, if what is stored is what was made again."""
    wanted = made if version == 1 else inputs_of(made)
    if made["format"] == POLICY:
        wanted = {**wanted, **{key: document[key] for key in ("stopped_because", "looks") if key in document}}
    compare(document, wanted, "")
    whole: dict[str, Any] = filled(made, document)
    return whole


def _policy(data: Document) -> dict[str, Any]:
    """The whole policy, made from its inputs."""
    people, order, price = data["population"], data["choice"], a_number(data["check_cost"], "check_cost")
    items = len(some_names(data["drawn"], "drawn"))
    size = a_whole(people["size"], "population.size", least=items, most=MOST_PILOTED)
    risk, sure = a_share(a_number(data["risk"], "risk"), "risk", zero=True), a_confidence(data["confidence"])
    statement, among = one_of(data["statement"], STATEMENTS), one_of(data["among"], ("delivered", "all"))
    growing = a_flag(order["sequential"], "choice.sequential")
    scope = PromiseScope(statement, items, size, among == "delivered", _depth(order["depth"], statement, items))
    if growing and statement != "fresh":
        raise Refused(f"a test that holds at every moment speaks of fresh items, not of {statement!r}")
    limit = _check_draw(data, scope, risk, growing)
    if "confidence" in order and a_fraction(order["confidence"], "choice.confidence") != sure:
        raise Refused(f"confidence {data['confidence']} is claimed, {order['confidence']} was tested")
    for tested in order.get("limits", ()):
        if a_fraction(tested["share"], "a limit's share") != limit:
            raise Refused(f"a risk of {data['risk']} is claimed, {tested['share']} was tested")
    marks = {entry["policy"]: entry["marks"] for entry in a_list(data["policies"], "policies")}
    tests = [_Test.of(entry, marks, scope) for entry in a_list(order["policies"], "choice.policies")]
    by_name = {test.name: test for test in tests}
    if len(by_name) != len(tests) or len(data["policies"]) != len(tests):
        raise Refused("the policies are not those that were tested, or two have the same name")
    eased = [test.eased(limit, statement) for test in tests]
    if data["strata"] is not None:
        _check_heaviest(eased, items, 1 - sure)
    if growing:
        evidence = [(at_every_moment(t.places, t.counted, rate),) * 2 for t, rate in zip(tests, eased, strict=True)]
    else:
        seen = [(rate, t.counted, len(t.places), t.delivers) for t, rate in zip(tests, eased, strict=True)]
        evidence = promised(scope, seen)
    both = dict(zip(by_name, evidence, strict=True))
    levels = decided(both, _streams(order["streams"], by_name), 1 - sure)
    proven = [test for test in tests if levels[test.name][1]]
    best = min(proven, key=lambda test: (test.cost, len(test.places)), default=None)
    everything = data["policy"] == CHECK_EVERYTHING and (best is None or Fraction(str(best.cost)) >= price)
    if data["policy"] == CHECK_EVERYTHING and not everything and best is not None:
        raise Refused(f"everything is checked, though a proven policy costs {best.cost:g}, less than a check")
    chosen = None if best is None or everything else best
    why = PROVEN if chosen is not None else UNPROVEN if best is None else why_everything(best.cost, float(price))
    cost = price if chosen is None else Fraction(str(chosen.cost))
    if cost < 0:
        raise Refused(f"a cost of {float(cost):g} an item")
    kept = 0 if chosen is None else chosen.delivered
    sentence = nothing_delivered(why)
    if chosen is not None:
        sentence = promise(risk, scope, confidence=sure, delivers=chosen.delivers, checked_share=chosen.part)
    if "looks" in data:
        a_whole(data["looks"]["count"], "looks.count", least=1)
        typed(data["looks"]["field"], str, "looks.field", "a node's id")

    def told(key: str, kinds: Any, words: str) -> Any:
        return typed(data[key], kinds, key, words)

    return {
        "format": POLICY,
        "version": data["version"],
        "policy": CHECK_EVERYTHING if chosen is None else chosen.name,
        "because": why,
        "risk": data["risk"],
        "confidence": data["confidence"],
        "statement": statement,
        "among": among,
        "sentence": worded(
            sentence + looks_words(data),
            "pilot into another file with the same settings: what is in the journal is not bought again",
        ),
        "bound": at_least(data["risk"], risk, 1) if chosen is not None else equal_to(0.0, Fraction(0)),
        "cost_per_item": equal_to(float(cost), cost),
        "check_cost": data["check_cost"],
        "delivered_share": Told(kept / max(1, items), lambda v: about(v, kept, items if chosen is not None else 1)),
        "wrong_answers": _wrong_answers(data["wrong_answers"], items if not growing else None, scope, risk, sure),
        "measured": told("measured", Mapping, "an object"),
        "policies": [_outcome(entry, by_name, levels) for entry in data["policies"]],
        "drawn": data["drawn"],
        "ladder": None if chosen is None else _cascade(data["ladder"], chosen),
        "seed": data["seed"],
        "order": told("order", str, "a text"),
        "aside": told("aside", int, "a whole number"),
        "random_checks": any(test.part > 0 for test in tests),
        "places": data["places"],
        "stratify": told("stratify", str | None, "a column's name, or null"),
        "strata": data["strata"],
        "truth": told("truth", str, "a text"),
        "twins": told("twins", list, "a list"),
        "leaks": told("leaks", list, "a list"),
        "stronger": told("stronger", list, "a list"),
        "voided_by": VOIDED_BY,
        **_identities(data),
        "recipe": {"name": data["recipe"]["name"], "digest": data["recipe"]["digest"]},
        "population": {"table": people["table"], "size": size, "digest": people["digest"]},
        "choice": {
            "chosen": None if best is None else best.name,
            "confidence": equal_to(written(sure), sure),
            "statement": statement,
            "piloted": items,
            "population": None if statement == "fresh" else size,
            "depth": order["depth"],
            "sequential": growing,
            "ordered_by": typed(order["ordered_by"], str, "choice.ordered_by", "a text"),
            "limits": [{"share": equal_to(written(limit), limit), "column": "wrong", "among": among}],
            "streams": order["streams"],
            "policies": [test.record(both[test.name][0].value, levels[test.name], scope, growing) for test in tests],
        },
    }


STATEMENTS = ("fresh", "policy", "file", "rest")


def _depth(value: Any, statement: str, items: int) -> int:
    depth = a_whole(value, "choice.depth", most=items)
    if depth and statement not in ("file", "rest"):
        raise Refused(f"a depth of {depth} means nothing for the statement {statement!r}")
    return depth


def _identities(data: Document) -> dict[str, Any]:
    """Who answered, and by which programs: nobody asked where answers are recorded ones."""
    models = typed(data["models"], Mapping | None, "models", "an object, or null for recorded answers")
    programs, runs = typed(data["programs"], Mapping, "programs", "an object"), a_list(data["runs"], "runs")
    if models is None and (programs or runs):
        raise Refused("programs and runs: belong to a pilot whose models were asked, and none is named")
    for name, files in programs.items():
        if not isinstance(files, Mapping) or any(type(digest) is not str for digest in files.values()):
            raise Refused(f"programs: {name!r:.40} should have a digest for each file")
    return {"models": models, "programs": programs, "runs": runs}


def _check_draw(data: Document, scope: PromiseScope, risk: Fraction, growing: bool) -> Fraction:
    """Refused unless seed and digest draw these places; the risk to test, for draws inside strata
    the smallest that such a draw can show where the claimed one holds.
    """
    places, seed = a_list(data["places"], "places"), a_whole(data["seed"], "seed")
    digest, labels = str(data["population"]["digest"]), data["strata"]
    if len(places) != scope.piloted:
        raise Refused(f"{scope.piloted} items are named, and {len(places)} places drawn")
    if any(type(place) is not int for place in places):
        raise Refused("a place should be a whole number")
    if (labels is None) != (data["stratify"] is None):
        raise Refused("stratify: names a column where items were drawn inside strata, and only there")
    if labels is None:
        drawn, limit = not places or is_drawn(places, scope.population, seed, digest), risk
    else:
        if len(a_list(labels, "strata")) != scope.population:
            raise Refused("the strata are not those of the population")
        if scope.statement != "fresh" or scope.delivered or growing:
            raise Refused(
                "a draw inside strata proves the statement 'fresh' among all items, for a size fixed beforehand"
            )
        names = [str(label) for label in labels]
        drawn = places == _mixed(names, f"{digest}:{seed}:")[: len(places)]
        limit = _least_share(Counter(names), Counter(names[at] for at in places if 0 <= at < len(names)), risk)
    if not drawn:
        raise Refused("seed and digest draw other items than the policy names")
    return limit


def _mixed(labels: Sequence[str], head: str) -> list[int]:
    """A random order of which every beginning is nearly proportional over the strata."""
    keys = [sha256(f"{head}{place}".encode()).digest() for place in range(len(labels))]
    members: dict[str, list[int]] = {}
    for place in sorted(range(len(labels)), key=keys.__getitem__):
        members.setdefault(labels[place], []).append(place)
    ranked = {p: Fraction(2 * at + 1, 2 * len(own)) for own in members.values() for at, p in enumerate(own)}
    return sorted(ranked, key=lambda place: (ranked[place], keys[place], place))


def _least_share(sizes: Mapping[str, int], taken: Mapping[str, int], risk: Fraction) -> Fraction:
    """The smallest expected share of wrong items in the draw when so many of all are wrong: those
    strata first of which least was drawn.
    """
    left, mean = risk * sum(sizes.values()), Fraction(0)
    for label in sorted(sizes, key=lambda one: Fraction(taken.get(one, 0), sizes[one])):
        here = min(left, Fraction(sizes[label]))
        mean += here * taken.get(label, 0) / sizes[label]
        left -= here
    return mean / sum(taken.values())


def _check_heaviest(risks: Sequence[Fraction], items: int, level: Fraction) -> None:
    """Equal trials are the worst only below the mean (Hoeffding): a test that passes larger counts
    is no test of a draw inside strata.
    """
    if any(binomial(items, risk, max(1, int(items * risk))).at_most(level) for risk in set(risks)):
        raise Refused("a draw inside strata does not prove so large a risk at so small a confidence")


@dataclass(frozen=True, slots=True)
class _Test:
    """A policy that was tested: what it did with each drawn item, what an item costs, which share
    of its deliveries is checked at random, and how many items it delivers where that is known.
    """

    name: str
    marks: str
    cost: float
    part: Fraction
    delivers: int | None
    counted: int
    places: tuple[int, ...]
    """Where the wrong ones stand among those counted."""
    said: Document

    @classmethod
    def of(cls, entry: Any, outcomes: Mapping[str, Any], scope: PromiseScope) -> _Test:
        name, cost, delivers = entry["name"], entry["cost"], entry["delivers"]
        marks = outcomes.get(name)
        if type(name) is not str or type(marks) is not str or len(marks) != scope.piloted or set(marks) - set("rw-"):
            raise Refused(f"policy {name!r:.80}: its outcomes should be one of r, w, - for each item")
        a_number(cost, f"policy {name!r:.80}: cost")
        counted = marks.replace("-", "") if scope.delivered else marks
        if delivers is not None:
            outside = 0 if not scope.delivered else scope.piloted - len(counted)
            most = None if scope.statement == "fresh" else scope.population - outside
            delivers = a_whole(delivers, f"policy {name!r:.80}: delivers", least=len(counted), most=most)
        part = a_share(a_fraction(entry["checked_share"], "checked_share"), "checked_share", zero=True)
        places = tuple(at for at, mark in enumerate(counted) if mark == "w")
        return cls(name, marks, cost, part, delivers, len(counted), places, entry)

    @property
    def delivered(self) -> int:
        return len(self.marks) - self.marks.count("-")

    def eased(self, limit: Fraction, statement: str) -> Fraction:
        """What is tested where a share q is checked at random: that leaves 1 − q of the risk."""
        if self.part and statement not in ("fresh", "policy"):
            raise Refused(f"random checks prove 'fresh' or 'policy', not {statement!r}")
        allowed = limit / (1 - self.part)
        if allowed >= 1:
            raise Refused(f"a checked share of {self.part} already keeps any risk of {limit}")
        return allowed

    def record(self, p: float, level: tuple[Fraction, bool], scope: PromiseScope, growing: bool) -> dict[str, Any]:
        error = room(scope.piloted if scope.statement == "fresh" else scope.population)
        count = {"column": "wrong", "counted": self.counted, "marked": len(self.places)}
        return {
            "name": self.name,
            "cost": self.cost,
            "counts": [{**count, "places": list(self.places)} if growing else count],
            "checked_share": self.said["checked_share"],
            "delivers": self.delivers,
            "p": Told(
                p, lambda v: type(v) in (int, float) and math.isclose(float(v), p, rel_tol=error, abs_tol=1e-300)
            ),
            "level": equal_to(written(level[0]), level[0]),
            "proven": level[1],
        }


def _outcome(entry: Any, tests: Mapping[str, _Test], levels: Mapping[str, tuple[Fraction, bool]]) -> dict[str, Any]:
    """What is told of a policy beside its marks."""
    test = tests[entry["policy"]]
    return {
        "policy": test.name,
        "cost": test.cost,
        "delivered": test.delivered,
        "counted": test.counted,
        "wrong": len(test.places),
        "proven": levels[test.name][1],
        "marks": test.marks,
    }


def _streams(entries: Any, known: Mapping[str, Any]) -> list[tuple[Fraction, list[str], bool]]:
    """The order of tests: shares of one error probability, each for names in a chain or a pool."""
    found = []
    for entry in a_list(entries, "choice.streams"):
        names = some_names(entry["names"], "a stream's names")
        if set(entry) != {"share", "names", "pooled"} or not set(names) <= set(known):
            raise Refused("a stream of tests has a share, says whether it is pooled, and names tested policies")
        found.append((a_fraction(entry["share"], "a stream's share"), names, a_flag(entry["pooled"], "pooled")))
    if any(share < 0 for share, _, _ in found) or sum(share for share, _, _ in found) > 1:
        raise Refused("the shares of the error probability are no division of it")
    return found


def _wrong_answers(said: Any, items: int | None, scope: PromiseScope, risk: Fraction, sure: Fraction) -> dict[str, Any]:
    """How often more than k answers were wrong, and each node's, with their bounds; of a pilot that
    grew those of its first look, whose size depends on nothing that was seen.
    """
    if items is None:
        items = first_look(scope.piloted, risk, 1 - sure)
    by_node = typed(said["by_node"], Mapping, "wrong_answers.by_node", "an object")
    marks = list(by_node.values())
    if any(type(m) is not str or len(m) != items or set(m) - set("01-") for m in marks):
        raise Refused(f"wrong answers should be marked 0, 1 or - for each of {items} items")
    wrong = [sum(mark[at] == "1" for mark in marks) for at in range(items)]
    deep = [(k, sum(count > k for count in wrong)) for k in range(min(DEEPEST + 1, len(marks)))]
    return {
        "answers": len(marks),
        "items": items,
        "more_than": [{"k": k, "items": count, "bound": _rate(items, count, sure)} for k, count in deep],
        "nodes": [
            {
                "node": node,
                "wrong": own.count("1"),
                "bound": _rate(items - own.count("-"), own.count("1"), sure),
            }
            for node, own in by_node.items()
        ],
        "by_node": by_node,
    }


def _rate(items: int, wrong: int, sure: Fraction) -> Told:
    """Any rate that the count refutes, with all above it (Clopper and Pearson, one-sided)."""

    def refuted(bound: Any) -> bool:
        return type(bound) in (int, float) and refutes(items, wrong, Fraction(bound), 1 - sure)

    return Told(f"{wrong} of {items}, with a bound that they prove", refuted)


def _cascade(data: Any, test: _Test) -> Document:
    """The chosen policy as it is run: its stages, if they are those of its name."""
    said = _cascade_name(data) if isinstance(data, Mapping) else data
    if said != test.name:
        raise Refused(f"the ladder is {said!r:.80}, not {test.name!r:.80}")
    if a_number(data["random_checks"], "random_checks") != test.part:
        raise Refused(f"the ladder checks {data['random_checks']} at random, {test.part} was tested")
    cascade: Document = data
    return cascade


def _cascade_name(data: Document) -> str:
    """The name of a cascade: answers in their order, the rule that accepts, what comes after it.

    Refused for stages that no policy has.
    """
    known = {"order", "gate", "number", "last", "random_checks"}
    if set(data) - {"earlier", "further", "further_k"} != known:
        raise Refused("a ladder has order, gate, number, last, random_checks, and perhaps earlier and further steps")
    order, further = some_names(data["order"], "order"), some_names(data.get("further", []), "further")
    number, last = a_whole(data["number"], "number"), one_of(data["last"], ("person", "withheld"))
    rule = one_of(data["gate"], ("consistent", "certified", "lead"))  # 0.2 said certified
    part = a_share(a_number(data["random_checks"], "random_checks"), "random_checks", zero=True)
    after = data.get("further_k")
    if ("further" in data) != ("further_k" in data) or ("further" in data and not further):
        raise Refused("a ladder's further steps have names and a further_k")
    if after is not None:
        a_whole(after, "further_k")
    stages = [(a_whole(at, "answers"), a_whole(k, "k")) for at, k in a_list(data.get("earlier", []), "earlier")]
    stages.append((len(order), number))
    later = list(pairwise(stages))
    if later and (rule == "lead" or stages[0][0] < 1):
        raise Refused("only a rule of consistent answers has earlier stages, each with at least one answer")
    if any(two[0] <= one[0] or two[1] <= one[1] for one, two in later):
        raise Refused("each stage has more answers and a larger k than the one before")
    if not order and not further:
        raise Refused("a ladder asks something")
    end = f"{last}, and for {percent(part)} at random" if part else last
    if further:
        end = f"{'' if after is None else f'at k = {after} on '}{_listed(further)}; else {end}"
    if not order:
        return end
    if rule == "lead":
        return f"lead of {number} within {_listed(order)}; else {end}"
    begun, steps = 0, []
    for answers, k in stages:
        steps.append(f"at k = {k} {'with' if begun else 'within'} {_listed(order[begun:answers])}")
        begun = answers
    return f"{rule} {'; else '.join(steps)}; else {end}"


def _listed(steps: Sequence[str]) -> str:
    """Each step to be told from the next: what would read as several, or as quoted, is quoted."""
    return ", ".join(dumps(s, ensure_ascii=False) if ", " in s or "; " in s or s.startswith('"') else s for s in steps)


def audit_order(digest: str, checked: int) -> str:
    """What orders the draws: the digest of what was not checked, and how many more values were."""
    return f"{digest}:{checked}" if checked else digest


def _audit(data: Document) -> dict[str, Any]:
    """The whole certificate of an audit, made from its seed and labels."""
    record, columns = data["record"], typed(data["columns"], Mapping, "columns", "an object")
    size = a_whole(data["population"], "population", most=MOST_AUDITED)
    labels = [a_flag(label, "a label") for label in a_list(record["labels"], "labels")]
    names, draws = some_names(data["items"], "items"), a_list(record["draws"], "draws")
    digest, seed = record["digest"], a_whole(record["seed"], "seed")
    checked = a_whole(data.get("checked", 0), "checked", most=MOST_AUDITED)
    if not len(names) == len(draws) == len(labels) <= size:
        raise Refused(f"{len(draws)} draws, {len(labels)} labels and {len(names)} items, of {size}")
    if type(digest) is not str or not digest:
        raise Refused("the digest of the deliveries is missing")
    if any(type(place) is not int for place in draws) or (
        draws and not is_drawn(draws, size, seed, audit_order(digest, checked))
    ):
        raise Refused("seed and digest draw other items than the record names")
    sure = a_confidence(data["confidence"])
    least = audit_bound(size, labels, sure)
    told = data["bound"]
    if type(told) is not int or not least <= told <= size:
        raise Refused(f"a bound of {told!r:.40} is claimed; the draws prove {least}")
    risk = None if data["risk"] is None else a_share(a_number(data["risk"], "risk"), "risk", zero=True)
    if type(columns.get("answer")) is not str or not isinstance(columns.get("id"), str | None):
        raise Refused("columns: names that of the answers, and that of the ids or null")
    bound = Told(least, lambda value: type(value) is int and least <= value <= size)
    return {
        "format": AUDIT,
        "version": data["version"],
        "population": size,
        "drawn": len(labels),
        "wrong": sum(labels),
        "bound": bound,
        "confidence": data["confidence"],
        "risk": data["risk"],
        "holds": None if risk is None else told <= risk * (size + checked),
        "sentence": worded(
            audit_sentence(size, len(labels), sum(labels), told, sure, checked=checked),
            "audit into another file with the same seed: the draw is the same, and so are the labels of gold and"
            " reviews",
        ),
        "table": typed(data["table"], str, "table", "a text"),
        "columns": {"id": columns.get("id"), "answer": columns["answer"]},
        "truth": typed(data["truth"], str, "truth", "a text"),
        **({"checked": checked} if "checked" in data else {}),
        "items": names,
        "wrong_items": [name for name, label in zip(names, labels, strict=True) if label],
        "record": {
            "population": size,
            "digest": digest,
            "seed": seed,
            "draws": draws,
            "labels": labels,
            "at_any_stop": True,
            "prior": list(PRIOR),
            "confidence": equal_to(written(sure), sure),
            "bound": bound,
        },
    }
