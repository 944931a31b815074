"""rrf-design pilot: which way of running a table keeps the risk, proven on random items?"""

from __future__ import annotations

from contextlib import ExitStack
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rrf_design.cli import _options as options
from rrf_design.cli._live_models import Live
from rrf_design.cli.output import Printer, note, say, table
from rrf_design.documents import checked, read, write
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.questions import Dataset

SHOWN = 8
"""Proven policies on the screen; all of them are in the document and on its page."""


def pilot_verb(
    file: options.ProblemFile,
    responses: Annotated[
        Path | None,
        typer.Option("--responses", "-r", help="Recorded answers instead of a model, one a row (.jsonl, .csv ...)."),
    ] = None,
    data: options.Data = None,
    *,
    live: Live,
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
    review: options.ReviewPlace = None,
    review_file: options.ReviewWritten = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with what people wrote into the review file.")
    ] = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the policy here (.json).")] = None,
    seed: options.Seed = 0,
    cluster: options.Cluster = None,
    printer: Printer,
) -> int:
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
    from rrf_design.promises import CHECK_EVERYTHING, pilot, pilot_settings, write_reviews
    from rrf_design.studio.labels import how_to_answer, shown
    from rrf_design.studio.labels import review_file as review_labels

    review = review or review_file
    _refuse(forecast=forecast, guesses=(accuracy, agreed_wrong), output=output, review=review, resume=resume)
    with options.on_cluster(cluster), review_labels(review, "pilot", blind=True) as place:
        said = told_by_people(place, resume=resume)
        settings: dict[str, Any] = {
            "labels": labels,
            "risk": risk,
            "confidence": confidence,
            "statement": statement,
            "among": among,
            "order": order,
            "stratify": stratify,
            "sequential": sequential,
            "random_checks": random_checks,
            "aside": aside,
            "seed": seed,
        }
        dataset = options.Items(data).dataset(file)
        with live.models(printer, responses) as asked:
            if forecast:
                planned = pilot_settings(dataset, live=responses is None, **settings)
                return _forecast(dataset, responses, planned, accuracy, agreed_wrong, printer)
            found = pilot(
                dataset,
                asked if responses is None else responses,
                truths=said,
                before=_earlier(output),
                progress=None if printer.quiet else note,
                **settings,
            )
        if found.document is None:
            assert place is not None
            write_reviews(place, found.questions)
            wait = (
                f"{len(found.waiting):,} of {found.drawn:,} drawn items wait for their truth:"
                f" {how_to_answer(review)}, then repeat with --resume"
            )
            printer.result(lambda: {**found.to_json(), "review_file": shown(review or "")}, lambda: say(wait))
            return 1
    if output is not None:
        write(output, found.document)
    promise = dataset.recipe.promise
    budget = None if promise is None else promise.budget
    printer.result(found.to_json, lambda: _describe_pilot(found.to_json(), budget=budget, quiet=printer.quiet))
    return 1 if found.policy == CHECK_EVERYTHING else 0


def told_by_people(review: Path | None, *, resume: bool) -> dict[str, Any] | None:
    """What people wrote into the review file of a pilot or an audit; None without one."""
    from rrf_design.promises import check_review_file, read_reviews

    if review is None:
        return None
    check_review_file(review)
    return read_reviews(review) if resume or review.is_file() else {}


def _refuse(
    *, forecast: bool, guesses: tuple[float | None, ...], output: Path | None, review: str | None, resume: bool
) -> None:
    """InputError for options that do nothing beside the others."""
    if not forecast and any(guess is not None for guess in guesses):
        raise InputError("--accuracy and --agreed-wrong are guesses for a forecast; a pilot measures: add --forecast")
    if forecast and (output is not None or review is not None or resume):
        raise InputError("--forecast buys, labels and writes nothing: leave out -o, --review and --resume")
    if resume and review is None:
        raise InputError("--resume reads what people wrote; name the file with --review")


