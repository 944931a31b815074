"""The page of a design (its margin and witness, why the margin is no larger, and what would help),
and the page of two designs side by side.

Their documents are `rrf-explanation`s (`rrf_design._explain`): everything that had to be solved
stands there. Two designs are compared at the same k, with their problems: what each buys, and how
each sees the other's witness.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any

from rrf_design.errors import InputError
from rrf_design.goal import CERTAIN, reaches
from rrf_design.reporting._charts import Series, line_chart
from rrf_design.reporting._fieldview import FieldView
from rrf_design.reporting._graph import draw_field
from rrf_design.reporting.pages import (
    Card,
    Child,
    Column,
    Markup,
    PageParts,
    Section,
    amount,
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
from rrf_design.texts import listed

if TYPE_CHECKING:
    from rrf_design.problem import Problem
    from rrf_design.reporting.documents import PageSource


def facts_of(problem: Problem) -> list[tuple[str, str]]:
    """What ties a page to its problem and to the program that made it."""
    from rrf_design import __version__
    from rrf_design.files import digest

    return [
        ("problem", problem.name),
        ("digest of the problem (SHA-256)", digest(problem)),
        ("made by", f"rrf-design {__version__}"),
    ]


def gamma(k: int) -> str:
    """γ with its k, which it never goes without."""
    return "γ" + str(k).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def bounds_words(lower: float, upper: float, status: str) -> str:
    """What is proven about a margin, in words."""
    if lower == 0 and upper < 1e-9:
        return "zero, up to rounding: the witness moves no measurement"
    if status == "exact":
        return f"exact: proven between {at_least(lower, 7)} and {at_most(upper, 7)}"
    return f"not settled: proven between {at_least(lower, 7)} and {at_most(upper, 7)}"


def _margin_card(data: Mapping[str, Any]) -> Card:
    """The margin of an explanation, marked by whether it is enough."""
    k, wanted = int(data["k"]), data.get("wanted") or 0.0
    out_of_reach = data["gamma"] == 0 or not reaches(data["upper"], wanted)
    kind = "good" if data["reached"] else "bad" if out_of_reach else "unsure"
    return Card(
        f"margin {gamma(k)} (k = {k} wrong answer{'s' if k > 1 else ''})",
        number(data["gamma"]),
        bounds_words(data["lower"], data["upper"], str(data["status"])),
        kind,
    )


def design_page(source: PageSource) -> PageParts:
    """The page of an explanation; with its problem, the field is drawn."""
    data, problem = source.data, source.problem
    k, selected = int(data["k"]), list(data["selected"])
    drawing = [_witness_words(data)]
    if problem is not None:
        drawing.append(draw_field(FieldView(problem, selected, data["witness"])))
    parts = [
        section("The field and its witness", *drawing),
        section("Who sees the witness", *_eyes(data)),
        section("What would help", *_offers(data)),
    ]
    curve = _budget_curve(data, "margin")
    if curve is not None:
        words = "The margin for other corruption budgets: how many wrong answers this design could stand."
        parts.append(_by_budget([curve], words))
    bought = f"owned blocks plus {len(selected)} bought" if selected else "owned blocks only"
    facts = [("problem", str(data["problem"])), ("digest of the problem (SHA-256)", str(data["digest"]))]
    return PageParts(
        str(data["problem"]),
        parts,
        subtitle=f"A design: {bought}, k = {k}",
        lead=join(_sentence(data), cards(_figures(data))),
        facts=facts if problem is None else facts_of(problem),
    )


def _sentence(data: Mapping[str, Any]) -> Markup:
    """Is this design good enough, and if not, what is to be done?"""
    if data["enough"]:
        text = f"This design is enough: it reaches {data['goal']}, proven, whichever {_answers(data)} wrong."
    elif data["gamma"] == 0:
        text = f"This design is not enough: there are errors it can't see at all when {_answers(data)} wrong."
    else:
        text = f"This design is not proven to be enough: it does not reach {data['goal']} when {_answers(data)} wrong."
    mend = data.get("mend")
    if mend is not None:
        text += f" Buying {', '.join(mend['ids'])} for {amount(mend['cost'])} would do."
    kind = "good" if data["enough"] else ("bad" if data["gamma"] == 0 else "unsure")
    return join(
        callout(prose(text), prose(str(data["words"])), kind=kind),
        prose(
            "A margin speaks of the declared relations, anchors, parsers and k; it does not say that they are right,"
            " and agreement alone is never truth."
        ),
    )


def _answers(data: Mapping[str, Any]) -> str:
    k = int(data["k"])
    return "one answer is" if k == 1 else f"{k} answers are"


def _figures(data: Mapping[str, Any]) -> list[Card]:
    k, size = int(data["k"]), data["size"]
    result = [_margin_card(data)]
    if data.get("wanted") is not None:
        said = "reached" if data["enough"] else "not proven reached"
        result.append(Card(f"wanted {gamma(k)}", number(data["wanted"]), f"for {data['goal']}; {said}"))
    if data["gamma"] > 0:
        hides = at_most(2 / data["lower"] if data["lower"] > 0 else None, 4)
        note = f"2/{gamma(k)} times the noise radius ε, by the lower bound"
        result.append(Card("an error can hide up to", f"{hides} ε", note))
    note = ", ".join(f"{number(size[what])} {what}" for what in ("coordinates", "blocks", "rows"))
    result.append(Card("field", f"{number(size['nodes'])} nodes", note))
    if data["selected"]:
        count = len(data["selected"])
        note = f"{count} item{'s' if count > 1 else ''}, in the unit of the file's costs"
        result.append(Card("bought", amount(data["cost"]), note))
    return result


def _witness_words(data: Mapping[str, Any]) -> Markup:
    k = int(data["k"])
    return prose(
        f"The witness is the error on at most 2k = {2 * k} nodes that this design sees least: one unit of it moves all"
        f" measurements together by {gamma(k)} = {number(data['gamma'])}. Its nodes carry a heavy ring."
    )


def _eyes(data: Mapping[str, Any]) -> list[Child]:
    sees = [[name, number(energy, 4)] for name, energy in data["seen_by"].items()]
    content: list[Child] = [table(["block that sees it", "energy ‖C h‖²"], sees, right=[1], most=40)]
    if blind := data["blind"]:
        content.append(prose(f"On the witness's nodes, but blind to it ({len(blind)}): {listed(blind, 20)}."))
    return content


def _offers(data: Mapping[str, Any]) -> list[Child]:
    k = int(data["k"])
    content: list[Child] = []
    if data["purchases"]:
        made = listing(
            data["purchases"],
            Column("buy", lambda p: ", ".join(p["ids"])),
            figures("cost", lambda p: amount(p["cost"])),
            figures(f"{gamma(k)} then", lambda p: number(p["gamma"])),
            figures("lower bound", lambda p: at_least(p["lower"], 7)),
            Column("status", "status"),
            figures(CERTAIN, lambda p: "" if p.get("robust_lower") is None else at_least(p["robust_lower"], 7)),
            figures(
                "promised error then", lambda p: "" if p.get("error_bound") is None else at_most(p["error_bound"], 7)
            ),
            filled=True,
            caption="Single purchases that see the witness",
        )
        content.append(made)
    goal, mend = str(data["goal"]), data.get("mend")
    if data["enough"]:
        content.append(callout(prose(f"The design reaches {goal} already."), kind="good"))
    elif mend is not None:
        claim = "nothing cheaper reaches it: proven" if data["proven"] else "not proven to be the cheapest"
        text = f"To reach {goal}, buy {', '.join(mend['ids'])} for {amount(mend['cost'])}; {claim}."
        content.append(callout(prose(text), kind="plain"))
    elif data.get("next_step"):
        content.append(callout(prose(str(data["next_step"])), kind="bad"))
    return content


def _by_budget(curves: Sequence[Series], words: str) -> Section:
    picture = line_chart(curves, x_label="k, wrong answers", y_label="margin γ of that k")
    return section("How many wrong answers", figure(picture, caption=words))


def _budget_curve(data: Mapping[str, Any], name: str) -> Series | None:
    """The margin for k = 1, 2, ..., where the document has it."""
    found = data.get("by_budget")
    if not found:
        return None
    return Series.of(name, found, "k", "gamma", "lower", "upper")


Names = tuple[str, str]


def comparison_page(first: PageSource, second: PageSource, *, names: Names = ("A", "B")) -> str:
    """Two explained designs side by side."""
    views = [_view(source) for source in (first, second)]
    found = [first.data, second.data]
    k = int(found[0]["k"])
    if int(found[1]["k"]) != k:
        raise InputError(f"report: designs are compared at one k, not at {k} and {found[1]['k']}")
    parts = [
        section("What differs", _differences(views, names)),
        section("Each sees the other's witness", _crossed(views, names)),
    ]
    curves = [curve for name, data in zip(names, found, strict=True) if (curve := _budget_curve(data, name))]
    if len(curves) == len(found):
        parts.append(_by_budget(curves, "The margin of both designs for other corruption budgets."))
    for name, view in zip(names, views, strict=True):
        parts.append(section(f"The field of {name}", draw_field(view)))
    lead = join(
        _compare_words(names, found),
        cards([_named(name, data) for name, data in zip(names, found, strict=True)]),
    )
    facts = [
        (f"{name}: {what}", value)
        for name, view in zip(names, views, strict=True)
        for what, value in facts_of(view.problem)[:2]
    ]
    title = f"{names[0]} against {names[1]}"
    return PageParts(title, parts, subtitle=f"Two designs at k = {k}", lead=lead, facts=facts).html()


def _view(source: PageSource) -> FieldView:
    if source.problem is None:
        raise InputError(f"report: the {source.kind} does not carry its problem; give it with --problem")
    return FieldView(source.problem, list(source.data["selected"]), source.data["witness"])


def _named(name: str, data: Mapping[str, Any]) -> Card:
    card = _margin_card(data)
    return Card(f"{name}: {card.label}", card.value, f"{card.note}; bought for {amount(data['cost'])}", card.kind)


def _compare_words(names: Names, results: Sequence[Mapping[str, Any]]) -> Markup:
    a, b = results
    k = a["k"]
    if a["lower"] > b["upper"] or b["lower"] > a["upper"]:
        better, worse = (0, 1) if a["lower"] > b["upper"] else (1, 0)
        least, most = results[better]["lower"], results[worse]["upper"]
        by = (
            f", at least {number(least / most, 3)} times as much"
            if most > 1e-9
            else ", while the other may miss it altogether"
        )
        text = (
            f"{names[better]} sees its worst error better than {names[worse]} sees its own{by}:"
            f" {number(results[better]['gamma'])} against {number(results[worse]['gamma'])}, both at k = {k}."
        )
        return callout(prose(text), kind="plain")
    both = f"Margins {number(a['gamma'])} and {number(b['gamma'])}."
    return callout(prose(f"The bounds overlap: at k = {k} neither design is proven better. {both}"), kind="unsure")


def _differences(views: Sequence[FieldView], names: Names) -> Markup:
    everything = [{b.id for b in view.problem.blocks if b.owned} | set(view.selected) for view in views]
    only = [sorted(everything[0] - everything[1]), sorted(everything[1] - everything[0])]
    both = everything[0] & everything[1]
    rows = [
        [f"only in {name}", number(len(ids)), ", ".join(ids[:40]) + (" …" if len(ids) > 40 else "")]
        for name, ids in zip(names, only, strict=True)
    ]
    rows.append(["in both", number(len(both)), ""])
    return table(["blocks", "how many", "which"], rows, right=[1])


def _crossed(views: Sequence[FieldView], names: Names) -> Markup:
    """‖B h‖ of each design for the other's witness h: the root of what its blocks see of it
    together.
    """
    rows: list[Sequence[Child]] = []
    for i, other in ((0, 1), (1, 0)):
        view, witness = views[i], views[other].witness
        if not set(witness) <= view.open_nodes:
            rows.append([names[i], f"{names[other]}'s witness", "asks nodes that it does not have"])
            continue
        design = view.problem.design(list(view.selected))
        seen = sqrt(design.image(design.structure.energies(witness)))
        rows.append([names[i], f"{names[other]}'s witness on {', '.join(witness)}", number(seen)])
    return table(["design", "looks at", "moves its measurements by ‖B h‖"], rows, right=[2])
