"""rrf-design acquire: run the loop, live; with --policy, a proven policy on the items outside its
pilot.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rrf_design.cli import _options as options
from rrf_design.cli._live_models import Live, named_models
from rrf_design.cli._run_results import (
    certify_all,
    deliver,
    describe,
    exit_code,
    tell_next,
    write_document,
    write_page,
)
from rrf_design.cli.output import Printer, describe_delivery, say, share_holds
from rrf_design.documents import checked, read, run_cases, write, write_junit
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.acquisition import Acquisition
    from rrf_design.promises import PolicyRun
    from rrf_design.questions import Dataset
    from rrf_design.tables import Delivery


def acquire_verb(
    context: typer.Context,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Problem file, or several: a data set under one budget; rrf.toml by default. None with --resume."
        ),
    ] = None,
    *,
    live: Live,
    resume: Annotated[
        str | None, typer.Option("--resume", help="Go on with this run (or the beginning of its name, or last).")
    ] = None,
    join: Annotated[
        str | None,
        typer.Option(
            "--join", help="Work on this run beside the processes that do already; needs --store postgresql://..."
        ),
    ] = None,
    items: options.Items,
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            help=(
                "agnostic (default for problems): schedule fixed before any answer; adaptive: residuals may steer;"
                " triage"
                " (default for tables): what is missing or disputed, over all items, people last; expected: what is"
                " expected to break most shared errors for its price (an estimate), by --measured."
            ),
        ),
    ] = None,
    measured: Annotated[
        Path | None,
        typer.Option("--measured", help="With --mode expected: what `measure --json` said of other items."),
    ] = None,
    batch: Annotated[int, typer.Option("--batch", help="Purchases decided on together.")] = 1,
    method: Annotated[
        str, typer.Option("--method", help="How the schedule is made: auto, greedy, optimal or witness.")
    ] = "auto",
    max_seconds: Annotated[
        float | None, typer.Option("--max-seconds", help="Ask nothing more after so much working time.")
    ] = None,
    min_gain: Annotated[
        float | None, typer.Option("--min-gain", help="Stop when a round gains less margin per cost.")
    ] = None,
    responses: Annotated[
        Path | None, typer.Option("--responses", help="Answers that exist already (.json, .jsonl, .csv).")
    ] = None,
    reviews: Annotated[
        list[Path] | None,
        typer.Option("--reviews", help="With --policy: other review files that were filled in, such as the pilot's."),
    ] = None,
    review_file: options.ReviewWritten = None,
    doubt: Annotated[
        str, typer.Option("--doubt", help="After a crash, a paid call without outcome: again or skip.")
    ] = "again",
    certificate: Annotated[
        Path | None, typer.Option("--certificate", help="Certify the result: a file, or a folder for a data set.")
    ] = None,
    report: Annotated[Path | None, typer.Option("--report", help="Write the run's page here (.html).")] = None,
    outputs: options.Outputs = None,
    review: options.ReviewPlace = None,
    require_share: options.RequireShare = None,
    junit: options.JunitVerdicts = None,
    policy: Annotated[
        Path | None, typer.Option("--policy", help="Run a pilot's policy on the other items of a recipe's table.")
    ] = None,
    batch_api: Annotated[
        bool,
        typer.Option(
            "--batch-api", help="Hand questions in as a batch (half the price, up to a day); --resume collects them."
        ),
    ] = False,
    printer: Printer,
) -> int:
    """Run the loop, live: buy answers and checks until a stopping rule fires, then repair.

    With a recipe, over every row of its table under one budget; --responses takes recorded answers
    instead of a model.

    Example: rrf-design acquire problem.toml --model embedded --budget 5

    Example: rrf-design acquire recipe.toml --data table.csv --responses answers.jsonl --budget 60
    -o delivered.csv
    """
    from rrf_design.acquisition import acquire

    if policy is not None:
        _refuse_beside_policy(context, files or [])
        file, asked = (files or [options.default_file()])[0], review or review_file
        with _labels(asked) as place:
            own = [place] if review is not None and place is not None and place.is_file() else []
            said = [*(reviews or ()), *own]
            run = _under_policy(file, policy, live, items, responses, outputs or [], place, said, asked, printer)
        return 0 if run.complete and not run.totals.over_budget else 1
    told_of = review if options.DEFAULT_FILE.is_file() else None  # of a problem's run the journal is enough
    named = files or _own_file(resume or join, items.data, responses, told_of, require_share, *_not_json(outputs))
    dataset = _dataset(named, items, outputs or [], responses)
    if dataset is None:
        items.refuse(require_share=require_share)
    document = options.one_document(outputs) if dataset is None else None
    problem, known = (dataset, responses) if dataset is not None else _problems(named, responses)
    with _labels(review) as place:
        told = options.one_of(reviews, "--reviews")
        if told is None and resume is not None and place is not None and place.is_file() and place.stat().st_size:
            told = place
        with live.asking(printer) as asking:
            result = acquire(
                problem,
                named_models(live.model or ()),
                budget=live.budget,
                store=live.store,
                resume=resume,
                join=join,
                seconds=max_seconds,
                gain=min_gain,
                mode=mode,
                measured=measured,
                batch=batch,
                method=method,
                doubt=doubt,
                seed=items.seed,
                batch_api=batch_api,
                responses=known,
                reviews=told,
                review_file=review_file or (place if dataset is None else None),
                **asking,
            )
        if (result.header.get("settings") or {}).get("mode") == "expected":
            printer.remark(
                "Purchases went by an estimate of shared errors; what is said of values does not rest on it."
            )
        _write(result, certificate, report, junit, document, store=live.store)
        words, well, delivery = "", result.passes, None
        if dataset is not None:
            words = _table_words(named, items, responses, outputs or [])
            delivery = deliver(dataset, result, outputs or [], place, called=review, store=live.store, printer=printer)
            well = result.finished and share_holds(delivery, require_share)
    printer.result(result.to_json, lambda: describe(result) if delivery is None else _describe(result, delivery))
    tell_next(result, store=live.store, review=review or review_file, table_of=words, tell=printer.remark)
    return exit_code(result, well=well)


def _labels(review: str | None) -> AbstractContextManager[Path | None]:
    """The review file to read and write, if there is one; the studio's labels are read as one."""
    if review is None:
        return nullcontext()
    from rrf_design.studio.labels import review_file

    return review_file(review, "acquire", blind=False)


