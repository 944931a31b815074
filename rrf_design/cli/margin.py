"""rrf-design margin: how observable is this design?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from rrf_design.cli import _options as options
from rrf_design.cli.output import Printer, proven_range, say, table, unit_numbers, weakest

if TYPE_CHECKING:
    from rrf_design._margin import DesignMargin
    from rrf_design.problem import Problem

SHOWN = 12
"""Rows of a table."""


def margin_verb(
    file: options.ProblemFile,
    k: options.Corruptions = None,
    select: options.Select = None,
    everything: options.Everything = False,
    cluster: options.Cluster = None,
    *,
    items: options.Items,
    effort: options.Work,
    printer: Printer,
) -> None:
    """How observable is a design: its margin γ_k, and the witness that is hardest to see.

    Of a table, the margin of each structure that its items have; the weakest one speaks for it.

    Example: rrf-design margin problem.toml --select a3
    """
    from rrf_design import margin

    chosen = options.added(select, everything=everything)
    given = items.given(file)
    with options.on_cluster(cluster), printer.progress("margin") as progress:
        found: Any = margin(given, chosen, k=k, **effort.means(progress, cluster=cluster))
    printer.result(found.to_json, lambda: _describe(*weakest(given, found)))


UNSEARCHED = {
    "nothing": (
        "Nothing is proven from below: the search was not done in its time, and no bound without a search says anything"
        " here."
    ),
    "the whole matrix": "The search was not done in its time and proved no more than what bounds the whole matrix.",
    "couplings": (
        "The search was not done in its time and proved no more than what the couplings of single nodes allow."
    ),
}


def _describe(problem: Problem, found: DesignMargin) -> None:
    from rrf_design.derive import shared_words

    say(
        f"{problem.name}: γ_{found.k} = {found.value:.6g}"
        f"  ({found.status}; proven {proven_range(found.lower, found.upper)})"
    )
    if found.status == "bounded" and found.solved.lower_from != "search":
        say(UNSEARCHED[found.solved.lower_from])
    design = problem.design(found.selected)
    shares = design.shares(found.witness)
    rows = [(name, f"{share:.1%}", unit_numbers(found.witness[name])) for name, share in shares.items()]
    table("", ["witness node", "share", "direction"], rows, right=[1])
    energy = design.energies(found.witness)
    held = sorted(found.operator.block_ids, key=lambda name: -energy[name])
    sees = [(name, f"{energy[name]:.4g}") for name in held if energy[name] > 0]
    if sees:
        table("", ["block that sees it", "energy"], sees[:SHOWN], right=[1])
        _more(len(sees), "see it")
    on_witness = set(shares)
    blind = [n for n in held if energy[n] == 0 and on_witness.intersection(problem.block_by_id[n].nodes)]
    if blind:
        say(f"On these nodes, but blind to it: {', '.join(blind[:SHOWN])}.")
        _more(len(blind), "are")
    _offers(problem, found, energy)
    if shared := shared_words(problem, held):
        say(shared)
    say(_meaning(found, list(shares)))


def _offers(problem: Problem, found: DesignMargin, energy: Mapping[str, float]) -> None:
    """What is on sale and would see the witness, most energy per cost first (the paper's witness
    greedy).
    """
    market = problem.structure.market
    held = {*found.selected, *found.operator.node_ids, *found.operator.block_ids}
    offers = []
    for name in problem.on_sale:
        if name not in held and energy[name] > 0:
            ids, price = market.offer(name, held)
            cost = float(price)
            offers.append((energy[name] / cost if cost else inf, ", ".join(ids), cost, energy[name]))
    if offers:
        offers.sort(key=lambda offer: -offer[0])
        rows = [(ids, f"{cost:g}", f"{seen:.4g}", f"{rate:.4g}") for rate, ids, cost, seen in offers[:SHOWN]]
        table("", ["on sale, would see it", "cost", "energy", "per cost"], rows, right=[1, 2, 3])
        _more(len(offers), "are on sale")
    elif len(held.intersection(problem.on_sale)) < len(problem.on_sale):
        say("Nothing that is on sale would see it.")


def _meaning(found: DesignMargin, carriers: Sequence[str]) -> str:
    nodes = ", ".join(carriers[:SHOWN])
    from rrf_design._explain import wrong_units

    answers = wrong_units(found)
    if found.wrong:
        nodes += f" (where {', '.join(found.wrong)} may be wrong)"
    if found.value == 0.0 and found.status == "exact":
        return (
            f"No method can guarantee to find {answers}: an error on {nodes} along the witness changes nothing that"
            " this design measures."
        )
    if found.lower == 0.0:
        return (
            f"It is not proven that {answers} can be found; the error known to hide best, on {nodes}, moves the"
            f" measurements by {found.upper:.4g} of its size."
        )
    deliver = found.operator.premise.deliver
    if deliver is not None:
        return (
            f"Whatever {answers} {'say' if found.k > 1 else 'says'}, {', '.join(sorted(deliver))} can be told; noise of"
            f" size ε can move it by up to 2ε/γ_{found.k} = {2 / found.lower:.4g} ε, most easily with an error on"
            f" {nodes}."
        )
    return (
        f"Any {answers} can be found; noise of size ε can hide an error of up to 2ε/γ_{found.k} = {2 / found.lower:.4g}"
        f" ε, most easily on {nodes}."
    )


def _more(count: int, what: str) -> None:
    if count > SHOWN:
        say(f"{count - SHOWN} more {what}.")
