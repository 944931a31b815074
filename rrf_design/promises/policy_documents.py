"""A pilot's result as a document: everything that `acquire --policy` and `verify` need. What anybody can redo of it is in `policy_proofs`."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from rrf_design.documents import sealed
from rrf_design.promises.checks import program_digests
from rrf_design.promises.family import CHECK_EVERYTHING
from rrf_design.promises.piloting import PilotResult
from rrf_design.promises.playing import PlayedPolicy
from rrf_design.promises.policy_forms import VOIDED_BY
from rrf_design.promises.stronger import stronger_promise
from rrf_design.risk import (
    Limit,
    choice_record,
    promise,
)


def policy_document(result: PilotResult) -> dict[str, Any]:
    """Everything that `acquire --policy` and `verify` need."""
    plan, settings = result.plan, result.plan.settings
    chosen = None if result.chosen is None else result.played[result.chosen.name]
    strata = plan.population.labels
    content = {
        "policy": CHECK_EVERYTHING if chosen is None else chosen.name,
        "because": result.why,
        "risk": settings.risk,
        "confidence": settings.confidence,
        "statement": str(settings.statement),
        "among": str(settings.among),
        "sentence": _sentence(result, chosen),
        "bound": 0.0 if chosen is None else settings.risk,
        "cost_per_item": plan.last.check if chosen is None else float(chosen.cost.mean()),
        "check_cost": plan.last.check,
        "delivered_share": 0.0 if chosen is None else float(chosen.delivered.mean()),
        "wrong_answers": result.measured["wrong_answers"],
        "measured": {key: value for key, value in result.measured.items() if key != "wrong_answers"},
        "policies": [_outcome(result, policy.name) for policy in result.choice.policies],
        "drawn": [plan.population.ids[place] for place in plan.drawn],
        "ladder": None if chosen is None else chosen.policy.to_json(),
        "seed": settings.seed,
        "order": settings.order,
        "aside": result.aside,
        "random_checks": any(policy.random_checks for policy in plan.policies),
        "places": list(plan.drawn),
        "stratify": settings.stratify,
        "strata": None if strata is None else list(strata),
        "truth": result.truth_source,
        "twins": plan.population.twins(plan.drawn),
        "leaks": [dict(entry) for entry in result.leaks],
        "stronger": stronger_promise(result),
        "voided_by": VOIDED_BY,
        "models": None if plan.models is None else dict(plan.models),
        "programs": {} if plan.models is None else program_digests(plan.dataset),
        "runs": list(plan.runs),
        "recipe": {"name": plan.dataset.recipe.name, "digest": plan.dataset.recipe.digest},
        "population": {
            "table": plan.dataset.table.name,
            "size": len(plan.population),
            "digest": plan.population.digest,
        },
        "choice": choice_record(result.choice),
    }
    return sealed("rrf-policy", content)


def _outcome(result: PilotResult, name: str) -> dict[str, Any]:
    played = result.played[name]
    tested = next(policy for policy in result.choice.policies if policy.name == name)
    (count,) = tested.counts
    return {
        "policy": name,
        "cost": tested.cost,
        "delivered": int(played.delivered.sum()),
        "counted": count.counted,
        "wrong": count.marked,
        "proven": tested.proven,
        "marks": played.marks,
    }


def _sentence(result: PilotResult, chosen: PlayedPolicy | None) -> str:
    if chosen is None:
        return nothing_delivered(result.why)
    (limit,) = result.choice.limits
    limit = Limit(Fraction(str(result.plan.settings.risk)), limit.column, limit.among)
    return promise(
        limit,
        result.choice.scope,
        confidence=result.choice.confidence,
        delivers=chosen.delivers,
        checked_share=chosen.checked_share,
    )


def nothing_delivered(why: Any) -> str:
    """The sentence of a policy that has everything checked."""
    return f"{CHECK_EVERYTHING[0].upper()}{CHECK_EVERYTHING[1:]}: {why}."
