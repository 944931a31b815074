"""What `pilot` prints: the sentence, how items are run and what that costs, what was proven, what
was measured.
"""

from __future__ import annotations

from typing import Any

from rrf_design.cli.output import note, say, table

SHOWN = 8
"""Proven policies on the screen; all of them are in the document and on its page."""


def describe_pilot(document: dict[str, Any], *, budget: float | None = None, quiet: bool = False) -> None:
    """The first screen is for whoever has to decide; what follows is for whoever asks why.

    `budget`: what the recipe promises to keep.
    """
    say(document["sentence"])
    if document["ladder"] is not None:
        say(f"Policy: {document['policy']} ({document['because']})")
    say(in_figures(document))
    for words in expected(document, budget):
        say(words)
    if quiet:
        return
    if document.get("stopped_because"):
        say(f"Stopped after {len(document['drawn']):,} labels: {document['stopped_because']}.")
    _proven(document)
    from rrf_design.promises.forecast import in_words

    for words in in_words(document["stronger"], document):
        say(words)
    say(f"Voided by: {document['voided_by']}.")
    _measured(document)
    _warnings(document)


def in_figures(document: dict[str, Any]) -> str:
    """What the policy did with the items of the pilot."""
    from rrf_design.checker.promise_words import percent_about

    ladder = document["ladder"]
    if ladder is None:
        return f"A person checks every item, for {document['check_cost']:,.4g} each."
    kept = document["delivered_share"] * (1.0 - ladder["random_checks"])
    cost = f"for {document['cost_per_item']:,.4g} an item"
    if ladder["last"] != "person":
        priced = "an item that is withheld counted at its price ([ladder] withheld)"
        return f"On the pilot it delivers {percent_about(kept)} and withholds the rest, {cost}, {priced}."
    return (
        f"On the pilot it delivers {percent_about(kept)} without a person, {cost}; a check by a person costs"
        f" {document['check_cost']:,.4g}."
    )


def expected(document: dict[str, Any], budget: float | None) -> list[str]:
    """What the rest of the table would come to, if it is like the pilot; against checking it all.

    Nothing where nobody could: the price of what is withheld is not paid.
    """
    rest = document["population"]["size"] - len(document["drawn"])
    cost = rest * document["cost_per_item"]
    if not rest or document["ladder"] is None or document["ladder"]["last"] != "person":
        return []
    everything = rest * document["check_cost"]
    found = [
        f"The other {rest:,} items are expected to cost about {cost:,.2f}, against {everything:,.2f} for checking all."
    ]
    if budget is not None and cost > budget:
        found.append(f"That is more than the budget of {budget:,.2f} ([promise] budget).")
    return found


def _proven(document: dict[str, Any]) -> None:
    chosen = sorted((entry for entry in document["policies"] if entry["proven"]), key=lambda e: float(e["cost"]))
    rows = [(e["policy"], f"{e['wrong']:,} of {e['counted']:,}", f"{e['cost']:,.4g}", "proven") for e in chosen[:SHOWN]]
    count = len(document["policies"])
    say(
        f"{count:,} {'policy' if count == 1 else 'policies'}, {len(chosen):,} proven; order of tests:"
        f" {document['choice']['ordered_by']}"
    )
    if rows:
        table("", ["policy", "wrong", "cost", ""], rows, right=[1, 2])
    if len(chosen) > SHOWN:
        more = len(chosen) - SHOWN
        say(f"… and {more:,} dearer {'one' if more == 1 else 'ones'}, in the policy (-o) and on its page (report).")


def _measured(document: dict[str, Any]) -> None:
    from rrf_design.checker.promise_words import plain_percent

    if document["measured"]["proposals"]:
        sure, rests = plain_percent(document["confidence"]), document["measured"].get("basis")
        basis = f"; {rests}" if rests else ""
        say(f"Measured, for the recipe if its author agrees (each bound for itself, with confidence {sure}{basis}):")
    for words in document["measured"]["proposals"]:
        say(f"- {words}")


def _warnings(document: dict[str, Any]) -> None:
    disputed = document["measured"]["disputed_gold"]
    if disputed:
        are = "1 truth is" if len(disputed) == 1 else f"{len(disputed):,} truths are"
        say(
            f"{are} disputed by strong agreement of the answers; look again at"
            f" {', '.join(disputed[:SHOWN])}{' …' if len(disputed) > SHOWN else ''}"
        )
    for entry in document["leaks"]:
        note(
            f"column {entry['column']!r} may show the truth of {_items(len(entry['items']))} of the pilot:"
            f" {entry['how']}"
        )
    if document["twins"]:
        ask = "asks" if len(document["twins"]) == 1 else "ask"
        note(
            f"{_items(len(document['twins']))} outside the pilot {ask} what an item of the pilot asks (but for id, case"
            " and spacing)"
        )


def _items(count: int) -> str:
    return "1 item" if count == 1 else f"{count:,} items"
