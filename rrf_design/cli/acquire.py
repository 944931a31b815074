"""rrf-design acquire: run the loop, live."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rrf_design.cli.output import AsJson, Quiet, Seed, note, print_json, say, table

if TYPE_CHECKING:
    from rrf_design.acquisition import Acquisition
    from rrf_design.acquisition.journal import Event

Store = Annotated[
    str | None,
    typer.Option("--store", help="Journal: a file, sqlite:///FILE or postgresql://...; default rrf-runs.sqlite here."),
]


def register(app: typer.Typer) -> None:
    app.command("acquire")(acquire)


def acquire(
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="Problem file, or several: a data set under one budget. None with --resume."),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option("--model", help="embedded, openai:NAME, transformers:NAME, scripted:FILE, replay:FILE."),
    ] = None,
    budget: Annotated[
        float | None, typer.Option("--budget", help="In costs of the problem file; default: its own.")
    ] = None,
    store: Store = None,
    resume: Annotated[
        str | None, typer.Option("--resume", help="Go on with this run (or the beginning of its name, or last).")
    ] = None,
    mode: Annotated[
        str, typer.Option("--mode", help="agnostic: schedule fixed before any answer; adaptive: residuals may steer.")
    ] = "agnostic",
    batch: Annotated[int, typer.Option("--batch", help="Purchases decided on together.")] = 1,
    method: Annotated[
        str, typer.Option("--method", help="How the schedule is made: auto, greedy, optimal or witness.")
    ] = "auto",
    money: Annotated[
        float | None, typer.Option("--money", help="What the calls may really cost, by the price table.")
    ] = None,
    prices: Annotated[Path | None, typer.Option("--prices", help="Price table (.toml or .json).")] = None,
    max_calls: Annotated[
        int | None, typer.Option("--max-calls", help="Stop after so many model calls (a round under way is finished).")
    ] = None,
    max_seconds: Annotated[float | None, typer.Option("--max-seconds", help="Stop after so much working time.")] = None,
    min_gain: Annotated[
        float | None, typer.Option("--min-gain", help="Stop when a round gains less margin per cost.")
    ] = None,
    base_url: Annotated[str | None, typer.Option("--base-url", help="Server of an openai: model.")] = None,
    slots: Annotated[int | None, typer.Option("--slots", help="Questions in flight at once.")] = None,
    responses: Annotated[
        Path | None, typer.Option("--responses", help="Answers that exist already (.json, .jsonl, .csv).")
    ] = None,
    reviews: Annotated[Path | None, typer.Option("--reviews", help="A review file that was filled in.")] = None,
    review_file: Annotated[
        Path | None, typer.Option("--review-file", help="Where to write open reviews (.csv or .jsonl).")
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
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the run's document here (.json).")] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run the loop, live: buy answers and checks until a stopping rule fires, then repair.

    Example: rrf-design acquire problem.toml --model embedded --budget 5
    """
    from rrf_design.acquisition import acquire as run_loop
    from rrf_design.cli.runs import need_journal
    from rrf_design.errors import InputError

    if not files and resume is None:
        raise InputError("give a problem file, or the run to go on with (--resume RUN)")
    if resume is not None:
        need_journal(store)
    problem, responses_by_item = _problems(files or [], responses)
    options: dict[str, Any] = {"base_url": base_url, "slots": slots}
    result = run_loop(
        problem,
        model,
        budget=budget,
        store=store,
        resume=resume,
        mode=mode,
        batch=batch,
        stop=_rules(max_calls, max_seconds, min_gain),
        method=method,
        money=money,
        prices=prices,
        responses=responses_by_item,
        reviews=reviews,
        review_file=review_file,
        allow_commands=allow_commands,
        isolation=require_isolation,
        doubt=doubt,
        seed=seed,
        model_options={name: value for name, value in options.items() if value is not None},
        progress=None if quiet or as_json else _Progress(),
    )
    if out is not None:
        import json

        from rrf_design.files import write_text

        write_text(out, json.dumps(result.to_json(), ensure_ascii=False, indent=1) + "\n")
    if certificate is not None and result.stopped_because != "paused":
        certify_all(result, certificate)
    if report is not None:
        from rrf_design.reporting import write_report

        write_report(result, report, problem={entry.item: entry.problem for entry in result.items})
    if as_json:
        print_json(result.to_json())
    else:
        describe(result)
        if result.open_reviews:
            say(
                f"{result.open_reviews} reviews are open: write them with --review-file, read them back with --reviews."
            )
    raise typer.Exit(0 if result.reached else 1)


