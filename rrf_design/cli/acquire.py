"""rrf-design acquire: run the loop, live."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rrf_design.amounts import digits
from rrf_design.cli.items import (
    Data,
    ItemId,
    Limit,
    Outputs,
    RequireShare,
    ReviewFile,
    Sample,
    describe_delivery,
    hand_over,
    is_dataset,
    one_document,
    only_with_tables,
    open_dataset,
    share_holds,
)
from rrf_design.cli.output import AsJson, Quiet, Seed, default_file, note, print_json, say, table

if TYPE_CHECKING:
    from rrf_design.acquisition import Acquisition
    from rrf_design.models.spending import Spending
    from rrf_design.questions import Dataset

_NAMED = re.compile(r"([^=:/\\]+)=(.+)")
Store = Annotated[
    str | None,
    typer.Option("--store", help="Journal: a file, sqlite:///FILE or postgresql://...; default rrf-runs.sqlite here."),
]


def register(app: typer.Typer) -> None:
    app.command("acquire")(acquire)


def acquire(
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
    max_calls: Annotated[
        int | None, typer.Option("--max-calls", help="Make at most so many model calls, repeated ones included.")
    ] = None,
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
    reviews: Annotated[Path | None, typer.Option("--reviews", help="A review file that was filled in.")] = None,
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
    allow_commands: Annotated[
        bool, typer.Option("--allow-commands", help="Let anchors run commands of the problem file.")
    ] = False,
    require_isolation: Annotated[
        str,
        typer.Option("--require-isolation", help="Weakest sandbox for programs: limits, seccomp, seccomp+namespaces."),
    ] = "seccomp",
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
    from rrf_design.handover.outputs import check_outputs
    from rrf_design.models.cache import folder_of

    if policy is not None:
        from rrf_design.cli.live_models import live_models
        from rrf_design.cli.under_policy import acquire_under_policy

        acquire_under_policy(
            (files or [default_file()])[0],
            policy,
            data=data,
            responses=responses,
            live=live_models(
                model,
                store,
                base_url=base_url,
                slots=slots,
                cache=cache,
                money=money,
                prices=prices,
                yes=yes,
                quiet=quiet,
            ),
            outputs=outputs or [],
            review_file=review_file,
            reviews=reviews,
            as_json=as_json,
        )
    of_table = (data, responses, review, require_share, *(p for p in outputs or () if p.suffix.lower() != ".json"))
    if not files and (resume is None or any(option is not None for option in of_table)):
        files = [default_file()]  # a run is resumed from its journal alone, unless something of the table is asked for
    table_of = None
    if files and len(files) == 1 and is_dataset(files[0], data):
        table_of = open_dataset(files[0], data, item=item, limit=limit, sample=sample, seed=seed)
        check_outputs(outputs or [])
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
            reviews=reviews,
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
        _write_page(result, report, store)
    if junit is not None:
        from rrf_design.documents.junit import run_cases, write_junit

        write_junit(junit, "rrf-design acquire", run_cases(result.to_json()))
    if table_of is not None:
        written = [path for path in outputs or () if path.suffix.lower() == ".html"]
        for path in written:
            _write_page(result, path, store)
            if not quiet:
                note(f"written to {path}")
        rest = [path for path in outputs or () if path not in written]
        raise typer.Exit(_deliver(table_of, result, rest, review, share=require_share, quiet=quiet, as_json=as_json))
    if out is not None:
        from rrf_design.files import write_text
        from rrf_design.texts import json_text

        write_text(out, json_text(result.to_json(), indent=1) + "\n")
    if as_json:
        print_json(result.to_json())
    else:
        describe(result)
        if result.stopped_because in ("paused", "pending"):
            say(f"Go on with: rrf-design acquire --resume {result.run}{_where(store)}")
        if result.open_reviews:
            say(
                f"{result.open_reviews} reviews are open: write them with --review-file, read them back with --reviews."
            )
    raise typer.Exit(0 if result.certified else 1)


def _deliver(
    table_of: Dataset,
    result: Acquisition,
    outputs: list[Path],
    review: Path | None,
    *,
    share: float | None,
    quiet: bool,
    as_json: bool,
) -> int:
    """Hand over what a run over a table came to; `.json` is the run's own document."""
    from rrf_design.files import write_text
    from rrf_design.handover import delivery_of
    from rrf_design.texts import json_text

    delivery = delivery_of(table_of, result)
    for path in outputs:
        if path.suffix.lower() == ".json":
            write_text(path, json_text(result.to_json(), indent=1) + "\n")
            if not quiet:
                note(f"written to {path}")
    hand_over(delivery, [p for p in outputs if p.suffix.lower() != ".json"], review=review, quiet=quiet)
    if as_json:
        print_json(result.to_json())
    else:
        say(f"run {result.run}: spent {result.spent:g}; {result.calls} model calls; {result.open_reviews} open reviews")
        describe_delivery(delivery)
        if result.open_reviews:
            say(
                f"{result.open_reviews} questions wait for people: write them with --review-file, then go on with:"
                f" rrf-design acquire ... --resume {result.run} --reviews FILE"
            )
    return 0 if result.finished and share_holds(delivery, share) else 1


