"""rrf-design runs / show: what have I run, and what did it buy?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rrf_design.cli.live_models import Store
from rrf_design.cli.options import AsJson, Quiet
from rrf_design.cli.output import print_json, say, table
from rrf_design.cli.run_results import describe


def runs_verb(store: Store = None, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """What have I run? Newest first.

    Example: rrf-design runs
    """
    from rrf_design.acquisition import Journal
    from rrf_design.acquisition.journal import RunSummary
    from rrf_design.acquisition.stores import no_journal

    found: tuple[RunSummary, ...] = ()
    shown = no_journal(store)
    if shown is None:
        with Journal(store) as journal:
            found = journal.summaries()
            shown = journal.shown
    if as_json:
        rows = [
            {
                "run": r.run,
                "name": r.name,
                "created": r.created,
                "stopped_because": r.stopped_because,
                "purchases": r.settled,
                "items": r.items,
            }
            for r in found
        ]
        from rrf_design.documents import sealed

        print_json(sealed("rrf-runs", {"store": shown, "runs": rows}))
    elif not found:
        say(f"{shown}: no runs yet")
    else:
        cells = [(r.run, r.created[:19].replace("T", " "), r.name, str(r.settled), r.stopped_because) for r in found]
        table("", ["run", "began (UTC)", "name", "purchases", "stopped because"], cells, right=[3])


def show_verb(
    run: Annotated[str, typer.Argument(help="A run, the beginning of its name, or last.")],
    store: Store = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write its document here (.json).")] = None,
    answers: Annotated[
        Path | None,
        typer.Option(
            "--answers",
            help="Write its raw answers here (.jsonl): `--responses`, `import` and `--model replay:FILE` read them.",
        ),
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """What did a run buy, and what came of it? Read from the journal; nothing is asked or bought.

    Example: rrf-design show last
    """
    from rrf_design.acquisition import answer_log, read_run
    from rrf_design.documents import write_text
    from rrf_design.texts import digits, json_text

    result = read_run(run, store=store)
    if out is not None:
        write_text(out, json_text(result.to_json(), indent=1) + "\n")
    if answers is not None:
        from rrf_design.models import write_records

        write_records(answers, answer_log(result.run, store=store))
    if as_json:
        print_json(result.to_json())
    else:
        describe(result)
        cells = [
            (
                e.item,
                e.name,
                e.buys.value,
                e.outcome,
                "" if e.value is None else ", ".join(map(digits, e.value)),
                digits(e.price),
            )
            for e in result.purchases
        ]
        table("", ["item", "purchase", "buys", "outcome", "value", "price"], cells, right=[5])