def _write(
    result: Acquisition,
    certificate: Path | None,
    report: Path | None,
    junit: Path | None,
    document: Path | None,
    *,
    store: str | None,
) -> None:
    """What was asked for beside the delivered table."""
    if certificate is not None and result.stopped_because not in ("paused", "pending"):
        certify_all(result, certificate)
    if report is not None:
        write_page(result, report, store)
    if junit is not None:
        write_junit(junit, "rrf-design acquire", run_cases(result.to_json()))
    if document is not None:
        write_document(document, result)


def _dataset(files: list[Path], items: options.Items, outputs: list[Path], responses: Path | None) -> Dataset | None:
    """The table that a run is over, its outputs looked at; None for problem files."""
    if len(files) != 1 or not items.many(files[0]):
        return None
    from rrf_design.tables.delivered import check_outputs, spare_inputs

    dataset = items.dataset(files[0])
    check_outputs(outputs)
    spare_inputs(outputs, dataset, files[0], items.data, responses)
    return dataset


def _describe(result: Acquisition, delivery: Delivery) -> None:
    say(f"run {result.run}: spent {result.spent:g}; {result.calls} model calls; {result.open_reviews} open reviews")
    if result.money_left:
        say(result.money_left)
    describe_delivery(delivery)


def _table_words(files: list[Path], items: options.Items, responses: Path | None, outputs: list[Path]) -> str:
    """The files of a run over a table and what was chosen of it, as they were given."""
    given: Mapping[str, Any] = {
        "--data": items.data,
        "--item": items.item,
        "--limit": items.limit,
        "--sample": items.sample,
        "--responses": responses,
        "--seed": items.seed if items.sample is not None else None,
    }
    said = [(option, value) for option, value in given.items() if value is not None]
    said += [("-o", path) for path in outputs]
    return shlex.join([*map(str, files), *(str(word) for pair in said for word in pair)])


def _not_json(outputs: list[Path] | None) -> list[Path]:
    return [path for path in outputs or () if path.suffix.lower() != ".json"]


def _own_file(resume: str | None, *of_table: Any) -> list[Path]:
    """The folder's own file where none is named: a run is resumed from its journal alone, unless
    something of the table is asked for.
    """
    asked = [option for option in of_table if option is not None]
    if resume is not None and not asked:
        return []
    if resume is not None and not options.DEFAULT_FILE.is_file():
        raise InputError(
            f"{asked[0]}: a run is resumed from its journal, which has no table; name the run's own FILE too"
            " (of a single problem -o is its JSON document: .json)"
        )
    return [options.default_file()]


def _problems(files: list[Path], responses: Path | None) -> tuple[Any, Any]:
    from rrf_design.files import load

    if len(files) == 1:
        problem = load(files[0])
        return problem, None if responses is None else _responses(problem, responses)
    if responses is not None:
        raise InputError("--responses goes with one problem file")
    names = [path.stem for path in files]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two problem files are called {name!r}; the items of a data set need different names")
    return {path.stem: load(path) for path in files} or None, None


