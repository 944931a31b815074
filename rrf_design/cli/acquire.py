"""rrf-design acquire: run the loop, live."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rrf_design.cli.items import (
    Data,
    ItemId,
    Limit,
    Outputs,
    RequireShare,
    ReviewFile,
    Sample,
    describe_delivery,
    is_dataset,
    one_document,
    one_of,
    only_with_tables,
    open_dataset,
    share_holds,
)
from rrf_design.cli.live_models import (
    AllowCommands,
    MaxCalls,
    RequireIsolation,
    Running,
    Store,
    agreed,
    chosen_models,
    named_models,
)
from rrf_design.cli.output import DEFAULT_FILE, AsJson, Quiet, Seed, default_file, print_json, say
from rrf_design.cli.run_results import certify_all, deliver, describe, tell_next, write_document, write_page


def register(app: typer.Typer) -> None:
    app.command("acquire")(acquire_verb)


def acquire_verb(
    context: typer.Context,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Problem file, or several: a data set under one budget; rrf.toml by default. None with --resume."
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            help="embedded, openai:NAME, transformers:NAME, scripted:FILE, replay:FILE; several as NAME=SPEC.",
        ),
    ] = None,
    budget: Annotated[
        float | None, typer.Option("--budget", help="In costs of the problem file; default: its own.")
    ] = None,
    store: Store = None,
    resume: Annotated[
        str | None, typer.Option("--resume", help="Go on with this run (or the beginning of its name, or last).")
    ] = None,
    data: Data = None,
    item: ItemId = None,
    limit: Limit = None,
    sample: Sample = None,
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            help="agnostic (default for problems): schedule fixed before any answer; adaptive: residuals may steer; triage"
            " (default for tables): what is missing or disputed, over all items, people last.",
        ),
    ] = None,
    batch: Annotated[int, typer.Option("--batch", help="Purchases decided on together.")] = 1,
    method: Annotated[
        str, typer.Option("--method", help="How the schedule is made: auto, greedy, optimal or witness.")
    ] = "auto",
    money: Annotated[
        float | None, typer.Option("--money", help="What the calls may really cost, by the listed prices or --prices.")
    ] = None,
    prices: Annotated[
        Path | None, typer.Option("--prices", help="Prices that go over the listed ones (.toml or .json).")
    ] = None,
    max_calls: MaxCalls = None,
    max_seconds: Annotated[
        float | None, typer.Option("--max-seconds", help="Ask nothing more after so much working time.")
    ] = None,
    min_gain: Annotated[
        float | None, typer.Option("--min-gain", help="Stop when a round gains less margin per cost.")
    ] = None,
    base_url: Annotated[str | None, typer.Option("--base-url", help="Server of an openai: model.")] = None,
    slots: Annotated[
        int | None, typer.Option("--slots", "--max-concurrency", help="Questions in flight at once.")
    ] = None,
    responses: Annotated[
        Path | None, typer.Option("--responses", help="Answers that exist already (.json, .jsonl, .csv).")
    ] = None,
    reviews: Annotated[
        list[Path] | None,
        typer.Option("--reviews", help="A review file that was filled in; with --policy several, the pilot's too."),
    ] = None,
    review_file: Annotated[
        Path | None, typer.Option("--review-file", help="Where to write open reviews (.csv or .jsonl).")
    ] = None,
    cache: Annotated[
        str | None,
        typer.Option("--cache", help="Folder of answers kept across runs, or off; default: your cache folder."),
    ] = None,
    doubt: Annotated[
        str, typer.Option("--doubt", help="After a crash, a paid call without outcome: again or skip.")
    ] = "again",
    allow_commands: AllowCommands = False,
    require_isolation: RequireIsolation = "seccomp",
    certificate: Annotated[
        Path | None, typer.Option("--certificate", help="Certify the result: a file, or a folder for a data set.")
    ] = None,
    report: Annotated[Path | None, typer.Option("--report", help="Write the run's page here (.html).")] = None,
    outputs: Outputs = None,
    review: ReviewFile = None,
    require_share: RequireShare = None,
    junit: Annotated[
        Path | None,
        typer.Option("--junit", help="Write the verdicts as JUnit XML: a field that is not certified fails."),
    ] = None,
    policy: Annotated[
        Path | None, typer.Option("--policy", help="Run a pilot's policy on the other items of a recipe's table.")
    ] = None,
    batch_api: Annotated[
        bool,
        typer.Option(
            "--batch-api", help="Hand questions in as a batch (half the price, up to a day); --resume collects them."
        ),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Spend without being asked, where neither --budget nor --money says how much.")
    ] = False,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run the loop, live: buy answers and checks until a stopping rule fires, then repair.

    With a recipe, over every row of its table under one budget; --responses takes recorded answers instead of a model.

    Example: rrf-design acquire problem.toml --model embedded --budget 5

    Example: rrf-design acquire recipe.toml --data table.csv --responses answers.jsonl --budget 60 -o delivered.csv
    """
    from rrf_design.acquisition import Limits, Strategy, Surroundings
    from rrf_design.acquisition import acquire as run_loop
    from rrf_design.cli.run_progress import RunEvents, RunProgress
    from rrf_design.handover.outputs import check_outputs, spare_inputs
    from rrf_design.models.cache import folder_of

    if policy is not None:
        from rrf_design.cli.under_policy import acquire_under_policy, refuse_other_options

        refuse_other_options(context, files or [])
        acquire_under_policy(
            (files or [default_file()])[0],
            policy,
            data=data,
            responses=responses,
            live=chosen_models(
                model,
                store,
                base_url=base_url,
                slots=slots,
                cache=cache,
                money=money,
                prices=prices,
                yes=yes,
                quiet=quiet,
                as_json=as_json,
                running=Running(max_calls, budget, allow_commands=allow_commands, isolation=require_isolation),
                responses=responses,
            ),
            outputs=outputs or [],
            review_file=review_file,
            reviews=reviews or (),
            quiet=quiet,
            as_json=as_json,
        )
    files = files or _own_file(resume, data, responses, review, require_share, *_not_json(outputs))
    table_of = None
    if files and len(files) == 1 and is_dataset(files[0], data):
        table_of = open_dataset(files[0], data, item=item, limit=limit, sample=sample, seed=seed)
        check_outputs(outputs or [])
        spare_inputs(outputs or [], table_of, files[0], data, responses)
    else:
        only_with_tables(data=data, item=item, limit=limit, sample=sample, review=review, require_share=require_share)
    out = one_document(outputs) if table_of is None else None
    problem: Any = table_of
    known: Any = responses
    if table_of is None:
        problem, known = _problems(files or [], responses)
    chosen = mode or ("agnostic" if table_of is None else "triage")
    options: dict[str, Any] = {"base_url": base_url, "slots": slots}
    progress = None if quiet else RunEvents() if as_json else RunProgress()
    result = run_loop(
        problem,
        named_models(model or []),
        budget=budget,
        store=store,
        resume=resume,
        limits=Limits(max_calls, max_seconds, min_gain, money),
        strategy=Strategy(chosen, batch, method=method, doubt=doubt, seed=seed, batch_api=batch_api),
        surroundings=Surroundings(
            responses=known,
            reviews=one_of(reviews, "--reviews"),
            review_file=review_file,
            prices=prices,
            cache=folder_of(cache),
            model_options={name: value for name, value in options.items() if value is not None},
            allow_commands=allow_commands,
            isolation=require_isolation,
            consent=lambda spending, said: agreed(spending, said=said or yes, quiet=quiet),
            progress=progress,
        ),
    )
    if progress is not None:
        progress.close()
    if certificate is not None and result.stopped_because not in ("paused", "pending"):
        certify_all(result, certificate)
    if report is not None:
        write_page(result, report, store)
    if junit is not None:
        from rrf_design.documents.junit import run_cases, write_junit

        write_junit(junit, "rrf-design acquire", run_cases(result.to_json()))
    if table_of is not None:
        delivery = deliver(table_of, result, outputs or [], review, store=store, quiet=quiet)
        if as_json:
            print_json(result.to_json())
        else:
            say(
                f"run {result.run}: spent {result.spent:g}; {result.calls} model calls; {result.open_reviews} open reviews"
            )
            describe_delivery(delivery)
            tell_next(result, store=store, review_file=review_file, of_table=True)
        raise typer.Exit(0 if result.finished and share_holds(delivery, require_share) else 1)
    if out is not None:
        write_document(out, result)
    if as_json:
        print_json(result.to_json())
    else:
        describe(result)
        tell_next(result, store=store, review_file=review_file)
    raise typer.Exit(0 if result.certified else 1)


def _not_json(outputs: list[Path] | None) -> list[Path]:
    return [path for path in outputs or () if path.suffix.lower() != ".json"]


def _own_file(resume: str | None, *of_table: Any) -> list[Path]:
    """The folder's own file where none is named: a run is resumed from its journal alone, unless something of the table is asked for."""
    asked = [option for option in of_table if option is not None]
    if resume is not None and not asked:
        return []
    if resume is not None and not DEFAULT_FILE.is_file():
        from rrf_design.errors import InputError

        raise InputError(
            f"{asked[0]}: a run is resumed from its journal, which has no table; name the run's own FILE too"
            " (of a single problem -o is its JSON document: .json)"
        )
    return [default_file()]


def _problems(files: list[Path], responses: Path | None) -> tuple[Any, Any]:
    from rrf_design.errors import InputError
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
    from rrf_design.errors import InputError
    from rrf_design.repairing import read_responses

    fields = read_responses(problem, path)
    if len(fields) != 1:
        raise InputError(f"{path}: holds {len(fields)} fields, one is needed")
    return dict(fields[0].values)
