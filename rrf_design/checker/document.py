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
import math
from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

from flint import arb, ctx, fmpq

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
TEXT_OR_NONE = (str, type(None))
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


def canonical(document: dict[str, Any]) -> bytes:
    """The one form that is hashed: keys sorted, no spaces, ASCII, shortest round-trip numbers."""
    text = json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return text.encode()


def content_digest(document: dict[str, Any]) -> str:
    """SHA-256 of everything but the digest itself."""
    return hashlib.sha256(canonical({key: value for key, value in document.items() if key != "digest"})).hexdigest()


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


PILOT: dict[str, Any] = {
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
MOST = 2_000_000
OTHER = "-"
"""The mark of a drawn item that is asked something else."""
PRECISIONS = (128, 512, 2048)


def is_drawn(places: Sequence[int], size: int, seed: int, population: str) -> bool:
    """Are these the first places of the random order, sorted by SHA-256 of digest, seed and place?

    A false draw mostly shows after a few looks.
    """
    head = f"{population}:{seed}:".encode("utf-8", "surrogatepass")

    def key(place: int) -> bytes:
        return hashlib.sha256(head + b"%d" % place).digest()

    keys = [key(place) for place in places if 0 <= place < size]
    if len(keys) != len(places) or any(first >= second for first, second in pairwise(keys)):
        return False
    drawn = set(places)
    return all(place in drawn or key(place) > keys[-1] for place in range(size))


def failures(wrong: Mapping[str, str], units: Sequence[Sequence[str]], k: int, items: int) -> int:
    """Items in which more than k units have a wrong answer."""
    return sum(sum(any(wrong[node][at] == "1" for node in unit) for unit in units) > k for at in range(items))


def alike(wrong: Mapping[str, str], items: int) -> int:
    """How many of the drawn items are of this kind."""
    first = next(iter(wrong.values()), "")
    return items - first.count(OTHER)


def refutes(items: int, failed: int, rate: float, confidence: float) -> bool:
    """Is P(Bin(items, rate) ≤ failed) ≤ 1 − confidence?

    In ball arithmetic; what that can't tell is not proven.

    Terms from `failed` downwards; below the mean their quotients fall, so that a geometric series
    bounds what is left out.
    """
    if rate >= 1 or failed >= items:
        return rate >= 1
    if rate <= 0:
        return False
    before = ctx.prec
    try:
        for ctx.prec in PRECISIONS:
            level = arb(1) - arb(fmpq(*Fraction(str(confidence)).as_integer_ratio()))
            p = arb(rate)
            odds = (1 - p) / p
            ways = arb(items + 1).lgamma() - arb(failed + 1).lgamma() - arb(items - failed + 1).lgamma()
            term = (ways + p.log() * failed + (1 - p).log() * (items - failed)).exp()
            total, tiny = term, arb(2) ** -(ctx.prec + 20)
            for j in range(failed, 0, -1):
                quotient = odds * j / (items - j + 1)
                term = term * quotient
                total = total + term
                if quotient < 1 and term < tiny * total:
                    total = total + arb(0).union(term * quotient / (1 - quotient))
                    break
            if total <= level or total > level:
                return bool(total <= level)
    finally:
        ctx.prec = before
    return False


def rate_above(items: int, failed: int, confidence: float) -> float:
    """The smallest rate that the count refutes, with all above it (Clopper and Pearson, one-sided),
    rounded upwards.
    """
    from scipy.special import betaincinv

    if failed >= items:
        return 1.0
    rate, step = float(betaincinv(failed + 1, items - failed, confidence)), 2.0**-52
    while not refutes(items, failed, rate, confidence):
        rate, step = min(1.0, rate * (1.0 + step) + 2.0**-1000), 2.0 * step
    return rate


def _in_percent(bound: float) -> str:
    """With two decimals, rounded upwards: what is said must not be less than what is proven."""
    hundredths = math.ceil(10_000 * Fraction(bound))
    return f"{hundredths // 100}.{hundredths % 100:02d} %"


def _sure(confidence: float) -> str:
    """All digits that it has: 0.9999999 is no 100 %."""
    return f"{(100 * Decimal(repr(confidence))).normalize():f} %"


def sentence(section: Mapping[str, Any], k: int, units: Sequence[Sequence[str]]) -> str:
    what = "answers" if all(len(unit) == 1 for unit in units) else "units"
    drawn = len(section["places"])
    counted, source = alike(section["wrong"], drawn), f"drawn from {section['table']} ({section['size']:,} items)"
    if not counted:
        return (
            f"None of the {drawn:,} items {source} is asked what this one is: the pilot says nothing about its premise."
        )
    kind = "" if counted == drawn else f" that are asked the same, among {drawn:,}"
    return (
        f"More than {k} of {len(units)} {what} were wrong in {section['more_than_k']:,} of {counted:,} items{kind}"
        f" {source}: with confidence {_sure(section['confidence'])}, at most {_in_percent(section['bound'])} of items"
        " drawn like them fail the premise."
    )


def check_pilot(section: Mapping[str, Any], nodes: Sequence[str], units: Sequence[Sequence[str]] | None, k: int) -> str:
    """Refused unless draw, count, bound and sentence are what the marks say."""
    places, size, wrong = section["places"], section["size"], section["wrong"]
    if not 0 < len(places) <= size <= MOST or section["seed"] < 0:
        raise Refused(f"pilot: {len(places)} items drawn from {size}")
    if not is_drawn(places, size, section["seed"], section["population"]):
        raise Refused("pilot.places: seed and digest draw other items")
    if set(wrong) != set(nodes):
        raise Refused("pilot.wrong: must have the marks of every node of the operator, and of no other")
    for name, marks in wrong.items():
        if type(marks) is not str or len(marks) != len(places) or set(marks) - {"0", "1", OTHER}:
            raise Refused(f"pilot.wrong: {name!r:.60} should have a 0, 1 or {OTHER} for each item drawn")
    if len({tuple(mark == OTHER for mark in marks) for marks in wrong.values()}) > 1:
        raise Refused("pilot.wrong: an item that is asked something else is so at every node")
    counted = alike(wrong, len(places))
    groups = [[name] for name in nodes] if units is None else units
    failed = failures(wrong, groups, k, len(places))
    if section["more_than_k"] != failed:
        raise Refused(f"pilot.more_than_k: the marks say {failed}")
    sure, bound = section["confidence"], section["bound"]
    if not 0 < sure < 1 or not 0 <= bound <= 1 or not math.isfinite(bound):
        raise Refused("pilot: confidence and bound must be shares")
    if not refutes(counted, failed, bound, sure):
        raise Refused(f"pilot.bound: {bound!r} is claimed, {failed} of {counted} do not prove it")
    if section["sentence"] != sentence(section, k, groups):
        raise Refused("pilot.sentence: is not what the figures say")
    return f"{failed} of {counted} drawn items recounted: at most {bound:.4g} fail the premise, confidence {sure:g}"
