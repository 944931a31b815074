"""The page of a repair: what may be believed, which responses were wrong, what they became, and
why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rrf_design.reporting._charts import Bar, bar_chart
from rrf_design.reporting._fieldview import FieldView
from rrf_design.reporting._graph import draw_field
from rrf_design.reporting._sentences import MEANINGS, said
from rrf_design.reporting.delivery import Choices, choices_of, vector
from rrf_design.reporting.designs import facts_of, gamma
from rrf_design.reporting.pages import (
    SIGNS,
    Card,
    Child,
    Column,
    Markup,
    PageParts,
    Section,
    at_least,
    at_most,
    callout,
    cards,
    figure,
    figures,
    join,
    listing,
    number,
    prose,
    section,
    table,
)

if TYPE_CHECKING:
    from rrf_design.problem import Problem
    from rrf_design.reporting.documents import PageSource


def repair_page(source: PageSource) -> PageParts:
    """The page of a repair document; with its problem, the field is drawn too."""
    data, problem = source.data, source.problem
    parts = [section("Which answers were wrong, and what they became", answers(data, problem=problem))]
    if data.get("alternatives") or data.get("indistinguishable"):
        parts.append(section("What else would explain the data", *_ambiguity(data, choices_of(problem))))
    parts.append(_residuals(data, drawn=problem is not None))
    name = problem.name if problem is not None else "responses"
    facts = [("digest of the problem (SHA-256)", str(data.get("problem", "not said")))]
    return PageParts(
        f"Repair of {name}",
        parts,
        subtitle=f"Method {data['method']}, k = {data['k']} wrong answers allowed for",
        lead=join(said(data), cards(_figures(data))),
        picture=_residual_figure(data) if problem is None else draw_field(repaired_view(problem, data), open_rows=0),
        facts=facts if problem is None else facts_of(problem),
    )


def _figures(data: Mapping[str, Any]) -> list[Card]:
    """What matters about a repair."""
    k, bound, nodes = int(data["k"]), data.get("error_bound"), len(data["repaired"])
    meaning = "2ε/γ: length of the error over all nodes, in units of the answers"
    if bound is None:
        meaning = "no bound: the margin or ε does not give one"
    lower = at_least(data.get("gamma_lower"), 7)
    wrong, verdict = len(data["support"]), str(data["verdict"])
    return [
        Card("verdict", verdict, MEANINGS[verdict], SIGNS[verdict]),
        Card("answers found wrong", number(wrong), f"of {number(nodes)} nodes; at most k = {k} are allowed for"),
        Card(f"margin {gamma(k)}", number(data["gamma"]), f"proven to be at least {lower}"),
        Card("error bound", at_most(bound), meaning),
        Card("residual", number(data["residual"], 4), f"noise allowed for: ε = {number(data.get('epsilon'), 4)}"),
    ]


def answers(
    data: Mapping[str, Any], read: Mapping[str, Any] | None = None, *, problem: Problem | None = None
) -> Markup:
    """Node by node: the answer as given (`read`, or else what the repair says of it), what it
    became, and in a word how it was. With its problem choices are words.
    """
    choices = choices_of(problem)
    wrong, erased = set(data["support"]), data.get("erased", {})
    rows: list[Sequence[Child]] = []
    order = sorted(data["repaired"], key=lambda name: (name not in wrong, name not in erased))
    for name in order:
        value = data["repaired"][name]
        off = data.get("error", {}).get(name)
        given = erased.get(name, "")
        if read is not None and name in read:
            given = vector(read[name], choices.get(name))
        elif name not in erased and value is not None:
            was = [v + o for v, o in zip(value, off, strict=True)] if off is not None else value
            given = vector(was, choices.get(name))
        word = "wrong" if name in wrong else "no answer" if name in erased else "kept" if value is not None else "open"
        became = "not determined" if value is None else vector(value, choices.get(name))
        within = (data.get("bounds") or {}).get(name)
        near = "" if within is None or value is None else f"±{at_most(float(within), 4)}"
        rows.append([name, given, became, near, "" if off is None or name in choices else vector(off), word])
    names = ("node", "answer", "becomes", "within", "was off by", "so it was")
    return listing(rows, *(Column(name, itemgetter(i)) for i, name in enumerate(names)), filled=True)


def repaired_view(problem: Problem, data: Mapping[str, Any]) -> FieldView:
    """The field with its wrong answers crossed out and the witness of what the design sees
    least.
    """
    remarks, choices = {}, choices_of(problem)
    values = dict[str, tuple[str, str]]()
    for name, value in data["repaired"].items():
        if name in problem.node_by_id:
            became = "" if value is None else vector(value, choices.get(name))
            off = data.get("error", {}).get(name)
            given = became if off is None else ""
            if off is not None and value is not None:
                given = vector([v + o for v, o in zip(value, off, strict=True)], choices.get(name))
            values[name] = ("" if name in data.get("erased", {}) else given, became)
    for name, off in data.get("error", {}).items():
        value = data["repaired"].get(name)
        words = [] if name in choices else [f"off by {vector(off)}"]
        words += [] if value is None else [f"becomes {vector(value, choices.get(name))}"]
        remarks[name] = ", ".join(words)
    known = set(problem.node_by_id)
    witness = {name: part for name, part in data.get("witness", {}).items() if name in known}
    selected = [name for name in data.get("selected", []) if name in known or name in problem.block_by_id]
    return FieldView(problem, selected, witness, {n for n in data["support"] if n in known}, remarks, values)


def _ambiguity(data: Mapping[str, Any], choices: Choices) -> list[Child]:
    content: list[Child] = []
    if data.get("indistinguishable"):
        names = ", ".join(data["indistinguishable"][:20])
        content.append(
            callout(prose(f"On these nodes an error can move without any measurement changing: {names}."), kind="bad")
        )

    def becomes(other: Mapping[str, Any], name: str) -> str:
        value = other["repaired"].get(name)
        return f"{name}: {'not determined' if value is None else vector(value, choices.get(name))}"

    if data.get("alternatives"):
        made = listing(
            data["alternatives"],
            Column("wrong instead", lambda other: ", ".join(other["support"])),
            Column("would become", lambda other: "; ".join(becomes(other, name) for name in other["support"])),
            figures("residual", lambda other: number(other["residual"], 4)),
        )
        content.append(made)
    return content


def _residual_figure(data: Mapping[str, Any]) -> Markup:
    found = data.get("diagnostics", {})
    bars = [Bar(f"{part}s", float(found.get(f"{part}_residual") or 0.0)) for part in ("relation", "anchor")]
    picture = bar_chart(bars, label="part of the design", value_label="residual (whitened units)")
    return figure(picture, caption="What is left unexplained after the repair.")


def _residuals(data: Mapping[str, Any], *, drawn: bool) -> Section:
    found = data.get("diagnostics", {})
    rows: list[Sequence[Child]] = [
        ["explanation of the data", str(data.get("certainty", "not said"))],
        ["objective", number(found.get("objective"))],
        ["optimality gap", number(found.get("gap"))],
        ["least residual with fewer wrong nodes", number(found.get("best_smaller"))],
        ["error bound once the residual is known, (ε + residual)/γ", at_most(found.get("posterior_bound"))],
        ["search complete", "yes" if found.get("complete") else "no"],
        ["iterations", number(found.get("iterations"))],
        ["time, s", number(found.get("seconds"), 3)],
        ["seed", number(found.get("seed"))],
    ]
    failures: Child = None
    if data.get("truth_error") is not None:
        named = ", ".join(map(str, data.get("failures", []))) or "none: the repair is the truth"
        failures = prose(f"Against the given truth it is off by {number(data['truth_error'])}; failures: {named}.")
    return section(
        "Diagnostics",
        failures,
        _residual_figure(data) if drawn else None,
        table(["what", "value"], rows, right=[1]),
    )
