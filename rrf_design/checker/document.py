"""The certificate document: its keys, its canonical form and digest, strict reading.

See docs/certificate-specification.md.

Nothing here believes a document; `verify` does the arithmetic. Reading refuses what is not exactly
of the form: missing and unknown keys, wrong types, numbers that are not finite, keys that stand
twice.

The `pilot` section of a certificate says how often its premise fails, from items drawn at random
with known truth. A margin promises something "if at most k are wrong". Of n items drawn at random,
x had more than k wrong; whatever the errors are and however they come together, a rate R with
P(Bin(n, R) ≤ x) ≤ 1 − c is refuted at confidence c. The section holds the draw and every answer's
mark, so that the draw, the count and the bound are redone here. That the marks are true, and that
the item is drawn like the pilot's, is taken on trust, and the sentence says of whom it speaks.

Items of a table need not all be asked the same: a rare kind may fail every time where the common
one never does, and a rate over all of them would say nothing about it. So only drawn items that are
asked what this one is asked count; the others are marked "-" at every node. Given how many of its
kind were drawn, those are a random draw of the kind.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from rrf_design.errors import Refused

FORMAT = "rrf-certificate"
VERSION = 4

Spec = dict[str, Any]
"""A type, a tuple of types, a nested Spec, or [item spec] for a list."""

NUMBER = (int, float)
LARGEST = 1e300
"""Of the numbers a certificate may hold, so that nothing overflows; whole numbers are those that
doubles hold.
"""
LARGEST_WHOLE = 2**53
MAYBE = (int, float, type(None))
_SPARSE = {"support": [str], "direction": [[NUMBER]]}

SECTIONS: Spec = {
    "format": str,
    "version": int,
    "problem": {"name": str, "digest": str, "selected": [str]},
    "operator": dict,
    "k": int,
    "metrics": {"norm": str, "weights": str, "fibers": [str], "whitened": [str]},
    "margin": {"lower": NUMBER, "upper": NUMBER, "status": str, "rung": str, "proof": dict},
    "witness": _SPARSE,
    "conditional": (dict, type(None)),
    "protection": (dict, type(None)),
    "uncertainty": {
        "source": str,
        "confidence": MAYBE,
        "eta": NUMBER,
        "global_lower": NUMBER,
        "support_lower": MAYBE,
        "robust_lower": NUMBER,
    },
    "noise": dict,
    "error": {
        "amplitude": MAYBE,
        "norms": (dict, type(None)),
        "spread": MAYBE,
        "largest_error": MAYBE,
        "delta": MAYBE,
        "confidence": MAYBE,
        "effective_epsilon": MAYBE,
        "bound": MAYBE,
        "minimax": (dict, type(None)),
        "tolerances": (dict, type(None)),
        "tail": (dict, type(None)),
    },
    "regime": {"name": str, "consequence": str},
    "budgets": [{"k": int, "lower": NUMBER, "upper": NUMBER, "witness": _SPARSE}],
    "nullspace": {
        "status": str,
        "rho": MAYBE,
        "tau": MAYBE,
        "c1": MAYBE,
        "c2": MAYBE,
        "witness": (dict, type(None)),
        "kernel": (dict, type(None)),
    },
    "audit": {"residual": NUMBER, "pair": (dict, type(None)), "sensitivity": MAYBE},
    "rivals": (dict, type(None)),
    "assumptions": [str],
    "provenance": {"package": str, "notes": [str], "unwhitened": (dict, type(None))},
    "digest": str,
}

NOISE: Spec = {
    "kind": str,
    "epsilon": MAYBE,
    "sigma": MAYBE,
    "confidence": MAYBE,
    "blocks": (list, type(None)),
    "rows": int,
}
SHARED: Spec = {
    "blocks": [str],
    "members": int,
    "correlation": MAYBE,
    "covariance": (list, type(None)),
    "dilation": NUMBER,
}
"""One entry of `noise.shared`, which stands there where the kind is correlated, and only there."""

ANSWERS: Spec = {"nodes": dict, "image": NUMBER, "own": NUMBER, "confidence": NUMBER}
"""`noise.answers`, which stands there where answers scatter, and only there."""

_ESTIMATE = {"block": str, "repeats": int, "rows": int, "inflation": NUMBER, "confidence": NUMBER}
ESTIMATED: Spec = {"blocks": [_ESTIMATE], "confidence": NUMBER}
"""`noise.estimated`, which stands there where noise was estimated from repeats, and only there."""
_SCATTER = {"node": str, "repeats": int, "rows": int, "inflation": NUMBER, "confidence": NUMBER}
SCATTERS: Spec = {"nodes": [_SCATTER]}
"""And `noise.estimated.nodes`, where that is so of answers that scatter."""

PROOFS: dict[str, Spec] = {
    "none": {"kind": str},
    "enumeration": {"kind": str},
    "dominance": {"kind": str, "weights": [NUMBER]},
    "dual": {"kind": str, "triangle": [NUMBER]},
}
RUNGS = {
    "none": "none",
    "exact": "enumeration",
    "branch-and-bound": "enumeration",
    "mixed-integer": "enumeration",
    "semidefinite": "dual",
    "dominance": "dominance",
}
"""Rung of the ladder to the kind of proof that carries it."""

CONDITIONAL: Spec = {"supports": [[str]], "lower": NUMBER, "upper": NUMBER, "witness": _SPARSE}
PROTECTION: Spec = {
    "units": [[str]],
    "deliver": [str],
    "wrong_checks": int,
    "suspects": [str],
    "wrong": [str],
    "field_lower": MAYBE,
}
RATES: Spec = {"rates": [NUMBER], "most": int, "confidence": NUMBER}
"""`protection.rates`, which stands there where checks are wrong at a rate, and only there."""
MINIMAX: Spec = {"lower": NUMBER, "upper": NUMBER, "gaussian_lower": MAYBE}
TOLERANCES: Spec = {
    "relation_truth": NUMBER,
    "relation_estimate": NUMBER,
    "anchor_truth": NUMBER,
    "anchor_estimate": NUMBER,
    "bound": MAYBE,
}
TAIL: Spec = {"norm": NUMBER, "image": NUMBER, "bound": MAYBE}
UNWHITENED: Spec = {"lower": NUMBER, "upper": NUMBER, "support": [str]}
PAIR: Spec = {"first": [str], "second": [str]}
_RIVAL: Spec = {**_SPARSE, "checks": [str], "disturbance": [[NUMBER]]}
RIVALS: Spec = {"distance": NUMBER, "residual": NUMBER, "first": _RIVAL, "second": _RIVAL}
KERNEL: Spec = {"floor": NUMBER, "directions": [_SPARSE]}
DUAL: Spec = {"dual": [[NUMBER]]}
"""Two ways to carry the null-space property of an operator with a kernel."""
NULLSPACE_WITNESS: Spec = {"set": [str], "direction": [[NUMBER]]}
PILOT: Spec = {
    "table": str,
    "size": int,
    "population": str,
    "recipe": str,
    "seed": int,
    "places": [int],
    "wrong": dict,
    "more_than_k": int,
    "confidence": NUMBER,
    "bound": NUMBER,
    "sentence": str,
}
"""`pilot`, which only certificates have that a pilot speaks for."""


def _canonical(document: dict[str, Any]) -> bytes:
    """The one form that is hashed: keys sorted, no spaces, ASCII, shortest round-trip numbers."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.encode()


