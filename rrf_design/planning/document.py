"""Plans as documents: JSON with a format name, a version and the digest of the problem they belong to."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from rrf_design.documents import checked, read, sealed, write
from rrf_design.errors import InputError, Refused
from rrf_design.planning.contract import Objective, Plan, PlanStatus, Step

if TYPE_CHECKING:
    from rrf_design.problem import Problem


def to_document(plan: Plan) -> dict[str, Any]:
    return sealed("rrf-plan", plan.to_json())


def write_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Write a plan whole or not at all."""
    write(path, to_document(plan))


def read_plan(path: str | os.PathLike[str], problem: Problem | None = None) -> Plan:
    """Read a plan; with a problem, Refused unless the plan was made for exactly that problem."""
    document = read(path, what="plan")
    try:
        return from_document(document, problem)
    except (InputError, Refused) as error:
        raise type(error)(f"{path}: {error}") from None


def from_document(document: Any, problem: Problem | None = None) -> Plan:
    try:
        plan = _plan(dict(checked(document, "rrf-plan", what="plan")))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the plan is damaged ({type(error).__name__}: {error})") from None
    if problem is not None:
        from rrf_design.files import digest

        if plan.digest != digest(problem):
            raise Refused(
                f"the plan was made for {plan.problem!r} with digest {plan.digest[:12]}, not for {problem.name!r} with"
                f" {digest(problem)[:12]}; plan again"
            )
        problem.resolve(plan.selected)
    return plan


def _plan(document: dict[str, Any]) -> Plan:
    fields = {
        key: value for key, value in document.items() if key not in ("format", "version", "least_cost", "reached")
    }
    fields["selected"] = tuple(str(name) for name in fields["selected"])
    fields["status"] = PlanStatus(fields["status"])
    fields["objective"] = Objective(fields["objective"])
    fields["trajectory"] = tuple(_step(step) for step in fields["trajectory"])
    fields["support"] = tuple(fields["support"])
    fields["notes"] = tuple(fields["notes"])
    fields["repeats"] = {str(name): int(times) for name, times in fields.get("repeats", {}).items()}
    fields["witness"] = {name: tuple(part) for name, part in fields["witness"].items()}
    for key in ("cost", "gamma", "upper_bound", "gap", "value"):
        fields[key] = float(fields[key])
    return Plan(**fields)


def _step(step: dict[str, Any]) -> Step:
    return Step(
        block=step["block"],
        cost=float(step["cost"]),
        gamma=float(step["gamma"]),
        support=tuple(step["support"]),
        witness={name: tuple(part) for name, part in step["witness"].items()},
        energy=float(step["energy"]),
        opened=tuple(step["opened"]),
    )
