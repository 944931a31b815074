"""What a forger writes into a certificate: larger margins, smaller errors, other operators, other
proofs, and what is of no form at all.

Each trick changes a true document so that it states something false or is not of the form, and
renews what has to go along with it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

from scenarios.kit.sealing import Document, at, seal, seal_operator

RENEWED = ("digest",)
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


def _sentences(rng: Any, document: Document) -> None:
    """Premises that are left out, softened or made up; lengths that are measured otherwise."""
    lines = document["assumptions"]
    at, trick = int(rng.integers(len(lines))), int(rng.integers(6))
    if trick == 0:
        document["assumptions"] = []
    elif trick == 1:
        del lines[at]
    elif trick == 2:
        lines[at] = str(rng.choice(["Nothing is assumed.", "", lines[at][:-1], lines[at] + " Or more."]))
    elif trick == 3:
        lines.insert(at, str(rng.choice(["Every answer is right.", lines[at]])))
    elif trick == 4:
        lines[0] = lines[0].replace("1", str(rng.choice(["0", "2", "3"])), 1)
    else:
        document["metrics"][str(rng.choice(["norm", "weights"]))] = "as you like"


def _wrong_type(rng: Any, document: Document) -> None:
    """One entry of any section becomes something of another type, or far out of range."""
    spots = [path for path, _ in _leaves(document) if path[0] not in RENEWED and path[:2] != ("error", "norms")]
    path = spots[int(rng.integers(len(spots)))]
    place = at(document, path[:-1])
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
    sections = [document, *(v for v in document.values() if isinstance(v, dict))]
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
    """What only the text can hold: numbers without end, NaN, keys that stand twice, depth, other
    encodings.
    """
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


TRICKS: dict[str, Callable[[Any, Document], Any]] = {
    "larger margin": _larger_margin,
    "smaller upper bound": _smaller_upper,
    "another operator": _another_operator,
    "more answers wrong": _more_answers_wrong,
    "smaller uncertainty": _smaller_uncertainty,
    "smaller noise": _smaller_noise,
    "other sentences": _sentences,
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
}
