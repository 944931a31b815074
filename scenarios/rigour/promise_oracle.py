"""The slow oracle of promises: does everything that a policy, an audit or a pilot claims follow
from its own draw, marks and labels?

It shares nothing with the makers or `verify`: the draw sorted anew, tails, mixtures and martingales
from their definitions in rationals, the procedure step by step.
"""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from typing import Any

from scenarios.kit.sealing import Document

EVERYTHING = "check everything"


def claims_follow(kind: str, document: Document, true: Document) -> bool:
    """Does everything that the document claims follow? `true`: what it was forged from."""
    if kind == "pilot":
        rest = {key: value for key, value in document.items() if key not in ("pilot", "digest")}
        same = rest == {key: value for key, value in true.items() if key not in ("pilot", "digest")}
        return same and _pilot_follows(document["pilot"], rest["k"])
    return _audit_follows(document) if kind == "audit" else policy_follows(document)


def drawn_order(size: int, seed: int, digest: str) -> list[int]:
    return sorted(range(size), key=lambda place: sha256(f"{digest}:{seed}:{place}".encode()).digest())


def binomial_tail(items: int, rate: Fraction, seen: int) -> Fraction:
    return sum((math.comb(items, j) * rate**j * (1 - rate) ** (items - j) for j in range(seen + 1)), Fraction(0))


def _bounded(items: int, seen: int, bound: Any, sure: Fraction) -> bool:
    return bound >= 1 or (bound > 0 and binomial_tail(items, Fraction(bound), seen) <= 1 - sure)


def _pilot_follows(section: Document, k: int) -> bool:
    places, marks = section["places"], section["wrong"].values()
    failed = sum(sum(mark[at] == "1" for mark in marks) > k for at in range(len(places)))
    sure = Fraction(str(section["confidence"]))
    return (
        places == drawn_order(section["size"], section["seed"], section["population"])[: len(places)]
        and section["more_than_k"] == failed
        and _bounded(len(places), failed, section["bound"], sure)
        and f"{failed:,} of {len(places):,} items" in section["sentence"]
        and f"with confidence {(100 * Decimal(str(section['confidence']))).normalize():f} %," in section["sentence"]
    )


def _audit_follows(document: Document) -> bool:
    record = document["record"]
    size, labels, sure = record["population"], record["labels"], Fraction(str(record["confidence"]))
    bound = _martingale_bound(size, labels, 1 - sure)
    names = document["items"]
    return (
        record["draws"] == drawn_order(size, record["seed"], record["digest"])[: len(labels)]
        and document["bound"] >= bound
        and record["bound"] >= bound
        and Fraction(str(document["confidence"])) == sure
        and (document["population"], document["drawn"], document["wrong"]) == (size, len(labels), sum(labels))
        and document["holds"]
        is (None if document["risk"] is None else document["bound"] <= Fraction(str(document["risk"])) * size)
        and document["wrong_items"] == [name for name, label in zip(names, labels, strict=True) if label]
        and len(set(names)) == len(labels)
        and f"at most {document['bound']:,} (" in document["sentence"]
    )


def _martingale_bound(size: int, labels: list[bool], alpha: Fraction) -> int:
    """The largest number of wrong items that no moment of the audit refutes, with the beta prior
    (1, 20), in rationals.
    """
    open_, m, x = set(range(size + 1)), 0, 0
    for label in labels:
        m, x = m + 1, x + label
        beta = Fraction(math.factorial(x) * math.factorial(19 + m - x), math.factorial(20 + m)) * 20
        for wrong in list(open_):
            chance = Fraction(math.perm(wrong, x) * math.perm(size - wrong, m - x), math.perm(size, m))
            if chance == 0 or beta >= chance / alpha:
                open_.discard(wrong)
    return max(open_, default=x)


def answers_follow(said: Document, items: int, sure: Fraction) -> bool:
    marks = said["by_node"]
    wrong = [sum(mark[at] == "1" for mark in marks.values()) for at in range(items)]
    rows = [
        (entry["items"], sum(count > entry["k"] for count in wrong), items, entry["bound"])
        for entry in said["more_than"]
    ]
    for entry in said["nodes"]:
        own = marks[entry["node"]]
        rows.append((entry["wrong"], own.count("1"), items - own.count("-"), entry["bound"]))
    return all(told == found and _bounded(of, found, bound, sure) for told, found, of, bound in rows)


