"""rrf-design pilot: which way of running a table keeps the risk, proven on random items?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rrf_design.cli.live_models import (
    AllowCommands,
    BaseUrl,
    Cache,
    MaxCalls,
    Models,
    Money,
    Prices,
    RequireIsolation,
    Running,
    Slots,
    Store,
    Yes,
    chosen_models,
    finish,
)
from rrf_design.cli.options import AsJson, Data, ProblemFile, Quiet, Seed
from rrf_design.cli.output import note, print_json, say
from rrf_design.cli.pilot_forecast import describe_forecast
from rrf_design.cli.pilot_result import describe_pilot

if TYPE_CHECKING:
    from rrf_design.promises import PilotSettings
    from rrf_design.questions import Dataset


def pilot_verb(
    file: ProblemFile,
    responses: Annotated[
        Path | None,
        typer.Option("--responses", "-r", help="Recorded answers instead of a model, one a row (.jsonl, .csv ...)."),
    ] = None,
    data: Data = None,
    model: Models = None,
    store: Store = None,
    base_url: BaseUrl = None,
    slots: Slots = None,
    cache: Cache = None,
    money: Money = None,
    prices: Prices = None,
    yes: Yes = False,
    budget: Annotated[
        float | None, typer.Option("--budget", help="What answers and checks may cost, in the recipe's prices.")
    ] = None,
    max_calls: MaxCalls = None,
    allow_commands: AllowCommands = False,
    require_isolation: RequireIsolation = "seccomp",
    labels: Annotated[
        int | None, typer.Option("--labels", help="Items to draw; default: [promise] pilot, else by rule of thumb.")
    ] = None,
    risk: Annotated[
        float | None, typer.Option("--risk", help="Share of wrong values to keep below; default: [promise] risk.")
    ] = None,
    confidence: Annotated[float | None, typer.Option("--confidence", help="Default: [promise], else 0.95.")] = None,
    among: Annotated[
        str | None,
        typer.Option(
            "--among",
            help=(
                "Denominator: all items, or those delivered without a person. Default: all if a person decides the"
                " rest."
            ),
        ),
    ] = None,
    statement: Annotated[
        str,
        typer.Option(
            "--statement", help="fresh (items drawn like the pilot's), policy, file or rest (rows outside the pilot)."
        ),
    ] = "fresh",
    order: Annotated[
        str, typer.Option("--order", help="Of the tests, fixed beforehand: front (from answers, without gold) or holm.")
    ] = "front",
    stratify: Annotated[str | None, typer.Option("--stratify", help="Draw in proportion over this column.")] = None,
    sequential: Annotated[
        bool,
        typer.Option(
            "--sequential",
            help="Tests that hold at every moment: the pilot grows to --labels and stops when more would not pay.",
        ),
    ] = False,
    random_checks: Annotated[
        bool,
        typer.Option(
            "--random-checks",
            help="Also try policies that have a random share checked by a person: for small risks and few labels.",
        ),
    ] = False,
    aside: Annotated[
        int | None,
        typer.Option(
            "--aside", help="Items whose answers, without truth, make the order of tests; default 400, 100 live."
        ),
    ] = None,
    forecast: Annotated[
        bool, typer.Option("--forecast", help="Only say what pilots could prove and cost; reads no gold.")
    ] = False,
    accuracy: Annotated[
        float | None,
        typer.Option("--accuracy", help="For --forecast without answers: a guess how often an answer is right."),
    ] = None,
    agreed_wrong: Annotated[
        float | None,
        typer.Option(
            "--agreed-wrong",
            help="For --forecast: a guess how many answers on which all agree are wrong; default 0.01.",
        ),
    ] = None,
    review_file: Annotated[
        Path | None, typer.Option("--review-file", help="Truth by people: written for them, read back with --resume.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with what people wrote into the review file.")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the policy here (.json).")] = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """How should the table be run: the cheapest policy that is proven to keep the risk, on random
    items with known truth.

    Live, every answer of the drawn items is bought once; the same command again buys nothing twice.
    Exit code 0 when a policy is proven; 1 when everything has to be checked, or people have to say
    the truth first.

    Example: rrf-design pilot rrf.toml --responses answers.jsonl --labels 200 --risk 0.05 -o
    policy.json

    Example: rrf-design pilot rrf.toml --data invoices.csv --model openai:NAME --labels 200 --risk
    0.05 -o policy.json
    """
    from rrf_design.cli.options import open_dataset
    from rrf_design.documents import write
    from rrf_design.errors import InputError
    from rrf_design.promises import CHECK_EVERYTHING, pilot, pilot_settings
    from rrf_design.promises.reviews import check_review_file, read_reviews, write_reviews

    if not forecast and (accuracy is not None or agreed_wrong is not None):
        raise InputError("--accuracy and --agreed-wrong are guesses for a forecast; a pilot measures: add --forecast")
    if forecast and (output is not None or review_file is not None or resume):
        raise InputError("--forecast buys, labels and writes nothing: leave out -o, --review-file and --resume")
    if resume and review_file is None:
        raise InputError("--resume reads what people wrote; name the file with --review-file")
    if review_file is not None:
        check_review_file(review_file)
    dataset = open_dataset(file, data)
    live = chosen_models(
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
    )
    if responses is not None and live.model is not None:
        raise InputError("give --responses or --model, not both: a pilot's answers have one source")
    settings: dict[str, Any] = dict(  # noqa: C408
        labels=labels,
        risk=risk,
        confidence=confidence,
        statement=statement,
        among=among,
        order=order,
        stratify=stratify,
        sequential=sequential,
        random_checks=random_checks,
        aside=aside,
        seed=seed,
    )
    before, said = _earlier(output), None
    if review_file is not None:
        said = read_reviews(review_file) if resume else {}
    try:
        if forecast:
            planned = pilot_settings(dataset, live=responses is None, **settings)
            _forecast(dataset, responses, planned, accuracy, agreed_wrong, as_json=as_json)
        found = pilot(
            dataset,
            live if responses is None else responses,
            truths=said,
            before=before,
            progress=None if quiet else note,
            **settings,
        )
    finally:
        finish(live)
    if found.document is None:
        assert review_file is not None
        write_reviews(review_file, found.questions)
        if as_json:
            print_json({**found.to_json(), "review_file": str(review_file)})
        else:
            say(
                f"{len(found.waiting):,} of {found.drawn:,} drawn items wait for their truth: fill in the column value"
                f" in {review_file} (? where nobody can tell), then repeat with --resume"
            )
        raise typer.Exit(1)
    if output is not None:
        write(output, found.document)
    if as_json:
        print_json(found.to_json())
    else:
        promise = dataset.recipe.promise
        describe_pilot(found.to_json(), budget=None if promise is None else promise.budget, quiet=quiet)
    raise typer.Exit(1 if found.policy == CHECK_EVERYTHING else 0)


def _forecast(
    dataset: Dataset,
    responses: Path | None,
    settings: PilotSettings,
    accuracy: float | None,
    agreed_wrong: float | None,
    *,
    as_json: bool,
) -> None:
    """Print what pilots of several sizes could prove and cost; exit with 1 where none pays."""
    from contextlib import ExitStack

    from rrf_design.promises import forecast_pilot, plan_pilot
    from rrf_design.promises.buying import NOTHING
    from rrf_design.promises.forecast import NO_PILOT
    from rrf_design.questions.answers import RecordedAnswers

    with ExitStack() as stack:
        recorded = responses and stack.enter_context(RecordedAnswers(dataset, responses, checks=True))
        plan = plan_pilot(dataset, recorded or NOTHING, settings, small=True)
        found = forecast_pilot(plan, agreed_wrong=agreed_wrong, accuracy=accuracy)
    print_json(found) if as_json else describe_forecast(found)
    raise typer.Exit(1 if found["advice"].startswith(NO_PILOT) else 0)


def _earlier(output: Path | None) -> Any:
    """The policy that is there already; anything else there is not written over."""
    from rrf_design.documents import checked, read
    from rrf_design.errors import InputError

    if output is None or not output.is_file():  # a pipe or a device has nothing to go on with
        return None
    document = read(output, what="policy")
    try:
        return checked(document, "rrf-policy", what="policy")
    except InputError as error:
        raise InputError(f"{output}: {error}; it is not written over") from None
