"""rrf-design estimate: what will a run take?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rrf_design.cli import _options as options
from rrf_design.cli._live_models import Models, Prices, named_models
from rrf_design.cli.output import Printer, note, say, table

if TYPE_CHECKING:
    from rrf_design.tables import Estimate


def estimate_verb(
    file: options.ProblemFile,
    *,
    items: options.Items,
    model: Models = None,
    prices: Prices = None,
    cluster: options.Cluster = None,
    printer: Printer,
) -> None:
    """Calls, tokens and money of a run over a table, before the first call.

    What is expected is a guess; what is given as the most is never exceeded, retries included.

    Example: rrf-design estimate recipe.toml --data table.csv --model openai:gpt-4.1-mini
    """
    from rrf_design.tables import estimate

    with options.on_cluster(cluster):
        found = estimate(items.dataset(file), named_models(model or []), prices=prices)
    printer.result(found.to_json, lambda: tell_estimate(found, quiet=printer.quiet))


def tell_estimate(found: Estimate, *, quiet: bool, money: bool = True) -> None:
    """The estimate as a small table, and what it rests on; `money`: who is asked is known."""
    say(f"{found.items} items of {found.structures} structure{'s' * (found.structures != 1)}")
    spans = {"calls": found.calls, "tokens": found.tokens, "money": found.money, "cost (on sale)": found.cost}
    spans |= {} if money else {"money": replace(found.money, expected=None, most=None)}
    rows = [(name, _shown(span.expected), _shown(span.most)) for name, span in spans.items()]
    table("", ["", "expected", "at most"], rows, right=[1, 2])
    if not quiet:
        for text in found.notes:
            note(text)


def _shown(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.6g}" if value < 1e6 else f"{value:,.0f}"
