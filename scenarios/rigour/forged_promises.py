"""Forged policies, audits and pilots: documents about whole data sets that say more than their
draws and marks prove.

A true document is changed anywhere (a value replaced, removed, doubled, scaled; evidence and
figures together), and handed to whoever re-proves it. What is accepted is judged by a slow oracle
(`scenarios.rigour.promise_oracle`). Accepting is right where every claim still follows;
where one does not, the verifier was deceived.
"""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Mapping
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
    with_pilot,
)
from rrf_design.questions import dataset
from rrf_design.questions.answers import RecordedAnswers
from scenarios.kit.sealing import Document, at, seal
from scenarios.rigour.promise_oracle import claims_follow

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
