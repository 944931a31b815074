"""rrf-design runs / show: what have I run, and what did it buy?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rrf_design.cli._live_models import Store
from rrf_design.cli._run_results import describe, write_document
from rrf_design.cli.output import Printer, say, table
from rrf_design.documents import checked, read, sealed
from rrf_design.texts import digits

if TYPE_CHECKING:
    from rrf_design.acquisition import Acquisition
    from rrf_design.acquisition.journal import RunSummary


def runs_verb(store: Store = None, *, printer: Printer) -> None:
    """What have I run? Newest first.

    Example: rrf-design runs
    """
    from rrf_design.acquisition import Journal
    from rrf_design.acquisition.stores import no_journal

    found: tuple[RunSummary, ...] = ()
    shown = no_journal(store)
    if shown is None:
        with Journal(store, read_only=True) as journal:
            found = journal.summaries()
            shown = journal.shown
    document = sealed("rrf-runs", {"store": shown, "runs": [asdict(run) for run in found]})
    printer.result(document, lambda: _list(found) if found else say(f"{shown}: no runs yet"))


def _list(found: tuple[RunSummary, ...]) -> None:
    cells = [(r.run, r.created[:19].replace("T", " "), r.name, str(r.purchases), r.stopped_because) for r in found]
    table("", ["run", "began (UTC)", "name", "purchases", "stopped because"], cells, right=[3])


def show_verb(
    run: Annotated[
        str, typer.Argument(help="A run, the beginning of its name, or last; or the proof of a delivered table.")
    ],
    store: Store = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write its document here (.json).")] = None,
    answers: Annotated[
        Path | None,
        typer.Option(
            "--answers",
            help="Write its raw answers here (.jsonl): `--responses`, `import` and `--model replay:FILE` read them.",
        ),
    ] = None,
    *,
    printer: Printer,
) -> None:
    """What did a run buy, and what came of it? Read from the journal; nothing is asked or bought.

    Example: rrf-design show last

    Example: rrf-design show proof.json
    """
    from rrf_design.acquisition import answer_log, read_run

    if Path(run).is_file():
        return _show_delivered(Path(run), printer)
    result = read_run(run, store=store)
    if out is not None:
        write_document(out, result)
    if answers is not None:
        from rrf_design.models import write_records

        write_records(answers, answer_log(result.run, store=store))
    return printer.result(result.to_json, lambda: _describe(result))


def _show_delivered(path: Path, printer: Printer) -> None:
    """What a document of `deliver` proves, and what it cost."""
    from rrf_design.checker.delivery import prove_delivery
    from rrf_design.promises import cost_words

    document = checked(read(path), "rrf-delivered", what=str(path))
    proven = prove_delivery(document)
    names = ("sentence", "reached", "rows", "labels", "wrong_found", "remaining", "bound")
    told = {"format": document["format"], **{name: getattr(proven, name) for name in names}}
    told["spent"] = document["spent"]
    printer.result(told, lambda: say(f"{proven.sentence}\n{cost_words(document)}"))


def _describe(result: Acquisition) -> None:
    describe(result)
    cells = [
        (e.item, e.name, e.buys.value, e.outcome, ", ".join(map(digits, e.value or ())), digits(e.price))
        for e in result.purchases
    ]
    table("", ["item", "purchase", "buys", "outcome", "value", "price"], cells, right=[5])
