"""Forged policies, audits and pilots: documents about whole data sets that say more than their
draws and marks prove.

A true document is changed anywhere (a value replaced, removed, doubled, scaled; evidence and
figures together), and handed to whoever re-proves it. What is accepted is judged by a slow oracle
of its own: the draw sorted anew, every count from the marks, tails and martingales in exact
rationals, the procedure from its definition. Accepting is right where every claim still follows;
where one does not, the verifier was deceived.
"""

from __future__ import annotations

import copy
import json
import math
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

import rrf_design as rrf
from rrf_design.certificates import verify
from rrf_design.documents import kind_of, read
from rrf_design.errors import InputError, Refused
from rrf_design.promises import (
    GoldRule,
    PilotSettings,
    audit_document,
    draw_audit,
    gold_truths,
    plan_pilot,
    policy_document,
    prove_audit,
    prove_policy,
    read_delivered,
    run_pilot,
)
from rrf_design.promises.premise import with_pilot
from rrf_design.questions import dataset
from rrf_design.questions.answers import RecordedAnswers
from scenarios.kit.sealing import Document, at, seal

RECIPE = """[data]
table = "table.jsonl"
id = "no"
gold = "booked"

[answer]
of = "total"
k = 1

[[ask]]
id = "total"
prompt = "{{ text }}"
cost = 1.0

[[ask]]
id = "reworded"
prompt = "{{ text }}"
cost = 2.0
like = "total"

[[ask]]
id = "other"
prompt = "{{ text }}"
cost = 3.0
like = "total"

[[check]]
id = "clerk"
of = "total"
by = { person = "Total of {{ no }}?" }
cost = 30.0
"""
ITEMS, PILOTED, DRAWN, RISK = 90, 48, 30, 0.2
HOSTILE: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 1, 2, 0.5, 1e-9, 1e308, 10**400, 2**53 + 1, 10_000_000, 2_000_000),
    *("", "x", "w", "r", "1/3", "0." + "9" * 39, "9" * 400, "\ud800", "\x00", [], {}, [[]], {"x": 1}, float("nan")),
)


def written_table(folder: Path, *, wrong: float = 0.06, kinds: str = "") -> Any:
    """A table in a folder, three answers to each item (this share of them wrong) and its delivered
    form; the data set that it makes. `kinds`: the letters of a column of strata, in turns.
    """
    rng = np.random.default_rng(5)
    truths = rng.integers(10, 90, ITEMS).tolist()
    own = [{"kind": kinds[n % len(kinds)]} if kinds else {} for n in range(ITEMS)]
    rows = [{"no": f"i{n}", "text": f"item {n}", **own[n], "booked": truth} for n, truth in enumerate(truths)]
    said = [
        {"id": f"i{n}", "node": node, "text": str(truth + (3 + at if rng.random() < wrong else 0))}
        for n, truth in enumerate(truths)
        for at, node in enumerate(("total", "reworded", "other"))
    ]
    (folder / "rrf.toml").write_text(RECIPE)
    tables: tuple[tuple[str, list[Any]], ...] = (("table", list(rows)), ("answers", list(said)))
    for name, lines in tables:
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    cells = ["no,answer,booked", *(f"i{n},{truth + (n % 23 == 0)},{truth}" for n, truth in enumerate(truths))]
    (folder / "delivered.csv").write_text("\n".join(cells) + "\n")
    return dataset(folder / "rrf.toml")


def made_policies(data: Any, folder: Path, kinds: Mapping[str, Mapping[str, Any]]) -> dict[str, tuple[Document, Any]]:
    """A true policy of each kind, and the ladder of every policy that it tested."""
    found = {}
    with RecordedAnswers(data, folder / "answers.jsonl") as answers:
        for kind, options in kinds.items():
            plan = plan_pilot(data, answers, PilotSettings(PILOTED, RISK, **options))
            known, _ = gold_truths(plan)
            document = policy_document(run_pilot(plan, known, truth_source="gold column 'booked'"))
            ladders = {policy.name: policy.to_json() for policy in plan.policies}
            found[kind] = json.loads(json.dumps(document)), json.loads(json.dumps(ladders))
    return found


