"""Options of the verbs that ask models for the items of a table, and what they mean."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rrf_design.cli.output import note
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.models.prices import Spending
    from rrf_design.promises.buying import LiveModels

_NAMED = re.compile(r"([^=:/\\]+)=(.+)")
Store = Annotated[
    str | None,
    typer.Option("--store", help="Journal: a file, sqlite:///FILE or postgresql://...; default rrf-runs.sqlite here."),
]
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

MaxCalls = Annotated[
    int | None, typer.Option("--max-calls", help="Make at most so many model calls, repeated ones included.")
]
AllowCommands = Annotated[
    bool, typer.Option("--allow-commands", help="Let checks run commands of the problem file or recipe.")
]
RequireIsolation = Annotated[
    str,
    typer.Option("--require-isolation", help="Weakest sandbox for programs: limits, seccomp, seccomp+namespaces."),
]


@dataclass(frozen=True, slots=True)
class Running:
    """What a run may do beside spending money."""

    max_calls: int | None = None
    budget: float | None = None
    allow_commands: bool = False
    isolation: str = "seccomp"


def chosen_models(
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
    as_json: bool = False,
    running: Running | None = None,
    responses: Path | None = None,
) -> LiveModels:
    """Who is asked, and the limits of it.

    `responses`: answers are there already, so that limits would bind nothing.
    """
    from rrf_design.cli.run_progress import RunEvents, RunProgress
    from rrf_design.models.cache import folder_of
    from rrf_design.promises.buying import LiveModels

    may = running or Running()
    _check_limits(may, responses, money)
    if responses is not None:
        _nobody_is_asked(base_url=base_url, slots=slots, prices=prices)
    given: dict[str, Any] = {"base_url": base_url, "slots": slots}
    options = {"model_options": {name: value for name, value in given.items() if value is not None}}
    spending: dict[str, Any] = {
        "money": money,
        "prices": prices,
        "consent": lambda spending, said: agreed(spending, said=said or yes or may.budget is not None, quiet=quiet),
    }
    more = {"calls": may.max_calls, "allow_commands": may.allow_commands, "isolation": may.isolation}
    progress = None if quiet else RunEvents() if as_json else RunProgress()
    asked = {**options, **spending, **more, "cache": folder_of(cache), "progress": progress}
    return LiveModels(named_models(model or []), store, asked, may.budget)


def finish(live: LiveModels) -> None:
    """End the line in which progress was told."""
    progress = live.options.get("progress")
    if progress is not None:
        progress.close()


def _nobody_is_asked(**options: Any) -> None:
    """InputError for an option that says how models are asked, where answers are there already."""
    for name, value in options.items():
        if value is not None:
            option = f"--{name.replace('_', '-')}"
            raise InputError(
                f"{option} is for models that are asked, and none is with --responses: leave one of them out"
            )


def _check_limits(may: Running, responses: Path | None, money: float | None = None) -> None:
    for option, value in (("--budget", may.budget), ("--max-calls", may.max_calls), ("--money", money)):
        if value is not None and not value >= 0:
            raise InputError(f"{option} {value}: should be a number that is 0 or more")
        if value is not None and responses is not None:
            raise InputError(
                f"{option} limits what is bought, and nothing is bought with --responses: leave one of them out"
            )


def agreed(spending: Spending, *, said: bool, quiet: bool) -> bool:
    """Whether a run may begin: it costs nothing, a limit was set, or the user says so now, at a
    terminal.
    """
    from rrf_design.models.prices import REMEDY

    if not quiet:
        for name in spending.unknown:
            note(f"no price is known of {name}, so what it costs is not counted; {REMEDY.format(name)}")
    if said or not (spending.money.most or spending.hosted):
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InputError(
            f"this run would spend money, and nobody said how much it may ({spending.sentence()});"
            " say so with --money or --budget, or agree with --yes"
        )
    return typer.confirm(f"{spending.sentence()}. Go on?", err=True)


def named_models(given: Sequence[str]) -> str | dict[str, str] | None:
    """What `--model` means: one model, or several by name."""
    if len(given) == 1 and not _NAMED.match(given[0]):
        return given[0]
    found: dict[str, str] = {}
    for text in given:
        named = _NAMED.match(text)
        if named is None:
            raise InputError(f"--model {text!r}: several models need names, as in --model mini={text}")
        if named[1] in found:
            raise InputError(f"--model {text!r}: there are two models called {named[1]!r}")
        found[named[1]] = named[2]
    return found or None
