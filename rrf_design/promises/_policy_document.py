"""A pilot's result as a document, and whether a policy is one for this recipe and table.

What follows from the document's inputs is made again by the checker (`checker.promises`), which
shares nothing with the code that found it.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rrf_design.checker import PromiseScope, written
from rrf_design.checker.promise_words import CHECK_EVERYTHING, VOIDED_BY, nothing_delivered, promise
from rrf_design.checker.promises import prove_policy
from rrf_design.documents import sealed
from rrf_design.errors import Refused
from rrf_design.promises._checks import program_digests
from rrf_design.promises._forecast import stronger_promise
from rrf_design.promises._pilot_design import Population
from rrf_design.promises._play import PlayedPolicy
from rrf_design.risk import Among, AssessedPolicy, PolicyChoice

if TYPE_CHECKING:
    from rrf_design.promises._pilot_analysis import PilotResult


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
        "choice": _choice(result.choice),
    }
    return sealed("rrf-policy", content)


def _choice(found: PolicyChoice) -> dict[str, Any]:
    return {
        "chosen": found.chosen,
        "confidence": written(found.confidence),
        "statement": str(found.scope.statement),
        "piloted": found.scope.piloted,
        "population": found.scope.population,
        "depth": found.scope.depth,
        "sequential": found.sequential,
        "ordered_by": found.ordered_by,
        "limits": [
            {"share": written(limit.share), "column": limit.column, "among": str(limit.among)} for limit in found.limits
        ],
        "streams": [
            {"share": written(stream.share), "names": list(stream.names), "pooled": stream.pooled}
            for stream in found.streams
        ],
        "policies": [_tested(policy) for policy in found.policies],
    }


def _tested(policy: AssessedPolicy) -> dict[str, Any]:
    return {
        "name": policy.name,
        "cost": policy.cost,
        "counts": [
            {
                "column": count.column,
                "counted": count.counted,
                "marked": count.marked,
                **({} if count.places is None else {"places": list(count.places)}),
            }
            for count in policy.counts
        ],
        "checked_share": written(policy.checked_share),
        "delivers": policy.delivers,
        "p": policy.p,
        "level": written(policy.level),
        "proven": policy.proven,
    }


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
    settings, tested = result.plan.settings, result.choice.scope
    delivered = settings.among is Among.DELIVERED
    return promise(
        Fraction(str(settings.risk)),
        PromiseScope(str(tested.statement), tested.piloted, len(result.plan.population), delivered),
        confidence=result.choice.confidence,
        delivers=chosen.delivers,
        checked_share=chosen.checked_share,
    )


def check_applies(
    document: Any,
    recipe_digest: str,
    population: Population,
    *,
    models: Mapping[str, Any] | None = None,
    programs: Mapping[str, Any] | None = None,
) -> Mapping[str, Any]:
    """The document, if it is a policy for this recipe and table, and for these models and programs
    of checks where they are asked live; Refused says what has changed.
    """
    data = prove_policy(document).document
    if data["recipe"]["digest"] != recipe_digest:
        raise Refused("the recipe has changed since the pilot (a prompt, a model, a check or a price); pilot it anew")
    if models is not None and data["models"] is None:
        raise Refused(
            "the pilot was made from recorded answers, and nothing says that these models gave them; pilot live, or"
            " give --responses"
        )
    if models is not None and data["models"] != dict(models):
        changed = sorted(name for name in {*models, *data["models"]} if models.get(name) != data["models"].get(name))
        raise Refused(f"the models have changed since the pilot ({', '.join(changed)}); pilot them anew")
    then, now = data["programs"], dict(programs or {})
    if models is not None and then != now:
        changed = sorted(name for name in {*now, *then} if now.get(name) != then.get(name))
        raise Refused(f"the programs of checks have changed since the pilot ({', '.join(changed)}); pilot them anew")
    check_draw(data, population)
    return data


def check_draw(data: Mapping[str, Any], population: Population) -> None:
    """Refused unless this is the table that was piloted, and the drawn items are those at the drawn
    places: one that only a name keeps out of a run was never tested.
    """
    people = data["population"]
    if people["digest"] != population.digest:
        raise Refused(
            f"the table has changed since the pilot ({people['size']} items then, {len(population)} now, or others);"
            " pilot it anew"
        )
    strata = None if population.labels is None else list(population.labels)
    if people["size"] != len(population) or data["strata"] != strata:
        raise Refused(
            "the policy has another size or other strata than the table that it names; it was changed after the pilot:"
            " pilot it anew"
        )
    for place, name in zip(data["places"], data["drawn"], strict=True):
        if population.ids[place] != name:
            raise Refused(
                f"the policy says that item {name!r:.60} was drawn, and its draw is of {population.ids[place]!r:.60}"
                f" (row {place + 1} of the table); it was changed after the pilot: pilot it anew"
            )
