"""People as a source: a review queue to fill in (CSV or JSONL), ordered by certified gain per cost,
and read back.

The gain is certified: the proven lower bound of the margin with the answer minus the proven upper
bound without it. Where it is zero for all (two reviews can be worth nothing alone and everything
together), the witness rule orders.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design.acquisition._purchases import Buys, Settlement, purchase_id
from rrf_design.acquisition._selection import Position
from rrf_design.acquisition.sources.stated import Person
from rrf_design.errors import InputError
from rrf_design.verdict import Verdict, dispute

if TYPE_CHECKING:
    from rrf_design.acquisition._fetch import Fetcher
    from rrf_design.acquisition._loop import Acquirer

COLUMNS = (
    "id",
    "item",
    "anchor",
    "node",
    "question",
    "prompt",
    "model_answer",
    "rows",
    "gain_per_cost",
    "cost",
    "value",
)


def queue(acquirer: Acquirer, fetcher: Fetcher) -> list[dict[str, Any]]:
    """Open reviews of the run as rows with an empty `value`, the most valuable first, none
    twice.
    """
    reviews: list[tuple[tuple[Any, ...], dict[str, Any]]] = []
    for item, state in acquirer.state.items.items():
        if not any(purchase.deferred for purchase in state.pending.values()):
            continue
        design = acquirer.designs[item]
        there = Position(design, state.held, state.failed)
        now = there.margin
        energy = {} if now is None else design.energies(now.witness)
        found = acquirer.state.results.get(item) or {}
        verdict = Verdict(found.get("verdict", Verdict.INCOMPLETE))
        order = dispute(verdict, float(found.get("residual") or 0.0), len(found.get("support") or ()))
        for name, purchase in state.pending.items():
            source = fetcher.sources.get((item, name))
            if not purchase.deferred or not isinstance(source, Person):
                continue
            node = design.problem.node_by_id[source.anchor.nodes[0]]
            then = there.after([name]).margin
            price = max(purchase.price, 1e-12)
            gain = 0.0 if now is None or then is None else max(0.0, then.lower - now.upper) / price
            question = source.question or f"What is the right answer to the prompt of {node.id!r}?"
            answer = state.settled[node.id].text if node.id in state.settled else ""
            about = (purchase.id, item, name, node.id, question, node.prompt or "", answer)
            row = dict(zip(COLUMNS, (*about, source.rows, gain, purchase.price, ""), strict=True))
            # Among those that gain the same: the order of disputes, then what the witness shows.
            reviews.append(((-gain, order, -energy.get(name, 0.0) / price, purchase.id), row))
    return [row for _, row in sorted(reviews, key=lambda review: review[0])]


def write_queue(path: str | os.PathLike[str], reviews: list[dict[str, Any]]) -> None:
    """Write the queue; what was filled in there stays."""
    from rrf_design.questions.reviews import write_review_file

    write_review_file(path, reviews, COLUMNS)


def read_queue(path: str | os.PathLike[str], acquirer: Acquirer, fetcher: Fetcher) -> list[Settlement]:
    """The filled-in reviews that are still open; empty values stay open, a value twice must be the
    same one.
    """
    from rrf_design.questions.reviews import read_review_file, said

    open_reviews = {p.id: p for s in acquirer.state.items.values() for p in s.pending.values() if p.deferred}
    known = {purchase_id(item, n) for item, s in acquirer.state.items.items() for n in s.settled}

    def asked(name: str, check: str) -> str:
        purchase = purchase_id(name, check) if check else name  # in a review list the id is that of the item
        if purchase not in open_reviews and purchase not in known:  # what is settled was read back before, and stays
            raise InputError(f"{purchase!r} is not an open review of this run")
        return purchase

    settlements = []
    for name, value in read_review_file(path, asked).items():
        if name not in open_reviews:
            continue
        purchase = open_reviews[name]
        assert purchase.buys is Buys.ANCHOR
        try:
            numbers, text = fetcher.reviewed(
                purchase.item, purchase.name, said(value), acquirer.designs[purchase.item].problem
            )
        except InputError as error:
            raise InputError(f"{path}: {name!r}: {error}") from None
        evidence = {"file": Path(path).name, "reply": {"text": text}}
        settlements.append(Settlement(purchase, "reviewed", numbers, evidence=evidence, source="person"))
    return settlements
