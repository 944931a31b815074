"""acquire --policy: run a proven policy on the items outside its pilot, and deliver the table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from rrf_design.cli.live_models import finish
from rrf_design.cli.output import print_json, say

if TYPE_CHECKING:
    from rrf_design.promises.buying import LiveModels
    from rrf_design.promises.running import PolicyRun


TAKEN = (
    *(
        "files",
        "policy",
        "data",
        "responses",
        "model",
        "store",
        "base_url",
        "slots",
        "cache",
        "money",
        "prices",
        "yes",
        "quiet",
    ),
    *("max_calls", "budget", "allow_commands", "require_isolation", "outputs", "review_file", "reviews", "as_json"),
)
"""What a run under a policy takes of the options of `acquire`."""
INSTEAD = {
    "report": "write the page with -o PAGE.html",
    "review": "write what waits for people with --review-file",
    "resume": "repeat the command; it buys nothing twice",
    "seed": "the policy has the seed of its pilot",
    "item": "it runs on all items outside the pilot",
    "limit": "it runs on all items outside the pilot",
    "sample": "it runs on all items outside the pilot",
}


def refuse_other_options(context: typer.Context, files: Sequence[Path]) -> None:
    """InputError for what the loop takes and a policy does not: the policy has fixed it, and an
    option that does nothing would mislead.
    """
    from rrf_design.errors import InputError

    if len(files) > 1:
        raise InputError(f"--policy runs one recipe on its table; {len(files)} files are named")
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if name not in TAKEN and source is not None and source.name == "COMMANDLINE":
            why = INSTEAD.get(name, "the policy says how items are run")
            raise InputError(f"{parameter.opts[0]} does nothing beside --policy: {why}")


def acquire_under_policy(
    file: Path,
    policy: Path,
    *,
    data: Path | None,
    responses: Path | None,
    live: LiveModels,
    outputs: Sequence[Path] = (),
    review_file: Path | None = None,
    reviews: Sequence[Path] = (),
    quiet: bool = False,
    as_json: bool = False,
) -> None:
    """Exit code 0 when every item is settled as the policy says (delivered, decided, or withheld
    where it withholds); 1 while some wait for a person, or where it costs more than [promise]
    budget.
    """
    from rrf_design.cli.options import open_dataset
    from rrf_design.documents import checked, read, write
    from rrf_design.errors import InputError
    from rrf_design.promises import run_policy
    from rrf_design.promises.reviews import check_review_file, joined_reviews, write_reviews
    from rrf_design.questions.answers import RecordedAnswers
    from rrf_design.tables.delivered import FORMS, deliver, spare_inputs

    if responses is not None and live.model is not None:
        raise InputError("give --responses or --model, not both: a run under a policy has one source of answers")
    for path in outputs:
        if path.suffix.lower() not in (".json", ".html", *FORMS):
            raise InputError(
                f"{path}: -o ends in .json (the whole result), .html (the page) or {', '.join(FORMS)} (the delivered"
                " table)"
            )
    dataset = open_dataset(file, data)
    spare_inputs(outputs, dataset, file, policy, responses, data, *reviews)
    if review_file is not None:
        check_review_file(review_file)
    said = joined_reviews(reviews, only=list(dataset))
    document = read(policy, what="policy")
    try:
        checked(document, "rrf-policy", what="policy")
    except InputError as error:
        raise InputError(f"{policy}: {error}") from None
    if responses is None:
        try:
            run = run_policy(dataset, live, document, reviews=said)
        finally:
            finish(live)
    else:
        with RecordedAnswers(dataset, responses, checks=True) as answers:
            run = run_policy(dataset, answers, document, reviews=said)
    for path in outputs:
        if path.suffix.lower() == ".json":
            write(path, run.to_json())
        elif path.suffix.lower() == ".html":
            from rrf_design.reporting import write_report

            write_report(run.to_json(), path, redone=True)
        else:
            deliver(path, run.delivery.cells(), dataset.columns)
    if review_file is not None:
        write_reviews(review_file, run.reviews)
    if as_json:
        print_json(run.to_json())
    else:
        say(run.sentence)
        _describe(run, review_file, quiet=quiet)
    raise typer.Exit(0 if run.complete and not run.totals.over_budget else 1)


def _describe(run: PolicyRun, review_file: Path | None, *, quiet: bool) -> None:
    """What is still to be done, and what the sentence does not count."""
    if run.reviews:
        how = f"in {review_file}" if review_file is not None else "written with --review-file"
        wait = "1 item waits" if len(run.reviews) == 1 else f"{len(run.reviews):,} items wait"
        say(f"{wait} for a person: {how}, read back with --reviews once the column value is filled in")
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
