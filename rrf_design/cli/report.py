"""rrf-design report: show me (a design, plan, certificate, run, repair or scenario).

With --follow the page of a run is written anew whenever its journal has grown, until the run is
finished, and loads itself anew meanwhile. However following ends (the run is finished, the time is
up, Ctrl-C, SIGTERM), the last page that is written does not: it claims no freshness that nobody
keeps up. A run that waits for people is not finished: that is said, and waited for.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from rrf_design.cli import _options as options
from rrf_design.cli._live_models import Store
from rrf_design.cli.output import Printer, print_json
from rrf_design.documents import write_text
from rrf_design.errors import InputError, Refused
from rrf_design.reporting.documents import PageSource, read, render, selected_of


def report_verb(
    what: Annotated[
        str,
        typer.Argument(
            help=(
                "A problem file, a result document (.json), a scenario's directory, or the name of a run; rrf.toml by"
                " default."
            ),
            show_default=False,
            default_factory=lambda: str(options.DEFAULT_FILE),
            callback=options.there,
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.", show_default=False)],
    problem: Annotated[Path | None, typer.Option("--problem", help="The problem file the document belongs to.")] = None,
    store: Store = None,
    select: options.Select = None,
    compare: Annotated[
        str | None, typer.Option("--compare", help="Another design (problem file or plan) to set beside it.")
    ] = None,
    compare_select: Annotated[
        str | None, typer.Option("--compare-select", help="Ids of what the other design adds.")
    ] = None,
    *,
    items: options.Items,
    following: Annotated[
        bool, typer.Option("--follow", help="Keep a run's page fresh while it goes on; Ctrl-C ends that.")
    ] = False,
    follow_seconds: Annotated[
        float, typer.Option("--follow-seconds", help="Follow at most so long.", min=0.0)
    ] = 86400.0,
    effort: options.Work,
    printer: Printer,
) -> None:
    """Write one self-contained HTML page that works offline and prints well.

    Example: rrf-design report problem.toml --select a3 -o design.html

    Of a recipe, the design of one item (--item), or that of the weakest structure of its table.

    A run while it goes on: rrf-design report last --follow -o run.html

    Two designs side by side: rrf-design report problem.toml --select a3 --compare-select a1,a2 -o
    both.html
    """
    if following:
        _follow(what, out, store, follow_seconds, printer)
        return
    with printer.progress("margin") as progress:
        means = effort.means(progress)
        source = _of_table(what, items) or _source(what, problem, store)
        kind = source.kind
        if select is not None:
            source = _selecting(source, select)
        if compare is not None or compare_select is not None:
            other = source if compare is None else read(compare, problem=problem)
            if compare_select is not None or compare is None:
                other = _selecting(other, compare_select or "")
            text, kind = _comparison(source, other, means), "comparison"
        else:
            text = render(_explained(source, means) if kind == "problem" else source)
    write_text(out, text)
    _tell(source, kind, out, len(text.encode()), printer)


def _tell(source: PageSource, kind: str, out: Path, size: int, printer: Printer) -> None:
    if printer.as_json:
        print_json({"kind": kind, "out": str(out), "bytes": size})
        return
    printer.news(f"Wrote {out}")
    if source.problem is None and not source.problems and source.kind not in FIELDLESS:
        printer.note("(give the problem file with --problem to have the field drawn too)")
    printer.note(f"({kind}, {size / 1024:.0f} kB, works offline)")


FIELDLESS = ("rrf-scenario", "rrf-policy", "rrf-policy-run", "rrf-audit", "rrf-delivery", "rrf-delivered")
"""Documents whose page draws no field."""


def _of_table(what: str, items: options.Items) -> PageSource | None:
    """The design of one item of a recipe, or of the weakest structure of its table; None for
    anything else.
    """
    from rrf_design import Problem, margin

    file = Path(what)
    if not (file.is_file() and file.suffix.lower() in (".toml", ".json") and items.many(file)):
        items.refuse()
        return None
    given = items.given(file)
    return read(given if isinstance(given, Problem) else margin(given).worst.problem)


def _follow(what: str, out: Path, store: str | None, seconds: float, printer: Printer) -> None:
    from rrf_design.acquisition import Journal

    if _is_path(what):
        raise InputError(f"--follow: goes with a run of the journal, not with a file ({what})")
    run = _source(what, None, store).data["run"]  # the same one, though "last" may mean another soon

    def length() -> int:
        with Journal(store, read_only=True) as journal:
            return journal.length(run)

    printer.note(f"(following {run}: open {out} in a browser; Ctrl-C ends this)")
    with _ended_politely():
        done = follow(out, lambda: _source(run, None, store), length, seconds=seconds, tell=printer.note)
    if printer.as_json:
        print_json({"kind": "rrf-run", "out": str(out), "bytes": out.stat().st_size, "finished": done})
    printer.news(f"Wrote {out}; the run is {'finished' if done else 'not finished'}")


EVERY = 2
"""Seconds between two looks at the journal, and after which the page loads itself anew."""


def follow(
    out: Path,
    load: Callable[[], PageSource],
    length: Callable[[], int],
    *,
    seconds: float,
    wait: Callable[[float], None] = time.sleep,
    tell: Callable[[str], None] = lambda _: None,
) -> bool:
    """Keep the page of a run fresh for so long; whether the run was finished by then."""
    seen, left, told = -1, seconds, 0
    try:
        while True:
            now = length()
            if now != seen:
                seen, source = now, load()
                if _finished(source):
                    write_text(out, render(source))
                    return True
                people = 0 if _going_on(source) else int(source.data["open_reviews"])
                if people and people != told:
                    tell(
                        f"(the run waits for people, {people} question{'s' * (people > 1)}; followed until they have"
                        " answered)"
                    )
                told = people
                write_text(out, render(replace(source, refresh=EVERY)))
            if left <= 0:
                break
            wait(min(EVERY, left))
            left -= EVERY
    except KeyboardInterrupt:
        pass
    source = load()
    write_text(out, render(source))
    return _finished(source)


def _finished(source: PageSource) -> bool:
    """Nothing more is to come: the run has ended, and no person is waited for."""
    return not _going_on(source) and not source.data["open_reviews"]


def _going_on(source: PageSource) -> bool:
    from rrf_design.reporting.runs import UNFINISHED

    return source.data["stopped_because"] in UNFINISHED


@contextmanager
def _ended_politely() -> Iterator[None]:
    """SIGTERM ends what is followed as Ctrl-C does; only the main thread may say so."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _is_path(what: str) -> bool:
    return Path(what).exists() or bool(Path(what).suffix) or "/" in what