def content_digest(document: dict[str, Any]) -> str:
    """SHA-256 of everything but the digest itself."""
    return hashlib.sha256(_canonical({key: value for key, value in document.items() if key != "digest"})).hexdigest()


def parse(text: str) -> dict[str, Any]:
    """The document of a text.

    Numbers are read as doubles or as whole numbers that doubles hold; Refused for anything else.
    """
    try:
        document = json.loads(
            text, object_pairs_hook=_no_repeats, parse_constant=_no_constant, parse_int=_whole, parse_float=_finite
        )
    except RecursionError:
        raise Refused("not a JSON document (nested too deeply)") from None
    except ValueError as error:
        raise Refused(f"not a JSON document ({error})") from None
    if not isinstance(document, dict):
        raise Refused("not a certificate: the top level must be an object")
    return document


def check_form(document: Any) -> None:
    """Format, version, content digest and the type of every entry; Refused with the first fault."""
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise Refused(f"not a certificate: the format is not {FORMAT!r}")
    if type(document.get("version")) is not int or document["version"] != VERSION:
        raise Refused(f"version {document.get('version')!r:.40} is unknown; this verifier reads version {VERSION}")
    try:
        actual = content_digest(document)
    except (TypeError, ValueError) as error:
        raise Refused(f"the document has no canonical form ({error})") from None
    if type(document.get("digest")) is not str or document["digest"] != actual:
        raise Refused("digest: the document was altered after it was written")
    matches({key: value for key, value in document.items() if key != "pilot"}, SECTIONS, "")
    if "pilot" in document:  # only certificates that a pilot speaks for have it
        matches(document["pilot"], PILOT, "pilot.")
    noise = document["noise"]
    shared = {"shared": [SHARED]} if noise.get("kind") == "correlated" else {}
    guessed = noise.get("estimated")
    estimated = ESTIMATED | (SCATTERS if isinstance(guessed, dict) and "nodes" in guessed else {})
    extra = {name: spec for name, spec in (("answers", ANSWERS), ("estimated", estimated)) if name in noise}
    matches(noise, NOISE | shared | extra, "noise.")
    proof = document["margin"]["proof"]
    rung = document["margin"]["rung"]
    if type(proof.get("kind")) is not str or proof["kind"] not in PROOFS or RUNGS.get(rung) != proof["kind"]:
        raise Refused(f"margin: the rung {rung!r:.40} does not go with a proof of kind {proof.get('kind')!r:.40}")
    matches(proof, PROOFS[proof["kind"]], "margin.proof.")
    guarded = document["protection"]
    bounds, kernel = document["error"], document["nullspace"]["kernel"]
    optional = (
        (document["conditional"], CONDITIONAL, "conditional."),
        (guarded, PROTECTION | ({"rates": RATES} if "rates" in (guarded or {}) else {}), "protection."),
        (bounds["minimax"], MINIMAX, "error.minimax."),
        (bounds["tolerances"], TOLERANCES, "error.tolerances."),
        (bounds["tail"], TAIL, "error.tail."),
        (document["audit"]["pair"], PAIR, "audit.pair."),
        (document["rivals"], RIVALS, "rivals."),
        (document["provenance"]["unwhitened"], UNWHITENED, "provenance.unwhitened."),
        (document["nullspace"]["witness"], NULLSPACE_WITNESS, "nullspace.witness."),
        (kernel, DUAL if kernel and "dual" in kernel else KERNEL, "nullspace.kernel."),
        (document["noise"]["blocks"], [str], "noise.blocks"),
    )
    for value, spec, where in optional:
        if value is not None:
            matches(value, spec, where)


