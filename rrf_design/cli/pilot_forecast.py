"""What `pilot --forecast` prints: sizes of pilots side by side, what the figures rest on, and the advice."""

from __future__ import annotations

from typing import Any

from rrf_design.cli.output import say, table


def describe_forecast(found: dict[str, Any]) -> None:
    from fractions import Fraction

    from rrf_design.risk.sentences import percent_above

    say(
        f"{found['population']:,} items; a risk of {found['risk']:.2%} at confidence {found['confidence']:.0%} needs at least {found['least_labels']} labels, none wrong."
    )
    everything = "Checking everything costs" if found["last"] == "person" else "Withholding everything counts as"
    say(
        f"{found['labels']} labels prove a risk of {percent_above(Fraction(found['best_risk']))} at best. {everything} {found['check_everything']:,.2f}."
    )
    _forecast_table("", found["sizes"])
    if found["with_random_checks"] is not None and found["with_random_checks"][0]["expected_cost"] is not None:
        _forecast_table("with --random-checks", found["with_random_checks"])
    if found.get("aside"):
        say(
            f"Up to {found['aside']} items more are asked, without their truth, to make the order of tests (--aside); that is in what a pilot costs."
        )
    say(f"Expected from {found['expected_from']}. Advice: {found['advice']}.")
    if found["agreed_wrong"] is not None:
        limit = found["pays_up_to"]
        until = "not even if none is" if limit is None else f"up to a guess of {limit:.1%}"
        say(
            f"It is guessed that {found['agreed_wrong']:.1%} of what all answers agree on is wrong (--agreed-wrong); a pilot is expected to pay {until}."
        )


def _forecast_table(title: str, sizes: list[dict[str, Any]]) -> None:
    def money(value: float | None) -> str:
        return "?" if value is None else f"{value:,.2f}"

    rows = [
        (
            str(entry["labels"]),
            str(entry["allowed_wrong"]) if entry["allowed_wrong"] >= 0 else "too few",
            money(entry["pilot_cost"]),
            money(entry["least_cost"]),
            money(entry["expected_cost"]),
            "?" if entry["chance"] is None else f"{entry['chance']:.0%}",
        )
        for entry in sizes
    ]
    columns = ["labels", "wrong allowed", "pilot costs", "all of it, at least", "expected", "chance of a proof"]
    table(title, columns, rows, right=list(range(6)))