def _write_page(result: Acquisition, path: Path, store: str | None) -> None:
    from rrf_design.acquisition import answer_log
    from rrf_design.reporting import write_report

    problems = {entry.item: entry.problem for entry in result.items}
    write_report(result, path, problem=problems, answers=answer_log(result.run, store=store))


def agreed(spending: Spending, *, said: bool, quiet: bool) -> bool:
    """Whether a run may begin: it costs nothing, a limit was set, or the user says so now, at a terminal."""
    from rrf_design.errors import InputError
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
    from rrf_design.errors import InputError

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


def describe(result: Acquisition) -> None:
    """A run for people."""
    detail = f" ({result.detail})" if result.detail and len(result.detail) < 200 else ""
    say(f"run {result.run}: {result.stopped_because}{detail}")
    lost = f", of it {digits(result.lost)} lost to a crash" if result.lost else ""
    money = f"; money {result.money:.6g}" if result.money else ""
    say(f"spent {digits(result.spent)}{lost}{money}; {len(result.purchases)} purchases, {result.calls} model calls")
    if len(result.models) > 1:
        cells = [
            (
                name,
                *(str(used[key]) for key in ("answers", "calls", "input_tokens", "output_tokens")),
                digits(used["money"]),
            )
            for name, used in result.models.items()
        ]
        table("", ["model", "answers", "calls", "tokens in", "tokens out", "money"], cells, right=[1, 2, 3, 4, 5])
    rows = [
        (
            entry.item or entry.name,
            f"{entry.gamma_lower:.4g}",
            "–" if entry.goal is None else f"{entry.goal:.4g}",
            entry.verdict.value,
            _wrong(entry.repair),
            entry.stopped_because,
        )
        for entry in result.items[:40]
    ]
    table("", ["field", "certified margin", "goal", "verdict", "wrong answers", "stopped because"], rows, right=[1, 2])
    if len(result.items) > 40:
        say(f"… and {len(result.items) - 40} more fields (--json has them all)")
    if len(result.items) == 1:
        reason = (result.items[0].repair or {}).get("reason", "")
        premise = f", assuming that {result.items[0].assumes}" if result.items[0].assumes else ""
        say(f"Verdict: {result.verdict}{premise}{f' ({reason})' if reason else ''}")
    else:
        say("Verdicts: " + ", ".join(f"{count} {name}" for name, count in result.verdicts.items() if count))
    if len(result.items) == 1 and result.repaired:
        failed, answers = result.items[0].failed, result.items[0].answers
        shown = [
            (node, _vector(answers.get(node)) or failed.get(node, ""), _vector(value) or "undetermined")
            for node, value in result.repaired.items()
        ]
        table("", ["node", "answer", "repaired"], shown)


def _where(store: str | None) -> str:
    """The option that finds the run again; never with a password in it."""
    from rrf_design.acquisition.redaction import without_password

    return "" if store is None else f" --store {without_password(store)}"


def certify_all(result: Acquisition, path: Path) -> list[Path]:
    """Write the certificates of a run's fields: one file for a single problem, a folder for a data set."""
    from rrf_design.errors import InputError

    if len(result.items) == 1 and result.items[0].item == "":
        result.items[0].certify().save(path)
        return [path]
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{path}: can't be made a folder for certificates ({error.strerror})") from None
    written = []
    for number, entry in enumerate(result.items, start=1):
        if entry.answers:
            safe = "".join(c if c.isalnum() else "-" for c in entry.item)[:40]
            written.append(path / f"{number:03d}-{safe}.json")
            entry.certify().save(written[-1])
    return written


def _wrong(repair: Any) -> str:
    if repair is None or repair.get("repaired") is None:
        return "" if repair is None else str(repair.get("reason", ""))
    if repair.get("verdict") == "contradicted":
        return "beyond repair"
    others = "not judged" if repair.get("decided_by") else "none"
    return ", ".join(repair["support"]) or others


def _vector(value: Any) -> str:
    return "" if value is None else ", ".join(map(digits, value))


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