def _responses(problem: Any, path: Path) -> dict[str, Any]:
    from rrf_design.repairing import read_responses

    fields = read_responses(problem, path)
    if len(fields) != 1:
        raise InputError(f"{path}: holds {len(fields)} fields, one is needed")
    return dict(fields[0].values)


TAKEN = frozenset({"files", "policy", "data", "responses", "outputs", "review", "review_file", "reviews"}).union(
    option.name for group in (Live, Printer) for option in fields(group)
)
"""What a run under a policy takes of the options of `acquire`."""
INSTEAD = {
    "report": "write the page with -o PAGE.html",
    "resume": "repeat the command; it buys nothing twice",
    "join": "repeat the command with the same --store postgresql://...; the runs of its stages are shared",
    "seed": "the policy has the seed of its pilot",
    "item": "it runs on all items outside the pilot",
    "limit": "it runs on all items outside the pilot",
    "sample": "it runs on all items outside the pilot",
}


def _refuse_beside_policy(context: typer.Context, files: list[Path]) -> None:
    """InputError for what the loop takes and a policy does not: the policy has fixed it, and an
    option that does nothing would mislead.
    """
    if len(files) > 1:
        raise InputError(f"--policy runs one recipe on its table; {len(files)} files are named")
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name not in TAKEN and source is not None and source.name == "COMMANDLINE":
            why = INSTEAD.get(name, "the policy says how items are run")
            raise InputError(f"{parameter.opts[0]} does nothing beside --policy: {why}")


def _under_policy(
    file: Path,
    policy: Path,
    live: Live,
    items: options.Items,
    responses: Path | None,
    outputs: list[Path],
    review: Path | None,
    reviews: Sequence[Path],
    called: str | None,
    printer: Printer,
) -> PolicyRun:
    """Run a policy on the items outside its pilot, write what is asked for, and tell what came of
    it.
    """
    from rrf_design.promises import check_review_file, joined_reviews, run_policy, write_reviews
    from rrf_design.questions.answers import RecordedAnswers
    from rrf_design.tables.delivered import FORMS, spare_inputs

    with ExitStack() as stack:
        asked = stack.enter_context(live.models(printer, responses))
        for path in outputs:
            if path.suffix.lower() not in (".json", ".html", *FORMS):
                raise InputError(
                    f"{path}: -o ends in .json (the whole result), .html (the page) or {', '.join(FORMS)} (the"
                    " delivered table)"
                )
        dataset = options.Items(items.data).dataset(file)
        spare_inputs(outputs, dataset, file, policy, responses, items.data, *reviews)
        if review is not None:
            check_review_file(review)
        said = joined_reviews(reviews, only=list(dataset))
        document = read(policy, what="policy")
        try:
            checked(document, "rrf-policy", what="policy")
        except InputError as error:
            raise InputError(f"{policy}: {error}") from None
        recorded = responses and stack.enter_context(RecordedAnswers(dataset, responses, checks=True))
        run = run_policy(dataset, recorded or asked, document, reviews=said)
    for path in outputs:
        _write_policy_run(path, run, dataset)
    if review is not None:
        write_reviews(review, run.reviews)
    printer.result(run.to_json, lambda: _describe_policy_run(run, called, quiet=printer.quiet))
    return run


def _write_policy_run(path: Path, run: PolicyRun, dataset: Dataset) -> None:
    """The whole result, its page, or the delivered table, by the ending."""
    from rrf_design.reporting import write_report
    from rrf_design.tables.delivered import deliver

    if path.suffix.lower() == ".json":
        write(path, run.to_json())
    elif path.suffix.lower() == ".html":
        write_report(run.to_json(), path, redone=True)
    else:
        deliver(path, run.delivery.cells(), dataset.columns)


def _describe_policy_run(run: PolicyRun, review: str | None, *, quiet: bool) -> None:
    """The sentence, what is still to be done, and what the sentence does not count."""
    from rrf_design.studio.labels import how_to_answer

    say(run.sentence)
    if run.reviews:
        how = how_to_answer(review) if review is not None else "write them with --review FILE"
        wait = "1 item waits" if len(run.reviews) == 1 else f"{len(run.reviews):,} items wait"
        say(f"{wait} for a person: {how}, then repeat the command")
    if run.unlabelled:
        rows = "1 row of the pilot waits" if run.unlabelled == 1 else f"{run.unlabelled:,} rows of the pilot wait"
        say(f"{rows} for the truth it had: give its review file with --reviews too")
    if run.totals.over_budget:
        say(f"That is {run.totals.over_budget:,.2f} more than [promise] budget allows.")
    if run.disputed:
        told = f"{', '.join(run.disputed[:8])}{' …' if len(run.disputed) > 8 else ''}"
        say(
            "Reviews say something else than what the policy delivers without a person, which stays as the policy"
            f" says: {told}"
        )
    if not quiet:
        say(run.about_pilot)