def made_audit(folder: Path) -> Document:
    state = draw_audit(read_delivered(folder / "delivered.csv", id_column="no"), DRAWN, seed=5, rule=GoldRule("booked"))
    made = audit_document(state, confidence=0.95, risk=0.3, truth="gold column 'booked'")
    return dict(json.loads(json.dumps(made)))


def made_pilot(data: Any, policy: Document) -> Document:
    """The certificate of an item outside the pilot of a policy, with that pilot."""
    outside = next(item for item in data if item not in policy["drawn"])
    return copy.deepcopy(dict(with_pilot(rrf.certify(data.item(outside).problem), policy).document))


def true_promises(folder: Path) -> dict[str, Document]:
    """One true document of each kind, with a few wrong answers in it."""
    data = written_table(folder)
    policy, _ = made_policies(data, folder, {"fresh": {}})["fresh"]
    return {"policy": policy, "audit": made_audit(folder), "pilot": made_pilot(data, policy)}


def promise_case(true: dict[str, Document], folder: Path, seed: int) -> dict[str, Any]:
    """Forge one document and have it verified as `rrf-design verify` does; `false` where it is
    accepted and is not true.
    """

    rng = np.random.default_rng(seed)
    kind = sorted(true)[seed % len(true)]
    trick, content = _forged(rng, kind, copy.deepcopy(true[kind]))
    row: dict[str, Any] = {"trick": f"{kind}: {trick}", **met(content, folder)}
    row["false"] = row["accepted"] and not claims_follow(kind, json.loads(content), true[kind])
    return row


def met(content: bytes, folder: Path) -> dict[str, Any]:
    """What `verify` makes of these bytes: `accepted`, `raised` (anything but a refusal in one line)
    and the `seconds` of computing.
    """
    path = folder / "met.json"
    path.write_bytes(content)
    row: dict[str, Any] = {"accepted": False, "raised": False}
    began = time.process_time()
    try:
        row["accepted"] = verified(path)
    except (Refused, InputError) as error:
        row["raised"] = "\n" in str(error)
    except Exception:
        row["raised"] = True
    row["seconds"] = time.process_time() - began
    return row


def verified(path: Path) -> bool:
    """As the command line decides which checker a document is for."""
    try:
        document = read(path)
    except InputError:
        document = None
    name = kind_of(document)
    if name in ("rrf-policy", "rrf-audit"):
        (prove_policy if name == "rrf-policy" else prove_audit)(document)
        return True
    found = verify(path)
    if "check failed" in found.reason:
        raise RuntimeError("the last net held, but a check was led astray")
    return found.valid


def _forged(rng: Any, kind: str, document: Document) -> tuple[str, bytes]:
    changed = document["pilot"] if kind == "pilot" else document
    name = sorted(TRICKS)[int(rng.integers(len(TRICKS)))]
    TRICKS[name](rng, changed)
    if rng.random() < 0.2:
        TRICKS["anything"](rng, changed)
    try:
        content = seal(document) if kind == "pilot" else json.dumps(document).encode()
    except (TypeError, ValueError):
        content = b"{"
    if rng.random() < 0.05:
        content = content[: int(rng.integers(len(content)))]
    return name, content


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    if len(inner) > 12:
        inner = inner[:4] + inner[-4:]
    return ([path] if path else []) + [place for key, part in inner for place in _places(part, (*path, key))]


