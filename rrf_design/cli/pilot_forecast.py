"""What `pilot --forecast` prints: sizes of pilots side by side, what the figures rest on, and the
advice.
"""

from __future__ import annotations

from typing import Any

from rrf_design.cli.output import say, table


def describe_forecast(found: dict[str, Any]) -> None:
    """The advice first; then what it rests on."""
    from fractions import Fraction

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
