"""rrf-design pilot: which way of running a table keeps the risk, proven on random items?"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rrf_design.cli.items import Data
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
from rrf_design.cli.output import AsJson, ProblemFile, Quiet, Seed, note, print_json, say
from rrf_design.cli.pilot_forecast import describe_forecast
from rrf_design.cli.pilot_result import describe_pilot

if TYPE_CHECKING:
    from rrf_design.promises import PilotPlan, PilotSettings
    from rrf_design.promises.buying import LiveModels
    from rrf_design.questions import Dataset


def register(app: typer.Typer) -> None:
    app.command("pilot")(pilot_verb)


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
            help="Denominator: all items, or those delivered without a person. Default: all if a person decides the rest.",
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
    """How should the table be run: the cheapest policy that is proven to keep the risk, on random items with known truth.

    Live, every answer of the drawn items is bought once; the same command again buys nothing twice. Exit code 0 when a policy is proven; 1 when
    everything has to be checked, or people have to say the truth first.

    Example: rrf-design pilot rrf.toml --responses answers.jsonl --labels 200 --risk 0.05 -o policy.json

    Example: rrf-design pilot rrf.toml --data invoices.csv --model openai:NAME --labels 200 --risk 0.05 -o policy.json
    """
    from rrf_design.cli.items import open_dataset
    from rrf_design.documents import write
    from rrf_design.errors import InputError
    from rrf_design.promises import CHECK_EVERYTHING, PilotSettings, forecast_pilot
    from rrf_design.promises.draws_beside import other_pilots
    from rrf_design.promises.forecasting import NO_PILOT
    from rrf_design.promises.pilot_plans import OTHERS, settings_of
    from rrf_design.promises.reviews import check_review_file
    from rrf_design.risk import Among, Statement
    from rrf_design.risk.arguments import choice

    if not forecast and (accuracy is not None or agreed_wrong is not None):
        raise InputError("--accuracy and --agreed-wrong are guesses for a forecast; a pilot measures: add --forecast")
    if forecast and (output is not None or review_file is not None or resume):
        raise InputError("--forecast buys, labels and writes nothing: leave out -o, --review-file and --resume")
    if aside is not None and aside < 0:
        raise InputError(f"--aside {aside}: should be a number of items, 0 or more")
    if review_file is not None:
        check_review_file(review_file)
    dataset = open_dataset(file, data)
    size, wanted, sure = settings_of(dataset, labels=labels, risk=risk, confidence=confidence)
    settings = PilotSettings(
        labels=size,
        risk=wanted,
        confidence=sure,
        seed=seed,
        statement=choice(Statement, statement, "--statement"),
        among=None if among is None else choice(Among, among, "--among"),
        order=order,
        stratify=stratify,
        sequential=sequential,
        random_checks=random_checks,
        aside=aside if aside is not None else OTHERS if responses is not None else LIVE_ASIDE,
    )
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
    earlier = _earlier(output)
    with _Answers(dataset, responses, live) as answers:
        if forecast:
            found = forecast_pilot(answers.plan(settings, buy=False), agreed_wrong=agreed_wrong, accuracy=accuracy)
            print_json(found) if as_json else describe_forecast(found)
            raise typer.Exit(1 if found["advice"].startswith(NO_PILOT) else 0)
        document = _grow(answers, settings, earlier, review_file, resume=resume, as_json=as_json, quiet=quiet)
    if output is not None:
        write(output, document)
        others = [] if quiet else other_pilots(output, document)
        if others:
            note(
                f"beside it are other pilots of this table ({', '.join(others[:4])}{' …' if len(others) > 4 else ''}): what is chosen among several does not hold"
                " with the confidence of one"
            )
    if as_json:
        print_json(document)
    else:
        promise = dataset.recipe.promise
        describe_pilot(document, budget=None if promise is None else promise.budget, quiet=quiet)
    raise typer.Exit(1 if document["policy"] == CHECK_EVERYTHING else 0)


LIVE_ASIDE = 100


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


class _Answers:
    """Where the answers come from: a file that is there for all items, or models that are asked for the drawn ones."""

    def __init__(self, dataset: Dataset, responses: Path | None, live: LiveModels) -> None:
        from rrf_design.errors import InputError
        from rrf_design.promises.buying import NOTHING
        from rrf_design.questions.answers import RecordedAnswers

        if responses is not None and live.model is not None:
            raise InputError("give --responses or --model, not both: a pilot's answers have one source")
        self.dataset, self._live, self._bought = dataset, live, NOTHING
        self._recorded = None if responses is None else RecordedAnswers(dataset, responses, checks=True)

    @property
    def live(self) -> bool:
        return self._recorded is None

    def __enter__(self) -> _Answers:
        return self

    def __exit__(self, *exc: object) -> None:
        finish(self._live)
        if self._recorded is not None:
            self._recorded.__exit__(*exc)

    def go_on(self, before: Mapping[str, Any]) -> None:
        """With what an earlier look at this pilot bought; Refused where other models are asked now."""
        from rrf_design.promises.pilot_plans import checks_to_fetch
        from rrf_design.promises.recalling import recalled_pilot

        if self._recorded is None and before["models"] is not None:
            checks = checks_to_fetch(self.dataset)
            runs, models = before["runs"], before["models"]
            self._bought = recalled_pilot(self.dataset, self._live, runs, models=models, checks=checks)

    def plan(self, settings: PilotSettings, *, buy: bool = True) -> PilotPlan:
        from rrf_design.promises import plan_pilot
        from rrf_design.promises.buying import NOTHING
        from rrf_design.promises.pilot_plans import buy_pilot

        if self._recorded is not None:
            return plan_pilot(self.dataset, self._recorded, settings, small=not buy)
        if buy:
            self._bought = buy_pilot(self.dataset, settings, self._live, have=self._bought)
        return plan_pilot(self.dataset, self._bought if buy else NOTHING, settings, small=not buy)


def _grow(
    answers: _Answers,
    settings: PilotSettings,
    earlier: Any,
    review_file: Path | None,
    *,
    resume: bool,
    as_json: bool,
    quiet: bool,
) -> dict[str, Any]:
    """The policy of the last look: the only one, or the first after which more labels would not pay."""
    from dataclasses import replace

    from rrf_design.promises import policy_document, run_pilot
    from rrf_design.promises.growing import stages, why_stop
    from rrf_design.promises.looks import refuse_second_look
    from rrf_design.promises.pilot_plans import large_enough, most_aside

    large_enough(settings, len(answers.dataset))
    settings = replace(settings, aside=most_aside(settings, len(answers.dataset)))
    before = None if earlier is None else refuse_second_look(earlier, answers.plan(settings, buy=False))
    if before is not None:
        settings = replace(settings, aside=int(before["aside"]))
        answers.go_on(before)
    if review_file is None and answers.live:
        _truths(answers.plan(settings, buy=False), None, resume=resume, as_json=as_json)
    looks = stages(settings, already=0 if before is None else len(before["drawn"]))
    for look, following in zip(looks, [*looks[1:], None], strict=True):
        if len(looks) > 1 and not quiet:
            note(f"looking at {look.labels:,} labels, of {settings.labels:,} at most")
        plan = answers.plan(look)
        truths, source = _truths(plan, review_file, resume=resume, as_json=as_json)
        result = run_pilot(plan, truths, truth_source=source, before=before)
        document = policy_document(result)
        lost = [row.id for row in plan.pilot.rows if row.lost]
        if lost:
            items = "1 item" if len(lost) == 1 else f"{len(lost):,} items"
            note(
                f"calls failed for {items} of the pilot, {lost[0]!r} among them: what these would have answered is not known, so policies that ask it count them as wrong"
            )
        stop = None if following is None else why_stop(result, following.labels - look.labels)
        if stop is not None:
            return {**document, "stopped_because": stop}
        before = document
    return document


def _truths(plan: PilotPlan, review_file: Path | None, *, resume: bool, as_json: bool) -> tuple[Any, str]:
    """All truths of the drawn items; where some are missing, people are asked and the verb ends with 1."""
    from rrf_design.errors import InputError
    from rrf_design.promises import gold_truths
    from rrf_design.promises.reviews import read_reviews, row_text, write_reviews
    from rrf_design.promises.running import question_of
    from rrf_design.promises.truths import EXACT_CHECKS

    if resume and review_file is None:
        raise InputError("--resume reads what people wrote; name the file with --review-file")
    drawn = [plan.sheet.rows[place] for place in plan.drawn]
    said = read_reviews(review_file, only=[row.id for row in drawn]) if resume and review_file is not None else {}
    truths, missing = gold_truths(plan, said)
    column = plan.rule.column
    source = plan.rule.words(len(said)) or EXACT_CHECKS
    if not missing:
        return truths, source
    if review_file is None:
        where = "name a gold column in [data]" if column is None else f"fill in the gold column {column!r}"
        raise InputError(
            f"{len(missing):,} of {len(drawn):,} drawn items have no truth, {missing[0]!r} among them; {where}, or ask people with --review-file"
        )
    waiting = set(missing)
    asked = [row for row in drawn if row.id in waiting or row.id in said]
    write_reviews(review_file, [(row.id, question_of(row), row_text(row.item.cells, hidden=[column])) for row in asked])
    words = f"{len(missing):,} of {len(drawn):,} drawn items wait for their truth: fill in the column value in {review_file} (? where nobody can tell), then repeat with --resume"
    print_json({"waiting": len(missing), "drawn": len(drawn), "review_file": str(review_file)}) if as_json else say(
        words
    )
    raise typer.Exit(1)