def _source(what: str, problem: Path | None, store: str | None) -> PageSource:
    """A path, or else a run of the journal, with the problems it was run on and the answers it was
    given.
    """
    if _is_path(what):
        return _redone(read(what, problem=problem))
    from rrf_design.acquisition import Journal, answer_log, read_run
    from rrf_design.acquisition.stores import no_journal
    from rrf_design.files import from_document

    missing = no_journal(store)
    if missing is not None:
        raise InputError(f"{what}: no such file, and no journal of runs ({missing}) here; name one with --store")
    with Journal(store, read_only=True) as journal:
        problems = {item: from_document(text) for item, text in journal.problems(journal.find(what)).items()}
    source = read(read_run(what, store=store), problem=problems)
    return replace(source, answers=answer_log(what, store=store))


def _redone(source: PageSource) -> PageSource:
    """A policy or an audit with what redoing its tests says: no page shows a promise that they
    refuse as if it held.
    """
    from rrf_design.checker.promises import prove_audit, prove_policy

    prove: dict[str, Callable[[Any], object]] = {"rrf-policy": prove_policy, "rrf-audit": prove_audit}
    if source.kind not in prove:
        return source
    try:
        prove[source.kind](source.data)
    except Refused as error:
        return replace(source, redone=True, refused=str(error))
    return replace(source, redone=True)


def _selecting(source: PageSource, select: str) -> PageSource:
    if source.kind != "problem" or source.problem is None:
        raise InputError(f"--select: chooses what a problem file's design adds; a {source.kind} has its own selection")
    return replace(source, data={"selected": source.problem.resolve(options.split_ids(select))})


def _explained(source: PageSource, means: dict[str, Any], *, k: int | None = None, mend: bool = True) -> PageSource:
    """The design that a document speaks of, as an explanation of its own: what the page of a design
    is made from.
    """
    from rrf_design._explain import explain

    selected = selected_of(source)
    assert source.problem is not None
    found = explain(source.problem, selected, k=k, mend=mend, by_budget=True, **means)
    return replace(source, kind="rrf-explanation", data=found.to_json())


def _comparison(first: PageSource, second: PageSource, means: dict[str, Any]) -> str:
    from rrf_design.reporting.designs import comparison_page

    explained = _explained(first, means, mend=False)
    pair = (explained, _explained(second, means, k=explained.data["k"], mend=False))
    names = [source.path.stem if source.path is not None else source.data["problem"] for source in pair]
    if names[0] == names[1]:
        names = [", ".join(source.data["selected"][:3]) or "owned only" for source in pair]
    if names[0] == names[1]:
        names = [f"{name} ({letter})" for name, letter in zip(names, "AB", strict=True)]
    return comparison_page(*pair, names=(names[0], names[1]))