def claimed_limit(document: Document) -> Fraction:
    """What has to be tested for the claimed risk: inside strata, the least expected share of wrong
    items in such a draw.
    """
    risk = Fraction(str(document["risk"]))
    if document["strata"] is None:
        return risk
    sizes: Counter[str] = Counter(document["strata"])
    taken: Counter[str] = Counter(document["strata"][place] for place in document["places"])
    left, mean = risk * len(document["strata"]), Fraction(0)
    for label in sorted(sizes, key=lambda one: Fraction(taken[one], sizes[one])):
        here = min(left, Fraction(sizes[label]))
        mean += here * taken[label] / sizes[label]
        left -= here
    return mean / len(document["places"])


def _stratified(labels: list[str], seed: int, digest: str) -> list[int]:
    """Every stratum in its own random order, and all of them evenly mixed."""
    keys = [sha256(f"{digest}:{seed}:{place}".encode()).digest() for place in range(len(labels))]
    ranks = {}
    for label in set(labels):
        own = sorted((place for place in range(len(labels)) if labels[place] == label), key=lambda place: keys[place])
        ranks.update({place: Fraction(2 * rank + 1, 2 * len(own)) for rank, place in enumerate(own)})
    return sorted(range(len(labels)), key=lambda place: (ranks[place], keys[place]))


def _hypergeometric(size: int, wrong: int, drawn: int, seen: int) -> Fraction:
    if wrong > size - (drawn - seen):
        return Fraction(0)
    ways = sum(math.comb(wrong, j) * math.comb(size - wrong, drawn - j) for j in range(min(seen, wrong) + 1))
    return Fraction(ways, math.comb(size, drawn))


def _mixture(marks: list[bool], rate: Fraction) -> Fraction:
    """The p-value of a mixture of rates below the tested one, Beta(1, 20) cut off there, at its
    best moment.
    """

    def integral(x: int, right: int) -> Fraction:
        whole = Fraction(math.factorial(x) * math.factorial(19 + right), math.factorial(x + 20 + right))
        return whole * (1 - binomial_tail(x + 20 + right, rate, x))

    start, best, x = integral(0, 0), Fraction(1), 0
    for seen in range(len(marks) + 1):
        best = max(best, integral(x, seen - x) / (start * rate**x * (1 - rate) ** (seen - x)))
        x += seen < len(marks) and marks[seen]
    return 1 / best


def _evidence(document: Document, marks: str, q: Fraction) -> tuple[Fraction, Fraction]:
    """Claim and gate of one policy, from the definitions."""
    every, rate = document["among"] == "all", claimed_limit(document) / (1 - q)
    kept = [mark == "w" for mark in marks if every or mark != "-"]
    drawn, seen, statement = len(kept), sum(kept), document["statement"]
    if not drawn:
        return Fraction(1), Fraction(1)
    if statement == "fresh":
        tail = _mixture(kept, rate) if document["choice"]["sequential"] else binomial_tail(drawn, rate, seen)
        return tail, tail
    people, piloted = document["population"]["size"], len(marks)
    claims, gates, depth = [], [], document["choice"]["depth"]
    # Among the delivered nobody knows how many there are: the worst number that the pilot allows.
    for size in [people] if every else range(drawn, people - (piloted - drawn) + 1):
        first = int(rate * (size - drawn if statement == "rest" else size)) + 1
        gates.append(_hypergeometric(size, first + depth, drawn, seen))
        claim = _hypergeometric(size, first + seen, drawn, seen) if seen >= depth else Fraction(1)
        claims.append(gates[-1] if statement == "policy" else claim)
    return max(claims), max(gates)