def _forecast(
    dataset: Dataset,
    responses: Path | None,
    settings: Any,
    accuracy: float | None,
    agreed_wrong: float | None,
    printer: Printer,
) -> int:
    """Print what pilots of several sizes could prove and cost; 1 where none pays."""
    from rrf_design.promises import NO_PILOT, NOTHING, forecast_pilot, plan_pilot
    from rrf_design.questions.answers import RecordedAnswers

    with ExitStack() as stack:
        recorded = responses and stack.enter_context(RecordedAnswers(dataset, responses, checks=True))
        plan = plan_pilot(dataset, recorded or NOTHING, settings, small=True)
        found = forecast_pilot(plan, agreed_wrong=agreed_wrong, accuracy=accuracy)
    printer.result(found, lambda: _describe_forecast(found))
    return 1 if found["advice"].startswith(NO_PILOT) else 0


def _earlier(output: Path | None) -> Any:
    """The policy that is there already; anything else there is not written over."""
    if output is None or not output.is_file():  # a pipe or a device has nothing to go on with
        return None
    document = read(output, what="policy")
    try:
        return checked(document, "rrf-policy", what="policy")
    except InputError as error:
        raise InputError(f"{output}: {error}; it is not written over") from None


def _describe_pilot(document: dict[str, Any], *, budget: float | None = None, quiet: bool = False) -> None:
    """The first screen is for whoever has to decide; what follows is for whoever asks why.

    `budget`: what the recipe promises to keep.
    """
    say(document["sentence"])
    if document["ladder"] is not None:
        say(f"Policy: {document['policy']} ({document['because']})")
    say(_in_figures(document))
    for words in _expected(document, budget):
        say(words)
    if quiet:
        return
    if document.get("stopped_because"):
        say(f"Stopped after {len(document['drawn']):,} labels: {document['stopped_because']}.")
    _proven(document)
    from rrf_design.promises import in_words

    for words in in_words(document["stronger"], document):
        say(words)
    say(f"Voided by: {document['voided_by']}.")
    _measured(document)
    _warnings(document)


def _in_figures(document: dict[str, Any]) -> str:
    """What the policy did with the items of the pilot."""
    from rrf_design.checker.promise_words import percent_about

    ladder = document["ladder"]
    if ladder is None:
        return f"A person checks every item, for {document['check_cost']:,.4g} each."
    kept = document["delivered_share"] * (1.0 - ladder["random_checks"])
    cost = f"for {document['cost_per_item']:,.4g} an item"
    if ladder["last"] != "person":
        priced = "an item that is withheld counted at its price ([ladder] withheld)"
        return f"On the pilot it delivers {percent_about(kept)} and withholds the rest, {cost}, {priced}."
    return (
        f"On the pilot it delivers {percent_about(kept)} without a person, {cost}; a check by a person costs"
        f" {document['check_cost']:,.4g}."
    )


def _expected(document: dict[str, Any], budget: float | None) -> list[str]:
    """What the rest of the table would come to, if it is like the pilot; against checking it all.

    Nothing where nobody could: the price of what is withheld is not paid.
    """
    rest = document["population"]["size"] - len(document["drawn"])
    cost = rest * document["cost_per_item"]
    if not rest or document["ladder"] is None or document["ladder"]["last"] != "person":
        return []
    everything = rest * document["check_cost"]
    found = [
        f"The other {rest:,} items are expected to cost about {cost:,.2f}, against {everything:,.2f} for checking all."
    ]
    if budget is not None and cost > budget:
        found.append(f"That is more than the budget of {budget:,.2f} ([promise] budget).")
    return found


def _proven(document: dict[str, Any]) -> None:
    chosen = sorted((entry for entry in document["policies"] if entry["proven"]), key=lambda e: float(e["cost"]))
    rows = [(e["policy"], f"{e['wrong']:,} of {e['counted']:,}", f"{e['cost']:,.4g}", "proven") for e in chosen[:SHOWN]]
    count = len(document["policies"])
    say(
        f"{count:,} {'policy' if count == 1 else 'policies'}, {len(chosen):,} proven; order of tests:"
        f" {document['choice']['ordered_by']}"
    )
    if rows:
        table("", ["policy", "wrong", "cost", ""], rows, right=[1, 2])
    if len(chosen) > SHOWN:
        more = len(chosen) - SHOWN
        say(f"… and {more:,} dearer {'one' if more == 1 else 'ones'}, in the policy (-o) and on its page (report).")


