"""A forger at work: false and broken certificates, sealed with digests of their own, and bytes that are no certificate at all.

Whoever reads the specification can write any numbers into a certificate and renew its digests. So each forgery here states
something that is false (a larger margin, a smaller error, another operator), or is not of the form; a verifier that accepts
one is wrong. `forge` starts from a true certificate whose margin is exact, so that what is false is known beforehand.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterator
from typing import Any

Document = dict[str, Any]
NAMES = ("node_ids", "block_ids", "block_kinds")
NO_CLAIM = ("provenance", "assumptions", "problem", "metrics", "digest", "format", "version")
HOSTILE: tuple[Any, ...] = (
    "a text",
    True,
    [],
    {},
    [[]],
    {"x": 1},
    -1e308,
    "1e400",
    2.5e307,
    9007199254740995,
    "\ud800",
    "\x00",
    "../x",
)


def true_certificate(*, plain: bool = False) -> Document:
    """A certificate that uses every optional part, or none (`plain`); γ₁ is exactly 1 and γ₂ is 0."""
    import rrf_design as rrf
    from rrf_design.certificates import Tail, Tolerances, Uncertainty

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
        made = rrf.certify(problem, claims=rrf.Claims(budgets=[]))
        nothing = dict.fromkeys(made.document["nullspace"])
        return {**copy.deepcopy(made.document), "nullspace": {**nothing, "status": "not certified"}}
    made = rrf.certify(
        problem,
        noise=rrf.Noise(amplitude=2.0),
        claims=rrf.Claims(
            uncertainty=Uncertainty({"bc": 0.02}, source="calibration", confidence=0.99),
            tolerances=Tolerances(0.1, 0.1, 0.2, 0.2),
            tail=Tail(0.05, 0.01),
            supports=[["a", "b"], ["isolate"]],
        ),
    )
    return copy.deepcopy(made.document)


def guarded_certificate() -> Document:
    """One that speaks of units, delivered values and suspect checks: γ² is exactly 5/2 for `a`, with two of its three labels gone.

    Nothing touches `d`, so everything together has margin 0; with one unit for b, c and d it is 1.
    """
    import rrf_design as rrf

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


def seal(document: Document) -> bytes:
    """The document's bytes with a content digest that fits; without one where it has no canonical form."""
    rest = {key: value for key, value in document.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return json.dumps({**rest, "digest": hashlib.sha256(text.encode()).hexdigest()}).encode()


def seal_operator(operator: Document) -> None:
    """Renew the counts and the digest of an inline operator, by the recipe of the specification."""
    import numpy as np

    from rrf_design.certificates.checker.record import ARRAYS, FILE_FORMAT

    total = hashlib.sha256(FILE_FORMAT.encode())
    try:
        for name in ARRAYS:
            if name in NAMES:
                content = json.dumps(operator[name], ensure_ascii=True, separators=(",", ":")).encode()
            else:
                kind = "<f8" if name in ("radii", "data") else "<i8"
                content = np.array(operator[name], dtype=kind).tobytes()
            total.update(f"\n{name} {len(content)}\n".encode() + content)
    except (TypeError, ValueError, OverflowError):
        return
    operator["digest"] = total.hexdigest()
    operator["rows"], operator["nodes"] = len(operator["indptr"]) - 1, len(operator["node_ids"])
    operator["columns"], operator["blocks"] = sum(operator["node_sizes"]), len(operator["block_ids"])


def forge(rng: Any, true: Document, plain: Document, guarded: Document) -> tuple[str, bytes]:
    """One forgery: the name of the trick, and the file's bytes. A plain certificate has less to stumble over."""
    name = sorted(TRICKS)[int(rng.integers(len(TRICKS)))]
    document = copy.deepcopy(plain if name in ON_PLAIN and rng.random() < 0.7 else true)
    if name in ON_GUARDED or (name in ON_BOTH and rng.random() < 0.5):
        document = copy.deepcopy(guarded)
    made = TRICKS[name](rng, document)
    return name, made if isinstance(made, bytes) else seal(document)


def noise_bytes(rng: Any, true: Document) -> tuple[str, bytes]:
    """Bytes that nobody wrote as a certificate: random ones, JSON of no form, a certificate with a few bytes changed."""
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
    import tempfile
    import time
    from pathlib import Path

    import numpy as np

    from rrf_design.certificates import verify

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
    tricks = sorted({row["trick"] for row in rows})
    return {
        "attack": kind,
        "tried": len(rows),
        "accepted": sum(row["accepted"] for row in rows),
        "raised": sum(row["raised"] for row in rows),
        "slowest": max(row["seconds"] for row in rows),
        "tricks": {trick: sum(row["trick"] == trick for row in rows) for trick in tricks},
    }


def _larger_margin(rng: Any, document: Document) -> None:
    claim = document["margin"]
    factor = 1.0 + 10.0 ** float(rng.uniform(-7, 2))
    claim["lower"] = claim["upper"] * factor
    claim["upper"] = claim["lower"] * float(rng.choice([1.0, 1.5]))
    claim["status"] = "exact" if claim["lower"] >= claim["upper"] * (1 - 1e-6) else "bounded"
    document["audit"]["sensitivity"] = (1.0 / claim["upper"]) * (1.0 - 1e-15)
    if document["uncertainty"]["eta"] == 0.0:
        document["uncertainty"].update(dict.fromkeys(("global_lower", "support_lower", "robust_lower"), claim["lower"]))
    _other_proof(rng, document)
    if rng.random() < 0.5:  # a witness that suits, where the margin is not too large
        document["witness"] = {"support": ["a"], "direction": [[1.0]]}
        document["audit"]["residual"] = 2.0


def _other_proof(rng: Any, document: Document) -> None:
    nodes, columns = len(document["operator"]["node_ids"]), sum(document["operator"]["node_sizes"])
    triangle = rng.normal(size=columns * (columns + 1) // 2) * 10.0 ** float(rng.integers(-3, 4))
    kind = int(rng.integers(4))
    document["margin"]["rung"], document["margin"]["proof"] = (
        ("exact", {"kind": "enumeration"}),
        ("dominance", {"kind": "dominance", "weights": rng.uniform(1e-300, 1.0, nodes).tolist()}),
        ("semidefinite", {"kind": "dual", "triangle": triangle.tolist()}),
        ("mixed-integer", {"kind": "enumeration"}),
    )[kind]


def _smaller_upper(rng: Any, document: Document) -> None:
    claim = document["margin"]
    claim["upper"] = claim["lower"] * float(rng.choice([0.0, 0.5, 1 - 1e-6]))
    claim.update(
        lower=0.0, rung="none", proof={"kind": "none"}, status="exact" if claim["upper"] <= 1e-9 else "bounded"
    )
    document["uncertainty"].update(global_lower=0.0, support_lower=0.0, robust_lower=0.0)
    zero = claim["upper"] <= 1e-9
    names = document["witness"]["support"]
    document["audit"]["sensitivity"] = None if zero else 1.0 / claim["upper"]
    document["audit"]["pair"] = {"first": names[:1], "second": names[1:]} if zero else None


def _another_operator(rng: Any, document: Document) -> None:
    """Smaller, larger, or with a row less: the numbers stay."""
    operator = document["operator"]
    trick = int(rng.integers(4))
    if trick == 0:
        operator["data"] = [x * float(rng.choice([1e-3, 0.5, 0.999])) for x in operator["data"]]
    elif trick == 1:
        operator["data"] = [x * 1000.0 for x in operator["data"]]
    elif trick == 2:
        operator["data"][-1] = 0.0  # the anchor of the isolated node
    else:
        size = float(rng.choice([1e7, 3e8, 1e60, 1e150, 1e-160, 1e299]))
        operator["data"] = [x * size if i % 2 else x for i, x in enumerate(operator["data"])]
    seal_operator(operator)


def _more_answers_wrong(rng: Any, document: Document) -> None:
    document["k"] = int(rng.choice([2, 3, 7, 10**6, 2**40]))
    document["budgets"] = []


def _smaller_uncertainty(rng: Any, document: Document) -> None:
    claim = document["uncertainty"]
    key = str(rng.choice(["eta", "global_lower", "support_lower", "robust_lower"]))
    claim[key] *= 0.9 if key == "eta" else 1.0 + 10.0 ** float(rng.uniform(-4, 1))
    if key in ("global_lower", "support_lower"):
        claim["robust_lower"] = max(claim["global_lower"], claim["support_lower"])


def _smaller_noise(rng: Any, document: Document) -> None:
    claim = document["noise"]
    if rng.random() < 0.5:
        claim["epsilon"] *= 1.0 - 10.0 ** float(rng.uniform(-9, 0))
    else:
        claim["confidence"] = 1.0 - (1.0 - claim["confidence"]) * float(rng.choice([0.5, 1e-9]))


def _smaller_error(rng: Any, document: Document) -> None:
    claim = document["error"]
    smaller = 1.0 - 10.0 ** float(rng.uniform(-9, 0))
    key = str(rng.choice(["bound", "spread", "effective_epsilon", "tail", "tolerances"]))
    if key in ("tail", "tolerances"):
        claim[key]["bound"] *= smaller
    else:
        claim[key] *= smaller


def _better_decoder(rng: Any, document: Document) -> None:
    claim = document["nullspace"]
    if rng.random() < 0.5:
        claim.update(status="certified", rho=1e-6, tau=1e-3, c1=1e300, c2=1e300, witness=None, kernel=None)
    else:
        direction = [[float(x)] for x in rng.normal(size=4)]
        claim.update(status="refuted", rho=None, tau=1e200, c1=None, c2=None, kernel=None)
        claim["witness"] = {"set": ["a"], "direction": direction}


def _listed(rng: Any, document: Document) -> None:
    claim = document["conditional"]
    claim["lower"] = claim["upper"] * (1.0 + 10.0 ** float(rng.uniform(-7, 2)))
    claim["upper"] = claim["lower"]


def _larger_budget(rng: Any, document: Document) -> None:
    witness = copy.deepcopy(document["witness"])
    document["budgets"] = [{"k": int(rng.choice([2, 3, 2**50])), "lower": 0.5, "upper": 1.0, "witness": witness}]


def _witness(rng: Any, document: Document) -> None:
    witness = document["witness"]
    trick = int(rng.integers(4))
    if trick == 0:
        witness["support"] = ["nobody"] * len(witness["support"])
    elif trick == 1:
        witness["direction"] = [
            [x * float(rng.choice([0.0, 10.0, 1e200])) for x in part] for part in witness["direction"]
        ]
    elif trick == 2:
        witness["direction"] = [[*part, 0.0] for part in witness["direction"]]
    else:
        witness["support"] = witness["support"] * 2


def _rivals(rng: Any, document: Document) -> None:
    """Two explanations that are farther apart, fit better, or blame more answers than is true."""
    claim = document["rivals"]
    trick = int(rng.integers(4))
    if trick == 0:
        claim["distance"] *= 1.0 + 10.0 ** float(rng.uniform(-9, 2))
    elif trick == 1:
        claim["residual"] *= 1.0 - 10.0 ** float(rng.uniform(-9, 0))
    elif trick == 2:
        side = claim[str(rng.choice(["first", "second"]))]
        side["direction"] = [[x * float(rng.choice([1.5, -1.0, 1e5])) for x in part] for part in side["direction"]]
    else:
        for key in ("support", "direction"):
            claim["first"][key] = [*claim["first"][key], *claim["second"][key]]
        claim["second"] = {key: [] for key in claim["second"]}


def _regime(rng: Any, document: Document) -> None:
    claim = document["regime"]
    key = str(rng.choice(["name", "consequence"]))
    claim[key] = str(rng.choice(["information", "Everything is fine.", ""]))
    if rng.random() < 0.3:
        document["margin"]["status"] = "bounded" if document["margin"]["status"] == "exact" else "exact"


def _wrong_type(rng: Any, document: Document) -> None:
    """One entry of any section becomes something of another type, or far out of range."""
    spots = [path for path, _ in _leaves(document) if path[0] not in NO_CLAIM and path[:2] != ("error", "norms")]
    path = spots[int(rng.integers(len(spots)))]
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    old = place[path[-1]]
    fits = (str,) if isinstance(old, str) else (int, float)
    choices = [value for value in HOSTILE if not isinstance(value, fits) or isinstance(value, bool)]
    place[path[-1]] = choices[int(rng.integers(len(choices)))]
    if path[0] == "operator" and len(path) > 2 and rng.random() < 0.5:
        seal_operator(document["operator"])


def _leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(item, (*path, key))
    else:
        yield path, value


def _keys(rng: Any, document: Document) -> None:
    sections = [document, *(v for k, v in document.items() if isinstance(v, dict) and k != "provenance")]
    section = sections[int(rng.integers(len(sections)))]
    if rng.random() < 0.5:
        keys = [key for key in section if key != "digest" or section is not document]
        del section[keys[int(rng.integers(len(keys)))]]
    else:
        section["one more"] = 1


def _sizes(rng: Any, document: Document) -> None:
    """An operator whose few numbers speak of enormous things."""
    operator = document["operator"]
    name = str(rng.choice(["node_sizes", "block_sizes", "indptr", "indices", "touch_starts", "touch_nodes"]))
    if not operator[name]:
        name = "node_sizes"
    place = int(rng.integers(len(operator[name])))
    operator[name][place] = int(rng.choice([-1, 10**5, 10**9, 2**31, 2**52]))
    if rng.random() < 0.3:
        operator[name] = operator[name] * 2
    seal_operator(operator)


def _text(rng: Any, document: Document) -> bytes:
    """What only the text can hold: numbers without end, NaN, keys that stand twice, depth, other encodings."""
    text = seal(document).decode()
    upper = f'"upper": {json.dumps(document["margin"]["upper"])}'
    swap: tuple[Callable[[], bytes], ...] = (
        lambda: text.replace(upper, f'"upper": 1{"0" * 400}', 1).encode(),
        lambda: text.replace(upper, f'"upper": {"9" * 5000}', 1).encode(),
        lambda: text.replace(upper, '"upper": 1e999', 1).encode(),
        lambda: text.replace(upper, '"upper": NaN', 1).encode(),
        lambda: text.replace(upper, '"upper": -Infinity', 1).encode(),
        lambda: text.replace(upper, f'{upper}, "upper": 7.0', 1).encode(),
        lambda: text.replace(upper, f'"upper": {"[" * 100_000}', 1).encode(),
        lambda: text.encode("utf-16"),
        lambda: b"\xef\xbb\xbf" + text.encode(),
        lambda: (text + text).encode(),
    )
    return swap[int(rng.integers(len(swap)))]()


def _file(rng: Any, document: Document) -> None:
    """The operator is said to lie in a file: elsewhere, nowhere, or in something that is none."""
    operator = document["operator"]
    kept = {key: operator[key] for key in ("digest", "rows", "columns", "nodes", "blocks")}
    names = ["operator.npz", "..", ".", "/etc/passwd", "../c.json", "c.json", "a\x00b", "", "x" * 5000, "\ud800"]
    document["operator"] = {"storage": "file", "file": str(rng.choice(names)), **kept}


def _larger_unit(rng: Any, document: Document) -> None:
    document["protection"]["units"] = [["a"], ["b", "c", "d"]] if rng.random() < 0.5 else [["a", "b", "c", "d"]]


def _more_delivered(rng: Any, document: Document) -> None:
    document["protection"]["deliver"] = (
        list(rng.permutation(["a", "b", "c", "d"])) if rng.random() < 0.5 else ["a", "d"]
    )


def _more_wrong_checks(rng: Any, document: Document) -> None:
    claim = document["protection"]
    claim["wrong_checks"] = int(rng.choice([2, 3, 2**40]))
    if rng.random() < 0.5:
        claim["suspects"] = list(document["operator"]["block_ids"])


def _better_protected(rng: Any, document: Document) -> None:
    """A larger margin, with a witness and derived numbers that go along."""
    claim = document["margin"]
    factor = 1.0 + 10.0 ** float(rng.uniform(-7, 1))
    claim["lower"] = claim["upper"] * factor
    document["protection"]["wrong"] = []  # nothing set aside: the same witness leaves more
    claim["upper"] = claim["lower"] * float(rng.choice([1.0, 2.0]))
    claim["status"] = "exact" if claim["lower"] >= claim["upper"] * (1 - 1e-6) else "bounded"
    document["audit"].update(residual=5.0, sensitivity=(1.0 / claim["upper"]) * (1.0 - 1e-15))


def _field_margin(rng: Any, document: Document) -> None:
    """As if uncertain relations acted on delivered values alone."""
    from rrf_design.certificates.checker.regime import CONSEQUENCE, Regime

    lower, eta = document["margin"]["lower"], document["uncertainty"]["eta"]
    document["protection"]["field_lower"] = float(rng.choice([lower, 0.5 * lower, 0.1, 1e300]))
    document["regime"] = {"name": "computation", "consequence": CONSEQUENCE[Regime("computation")]}
    left = (min(lower, document["protection"]["field_lower"]) - eta) * (1 - 1e-12)
    document["uncertainty"].update(global_lower=max(left, 0.0), robust_lower=max(left, 0.0))
    if rng.random() < 0.3:
        document["protection"]["field_lower"] = None


def _set_aside(rng: Any, document: Document) -> None:
    """More, or others, are set aside for the witness than may be: its quotient falls."""
    claim, kind = document["protection"], int(rng.integers(4))
    claim["wrong"] = (["x0", "x1", "x2"], ["ab", "x0"], ["x0", "x0"], ["nobody"])[kind]


def _strange_lists(rng: Any, document: Document) -> None:
    claim, kind = document["protection"], int(rng.integers(7))
    if kind < 4:
        claim["units"] = ([["a"], ["b"], ["c"]], [["a"], ["b"], ["c", "d"], []], [["a", "b"], ["b", "c", "d"]], [])[
            kind
        ]
    elif kind == 4:
        claim["deliver"] = [[], ["nobody"], ["a", "a"]][int(rng.integers(3))]
    elif kind == 5:
        claim["suspects"] = [["nobody"], ["x0", "x0", "x1"], ["a"]][int(rng.integers(3))]
    else:
        claim["wrong_checks"] = int(rng.choice([-1, -(2**40)]))


TRICKS: dict[str, Callable[[Any, Document], Any]] = {
    "larger margin": _larger_margin,
    "smaller upper bound": _smaller_upper,
    "another operator": _another_operator,
    "more answers wrong": _more_answers_wrong,
    "smaller uncertainty": _smaller_uncertainty,
    "smaller noise": _smaller_noise,
    "smaller error": _smaller_error,
    "better decoder": _better_decoder,
    "listed supports": _listed,
    "larger budget": _larger_budget,
    "false witness": _witness,
    "another regime": _regime,
    "false rivals": _rivals,
    "wrong type": _wrong_type,
    "missing and unknown keys": _keys,
    "enormous sizes": _sizes,
    "hostile text": _text,
    "file elsewhere": _file,
    "larger unit": _larger_unit,
    "more delivered": _more_delivered,
    "more wrong checks": _more_wrong_checks,
    "better protected": _better_protected,
    "margin of the field": _field_margin,
    "more set aside": _set_aside,
    "strange lists": _strange_lists,
}
ON_GUARDED = (
    "larger unit",
    "more delivered",
    "more wrong checks",
    "better protected",
    "margin of the field",
    "more set aside",
    "strange lists",
)
ON_BOTH = ("wrong type", "missing and unknown keys", "more answers wrong", "enormous sizes", "hostile text")
ON_PLAIN = (
    "larger margin",
    "smaller upper bound",
    "another operator",
    "more answers wrong",
    "larger budget",
    "false witness",
)
