"""acquire --policy: run a proven policy on the items outside its pilot, and deliver the table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from rrf_design.cli.output import print_json, say

if TYPE_CHECKING:
    from rrf_design.promises.buying import LiveModels


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
    as_json: bool = False,
) -> None:
    """Exit code 0 when every item is settled as the policy says (delivered, decided, or withheld where it withholds); 1 while some wait for a person."""
    from rrf_design.cli.items import open_dataset
    from rrf_design.documents import checked, read, write
    from rrf_design.errors import InputError
    from rrf_design.promises import run_policy
    from rrf_design.promises.reviews import joined_reviews, write_reviews
    from rrf_design.questions.answers import RecordedAnswers
    from rrf_design.questions.delivery import FORMS, deliver

    if responses is not None and live.model is not None:
        raise InputError("give --responses or --model, not both: a run under a policy has one source of answers")
    for path in outputs:
        if path.suffix.lower() not in (".json", ".html", *FORMS):
            raise InputError(
                f"{path}: -o ends in .json (the whole result), .html (the page) or {', '.join(FORMS)} (the delivered table)"
            )
    dataset = open_dataset(file, data)
    said = joined_reviews(reviews)
    document = read(policy, what="policy")
    try:
        checked(document, "rrf-policy", what="policy")
    except InputError as error:
        raise InputError(f"{policy}: {error}") from None
    if responses is None:
        run = run_policy(dataset, live, document, reviews=said)
    else:
        with RecordedAnswers(dataset, responses, checks=True) as answers:
            run = run_policy(dataset, answers, document, reviews=said)
    for path in outputs:
        if path.suffix.lower() == ".json":
            write(path, run.to_json())
        elif path.suffix.lower() == ".html":
            from rrf_design.reporting import write_report

            write_report(run.to_json(), path)
        else:
            deliver(path, run.pairs(dataset), dataset.columns)
    if review_file is not None:
        write_reviews(review_file, run.reviews)
    if as_json:
        print_json(run.to_json())
    else:
        say(run.sentence)
        if run.reviews:
            how = f"they are in {review_file}" if review_file is not None else "write them with --review-file"
            say(f"{len(run.reviews)} items wait for a person: {how}, read them back with --reviews")
        if run.unlabelled:
            say(
                f"{run.unlabelled} rows of the pilot wait for the truth it had: give its review file with --reviews too"
            )
    raise typer.Exit(0 if run.complete else 1)