def _measured(document: dict[str, Any]) -> None:
    from rrf_design.checker.promise_words import plain_percent

    if document["measured"]["proposals"]:
        sure, rests = plain_percent(document["confidence"]), document["measured"].get("basis")
        basis = f"; {rests}" if rests else ""
        say(f"Measured, for the recipe if its author agrees (each bound for itself, with confidence {sure}{basis}):")
    for words in document["measured"]["proposals"]:
        say(f"- {words}")


def _warnings(document: dict[str, Any]) -> None:
    disputed = document["measured"]["disputed_gold"]
    if disputed:
        are = "1 truth is" if len(disputed) == 1 else f"{len(disputed):,} truths are"
        say(
            f"{are} disputed by strong agreement of the answers; look again at"
            f" {', '.join(disputed[:SHOWN])}{' …' if len(disputed) > SHOWN else ''}"
        )
    for entry in document["leaks"]:
        note(
            f"column {entry['column']!r} may show the truth of {_items(len(entry['items']))} of the pilot:"
            f" {entry['how']}"
        )
    if document["twins"]:
        ask = "asks" if len(document["twins"]) == 1 else "ask"
        note(
            f"{_items(len(document['twins']))} outside the pilot {ask} what an item of the pilot asks (but for id, case"
            " and spacing)"
        )


def _items(count: int) -> str:
    return "1 item" if count == 1 else f"{count:,} items"


def _describe_forecast(found: dict[str, Any]) -> None:
    """The advice first; then what it rests on."""
    from rrf_design.checker.promise_words import percent_about, percent_above, plain_percent

    risk, sure = plain_percent(found["risk"]), plain_percent(found["confidence"])
    say(f"Advice: {found['advice']}.")
    say(
        f"{found['population']:,} items; a risk of {risk} at confidence {sure} needs at least {found['least_labels']:,}"
        f" labels, none wrong; {found['labels']:,} labels prove {percent_above(Fraction(found['best_risk']))} at best."
    )
    everything = "Checking everything costs" if found["last"] == "person" else "Withholding everything counts as"
    say(f"{everything} {found['check_everything']:,.2f}, in the recipe's prices.")
    _forecast_table("", found["sizes"])
    if found["with_random_checks"] is not None and found["with_random_checks"][0]["expected_cost"] is not None:
        _forecast_table("with --random-checks", found["with_random_checks"])
    say(
        "Costs are of everything, pilot and rest, with what people check; where nothing is proven, everything is"
        " checked."
    )
    if found.get("aside"):
        say(
            f"Up to {found['aside']:,} items more are asked, without their truth, to make the order of tests (--aside);"
            " that is in what a pilot costs."
        )
    say(f"Expected from {found['expected_from']}.")
    if found["agreed_wrong"] is not None:
        limit = found["pays_up_to"]
        until = "would not pay even if none were" if limit is None else f"pays up to a guess of {percent_about(limit)}"
        say(
            f"It is guessed that {percent_about(found['agreed_wrong'])} of what all answers agree on is wrong"
            f" (--agreed-wrong); as expected, a pilot {until}."
        )


def _forecast_table(title: str, sizes: list[dict[str, Any]]) -> None:
    from rrf_design.checker.promise_words import percent_about

    def money(value: float | None) -> str:
        return "?" if value is None else f"{value:,.2f}"

    rows = [
        (
            f"{entry['labels']:,}",
            f"{entry['allowed_wrong']:,}" if entry["allowed_wrong"] >= 0 else "too few",
            money(entry["pilot_cost"]),
            money(entry["least_cost"]),
            money(entry["expected_cost"]),
            "?" if entry["chance"] is None else percent_about(entry["chance"], decimals=0),
        )
        for entry in sizes
    ]
    columns = ["labels", "wrong allowed", "pilot costs", "all of it, at least", "expected", "chance of a proof"]
    table(title, columns, rows, right=list(range(6)))
