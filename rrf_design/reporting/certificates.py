"""The page of a certificate: the promise in words, with everything it rests on and what it does not say.

The page shows what the document claims; whether the claim holds is `rrf-design verify`'s to say, and the page says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.reporting.charts import Series, line_chart
from rrf_design.reporting.designs import bounds_words, gamma
from rrf_design.reporting.fieldview import FieldView
from rrf_design.reporting.graph import draw_field
from rrf_design.reporting.markup import Child, Markup
from rrf_design.reporting.page import (
    Card,
    Section,
    bullets,
    callout,
    cards,
    code,
    figure,
    number,
    page,
    prose,
    section,
    table,
)

if TYPE_CHECKING:
    from rrf_design.problem import Problem
    from rrf_design.reporting.documents import Source

REGIMES = {"information": "bad", "noise": "unsure", "computation": "good"}
NOT_SAID = (
    "that the declared relations, parsers and anchors are right: it takes them as given",
    "that at most k answers are wrong: that is an assumption, and more than k can fool it",
    "how often the model errs, or that it errs in the worst direction",
    "that agreement is truth: relations alone never show a shared error",
    "that a convex or heuristic decoder finds the error: it speaks of the ideal one",
)


def certificate_page(source: Source) -> str:
    """The page of a certificate document."""
    data = source.data
    k = int(data["k"])
    name = str(data["problem"]["name"])
    parts: list[Section | None] = [
        section("The promise in words", _promise(data)),
        section("What it rests on", bullets(str(text) for text in data["assumptions"]), _metrics(data["metrics"])),
        section("What it does not say", bullets(f"It does not say {text}." for text in NOT_SAID)),
        _bounds(data),
    ]
    if source.problem is not None:
        parts.append(section("The field and the witness", draw_field(_view(source))))
    parts += [_witness(data), _budgets(data), _errors(data), _more(data)]
    facts = [
        ("problem", name),
        ("digest of the problem (SHA-256)", str(data["problem"]["digest"])),
        ("digest of the certificate (SHA-256)", str(data["digest"])),
        ("format", f"{data['format']}, version {data['version']}"),
        *((str(key), _flat(value)) for key, value in data["provenance"].items() if value is not None),
    ]
    return page(
        f"Certificate for {name}",
        [part for part in parts if part is not None],
        subtitle=f"What is promised at k = {k} wrong answers",
        lead=cards(_figures(data)),
        facts=facts,
    )


def _figures(data: Mapping[str, Any]) -> list[Card]:
    k, margin, error = int(data["k"]), data["margin"], data["error"]
    kind = REGIMES.get(str(data["regime"]["name"]), "plain")
    robust = data["uncertainty"]["robust_lower"]
    return [
        Card(
            f"margin {gamma(k)}, proven lower bound",
            number(margin["lower"]),
            bounds_words(margin["lower"], margin["upper"], str(margin["status"])),
            "good" if margin["lower"] > 0 else "bad",
        ),
        Card(
            "robust lower bound",
            number(robust),
            f"after uncertainty η = {number(data['uncertainty']['eta'])} of the blocks",
            "good" if robust > 0 else "bad",
        ),
        Card(
            "error bound",
            number(error["bound"]),
            _bound_words(error),
            "plain" if error["bound"] is not None else "unsure",
        ),
        Card("regime", str(data["regime"]["name"]), "", kind),
    ]


def _bound_words(error: Mapping[str, Any]) -> str:
    if error["bound"] is None:
        return "none: no noise radius is declared, or the margin is zero"
    wanted = f"; acceptable: δ = {number(error['delta'])}" if error.get("delta") is not None else ""
    chance = f"; holds with probability {number(error['confidence'])}" if error.get("confidence") is not None else ""
    return f"length of the error over all nodes, in units of the answers{wanted}{chance}"


def _promise(data: Mapping[str, Any]) -> list[Child]:
    k, margin, error = int(data["k"]), data["margin"], data["error"]
    answers = f"{k} wrong answer{'s' if k > 1 else ''}"
    if margin["lower"] > 0:
        text = f"If the assumptions below hold, every set of at most {answers} can be found from the measurements: no two such errors look alike ({gamma(k)} ≥ {number(margin['lower'], 7)})."
        if error["bound"] is not None:
            text += f" The ideal decoder's repaired answers are then within {number(error['bound'])} of the truth."
    else:
        text = f"Nothing is promised at {answers}: no positive lower bound on the margin {gamma(k)} is proven."
    kind = REGIMES.get(str(data["regime"]["name"]), "plain")
    return [
        callout(prose(text), kind="good" if margin["lower"] > 0 else "bad"),
        callout(prose(str(data["regime"]["consequence"])), kind=kind),
        prose(
            "This page shows what the document claims. Whether it holds is re-proven, without our solvers, by ",
            code("rrf-design verify CERTIFICATE"),
            ".",
        ),
    ]


def _metrics(metrics: Mapping[str, Any]) -> Markup:
    rows = [[str(name), _flat(value) or "none"] for name, value in metrics.items()]
    return table(["how lengths are measured", ""], rows)


def _bounds(data: Mapping[str, Any]) -> Section:
    margin, unsure, noise = data["margin"], data["uncertainty"], data["noise"]
    rows: list[Sequence[Child]] = [
        [
            "margin, lower bound",
            number(margin["lower"], 9),
            f"rung: {margin['rung']}; proof: {margin['proof']['kind']}",
        ],
        ["margin, upper bound", number(margin["upper"], 9), "attained by the witness"],
        ["uncertainty η of all blocks together", number(unsure["eta"]), str(unsure["source"])],
        ["lower bound minus η", number(unsure["global_lower"], 9), "one radius for everything"],
        [
            "lower bound support by support",
            number(unsure["support_lower"], 9),
            "each support pays for its own blocks only",
        ],
        ["robust lower bound", number(unsure["robust_lower"], 9), "the better of the two"],
        [
            "noise",
            number(noise.get("epsilon")),
            f"{noise['kind']}, over {number(int(noise['rows']))} rows"
            + (
                f"; σ = {number(noise['sigma'])}, confidence {number(noise['confidence'])}"
                if noise.get("sigma") is not None
                else ""
            ),
        ],
    ]
    if data.get("unwhitened"):
        bare = data["unwhitened"]
        rows.append(
            [
                "margin in the file's own units, without whitening",
                number(bare["lower"], 9),
                f"upper bound {number(bare['upper'], 9)}; for comparison, no other figure rests on it",
            ]
        )
    if data.get("conditional"):
        some = data["conditional"]
        rows.append(
            [
                "margin over the named supports only",
                number(some["lower"], 9),
                f"upper bound {number(some['upper'], 9)}; {len(some['supports'])} supports: an audit, not the uniform promise",
            ]
        )
    return section("The figures", table([f"at k = {data['k']}", "value", "how"], rows, right=[1]))


def _view(source: Source) -> FieldView:
    assert source.problem is not None
    known = {*source.problem.node_by_id, *source.problem.block_by_id}
    selected = [name for name in source.data["problem"]["selected"] if name in known]
    return FieldView(source.problem, selected, _in_units_of_answers(source.problem, source.data["witness"]))


def _in_units_of_answers(problem: Problem, witness: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    """A certificate's witness is over the operator's columns; where a node has a metric, its answers are scaled by it."""
    operator = problem.operator("all")
    place = {name: i for i, name in enumerate(operator.node_ids)}
    column = np.zeros(operator.shape[1])
    known = [name for name in witness["support"] if name in place]
    for name, part in zip(witness["support"], witness["direction"], strict=True):
        if name in place:
            column[operator.groups[place[name]]] = part
    return operator.unstack(column, only=tuple(place[name] for name in known))


def _witness(data: Mapping[str, Any]) -> Section:
    rows = [
        [name, ", ".join(number(float(v), 5) for v in part[:8])]
        for name, part in zip(data["witness"]["support"], data["witness"]["direction"], strict=True)
    ]
    pair = data["audit"].get("pair")
    more: Child = None
    if pair:
        more = callout(
            prose(
                f"Two errors that can't be told apart: one on {', '.join(pair['first'])}, the other on {', '.join(pair['second']) or 'no node'}. Both lead to the same measurements."
            ),
            kind="bad",
        )
    return section(
        "The witness",
        prose(
            f"The error that the design sees least; its residual was checked directly: {number(data['audit']['residual'], 3)}."
        ),
        table(["node", "direction"], rows),
        more,
    )


def _budgets(data: Mapping[str, Any]) -> Section | None:
    further = data["budgets"]
    if not further:
        return None
    found = sorted([{"k": data["k"], **data["margin"]}, *further], key=lambda entry: int(entry["k"]))
    ks = [int(b["k"]) for b in found]
    series = Series(
        "margin",
        ks,
        [float(b["upper"]) for b in found],
        [float(b["lower"]) for b in found],
        [float(b["upper"]) for b in found],
    )
    picture = line_chart([series], x_label="k, wrong answers", y_label="margin γ of that k")
    return section(
        "If more answers are wrong",
        figure(
            picture,
            caption="Proven bounds of the margin for other corruption budgets: a promise at one k says nothing about the next.",
        ),
    )


def _errors(data: Mapping[str, Any]) -> Section:
    error = data["error"]
    names = {
        "nominal": "2ε/γ at the nominal operator",
        "robust": "2ε over the robust margin",
        "effective": "with the operator's uncertainty counted as noise",
        "bound": "the bound that is promised",
        "amplitude": "bound R on the error's size",
        "delta": "error that is acceptable, δ",
        "effective_epsilon": "effective noise radius",
    }
    rows: list[Sequence[Child]] = [
        [words, number(error[name])] for name, words in names.items() if error.get(name) is not None
    ]
    for part in ("minimax", "tolerances", "tail"):
        rows += [
            [f"{part}: {str(key).replace('_', ' ')}", number(value)] for key, value in (error.get(part) or {}).items()
        ]
    return section("Error bounds", table(["what", "value, in units of the answers"], rows, right=[1]))


def _more(data: Mapping[str, Any]) -> Section:
    null = data["nullspace"]
    rows: list[Sequence[Child]] = [
        [name, number(null[name])] for name in ("rho", "tau", "c1", "c2") if null.get(name) is not None
    ]
    audit = data["audit"].get("sensitivity")
    return section(
        "For convex decoders",
        prose(
            f"Null-space property: {null['status']}. A positive margin alone does not make group-ℓ₁ decoding succeed; this property does."
        ),
        table(["constant", "value"], rows, right=[1]) if rows else None,
        prose(f"Sensitivity of the margin, by the audit: {number(audit)}.") if audit is not None else None,
    )


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        return "; ".join(f"{key} {_flat(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_flat(item) for item in value[:12]) + (" …" if len(value) > 12 else "")
    return number(value) if isinstance(value, float) else str(value)
