"""A pilot is looked at once, or in an order of tests that stays: what would make a second look another chance is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rrf_design.documents import checked
from rrf_design.errors import Refused
from rrf_design.promises.pilot_plans import PilotPlan
from rrf_design.promises.playing import PlayedPolicy
from rrf_design.risk import (
    Stream,
)


def refuse_second_look(document: Mapping[str, Any], plan: PilotPlan) -> Mapping[str, Any] | None:
    """The earlier look at this pilot, or None where the document is about another table.

    A pilot is tested once. Testing it again with more labels or another goal, after looking, would break its promise; a sequential one may grow.
    """
    settings = plan.settings
    checked(document, "rrf-policy", what="policy")
    people = document.get("population")
    if not isinstance(people, Mapping) or people.get("digest") != plan.population.digest:
        return None
    _sound(document)
    said = [document.get(key) for key in ("seed", "risk", "confidence", "statement", "among", "order", "random_checks")]
    now = [
        settings.seed,
        settings.risk,
        settings.confidence,
        str(settings.statement),
        str(settings.among),
        settings.order,
        any(policy.random_checks for policy in plan.policies),
    ]
    sequential = bool((document.get("choice") or {}).get("sequential")) and settings.sequential
    labels = len(document.get("drawn") or ())
    if said != now or (labels != settings.labels and not (sequential and settings.labels >= labels)):
        raise Refused(
            f"this table was piloted already, with {labels} labels, risk {document.get('risk')} and seed {document.get('seed')}; another look at it would"
            " void the promise. A pilot that is to grow while it is looked at is --sequential from the beginning"
        )
    most = len(plan.population) - int(document.get("aside") or 0)
    if settings.order == "front" and settings.labels > most:
        raise Refused(
            f"the order of tests was made from the last items of the draw; this pilot can grow to {most} labels"
        )
    return document


def _sound(document: Mapping[str, Any]) -> None:
    """What an earlier look wrote is gone on with only where it proves itself."""
    from rrf_design.promises.policy_proofs import prove_policy

    try:
        prove_policy(document)
    except Refused as error:
        raise Refused(
            f"the policy that is there can't be gone on with: {error}; write to another file to begin anew"
        ) from None


def earlier_look(document: Mapping[str, Any], played: Sequence[PlayedPolicy]) -> tuple[tuple[Stream, ...], str]:
    """The order of tests of an earlier look. Another order for the same items would be another chance; so would other truths for items that were looked at."""
    from rrf_design.risk import prove_choice

    choice = prove_choice(document["choice"])
    marks = {entry["policy"]: entry["marks"] for entry in document["policies"]}
    if set(marks) != {one.name for one in played}:
        raise Refused(
            "the policies are not those of the earlier look at this pilot; pilot a changed recipe in another file"
        )
    changed = [one.name for one in played if not one.marks.startswith(marks[one.name])]
    if changed:
        raise Refused(
            f"items of the pilot come out otherwise than at the first look ({changed[0]}): a truth or an answer was changed after looking, which voids the promise"
        )
    return choice.streams, choice.ordered_by