def matches(value: Any, spec: Any, where: str) -> None:
    """Refused unless the value has exactly this form."""
    if isinstance(spec, dict):
        if not isinstance(value, dict):
            raise Refused(f"{where.rstrip('.')}: must be an object")
        for key in sorted(set(spec) ^ set(value)):
            raise Refused(f"{where}{key}: {'missing' if key in spec else 'unknown'}")
        for key, inner in spec.items():
            matches(value[key], inner, f"{where}{key}" + ("." if isinstance(inner, dict) else ""))
    elif isinstance(spec, list):
        if not isinstance(value, list):
            raise Refused(f"{where}: must be a list")
        if not isinstance(spec[0], dict | list) and all(_fits(item, spec[0]) for item in value):
            return  # places are put into words only where one has to be named
        for index, item in enumerate(value):
            inner_dot = "." if isinstance(spec[0], dict) else ""
            matches(item, spec[0], f"{where}[{index}]{inner_dot}")
    elif not _fits(value, spec):
        if not _of_kind(value, spec):
            raise Refused(f"{where}: {value!r:.40} has the wrong type")
        raise Refused(f"{where}: must be a number of at most {LARGEST:g}, a whole one of at most 2**53")


def _of_kind(value: Any, spec: Any) -> bool:
    return type(value) in spec if isinstance(spec, tuple) else type(value) is spec


def _fits(value: Any, spec: Any) -> bool:
    """Whether a single value has its type, and a number its size."""
    if not _of_kind(value, spec):
        return False
    if type(value) is float:
        return abs(value) <= LARGEST
    return type(value) is not int or abs(value) <= LARGEST_WHOLE


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise Refused("a key stands twice in one object")
    return result


def _whole(digits: str) -> int:
    if len(digits) > 17 or abs(int(digits)) > LARGEST_WHOLE:
        raise Refused(f"{digits[:20]}: a whole number is larger than 2**53")
    return int(digits)


def _finite(digits: str) -> float:
    value = float(digits)
    if not abs(value) <= LARGEST:
        raise Refused(f"{digits[:20]}: a number is larger than {LARGEST:g}")
    return value


def _no_constant(name: str) -> Any:
    raise Refused(f"{name} is not a number a certificate may hold")
