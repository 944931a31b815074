"""rrf-design report: show me (a design, plan, certificate, run, repair or scenario)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rrf_design.cli.output import AsJson, Jobs, Quiet, Select, TimeLimit, note, print_json, progress_bar, say, split_ids

if TYPE_CHECKING:
    from rrf_design.reporting.documents import Source


def register(app: typer.Typer) -> None:
    app.command("report")(report)


def report(
    what: Annotated[
        str,
        typer.Argument(
            help="A problem file, a result document (.json), a scenario's directory, or the name of a run.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.", show_default=False)],
    problem: Annotated[Path | None, typer.Option("--problem", help="The problem file the document belongs to.")] = None,
    store: Annotated[
        str | None, typer.Option("--store", help="The journal a run is in; default rrf-runs.sqlite here.")
    ] = None,
    select: Select = None,
    compare: Annotated[
        str | None, typer.Option("--compare", help="Another design (problem file or plan) to set beside it.")
    ] = None,
    compare_select: Annotated[
        str | None, typer.Option("--compare-select", help="Ids of what the other design adds.")
    ] = None,
    jobs: Jobs = 1,
    time_limit: TimeLimit = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Write one self-contained HTML page that works offline and prints well.

    Example: rrf-design report problem.toml --select a3 -o design.html

    Two designs side by side: rrf-design report problem.toml --select a3 --compare-select a1,a2 -o both.html
    """
    from rrf_design.files import write_text
    from rrf_design.reporting.documents import read, render

    with progress_bar("margin", quiet=quiet) as progress:
        source = _source(what, problem, store, {"n_jobs": jobs, "time_limit": time_limit, "progress": progress})
        if select is not None:
            source = _selecting(source, select)
        if compare is not None or compare_select is not None:
            other = source if compare is None else read(compare, problem=problem)
            if compare_select is not None or compare is None:
                other = _selecting(other, compare_select or "")
            text, kind = _comparison(source, other), "comparison"
        else:
            text, kind = render(source), source.kind
    write_text(out, text)
    if as_json:
        print_json({"kind": kind, "out": str(out), "bytes": len(text.encode())})
    elif not quiet:
        say(f"Wrote {out}")
        if source.problem is None and not source.problems and source.kind != "rrf-scenario":
            note("(give the problem file with --problem to have the field drawn too)")
        note(f"({kind}, {len(text.encode()) / 1024:.0f} kB, works offline)")


def _source(what: str, problem: Path | None, store: str | None, options: dict[str, Any]) -> Source:
    """A path, or else a run of the journal, with the problems it was run on."""
    from rrf_design.errors import InputError
    from rrf_design.reporting.documents import read

    if Path(what).exists() or Path(what).suffix or "/" in what:
        return read(what, problem=problem, **options)
    from rrf_design.acquisition import Journal, read_run
    from rrf_design.cli.runs import no_journal
    from rrf_design.files import from_document

    missing = no_journal(store)
    if missing is not None:
        raise InputError(f"{what}: no such file, and no journal of runs ({missing}) here; name one with --store")
    with Journal(store) as journal:
        problems = {item: from_document(text) for item, text in journal.problems(journal.find(what)).items()}
    return read(read_run(what, store=store), problem=problems, **options)


def _selecting(source: Source, select: str) -> Source:
    from dataclasses import replace

    from rrf_design.errors import InputError

    if source.kind != "problem" or source.problem is None:
        raise InputError(f"--select: chooses what a problem file's design adds; a {source.kind} has its own selection")
    return replace(source, data={"selected": source.problem.resolve(split_ids(select))})


def _comparison(first: Source, second: Source) -> str:
    from dataclasses import replace

    from rrf_design.reporting.comparison import comparison_page
    from rrf_design.reporting.documents import design_of

    designs = [design_of(first), design_of(second)]
    if designs[0].name == designs[1].name:
        designs = [replace(d, name=", ".join(d.selected[:3]) or "owned only") for d in designs]
    if designs[0].name == designs[1].name:
        designs = [replace(d, name=f"{d.name} ({letter})") for d, letter in zip(designs, "AB", strict=True)]
    return comparison_page(designs[0], designs[1], **first.options)
