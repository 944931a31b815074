"""Forged policies of every kind of draw: inside strata, looked at while it grew, with random
checks, about this very table or file.

The forger has our code. One thing is changed (a count, a draw, a stratum, a look, a share of the
error probability, the order, a share of random checks, the limit, the statement), every test is run
again on what is there now, and whatever repeats its outcome is written anew: chosen policy, levels,
p-values, sentence. What `verify` accepts of that is judged by an oracle
(`scenarios.rigour.promise_oracle`). A change that only makes another honest document (other truths,
another order, said of itself) is accepted rightly.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from rrf_design.checker import PromiseScope as Told
from rrf_design.checker import written
from rrf_design.checker.promise_words import promise
from rrf_design.risk import Among, Counted, Limit, Scope, Statement, Stream, Tally, decide, weigh
from scenarios.kit.sealing import Document
from scenarios.rigour.forged_promises import ITEMS, TRICKS, made_policies, met, written_table
from scenarios.rigour.promise_oracle import EVERYTHING, claimed_limit, policy_follows


def true_policies(folder: Path) -> dict[str, tuple[Document, Any]]:
    """A true policy of each kind, and the ladder of every policy that it tested."""
    kinds: dict[str, dict[str, Any]] = {
        "strata": {"stratify": "kind", "among": Among.ALL},
        "sequential": {"sequential": True},
        "random checks": {"random_checks": True},
        "policy": {"statement": Statement.POLICY},
        "file": {"statement": Statement.FILE},
        "holm": {"order": "holm", "among": Among.DELIVERED},
    }
    return made_policies(written_table(folder, wrong=0.08, kinds="aab"), folder, kinds)


def policy_case(true: dict[str, tuple[Document, dict[str, Any]]], folder: Path, seed: int) -> dict[str, Any]:
    """Forge one policy, seal it, and have it verified; `false` where it is accepted and a claim
    does not follow.
    """
    rng = np.random.default_rng(seed)
    kind = sorted(true)[seed % len(true)]
    document, ladders = copy.deepcopy(true[kind])
    name = sorted(CHANGES)[int(rng.integers(len(CHANGES)))]
    try:
        CHANGES[name](rng, document)
        if rng.random() < 0.3:
            CHANGES[sorted(CHANGES)[int(rng.integers(len(CHANGES)))]](rng, document)
        reseal(document, ladders)
    except Exception:
        name += ", not sealed"  # the forger's own tests refuse it; it is handed over as far as it came
    if rng.random() < 0.15:
        TRICKS["anything"](rng, document)
    content = json.dumps(document).encode()
    row: dict[str, Any] = {"trick": f"{kind}: {name}", **met(content, folder)}
    row["false"] = row["accepted"] and not policy_follows(json.loads(content))
    return row


def reseal(document: Document, ladders: dict[str, Any]) -> None:
    """Run all tests again on what the record says now, and write what comes of it wherever it is
    told.
    """
    choice = document["choice"]
    said = choice["limits"][0]
    limit = Limit(Fraction(said["share"]), "wrong", Among(said["among"]))
    scope = Scope(Statement(choice["statement"]), choice["piloted"], choice["population"], choice["depth"])
    counted = []
    for entry in choice["policies"]:
        (count,) = entry["counts"]
        places = tuple(count["places"]) if choice["sequential"] else None
        tally = Tally("wrong", count["counted"], count["marked"], places)
        counted.append(Counted((tally,), Fraction(entry["checked_share"]), entry["delivers"]))
    weighed = weigh(counted, (limit,), scope, sequential=choice["sequential"])
    evidence = {entry["name"]: part for entry, part in zip(choice["policies"], weighed, strict=True)}
    streams = [Stream(Fraction(s["share"]), tuple(s["names"]), s["pooled"]) for s in choice["streams"]]
    sure = Fraction(str(choice["confidence"]))
    decisions = decide(evidence, streams, 1 - sure)
    outcomes = {entry["policy"]: entry for entry in document["policies"]}
    for entry in choice["policies"]:
        decision = decisions[entry["name"]]
        entry.update(p=evidence[entry["name"]].claim.value, level=written(decision.level), proven=decision.proven)
        outcomes[entry["name"]]["proven"] = decision.proven
    proven = [entry for entry in choice["policies"] if entry["proven"]]
    choice["chosen"] = min(proven, key=lambda entry: float(entry["cost"]))["name"] if proven else None
    document["random_checks"] = any(Fraction(entry["checked_share"]) for entry in choice["policies"])
    if not proven:
        why = "no policy is proven to keep the risk"
        document.update(policy=EVERYTHING, because=why, sentence=f"C{EVERYTHING[1:]}: {why}.", bound=0.0, ladder=None)
        document.update(cost_per_item=document["check_cost"], delivered_share=0.0)
        return
    chosen = min(proven, key=lambda entry: float(entry["cost"]))
    marks = outcomes[chosen["name"]]["marks"]
    claimed = Fraction(str(document["risk"]))
    told = Told(str(scope.statement), scope.piloted, scope.population or 0, limit.among is Among.DELIVERED)
    document.update(
        policy=chosen["name"],
        because="the cheapest policy that is proven to keep the risk",
        ladder=ladders[chosen["name"]],
        bound=document["risk"],
        cost_per_item=chosen["cost"],
        delivered_share=1.0 - marks.count("-") / len(marks),
        sentence=promise(claimed, told, confidence=sure, delivers=chosen["delivers"]),
    )


def _fewer_counted(rng: Any, document: Document) -> None:
    """Wrong items that the tests leave out, though the marks have them."""
    for entry in document["choice"]["policies"]:
        (count,) = entry["counts"]
        less = min(count["marked"], int(rng.integers(1, 4)))
        count["marked"] -= less
        if "places" in count and less:
            count["places"] = count["places"][:-less]


def _told_fewer(rng: Any, document: Document) -> None:
    """The same, with what is told beside the marks."""
    _fewer_counted(rng, document)
    for entry, tested in zip(document["policies"], document["choice"]["policies"], strict=True):
        entry["wrong"] = tested["counts"][0]["marked"]


def _right_marks(rng: Any, document: Document) -> None:
    """Wrong items called right everywhere: another honest document, about other truths."""
    for entry, tested in zip(document["policies"], document["choice"]["policies"], strict=True):
        entry["marks"] = entry["marks"].replace("w", "r", 1)
        (count,) = tested["counts"]
        entry["wrong"] = count["marked"] = entry["marks"].count("w")
        if "places" in count:
            kept = [mark for mark in entry["marks"] if document["among"] == "all" or mark != "-"]
            count["places"] = [at for at, mark in enumerate(kept) if mark == "w"]


def _another_draw(rng: Any, document: Document) -> None:
    """Other items than seed and digest draw: exchanged, another seed, another size."""
    what, places = int(rng.integers(4)), document["places"]
    if what == 0:
        places[0], places[-1] = places[-1], places[0]
    elif what == 1:
        places[int(rng.integers(len(places)))] = next(p for p in range(ITEMS) if p not in places)
    elif what == 2:
        document["seed"] += 1
    else:
        document["population"]["size"] += 1
        if document["choice"]["population"] is not None:
            document["choice"]["population"] += 1


def _another_stratum(rng: Any, document: Document) -> None:
    """Items said to be of another stratum, or of none; the limit that strata give goes with it."""
    if document["strata"] is None:
        document.update(strata=["ab"[n % 2] for n in range(ITEMS)], stratify="kind")
    elif rng.random() < 0.4:
        document.update(strata=None, stratify=None)
    else:
        for _ in range(int(rng.integers(1, 6))):
            document["strata"][int(rng.integers(ITEMS))] = str(rng.choice(list("abc")))
    document["choice"]["limits"][0]["share"] = _said(claimed_limit(document))


def _another_look(rng: Any, document: Document) -> None:
    """Wrong items seen at other moments, looks that are denied, or claimed."""
    choice = document["choice"]
    if choice["sequential"] and rng.random() < 0.7:
        for entry in choice["policies"]:
            (count,) = entry["counts"]
            count["places"] = list(range(count["counted"] - count["marked"], count["counted"]))
    elif choice["sequential"]:
        choice["sequential"] = False
        for entry in choice["policies"]:
            entry["counts"][0].pop("places")
    else:
        choice["sequential"] = True
        for entry in choice["policies"]:
            count = entry["counts"][0]
            count["places"] = list(range(count["counted"] - count["marked"], count["counted"]))


def _spend_more(rng: Any, document: Document) -> None:
    """More of the error probability than there is, or all of it for the one that is wanted."""
    streams, what = document["choice"]["streams"], int(rng.integers(4))
    if what == 0:
        streams[0]["share"] = str(rng.choice(["2", "3/2", "10"]))
    elif what == 1:
        streams.append(copy.deepcopy(streams[0]))
    elif what == 2:
        streams[0]["names"] = streams[0]["names"] * 2
    else:
        streams.append({"share": "-1", "names": streams[0]["names"], "pooled": False})
        streams[0]["share"] = "2"


def _another_order(rng: Any, document: Document) -> None:
    """The cheap ones first: as good an order as any, if it had been fixed beforehand."""
    cost = {entry["name"]: entry["cost"] for entry in document["choice"]["policies"]}
    names = sorted(cost, key=lambda name: float(cost[name]))
    kept = names if rng.random() < 0.5 else names[: int(rng.integers(1, 4))]
    document["choice"]["streams"] = [{"share": "1", "names": kept, "pooled": bool(rng.random() < 0.3)}]


def _more_checks(rng: Any, document: Document) -> None:
    """Random checks that are tested and not made, or more than are made."""
    part = str(rng.choice(["0.5", "0.9", "0.75", "19/20"]))
    for entry in document["choice"]["policies"]:
        if rng.random() < 0.6:
            entry["checked_share"] = part


def _easier_limit(rng: Any, document: Document) -> None:
    """Another limit tested than is claimed, or another claimed than is tested."""
    share = Fraction(document["choice"]["limits"][0]["share"]) * Fraction(int(rng.integers(101, 220)), 100)
    if rng.random() < 0.7:
        document["choice"]["limits"][0]["share"] = _said(min(share, Fraction(99, 100)))
    else:
        document["risk"] = float(rng.choice([0.1, 0.15, 0.19, 0.25]))
        if rng.random() < 0.5:
            document["choice"]["limits"][0]["share"] = _said(claimed_limit(document))


def _another_statement(rng: Any, document: Document) -> None:
    """Tested for one statement, claimed for another; or for both another one."""
    name = str(rng.choice(["fresh", "policy", "file", "rest"]))
    document["choice"].update(statement=name, population=None if name == "fresh" else ITEMS)
    if name == "file" and rng.random() < 0.3:
        document["choice"]["depth"] = int(rng.integers(1, 6))
    if rng.random() < 0.6:
        document["statement"] = name


def _surer(rng: Any, document: Document) -> None:
    sure = float(rng.choice([0.96, 0.99, 0.9999]))
    document["choice"]["confidence"] = repr(sure)
    if rng.random() < 0.7:
        document["confidence"] = sure


CHANGES: dict[str, Callable[[Any, Document], None]] = {
    "fewer counted": _fewer_counted,
    "fewer counted and told": _told_fewer,
    "right marks": _right_marks,
    "another draw": _another_draw,
    "another stratum": _another_stratum,
    "another look": _another_look,
    "more spent": _spend_more,
    "another order": _another_order,
    "more checks": _more_checks,
    "an easier limit": _easier_limit,
    "another statement": _another_statement,
    "surer": _surer,
}


def _said(value: Fraction) -> str:
    return f"{value.numerator}/{value.denominator}"
