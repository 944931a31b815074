"""The page of a certificate: the promise in words, with everything it rests on and what it does not
say.

The page shows what the document claims; whether the claim holds is `rrf-design verify`'s to say,
and the page says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rrf_design.reporting._charts import Bar, Series, bar_chart, line_chart
from rrf_design.reporting._fieldview import FieldView
from rrf_design.reporting._graph import draw_field
from rrf_design.reporting.designs import bounds_words, gamma
from rrf_design.reporting.pages import (
    Card,
    Child,
    Markup,
    PageParts,
    Section,
    at_least,
    at_most,
    bullets,
    callout,
    cards,
    code,
    figure,
    join,
    number,
    prose,
    section,
    table,
)

if TYPE_CHECKING:
    from rrf_design.problem import Problem
    from rrf_design.reporting.documents import PageSource

REGIMES = {"information": "bad", "noise": "unsure", "computation": "good"}
NOT_SAID = (
    "that the declared relations, parsers and anchors are right: it takes them as given",
    "that at most k answers are wrong: that is an assumption, and more than k can fool it",
    "how often the model errs, or that it errs in the worst direction",
    "that agreement is truth: relations alone never show a shared error",
    "that a convex or heuristic decoder finds the error: it speaks of the ideal one",
)


def certificate_page(source: PageSource) -> PageParts:
    """The page of a certificate document."""
    data = source.data
    k = int(data["k"])
    name = str(data["problem"]["name"])
    metrics = [[str(what), _flat(value) or "none"] for what, value in data["metrics"].items()]
    parts: list[Section | None] = [
        section(
            "What it rests on",
            bullets(str(text) for text in data["assumptions"]),
            prose("How often that fails, from a pilot: ", str(data["pilot"]["sentence"]))
            if data.get("pilot")
            else None,
            table(["how lengths are measured", ""], metrics),
        ),
        section("What it does not say", bullets(f"It does not say {text}." for text in NOT_SAID)),
        _bounds(data),
    ]
    parts += [_witness(data), _rivals(data), _budgets(data), _errors(data), _more(data)]
    facts = [
        ("problem", name),
        ("digest of the problem (SHA-256)", str(data["problem"]["digest"])),
        ("digest of the certificate (SHA-256)", str(data["digest"])),
        ("format", f"{data['format']}, version {data['version']}"),
        *((str(key), _flat(value)) for key, value in data["provenance"].items() if value is not None),
    ]
    return PageParts(
        f"Certificate for {name}",
        [part for part in parts if part is not None],
        subtitle=f"What is promised at k = {k} wrong answers",
        lead=join(_promise(data), cards(_figures(data))),
        picture=_picture(source),
        facts=facts,
    )


def _picture(source: PageSource) -> Markup | None:
    """The field with its witness, where the problem is at hand; else the witness alone."""
    if source.problem is not None:
        return draw_field(_view(source), open_rows=0)
    witness = source.data["witness"]
    bars = [
        Bar(str(name), sum(float(part) ** 2 for part in direction))
        for name, direction in zip(witness["support"], witness["direction"], strict=True)
    ]
    if not bars:
        return None
    picture = bar_chart(bars, label="answer", value_label="share of the witness")
    return figure(picture, caption="The witness: the error that the design sees least, and whose answers it moves.")


def _figures(data: Mapping[str, Any]) -> list[Card]:
    k, margin, error = int(data["k"]), data["margin"], data["error"]
    kind = REGIMES.get(str(data["regime"]["name"]), "plain")
    robust = data["uncertainty"]["robust_lower"]
    return [
        Card(
            f"margin {gamma(k)}, proven lower bound",
            at_least(margin["lower"]),
            bounds_words(margin["lower"], margin["upper"], str(margin["status"])),
            "good" if margin["lower"] > 0 else "bad",
        ),
        Card(
            "robust lower bound",
            at_least(robust),
            f"after uncertainty η = {number(data['uncertainty']['eta'])} of the blocks",
            "good" if robust > 0 else "bad",
        ),
        Card(
            "error bound",
            at_most(_promised(error)),
            _bound_words(data),
            "plain" if _promised(error) is not None else "unsure",
        ),
        Card("regime", str(data["regime"]["name"]), "", kind),
    ]


def _bound_words(data: Mapping[str, Any]) -> str:
    error = data["error"]
    if _promised(error) is None:
        return f"none: {no_bound(data)}"
    wanted = f"; acceptable: δ = {number(error['delta'])}" if error.get("delta") is not None else ""
    chance = f"; holds with probability {number(error['confidence'])}" if error.get("confidence") is not None else ""
    return f"length of the error over all nodes, in units of the answers{wanted}{chance}"


def _promised(error: Mapping[str, Any]) -> float | None:
    """The error that a certificate promises: its bound with a tail where it speaks of one
    (certificate specification).
    """
    bound: float | None = (error.get("tail") or error)["bound"]
    return bound


def no_bound(data: Mapping[str, Any]) -> str:
    """Why a certificate promises no error, in words."""
    if data["margin"]["lower"] <= 0:
        return "no positive margin is proven"
    if data["error"]["spread"] is None:
        return (
            "blocks are uncertain, and nothing bounds the true answers that they act on; give their nodes a range, or"
            " the problem an amplitude"
        )
    return "no noise radius is declared"


def _premise(data: Mapping[str, Any]) -> str:
    """Under which assumption the promise is made: how many answers, how much noise, how large a
    field.
    """
    k, error, noise = int(data["k"]), data["error"], data["noise"]
    parts = [f"at most {k} answer{' is' if k == 1 else 's are'} wrong"]
    if noise.get("epsilon"):
        parts.append(f"the noise of all rows together is at most {number(noise['epsilon'])}")
    if error.get("tail"):
        parts.append(f"all other answers together are off by at most {number(error['tail']['norm'])}")
    if data["uncertainty"]["eta"] > 0:
        parts.append("every block is off by no more than its declared radius")
    if error.get("amplitude") is not None:
        parts.append(f"the true answers on uncertain blocks have a norm of at most {number(error['amplitude'])}")
    elif error.get("norms"):
        parts.append("the true answers lie in their declared ranges")
    return ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + parts[-1]


def _promise(data: Mapping[str, Any]) -> list[Child]:
    k, margin, bound = int(data["k"]), data["margin"], _promised(data["error"])
    answers = f"{k} wrong answer{'s' if k > 1 else ''}"
    if margin["lower"] <= 0:
        text = f"Nothing is promised at {answers}: no positive lower bound on the margin {gamma(k)} is proven."
    elif bound is not None:
        near = f"within {at_most(bound)} of the truth" if bound > 0 else "the truth"
        text = f"Promised: repaired answers are {near}, provided that {_premise(data)}."
    else:
        text = (
            f"Promised: every set of at most {answers} leaves a trace of its own. No error bound is promised:"
            f" {no_bound(data)}."
        )
    more, kind = None, "bad"
    if margin["lower"] > 0:
        more = f"No two sets of at most {answers} look alike: {gamma(k)} ≥ {at_least(margin['lower'], 7)}, proven."
        kind = "good" if bound is not None else "unsure"
    return [
        callout(prose(text), prose(more) if more else None, kind=kind),
        callout(prose(str(data["regime"]["consequence"])), kind=REGIMES.get(str(data["regime"]["name"]), "plain")),
        prose(
            "This page shows what the document claims. Whether it holds is re-proven, without our solvers, by ",
            code("rrf-design verify CERTIFICATE"),
            ".",
        ),
    ]


def _bounds(data: Mapping[str, Any]) -> Section:
    margin, unsure, noise = data["margin"], data["uncertainty"], data["noise"]
    words = f"{noise['kind']}, over {number(int(noise['rows']))} rows"
    if noise.get("sigma") is not None:
        words += f"; σ = {number(noise['sigma'])}, confidence {number(noise['confidence'])}"
    rung = f"rung: {margin['rung']}; proof: {margin['proof']['kind']}"
    rows = [
        ["margin, lower bound", at_least(margin["lower"], 9), rung],
        ["margin, upper bound", at_most(margin["upper"], 9), "attained by the witness"],
        ["uncertainty η of all blocks together", number(unsure["eta"]), str(unsure["source"])],
        ["lower bound minus η", at_least(unsure["global_lower"], 9), "one radius for everything"],
        [
            "lower bound support by support",
            at_least(unsure["support_lower"], 9),
            "each support pays for its own blocks only",
        ],
        ["robust lower bound", at_least(unsure["robust_lower"], 9), "the better of the two"],
        ["noise", number(noise.get("epsilon")), words],
    ]
    if bare := data["provenance"].get("unwhitened"):
        note = "for comparison: it is about another operator and not certified"
        rows.append(_beside("margin in the file's own units, without whitening", bare, note))
    if some := data.get("conditional"):
        note = f"{len(some['supports'])} supports: an audit, not the uniform promise"
        rows.append(_beside("margin over the named supports only", some, note))
    return section("The figures", table([f"at k = {data['k']}", "value", "how"], rows, right=[1]))


def _beside(name: str, margin: Mapping[str, Any], note: str) -> list[str]:
    """A margin that is told beside the certified one."""
    return [name, at_least(margin["lower"], 9), f"upper bound {at_most(margin['upper'], 9)}; {note}"]


def _view(source: PageSource) -> FieldView:
    assert source.problem is not None
    known = {*source.problem.node_by_id, *source.problem.block_by_id}
    selected = [name for name in source.data["problem"]["selected"] if name in known]
    return FieldView(source.problem, selected, _in_units_of_answers(source.problem, source.data["witness"]))


def _in_units_of_answers(problem: Problem, witness: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    """A certificate's witness is over the operator's columns; where a node has a metric, its
    answers are scaled by it.
    """
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
    residual, more = number(data["audit"]["residual"], 3), None
    if pair:
        words = (
            f"Two errors that can't be told apart: one on {', '.join(pair['first'])}, the other on"
            f" {', '.join(pair['second']) or 'no node'}. Both lead to the same measurements."
        )
        more = callout(prose(words), kind="bad")
    about = prose(f"The error that the design sees least; its residual was checked directly: {residual}.")
    return section("The witness", about, table(["node", "direction"], rows), more)


def _rivals(data: Mapping[str, Any]) -> Section | None:
    pair = data.get("rivals")
    if not pair:
        return None
    sides = (pair["first"], pair["second"])
    found: dict[str, list[str]] = {}
    for place, side in enumerate(sides):
        for names, values in ((side["support"], side["direction"]), (side["checks"], side["disturbance"])):
            for name, part in zip(names, values, strict=True):
                found.setdefault(name, ["right", "right"])[place] = f"off by {_numbers(part)}"
    return section(
        "The pair that nobody can tell apart",
        prose(rivals_words(data)),
        table(["answer or check", "in the first", "in the second"], [[name, *cells] for name, cells in found.items()]),
        prose(
            "The verifier re-checks both in exact arithmetic: how many are wrong, what they leave unexplained, how far"
            " they are apart."
        ),
    )


def rivals_words(data: Mapping[str, Any]) -> str:
    """The two explanations of a certificate in a few sentences."""
    pair = data["rivals"]
    first, second = (_blamed(pair[side]) for side in ("first", "second"))
    epsilon = data["noise"].get("epsilon") or 0.0
    fits = f"Both fit one measurement {f'within ε = {number(epsilon)}' if pair['residual'] > 0 else 'exactly'}"
    where = "" if data["protection"] is None or len(data["protection"]["deliver"]) == 1 else " in what is delivered"
    apart = f"and are {at_least(pair['distance'], 4)} apart{where}"
    if data["margin"]["upper"] <= 1e-9 and data["error"]["largest_error"] is None:
        return f"Nobody can tell apart: {first}; or {second}. {fits} {apart}, and so do all multiples of them."
    return f"Nobody can tell apart: {first}; or {second}. {fits} {apart}: no method can promise less than half of that."


def _blamed(side: Mapping[str, Any]) -> str:
    named = [
        *zip(side["support"], side["direction"], strict=True),
        *zip(side["checks"], side["disturbance"], strict=True),
    ]
    return " and ".join(f"{name} is off by {_numbers(part)}" for name, part in named[:4]) + (
        f" and {len(named) - 4} more" if len(named) > 4 else "" if named else "everything is right"
    )


def _numbers(part: Sequence[float]) -> str:
    shown = ", ".join(number(float(value), 4) for value in part[:6]) + (", …" if len(part) > 6 else "")
    return shown if len(part) == 1 else f"({shown})"


def _budgets(data: Mapping[str, Any]) -> Section | None:
    if not data["budgets"]:
        return None
    found = sorted([{"k": data["k"], **data["margin"]}, *data["budgets"]], key=lambda entry: int(entry["k"]))
    series = Series.of("margin", found, "k", "upper", "lower", "upper")
    picture = line_chart([series], x_label="k, wrong answers", y_label="margin γ of that k")
    words = "Proven bounds of the margin for other corruption budgets: a promise at one k says nothing about the next."
    return section("If more answers are wrong", figure(picture, caption=words))


def _errors(data: Mapping[str, Any]) -> Section:
    error = data["error"]
    names = {
        "bound": "the error that is promised, 2ε'/γ",
        "effective_epsilon": "ε', the noise radius with what uncertain blocks add to it",
        "spread": "what uncertain blocks add: √Σ η²‖z‖² over the nodes that they name",
        "amplitude": "bound on the norm of the true answers on uncertain blocks",
        "largest_error": "bound on the size of the error itself",
        "delta": "error that is acceptable, δ",
    }
    rows: list[Sequence[Child]] = [
        [words, number(error[name])] for name, words in names.items() if error.get(name) is not None
    ]
    for part in ("minimax", "tolerances", "tail"):
        rows += [
            [f"{part}: {str(key).replace('_', ' ')}", number(value)] for key, value in (error.get(part) or {}).items()
        ]
    rows += [
        [f"bound on the norm of the true answer of {name}", number(value)]
        for name, value in (error.get("norms") or {}).items()
    ]
    why = prose(f"No error bound is promised: {no_bound(data)}.") if _promised(error) is None else None
    return section("Error bounds", why, table(["what", "value, in units of the answers"], rows, right=[1]))


def _more(data: Mapping[str, Any]) -> Section:
    null = data["nullspace"]
    rows: list[Sequence[Child]] = [
        [name, number(null[name])] for name in ("rho", "tau", "c1", "c2") if null.get(name) is not None
    ]
    audit = data["audit"].get("sensitivity")
    return section(
        "For convex decoders",
        prose(
            f"Null-space property: {null['status']}. A positive margin alone does not make group-ℓ₁ decoding succeed;"
            " this property does."
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
