"""rrf-design acquire: run the loop, live."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from rrf_design.cli import options
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
from rrf_design.cli.output import describe_delivery, note, print_json, say, share_holds
from rrf_design.cli.run_results import (
    certify_all,
    deliver,
    describe,
    exit_code,
    tell_next,
    write_document,
    write_page,
)
from rrf_design.errors import InputError


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
    data: options.Data = None,
    item: options.ItemId = None,
    limit: options.Limit = None,
    sample: options.Sample = None,
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode",
            help=(
                "agnostic (default for problems): schedule fixed before any answer; adaptive: residuals may steer;"
                " triage"
                " (default for tables): what is missing or disputed, over all items, people last."
            ),
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
    base_url: options.BaseUrl = None,
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
    outputs: options.Outputs = None,
    review: options.ReviewFile = None,
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
    yes: Annotated[
        bool, typer.Option("--yes", help="Spend without being asked, where neither --budget nor --money says how much.")
    ] = False,
    seed: options.Seed = 0,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Run the loop, live: buy answers and checks until a stopping rule fires, then repair.

    With a recipe, over every row of its table under one budget; --responses takes recorded answers
    instead of a model.

    Example: rrf-design acquire problem.toml --model embedded --budget 5

    Example: rrf-design acquire recipe.toml --data table.csv --responses answers.jsonl --budget 60
    -o delivered.csv
    """
    from rrf_design.acquisition import acquire as run_loop
    from rrf_design.cli.run_progress import RunEvents, RunProgress
    from rrf_design.models.cache import folder_of
    from rrf_design.tables.delivered import check_outputs, spare_inputs

    if policy is not None:
        from rrf_design.cli.under_policy import acquire_under_policy, refuse_other_options

        refuse_other_options(context, files or [])
        acquire_under_policy(
            (files or [options.default_file()])[0],
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
    if files and len(files) == 1 and options.is_dataset(files[0], data):
        table_of = options.open_dataset(files[0], data, item=item, limit=limit, sample=sample, seed=seed)
        check_outputs(outputs or [])
        spare_inputs(outputs or [], table_of, files[0], data, responses)
    else:
        options.only_with_tables(
            data=data, item=item, limit=limit, sample=sample, review=review, require_share=require_share
        )
    out = options.one_document(outputs) if table_of is None else None
    problem: Any = table_of
    known: Any = responses
    if table_of is None:
        problem, known = _problems(files or [], responses)
    of_model: dict[str, Any] = {"base_url": base_url, "slots": slots}
    progress = None if quiet else RunEvents() if as_json else RunProgress()
    result = run_loop(
        problem,
        named_models(model or []),
        budget=budget,
        store=store,
        resume=resume,
        calls=max_calls,
        seconds=max_seconds,
        gain=min_gain,
        money=money,
        mode=mode,
        batch=batch,
        method=method,
        doubt=doubt,
        seed=seed,
        batch_api=batch_api,
        responses=known,
        reviews=options.one_of(reviews, "--reviews"),
        review_file=review_file,
        prices=prices,
        cache=folder_of(cache),
        model_options={name: value for name, value in of_model.items() if value is not None},
        allow_commands=allow_commands,
        isolation=require_isolation,
        consent=lambda spending, said: agreed(spending, said=said or yes, quiet=quiet),
        progress=progress,
    )
    if progress is not None:
        progress.close()
    if certificate is not None and result.stopped_because not in ("paused", "pending"):
        certify_all(result, certificate)
    if report is not None:
        write_page(result, report, store)
    if junit is not None:
        from rrf_design.documents import run_cases, write_junit

        write_junit(junit, "rrf-design acquire", run_cases(result.to_json()))
    if table_of is not None:
        delivery = deliver(table_of, result, outputs or [], review, store=store, quiet=quiet)
        of_table = {"--data": data, "--item": item, "--limit": limit, "--sample": sample, "--responses": responses}
        of_table |= {"--seed": seed if sample is not None else None}
        files_of = _table_words(files or [], of_table, outputs or [])
        if as_json:
            print_json(result.to_json())
            tell_next(result, store=store, review_file=review_file, table_of=files_of, tell=note)
        else:
            say(
                f"run {result.run}: spent {result.spent:g}; {result.calls} model calls; {result.open_reviews} open"
                " reviews"
            )
            describe_delivery(delivery)
            tell_next(result, store=store, review_file=review_file, table_of=files_of)
        raise typer.Exit(exit_code(result, well=result.finished and share_holds(delivery, require_share)))
    if out is not None:
        write_document(out, result)
    if as_json:
        print_json(result.to_json())
        tell_next(result, store=store, review_file=review_file, tell=note)
    else:
        describe(result)
        tell_next(result, store=store, review_file=review_file)
    raise typer.Exit(exit_code(result, well=result.passes))


def _table_words(files: list[Path], given: Mapping[str, Any], outputs: list[Path]) -> str:
    """The files of a run over a table and what was chosen of it, as they were given."""
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
