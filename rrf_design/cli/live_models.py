"""Options of the verbs that ask models for the items of a table, and what they mean."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rrf_design.promises.buying import LiveModels

Models = Annotated[
    list[str] | None,
    typer.Option("--model", help="Ask live: embedded, openai:NAME, scripted:FILE ...; several as NAME=SPEC."),
]
BaseUrl = Annotated[str | None, typer.Option("--base-url", help="Server of an openai: model.")]
Slots = Annotated[int | None, typer.Option("--slots", "--max-concurrency", help="Questions in flight at once.")]
Cache = Annotated[
    str | None, typer.Option("--cache", help="Folder of answers kept across runs, or off; default: your cache folder.")
]
Money = Annotated[float | None, typer.Option("--money", help="What the calls may really cost, by the price table.")]
Yes = Annotated[bool, typer.Option("--yes", help="Spend without being asked, where --money does not say how much.")]
Prices = Annotated[Path | None, typer.Option("--prices", help="Price table (.toml or .json).")]


def live_models(
    model: list[str] | None,
    store: str | None,
    *,
    base_url: str | None = None,
    slots: int | None = None,
    cache: str | None = None,
    money: float | None = None,
    prices: Path | None = None,
    yes: bool = False,
    quiet: bool = False,
) -> LiveModels:
    from rrf_design.cli.acquire import agreed, named_models
    from rrf_design.models.cache import folder_of
    from rrf_design.promises.buying import LiveModels

    given: dict[str, Any] = {"base_url": base_url, "slots": slots}
    options = {"model_options": {name: value for name, value in given.items() if value is not None}}
    spending: dict[str, Any] = {
        "money": money,
        "prices": prices,
        "consent": lambda spending, said: agreed(spending, said=said or yes, quiet=quiet),
    }
    return LiveModels(named_models(model or []), store, {**options, **spending, "cache": folder_of(cache)})
