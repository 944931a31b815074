"""Other draws from the same table, in the same folder: whoever draws again after looking, until the result pleases, proves nothing.

What lies elsewhere, or was thrown away, nobody can know: `verify` says that it is taken on trust. But an honest user who has forgotten is told.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rrf_design.documents import kind_of, read
from rrf_design.errors import InputError, Refused

HEAD = 200
"""Bytes in which a document of ours says what it is."""


def refuse_another_draw(output: str | os.PathLike[str], digest: str, seed: int, *, confidence: float) -> None:
    """Refused where an audit of these deliveries lies beside the output and was drawn with another seed, or has another confidence. With the same ones nothing is chosen."""
    for path, audit in _beside(output, "rrf-audit"):
        record = audit.get("record")
        if not isinstance(record, Mapping) or record.get("digest") != digest:
            continue
        if (record.get("seed"), audit.get("confidence")) == (seed, confidence):
            continue
        raise Refused(
            f"{path.name} beside it audited these deliveries with seed {record.get('seed')!r:.40} and confidence {audit.get('confidence')!r:.40}; a second audit after looking at the first would be another chance, and void the"
            " bound. Go on with that one: its draws count"
        )


def other_pilots(output: str | os.PathLike[str], document: Mapping[str, Any]) -> list[str]:
    """Files beside the output with another pilot of the same table: one promise chosen among several does not hold with its confidence."""
    keys = ("seed", "risk", "confidence", "drawn", "statement", "among", "order", "random_checks")
    own = document["population"]["digest"], {key: document.get(key) for key in keys}
    found = []
    for path, policy in _beside(output, "rrf-policy"):
        people = policy.get("population")
        same = isinstance(people, Mapping) and people.get("digest") == own[0]
        if same and any(policy.get(key) != value for key, value in own[1].items()):
            found.append(path.name)
    return found


def _beside(output: str | os.PathLike[str], kind: str) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Documents of this kind in the folder of the output, without the output itself; what can't be read is no document."""
    target = Path(output)
    mark = f'"{kind}"'.encode()
    for path in sorted(target.parent.glob("*.json")):
        if path.name == target.name:
            continue
        try:
            with path.open("rb") as stream:
                if mark not in stream.read(HEAD):
                    continue
            document = read(path)
        except (OSError, InputError):
            continue
        if kind_of(document) == kind:
            yield path, document