def describe(result: Acquisition) -> None:
    """A run for people."""
    detail = f" ({result.detail})" if result.detail and len(result.detail) < 200 else ""
    say(f"run {result.run}: {result.stopped_because}{detail}")
    lost = f", of it {result.lost:g} lost to a crash" if result.lost else ""
    money = f"; money {result.money:.6g}" if result.money else ""
    say(f"spent {result.spent:g}{lost}{money}; {len(result.purchases)} purchases, {result.calls} model calls")
    rows = [
        (
            entry.item or entry.name,
            f"{entry.gamma_lower:.4g}",
            "–" if entry.goal is None else f"{entry.goal:.4g}",
            _wrong(entry.repair),
            entry.stopped_because,
        )
        for entry in result.items[:40]
    ]
    table("", ["field", "certified margin", "goal", "wrong answers", "stopped because"], rows, right=[1, 2])
    if len(result.items) > 40:
        say(f"… and {len(result.items) - 40} more fields (--json has them all)")
    if len(result.items) == 1 and result.repaired:
        failed, answers = result.items[0].failed, result.items[0].answers
        shown = [
            (node, _vector(answers.get(node)) or failed.get(node, ""), _vector(value) or "undetermined")
            for node, value in result.repaired.items()
        ]
        table("", ["node", "answer", "repaired"], shown)
    if result.stopped_because == "paused":
        say(f"Go on with: rrf-design acquire --resume {result.run}")


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
    found = ", ".join(repair["support"]) or "none"
    return found if repair.get("guaranteed") else f"{found} (not guaranteed)"


def _vector(value: Any) -> str:
    return "" if value is None else ", ".join(f"{x:g}" for x in value)


class _Progress:
    """One line per settled purchase on standard error."""

    def __call__(self, event: Event) -> None:
        from rrf_design.acquisition.journal import Kind

        body = event.body
        name = f"{body['item']} " if body.get("item") else ""
        if event.kind is Kind.SETTLED:
            value = "" if body["value"] is None else f" = {_vector(body['value'])}"
            note(f"  {name}{body['name']}: {body['outcome']}{value}  [{body['price']:g}]")
        elif event.kind is Kind.ROUND and "gamma" in body:
            note(
                f"{name}margin {body['gamma']:.4g}, worst on {', '.join(body['support'])}; next: {', '.join(body['names'])}"
            )
        elif event.kind is Kind.DOUBT:
            note(f"  {name}{body['name']}: in doubt after a crash; {body['policy']}")
        elif event.kind is Kind.STOPPED:
            note(f"{name}stopped: {body['because']}")


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
    from rrf_design.repair import read_responses

    fields = read_responses(problem, path)
    if len(fields) != 1:
        raise InputError(f"{path}: holds {len(fields)} fields, one is needed")
    return dict(fields[0].values)


def _rules(max_calls: int | None, max_seconds: float | None, min_gain: float | None) -> Any:
    """None without options: the default of a new run, what a resumed one was begun with."""
    from rrf_design.acquisition import stopping

    if max_calls is None and max_seconds is None and min_gain is None:
        return None
    rule = stopping.default()
    if max_calls is not None:
        rule = rule | stopping.Calls(max_calls)
    if max_seconds is not None:
        rule = rule | stopping.Seconds(max_seconds)
    return rule if min_gain is None else rule | stopping.Gain(min_gain)
