"""The ledger of looks: how often this user tested policies on the same items of a table.

A pilot proves what it says because it is looked at once. `refuse_second_look` sees the file that is
written over; another file, seed, risk or order of tests would be another chance that nothing shows.
So every look leaves a line in the user's data folder, keyed by the population's digest and the
delivered field; the policy carries its number, and `verify` holds it against the ledger. The same
pilot again, and one that grows with tests that hold at every moment, is the same look. Whoever
deletes the file can cheat: docs/promises.md says so.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from rrf_design.checker.promise_words import looks_words
from rrf_design.errors import Refused

FIXED = ("recipe", "models", "programs", "seed", "risk", "confidence", "statement", "among", "order", "stratify")
"""What makes a look another one, beside its labels, its order of tests and how its items came
out.
"""
KEYS = {"population": str, "field": str, "look": str, "settings": str, "labels": int, "marks": str}
"""Of a line in the ledger."""


def _ledger_path() -> Path:
    """Where this user's looks are kept."""
    base = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "rrf-design" / "looks.jsonl"


def counted(document: Mapping[str, Any], field: str) -> tuple[dict[str, Any], str | None]:
    """The policy with the number of looks at its items, this one noted among them; and why no
    ledger could be kept, where that is so.
    """
    number, why, path = 1, None, _ledger_path()
    try:
        entries = _entries(document, field)
        own = next((entry["look"] for entry in entries if _same(entry, document)), secrets.token_hex(8))
        note = _line(document, field, own)
        if note not in entries:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as stream:
                stream.write(f"\n{json.dumps(note)}\n")  # a line of its own, whatever a crash left before it
        number = len({own, *(entry["look"] for entry in _entries(document, field))})
    except OSError as error:
        why = f"{path}: can't be written ({error.strerror or error}); nothing counts the looks at this table"
    told = {**document, "looks": {"field": field, "count": number}}
    return {**told, "sentence": document["sentence"] + looks_words(told)}, why


def check_looks(document: Mapping[str, Any]) -> str:
    """What the ledger says of a policy's number of looks, in words; Refused where it knows more."""
    looks = document.get("looks") or {"field": None, "count": 1}
    stated = int(looks["count"])
    try:
        entries = _entries(document, looks["field"])
    except OSError:
        entries = []
    if not entries:
        return f"looks as stated ({stated}): no ledger here knows this table"
    own = next((entry["look"] for entry in entries if _same(entry, document)), "")
    known = len({own, *(entry["look"] for entry in entries)})
    if known > stated:
        raise Refused(
            f"the policy tells of {_times(stated)} at this table, and {_ledger_path()} knows of {known}: who looks"
            " until a pilot pleases has proven nothing; draw new items, or tell of them all (pilot the same once more)"
        )
    return f"looks as stated ({stated}), of which the ledger here knows {known}"


def _times(count: int) -> str:
    return "1 look" if count == 1 else f"{count} looks"


def _line(document: Mapping[str, Any], field: str, look: str) -> dict[str, Any]:
    """What the ledger keeps of a look: nothing of the answers or truths."""
    labels = len(document["drawn"])
    return {
        "population": document["population"]["digest"],
        "field": field,
        "look": look,
        "settings": _settings(document),
        "labels": labels,
        "marks": _marks(document, labels),
    }


def _settings(document: Mapping[str, Any]) -> str:
    choice = document["choice"]
    fixed = {key: document[key] for key in FIXED}
    return _digest({**fixed, "streams": choice["streams"], "sequential": choice["sequential"]})


def _marks(document: Mapping[str, Any], labels: int) -> str:
    """How the first so many items came out under every policy, as a digest."""
    return _digest({entry["policy"]: entry["marks"][:labels] for entry in document["policies"]})


def _entries(document: Mapping[str, Any], field: str | None) -> list[dict[str, Any]]:
    """The looks at these items that the ledger has; a line that can't be read is none."""
    try:
        lines = _ledger_path().read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return []
    found = []
    for line in lines:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(entry, dict) or entry.keys() != KEYS.keys():
            continue
        if any(type(entry[key]) is not kind for key, kind in KEYS.items()):
            continue
        if entry["population"] == document["population"]["digest"] and field in (None, entry["field"]):
            found.append(entry)
    return found


def _same(entry: Mapping[str, Any], document: Mapping[str, Any]) -> bool:
    """Whether a line is of this look: the same pilot, or an earlier moment of one that grew."""
    labels = len(document["drawn"])
    grew = bool(document["choice"]["sequential"]) and entry["labels"] <= labels
    fixed = bool(entry["settings"] == _settings(document)) and (grew or bool(entry["labels"] == labels))
    return fixed and bool(entry["marks"] == _marks(document, entry["labels"]))


def _digest(content: Any) -> str:
    return sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