def _proven(found: dict[str, tuple[Fraction, Fraction]], streams: list[Document], alpha: Fraction) -> set[str]:
    """Gates let pass, step by step, the first of every chain and the likeliest of every pool; what
    has passed, or is left, is proven where its own level lets it claim.
    """
    out: set[str] = set()
    proven: set[str] = set()
    while True:
        live = [stream for stream in streams if set(stream["names"]) - out]
        spare = sum((Fraction(s["share"]) for s in streams if s not in live), Fraction(0))
        levels, heads = dict.fromkeys(found, Fraction(0)), []
        for number, stream in enumerate(live):
            share = alpha * (Fraction(stream["share"]) + (spare if number == 0 else 0))
            left = [name for name in stream["names"] if name not in out]
            for name in left if stream["pooled"] else left[:1]:
                levels[name] += share / (len(left) if stream["pooled"] else 1)
            heads.append(min(left, key=lambda name: found[name][1]) if stream["pooled"] else left[0])
        passed = {name for name in heads if 0 < levels[name] >= found[name][1]}
        tried = passed or set(found) - out
        proven |= {name for name in tried if 0 < levels[name] >= found[name][0]}
        if not passed:
            return proven
        out |= passed


def policy_follows(document: Document) -> bool:
    """Does everything that the policy claims follow from its own draw and marks?"""
    choice, people = document["choice"], document["population"]
    sure, risk = Fraction(str(document["confidence"])), Fraction(str(document["risk"]))
    items, labels = len(document["places"]), document["strata"]
    order = (
        drawn_order(people["size"], document["seed"], people["digest"])
        if labels is None
        else _stratified(labels, document["seed"], people["digest"])
    )
    fresh = document["statement"] == "fresh"
    streams = choice["streams"]
    spent = [Fraction(stream["share"]) for stream in streams]
    sound = (
        document["places"] == order[:items]
        and Fraction(str(choice["confidence"])) == sure
        and choice["statement"] == document["statement"]
        and choice["limits"][0]["among"] == document["among"]
        and Fraction(str(choice["limits"][0]["share"])) == claimed_limit(document)
        and choice["population"] == (None if fresh else people["size"])
        and all(share >= 0 for share in spent)
        and sum(spent) <= 1
        and all(len(set(stream["names"])) == len(stream["names"]) for stream in streams)
        and (fresh or not choice["sequential"])
        and (labels is None or (fresh and document["among"] == "all" and not choice["sequential"]))
    )
    if not sound or (choice["depth"] and document["statement"] not in ("file", "rest")):
        return False
    tested = {entry["name"]: entry for entry in choice["policies"]}
    marks = {entry["policy"]: entry["marks"] for entry in document["policies"]}
    parts = {name: Fraction(entry["checked_share"]) for name, entry in tested.items()}
    if set(marks) != set(tested) or (any(parts.values()) and document["statement"] not in ("fresh", "policy")):
        return False
    found = {name: _evidence(document, marks[name], parts[name]) for name in tested}
    proven = _proven(found, streams, 1 - sure)
    every = document["among"] == "all"
    told = all(
        entry["delivered"] == items - entry["marks"].count("-")
        and entry["counted"] == (items if every else entry["delivered"])
        and entry["proven"] is (entry["policy"] in proven) is tested[entry["policy"]]["proven"]
        and entry["wrong"] == entry["marks"].count("w") == tested[entry["policy"]]["counts"][0]["marked"]
        and abs(tested[entry["policy"]]["p"] - float(found[entry["policy"]][0]))
        <= 2e-6 * float(found[entry["policy"]][0]) + 1e-300
        for entry in document["policies"]
    )
    policy = document["policy"]
    if not told or not answers_follow(document["wrong_answers"], document["wrong_answers"]["items"], sure):
        return False
    if policy == EVERYTHING:
        return True
    cheapest = min(float(tested[name]["cost"]) for name in proven) if proven else math.inf
    said = f"{float(100 * risk):.12g} %"
    return (
        policy in proven
        and tested[policy]["cost"] == cheapest
        and Fraction(str(document["ladder"]["random_checks"])) == parts[policy]
        and document["bound"] >= document["risk"]
        and said in document["sentence"]
        and f"{float(100 * sure):.15g} %" in document["sentence"]
    )
