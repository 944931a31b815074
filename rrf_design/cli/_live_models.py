"""Options of the verbs that ask models, and what they mean."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rrf_design.cli._options import BaseUrl
from rrf_design.cli.output import Printer, note
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.models.prices import Spending
    from rrf_design.promises import LiveModels

_NAMED = re.compile(r"([^=:/\\]+)=(.+)")
Store = Annotated[
    str | None,
    typer.Option("--store", help="Journal: a file, sqlite:///FILE or postgresql://...; default rrf-runs.sqlite here."),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        help="embedded, openai:NAME, transformers:NAME, scripted:FILE, replay:FILE; several as NAME=SPEC.",
    ),
]
Prices = Annotated[Path | None, typer.Option("--prices", help="Prices that go over the listed ones (.toml or .json).")]


@dataclass(frozen=True, slots=True)
class Live:
    """Who is asked, what that may take, and what checks may do; a group of options."""

    model: Models = None
    store: Store = None
    base_url: BaseUrl = None
    slots: Annotated[int | None, typer.Option("--slots", "--max-concurrency", help="Questions in flight at once.")] = (
        None
    )
    budget: Annotated[
        float | None,
        typer.Option("--budget", help="What answers and checks may cost, in the file's own prices; default: its own."),
    ] = None
    money: Annotated[
        float | None, typer.Option("--money", help="What the calls may really cost, by the listed prices or --prices.")
    ] = None
    prices: Prices = None
    max_calls: Annotated[
        int | None, typer.Option("--max-calls", help="Make at most so many model calls, repeated ones included.")
    ] = None
    yes: Annotated[
        bool, typer.Option("--yes", help="Spend without being asked, where neither --budget nor --money says how much.")
    ] = False
    cache: Annotated[
        str | None,
        typer.Option("--cache", help="Folder of answers kept across runs, or off; default: your cache folder."),
    ] = None
    allow_commands: Annotated[
        bool, typer.Option("--allow-commands", help="Let checks run commands of the problem file or recipe.")
    ] = False
    require_isolation: Annotated[
        str,
        typer.Option("--require-isolation", help="Weakest sandbox for programs: limits, seccomp, seccomp+namespaces."),
    ] = "seccomp"

    @contextmanager
    def asking(self, printer: Printer) -> Iterator[dict[str, Any]]:
        """What `rrf_design.acquire` is told beside models, store and budget; the line in which
        progress was told ends with it.
        """
        from rrf_design.models.cache import folder_of

        progress = printer.run_progress()
        of_model = {"base_url": self.base_url, "slots": self.slots}

        def consent(spending: Spending, said: bool) -> bool:
            return _agreed(spending, said=said or self.yes or self.budget is not None, quiet=printer.quiet)

        try:
            yield {
                "money": self.money,
                "prices": self.prices,
                "calls": self.max_calls,
                "cache": folder_of(self.cache),
                "model_options": {name: value for name, value in of_model.items() if value is not None},
                "allow_commands": self.allow_commands,
                "isolation": self.require_isolation,
                "consent": consent,
                "progress": progress,
            }
        finally:
            if progress is not None:
                progress.close()

    @contextmanager
    def models(self, printer: Printer, responses: Path | None) -> Iterator[LiveModels]:
        """Who answers the items of a table.

        With `responses` answers are there already: limits would bind nothing, and a model would be
        a second source.
        """
        from rrf_design.promises import LiveModels

        self._check(responses)
        if responses is not None and self.model:
            raise InputError("give --responses or --model, not both: answers have one source")
        with self.asking(printer) as told:
            yield LiveModels(named_models(self.model or ()), self.store, told, self.budget)

    def _check(self, responses: Path | None) -> None:
        """InputError for limits that are none, and for options that do nothing beside recorded
        answers.
        """
        for option, value in (("--budget", self.budget), ("--max-calls", self.max_calls), ("--money", self.money)):
            if value is not None and not value >= 0:
                raise InputError(f"{option} {value}: should be a number that is 0 or more")
            if value is not None and responses is not None:
                raise InputError(
                    f"{option} limits what is bought, and nothing is bought with --responses: leave one of them out"
                )
        asked = {"--base-url": self.base_url, "--slots": self.slots, "--prices": self.prices}
        for option, given in asked.items():
            if given is not None and responses is not None:
                raise InputError(
                    f"{option} is for models that are asked, and none is with --responses: leave one of them out"
                )


def _agreed(spending: Spending, *, said: bool, quiet: bool) -> bool:
    """Whether a run may begin: it costs nothing, a limit was set, or the user says so now, at a
    terminal.
    """
    from rrf_design.models.prices import REMEDY

    if not quiet:
        for name in spending.unknown:
            note(f"no price is known of {name}, so what it costs is not counted; {REMEDY.format(name)}")
        for words in spending.judges:
            note(words)
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