def _anything(rng: Any, document: Document) -> None:
    places = _places(document)
    place = places[int(rng.integers(len(places)))]
    holder = at(document, place[:-1])
    old, what = holder[place[-1]], int(rng.integers(4))
    if what == 0:
        del holder[place[-1]]
    elif what == 1 and isinstance(old, int | float) and not isinstance(old, bool) and abs(old) < 1e300:
        holder[place[-1]] = old * float(rng.choice([0.0, 0.5, 1 - 1e-9, 1 + 1e-9, 2.0])) + int(rng.integers(-1, 2))
    elif what == 2 and isinstance(old, str) and old:
        spot = int(rng.integers(len(old)))
        holder[place[-1]] = old[:spot] + str(rng.choice(list("0195rw-x"))) + old[spot + 1 :]
    elif what == 2 and isinstance(old, list) and old:
        old.append(old[int(rng.integers(len(old)))])
    else:
        holder[place[-1]] = HOSTILE[int(rng.integers(len(HOSTILE)))]


def _surer(rng: Any, document: Document) -> None:
    """More confidence, everywhere at once."""
    sure = float(rng.choice([0.96, 0.99, 0.999999, 1 - 1e-15]))
    for part in (document, document.get("choice"), document.get("record")):
        if isinstance(part, dict) and "confidence" in part:
            part["confidence"] = sure if isinstance(part["confidence"], float) else str(sure)
    document["sentence"] = str(document["sentence"]).replace("95 %", f"{100 * sure:g} %").replace("0.95", repr(sure))


def _tighter(rng: Any, document: Document) -> None:
    """A smaller bound or risk, by a little or a lot, with whatever repeats it."""
    less = 1.0 - 10.0 ** float(rng.uniform(-12, -0.5))
    if "choice" in document:
        document["risk"] = document["bound"] = document["risk"] * less
        document["choice"]["limits"][0]["share"] = repr(document["risk"])
    elif "record" in document:
        document["bound"] = document["record"]["bound"] = int(document["bound"] * less)
    else:
        document["bound"] *= less
    for entry in document.get("wrong_answers", {}).get("more_than", [])[: int(rng.integers(3))]:
        entry["bound"] *= less


def _redrawn(rng: Any, document: Document) -> None:
    """Other items than the seed draws: exchanged, one left out, another seed, a population said to
    be enormous.
    """
    record = document.get("record", document)
    key = "draws" if "draws" in record else "places"
    what = int(rng.integers(5))
    if what == 0:
        record[key][0], record[key][1] = record[key][1], record[key][0]
    elif what == 1:
        record[key][-1] = next(place for place in range(ITEMS) if place not in record[key])
    elif what == 2:
        record["seed"] += 1
    else:
        size = int(rng.choice([ITEMS + 1, 10**5, 2_000_000, 10_000_000, 2**60]))
        for part in (document, record, document.get("population")):
            for name in ("population", "size"):
                if isinstance(part, dict) and type(part.get(name)) is int:
                    part[name] = size


def _better_marks(rng: Any, document: Document) -> None:
    """A wrong answer called right: in the marks alone, or in the figures alone."""
    if "choice" in document:
        entry = document["policies"][int(rng.integers(len(document["policies"])))]
        if rng.random() < 0.5:
            entry["marks"] = entry["marks"].replace("w", "r", 1)
        else:
            entry["wrong"] = max(0, entry["wrong"] - 1)
    elif "record" in document:
        labels = document["record"]["labels"]
        labels[labels.index(True)] = False
    else:
        document["more_than_k"] = 0
        document["wrong"] = {name: marks.replace("1", "0", 1) for name, marks in document["wrong"].items()}


def _proven(rng: Any, document: Document) -> None:
    """Another policy, or all of them, called proven; a level that nobody gave; an order made up
    afterwards.
    """
    choice = document.get("choice")
    if choice is None:
        return _tighter(rng, document)
    entry = choice["policies"][int(rng.integers(len(choice["policies"])))]
    what = int(rng.integers(4))
    if what == 0:
        entry.update(proven=True, p=1e-12)
        choice["chosen"] = document["policy"] = entry["name"]
    elif what == 1:
        entry["level"] = "1/20"
    elif what == 2:
        choice["streams"] = [{"share": str(rng.choice(["1", "2", "1/2"])), "names": [entry["name"]], "pooled": False}]
    else:
        choice["streams"] = choice["streams"] * 2
    return None


