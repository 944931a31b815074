"""A forger at work: false and broken certificates, sealed with digests of their own, and bytes that
are no certificate at all.

Whoever reads the specification can write any numbers into a certificate and renew its digests. So
each forgery here states something that is false (a larger margin, a smaller error, another
operator), or is not of the form; a verifier that accepts one is wrong. `forge` starts from a true
certificate whose margin is exact, so that what is false is known beforehand.
"""

from __future__ import annotations

import copy
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import rrf_design as rrf
from rrf_design.certificates import Tail, Tolerances, Uncertainty, verify
from scenarios.kit.rows import totals
from scenarios.kit.sealing import Document, seal
from scenarios.rigour import forged_claims, forged_premises

TRICKS: dict[str, Callable[[Any, Document], Any]] = {**forged_claims.TRICKS, **forged_premises.TRICKS}
ON_BOTH = (
    "wrong type",
    "other sentences",
    "missing and unknown keys",
    "more answers wrong",
    "enormous sizes",
    "hostile text",
)
ON_PLAIN = (
    "larger margin",
    "smaller upper bound",
    "another operator",
    "more answers wrong",
    "larger budget",
    "false witness",
)


def true_certificate(*, plain: bool = False) -> Document:
    """A certificate that uses every optional part, or none (`plain`); γ₁ is exactly 1 and γ₂
    is 0.
    """
    problem = rrf.Problem(
        name="triangle and isolate",
        k=1,
        sigma=None if plain else 0.004,
        nodes=[{"id": name} for name in ("a", "b", "c", "isolate")],
        relations=[
            {"id": "ab", "tail": "a", "head": "b", "uncertainty": 0.0 if plain else 0.01},
            {"id": "bc", "tail": "b", "head": "c"},
            {"id": "ca", "tail": "c", "head": "a"},
        ],
        anchors=[{"id": "fix", "node": "isolate", "value": [17.0]}],
    )
    if plain:
        made = rrf.certify(problem, budgets=[])
        nothing = dict.fromkeys(made.document["nullspace"])
        return {**copy.deepcopy(made.document), "nullspace": {**nothing, "status": "not certified"}}
    made = rrf.certify(
        problem,
        noise=rrf.Noise(amplitude=2.0),
        uncertainty=Uncertainty({"bc": 0.02}, source="calibration", confidence=0.99),
        tolerances=Tolerances(0.1, 0.1, 0.2, 0.2),
        tail=Tail(0.05, 0.01),
        supports=[["a", "b"], ["isolate"]],
    )
    return copy.deepcopy(made.document)


def guarded_certificate() -> Document:
    """One that speaks of units, delivered values and suspect checks: γ² is exactly 5/2 for `a`,
    with two of its three labels gone.

    Nothing touches `d`, so everything together has margin 0; with one unit for b, c and d it is 1.
    """
    labels = [{"id": f"x{i}", "node": "a", "value": [1.0], "trusted": False} for i in range(3)]
    problem = rrf.Problem(
        name="three labels",
        k=1,
        epsilon=0.1,
        amplitude=2.0,
        deliver=["a"],
        wrong_checks=1,
        nodes=[{"id": "a"}, {"id": "b"}, {"id": "c", "unit": "c"}, {"id": "d", "unit": "c"}],
        relations=[
            {"id": "ab", "tail": "a", "head": "b", "uncertainty": 0.01},
            {"id": "bc", "tail": "b", "head": "c"},
            {"id": "ca", "tail": "c", "head": "a"},
        ],
        anchors=labels,
    )
    return copy.deepcopy(rrf.certify(problem).document)


def forge(rng: Any, true: Document, plain: Document, guarded: Document) -> tuple[str, bytes]:
    """One forgery: the name of the trick, and the file's bytes.

    A plain certificate has less to stumble over.
    """
    name = sorted(TRICKS)[int(rng.integers(len(TRICKS)))]
    document = copy.deepcopy(plain if name in ON_PLAIN and rng.random() < 0.7 else true)
    if name in forged_premises.TRICKS or (name in ON_BOTH and rng.random() < 0.5):
        document = copy.deepcopy(guarded)
    made = TRICKS[name](rng, document)
    return name, made if isinstance(made, bytes) else seal(document)


def noise_bytes(rng: Any, true: Document) -> tuple[str, bytes]:
    """Bytes that nobody wrote as a certificate: random ones, JSON of no form, a certificate with a
    few bytes changed.
    """
    kind = int(rng.integers(5))
    if kind == 0:
        return "random bytes", rng.bytes(int(rng.integers(0, 2000)))
    if kind == 1:
        letters = rng.choice(list('{}[]":,0123456789.eE+- \\untrfals\n'), int(rng.integers(0, 3000)))
        return "letters of JSON", "".join(letters).encode()
    if kind == 2:
        depth = int(rng.integers(1, 200_000))
        return "deep nesting", b"[" * depth + (b"]" * depth if rng.random() < 0.5 else b"")
    text = bytearray(seal(copy.deepcopy(true)))
    if kind == 3:
        del text[int(rng.integers(len(text))) :]
        return "cut off", bytes(text)
    for _ in range(int(rng.integers(1, 6))):
        place = int(rng.integers(len(text)))
        text[place] = (text[place] + int(rng.integers(1, 256))) % 256
    return "changed bytes", bytes(text)


def attack(kind: str, seeds: range) -> dict[str, Any]:
    """Sealed forgeries or bytes without sense, each written to a file and verified."""
    true, plain, guarded = true_certificate(), true_certificate(plain=True), guarded_certificate()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.json"
        for document in (true, plain, guarded):
            path.write_bytes(seal(document))
            if not verify(path).valid:  # and compile
                raise RuntimeError("the certificate to forge is not a true one")
        for seed in seeds:
            rng = np.random.default_rng(seed)
            trick, content = forge(rng, true, plain, guarded) if kind == "forgeries" else noise_bytes(rng, true)
            path.write_bytes(content)
            row: dict[str, Any] = {"trick": trick, "accepted": False, "raised": False}
            began = time.process_time()
            try:
                found = verify(path)
                row["accepted"] = found.valid
                row["raised"] = "check failed" in found.reason  # the last net held, but a check was led astray
            except Exception:
                row["raised"] = True
            rows.append({**row, "seconds": time.process_time() - began})
    return counted(kind, rows)


def counted(kind: Any, cases: list[dict[str, Any]]) -> dict[str, Any]:
    """Cases of one attack in numbers: what was accepted, believed or raised, and how often each
    trick was tried.
    """
    return {
        "attack": kind,
        "tried": len(cases),
        **totals(cases, "accepted false believed deceived raised refused"),
        "slowest": max((case.get("seconds", 0.0) for case in cases), default=0.0),
        "tricks": dict(sorted(Counter(case["trick"] for case in cases).items())),
    }
