"""rrf-design estimate: what will a run take?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rrf_design.cli import options
from rrf_design.cli.live_models import named_models
from rrf_design.cli.output import note, print_json, say, table

if TYPE_CHECKING:
    from rrf_design.tables import Estimate


def estimate_verb(
    file: options.ProblemFile,
    data: options.Data = None,
    item: options.ItemId = None,
    limit: options.Limit = None,
    sample: options.Sample = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", help="Who is asked, as in acquire: one model, or several as NAME=SPEC."),
    ] = None,
    prices: Annotated[Path | None, typer.Option("--prices", help="Price table (.toml or .json).")] = None,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Calls, tokens and money of a run over a table, before the first call.

    What is expected is a guess; what is given as the most is never exceeded, retries included.

    Example: rrf-design estimate recipe.toml --data table.csv --model openai:gpt-4.1-mini
    """
    from rrf_design.tables import estimate as estimated

    chosen = options.open_dataset(file, data, item=item, limit=limit, sample=sample, seed=seed)
    found = estimated(chosen, named_models(model or []), prices=prices)
    if as_json:
        print_json(found.to_json())
        raise typer.Exit(0)
    tell_estimate(found, quiet=quiet)
    raise typer.Exit(0)


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