TRICKS: dict[str, Callable[[Any, Document], None]] = {
    "anything": _anything,
    "surer": _surer,
    "tighter": _tighter,
    "another draw": _redrawn,
    "better marks": _better_marks,
    "called proven": _proven,
}


def claims_follow(kind: str, document: Document, true: Document) -> bool:
    """The slow oracle: does everything that the document claims follow from its own draw, marks and
    labels?
    """
    if kind == "pilot":
        rest = {key: value for key, value in document.items() if key not in ("pilot", "digest")}
        same = rest == {key: value for key, value in true.items() if key not in ("pilot", "digest")}
        return same and _pilot_follows(document["pilot"], rest["k"])
    return _audit_follows(document) if kind == "audit" else _policy_follows(document)


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


def _policy_follows(document: Document) -> bool:
    choice, marks = document["choice"], {entry["policy"]: entry for entry in document["policies"]}
    sure, risk = Fraction(str(document["confidence"])), Fraction(str(document["risk"]))
    people = document["population"]
    items = len(document["places"])
    every = document["among"] == "all"
    tails, counted = {}, {}
    for name, entry in marks.items():
        counted[name] = items if every else items - entry["marks"].count("-")
        tails[name] = binomial_tail(counted[name], risk, entry["marks"].count("w")) if counted[name] else Fraction(1)
    proven = _rejected(tails, choice["streams"], 1 - sure)
    tested = {entry["name"]: entry for entry in choice["policies"]}
    cheapest = min((entry["cost"] for entry in choice["policies"] if entry["name"] in proven), default=None)
    policy = document["policy"]
    outcomes = all(
        entry["proven"] is (name in proven) is tested[name]["proven"]
        and (entry["wrong"], entry["counted"]) == (entry["marks"].count("w"), counted[name])
        and entry["delivered"] == items - entry["marks"].count("-")
        and abs(tested[name]["p"] - float(tails[name])) <= 1e-6 * float(tails[name]) + 1e-300
        and tested[name]["checked_share"] in ("0", 0)
        for name, entry in marks.items()
    )
    nothing = policy == "check everything"
    return (
        document["statement"] == "fresh"
        and not choice["sequential"]
        and document["places"] == drawn_order(people["size"], document["seed"], people["digest"])[:items]
        and Fraction(str(choice["confidence"])) == sure
        and Fraction(str(choice["limits"][0]["share"])) == risk
        and outcomes
        and set(tested) == set(marks)
        and (
            nothing
            or (policy in proven and tested[policy]["cost"] == cheapest and document["bound"] >= document["risk"])
        )
        and answers_follow(document["wrong_answers"], items, sure)
        and (
            nothing
            or all(
                text in document["sentence"]
                for text in (f"at most {float(100 * risk):.12g} %", f"{float(100 * sure):.15g} %")
            )
        )
    )


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


def _rejected(tails: dict[str, Fraction], streams: list[Document], alpha: Fraction) -> set[str]:
    """Levels from the definition, again after every rejection: chains point at their first name
    that is left, pools divide, the first stream that has something left has what the finished ones
    had.
    """
    out: set[str] = set()
    while True:
        live = [stream for stream in streams if set(stream["names"]) - out]
        spare = sum((Fraction(s["share"]) for s in streams if s not in live), Fraction(0))
        levels = dict.fromkeys(tails, Fraction(0))
        for number, stream in enumerate(live):
            share = alpha * (Fraction(stream["share"]) + (spare if number == 0 else 0))
            left = [name for name in stream["names"] if name not in out]
            for name in left if stream["pooled"] else left[:1]:
                levels[name] += share / (len(left) if stream["pooled"] else 1)
        found = {name for name in tails if name not in out and levels[name] > 0 and tails[name] <= levels[name]}
        if not found:
            return out
        out |= found
