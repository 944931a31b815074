"""What anybody can redo of a policy: the draw, every count, every test, the choice and the sentence; and whether it is one for this recipe and table.

What a reader has to take on trust is said by `verify`: that the truths were true, and that the table is the one whose digest is named.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rrf_design.documents import checked
from rrf_design.errors import InputError, Refused
from rrf_design.promises.drawing import Population
from rrf_design.promises.family import CHECK_EVERYTHING, LadderPolicy
from rrf_design.promises.policy_documents import nothing_delivered
from rrf_design.promises.policy_forms import check_policy_form, check_reason
from rrf_design.risk import (
    Among,
    Limit,
    PolicyChoice,
    Statement,
    Stratum,
    first_look,
    promise,
    prove_choice,
    stratified_order,
    stratified_risk,
)
from rrf_design.risk.counts import rate_refuted
from rrf_design.risk.policies import AssessedPolicy
from rrf_design.risk.records import is_drawn
from rrf_design.risk.strata import binomial_is_heaviest

LARGEST = 2_000_000


@dataclass(frozen=True, slots=True)
class ProvenPolicy:
    """What a policy's record proves."""

    policy: str
    risk: float
    choice: PolicyChoice
    sentence: str


def check_applies(
    document: Any,
    recipe_digest: str,
    population: Population,
    *,
    models: Mapping[str, Any] | None = None,
    programs: Mapping[str, Any] | None = None,
) -> Mapping[str, Any]:
    """The document, if it is a policy for this recipe and table, and for these models and programs of checks where they are asked live; Refused says what has changed."""
    data = checked(document, "rrf-policy", what="policy")
    try:
        check_policy_form(data)
    except (KeyError, TypeError) as error:
        raise Refused(f"the policy can't be read: {type(error).__name__}, {error}") from None
    if data["recipe"]["digest"] != recipe_digest:
        raise Refused("the recipe has changed since the pilot (a prompt, a model, a check or a price); pilot it anew")
    if models is not None and data["models"] is None:
        raise Refused(
            "the pilot was made from recorded answers, and nothing says that these models gave them; pilot live, or give --responses"
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
    """Refused unless this is the table that was piloted, and the drawn items are those at the drawn places: one that only a name keeps out of a run was never tested."""
    people = data["population"]
    if people["digest"] != population.digest:
        raise Refused(
            f"the table has changed since the pilot ({people['size']} items then, {len(population)} now, or others); pilot it anew"
        )
    strata = None if population.labels is None else list(population.labels)
    if people["size"] != len(population) or data["strata"] != strata:
        raise Refused(
            "the policy has another size or other strata than the table that it names; it was changed after the pilot: pilot it anew"
        )
    for place, name in zip(data["places"], data["drawn"], strict=True):
        if population.ids[place] != name:
            raise Refused(
                f"the policy says that item {name!r:.60} was drawn, and its draw is of {population.ids[place]!r:.60} (row {place + 1} of the table);"
                " it was changed after the pilot: pilot it anew"
            )


def prove_policy(document: Any) -> ProvenPolicy:
    """Redo the draw, every count and every test; Refused where the document says anything else. Total: malformed input is a refusal too."""
    try:
        return _prove(checked(document, "rrf-policy", what="policy"))
    except Refused:
        raise
    except InputError as error:
        raise Refused(str(error)) from None
    except KeyError as error:
        raise Refused(f"the policy has no {error}") from None
    except (TypeError, ValueError, AttributeError, IndexError, ArithmeticError, RecursionError) as error:
        raise Refused(f"the policy can't be read: {type(error).__name__}, {error}") from None


def _prove(data: Mapping[str, Any]) -> ProvenPolicy:
    check_policy_form(data)
    choice = prove_choice(data["choice"])
    _redraw(data, choice)
    if len(choice.limits) != 1 or choice.limits[0].column != "wrong":
        raise Refused("a policy is tested against one limit, on wrong values")
    (limit,) = choice.limits
    if str(limit.among) != data["among"] or str(choice.scope.statement) != data["statement"]:
        raise Refused("statement or denominator are not those that were tested")
    if plain_fraction(data["confidence"], "confidence") != choice.confidence:
        raise Refused(f"confidence {data['confidence']} is claimed, {choice.confidence} was tested")
    _check_risk(data, choice)
    _recount(data, choice)
    _recount_wrong(data, choice)
    name = data["policy"]
    _check_summary(data, choice)
    check_reason(data, choice)
    if name == CHECK_EVERYTHING:
        if data["sentence"] != nothing_delivered(data["because"]):
            raise Refused("the policy's sentence is not that of a policy that delivers nothing unchecked")
        return ProvenPolicy(name, 0.0, choice, "Everything is checked; nothing is delivered unchecked.")
    if name != choice.chosen:
        raise Refused(f"the policy {name!r} is not the one that was chosen, {choice.chosen!r}")
    ladder = LadderPolicy.from_json(data["ladder"])
    if ladder.name != name:
        raise Refused(f"the ladder is {ladder.name!r}, not {name!r}")
    if plain_fraction(data["bound"], "bound") < plain_fraction(data["risk"], "risk"):
        raise Refused(f"a bound of {data['bound']} is claimed; the tests prove {data['risk']}")
    tested = next(policy for policy in choice.policies if policy.name == name)
    if tested.checked_share != ladder.checked_share:
        raise Refused(f"the ladder checks {ladder.checked_share} at random, {tested.checked_share} was tested")
    claimed = Limit(plain_fraction(data["risk"], "risk"), limit.column, limit.among)
    said = promise(
        claimed,
        choice.scope,
        confidence=choice.confidence,
        delivers=tested.delivers,
        checked_share=tested.checked_share,
    )
    if data["sentence"] != said:
        raise Refused(
            "the policy's sentence is not what its tests prove, in the words of this version; where an earlier one wrote it, pilot into another file with the same settings:"
            " what is in the journal is not bought again"
        )
    return ProvenPolicy(name, float(data["risk"]), choice, said)


def _check_summary(data: Mapping[str, Any], choice: PolicyChoice) -> None:
    """Cost and share of what is recommended, and a name for every item that was drawn."""
    everything = data["policy"] == CHECK_EVERYTHING
    tested = next((policy for policy in choice.policies if policy.name == data["policy"]), None)
    marks = next((entry["marks"] for entry in data["policies"] if entry["policy"] == data["policy"]), "")
    cost = (
        plain_fraction(data["check_cost"], "check_cost") if everything or tested is None else Fraction(str(tested.cost))
    )
    if cost < 0 or plain_fraction(data["cost_per_item"], "cost_per_item") != cost:
        raise Refused(f"a cost of {data['cost_per_item']!r:.40} an item is claimed; the tests say {float(cost):g}")
    delivered = len(marks) - marks.count("-")
    if abs(plain_fraction(data["delivered_share"], "delivered_share") * max(1, len(marks)) - delivered) > Fraction(
        1, 10**6
    ):
        raise Refused(
            f"{data['delivered_share']!r:.40} are delivered, it says; the marks say {delivered} of {len(marks)}"
        )
    names = data["drawn"]
    if any(type(name) is not str for name in names) or len(set(names)) != len(names):
        raise Refused("the items that were drawn should have a name each, no two the same")
    if not 0 <= plain_fraction(data["bound"], "bound") <= 1:
        raise Refused(f"a bound of {data['bound']!r:.40} is no share")


def plain_fraction(value: Any, name: str) -> Fraction:
    """A number of a document as the fraction its decimals say. Texts are refused: a forged exponent must not cost the reader's memory."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise Refused(f"{name} should be a number, not {value!r:.40}")
    return Fraction(str(value))


def _redraw(data: Mapping[str, Any], choice: PolicyChoice) -> None:
    places, size = data["places"], data["population"]["size"]
    if not isinstance(places, list) or len(places) != choice.scope.piloted or len(data["drawn"]) != len(places):
        raise Refused(f"{choice.scope.piloted} items were tested; the draw does not name as many")
    if isinstance(size, bool) or not isinstance(size, int) or not len(places) <= size <= LARGEST:
        raise Refused(f"a population of {size!r}")
    digest = str(data["population"]["digest"])
    if data["strata"] is None:
        right = is_drawn(places, size, data["seed"], digest=digest)
    else:
        if not isinstance(data["strata"], list) or len(data["strata"]) != size:
            raise Refused("the strata are not those of the population")
        again = stratified_order([str(label) for label in data["strata"]], data["seed"], digest=digest)[: len(places)]
        right = places == again and all(type(place) is int for place in places)
    if not right:
        raise Refused("seed and digest draw other items than the policy names")
    if choice.scope.population not in (None, size):
        raise Refused(f"the tests speak of {choice.scope.population} items, the draw of {size}")


def _check_risk(data: Mapping[str, Any], choice: PolicyChoice) -> None:
    """The tested limit is the claimed risk; for draws inside strata, what that risk means for such a draw."""
    claimed = plain_fraction(data["risk"], "risk")
    if data["strata"] is not None:
        if (
            choice.scope.statement is not Statement.FRESH
            or choice.limits[0].among is not Among.ALL
            or choice.sequential
        ):
            raise Refused(
                "a draw inside strata proves the statement 'fresh' among all items, for a size fixed beforehand"
            )
        from collections import Counter

        labels = [str(label) for label in data["strata"]]
        taken = Counter(labels[place] for place in data["places"])
        strata = [Stratum(count, taken[label]) for label, count in sorted(Counter(labels).items())]
        claimed = stratified_risk(strata, claimed)
        tested = {claimed / (1 - policy.checked_share) for policy in choice.policies}
        if not all(binomial_is_heaviest(choice.scope.piloted, risk, 1 - choice.confidence) for risk in tested):
            raise Refused("a draw inside strata does not prove so large a risk at so small a confidence")
    if choice.limits[0].share != claimed:
        raise Refused(f"a risk of {data['risk']} is claimed, {choice.limits[0].share} was tested")


def _recount(data: Mapping[str, Any], choice: PolicyChoice) -> None:
    """The counts of every test from what each policy did with each item."""
    outcomes = {entry["policy"]: entry for entry in data["policies"]}
    if set(outcomes) != {policy.name for policy in choice.policies}:
        raise Refused("the policies are not those that were tested")
    for policy in choice.policies:
        marks = outcomes[policy.name]["marks"]
        if not isinstance(marks, str) or len(marks) != choice.scope.piloted or set(marks) - set("rw-"):
            raise Refused(f"policy {policy.name!r}: its outcomes should be one of r, w, - for each item")
        among_all = choice.limits[0].among is Among.ALL
        counted = len(marks) if among_all else len(marks) - marks.count("-")
        (count,) = policy.counts
        if (count.counted, count.marked) != (counted, marks.count("w")):
            raise Refused(
                f"policy {policy.name!r}: {count.marked} of {count.counted} were tested, its outcomes say {marks.count('w')} of {counted}"
            )
        if count.places is not None:
            kept = [mark for mark in marks if among_all or mark != "-"]
            if list(count.places) != [at for at, mark in enumerate(kept) if mark == "w"]:
                raise Refused(f"policy {policy.name!r}: its wrong items stand in other places")
        _check_outcome(outcomes[policy.name], policy, delivered=len(marks) - marks.count("-"))


def _check_outcome(said: Mapping[str, Any], policy: AssessedPolicy, *, delivered: int) -> None:
    """What is told of a policy beside its marks is what was counted and tested."""
    (count,) = policy.counts
    wanted: dict[str, Any] = {
        "delivered": delivered,
        "counted": count.counted,
        "wrong": count.marked,
        "proven": policy.proven,
        "cost": policy.cost,
    }
    for key, value in wanted.items():
        if said[key] != value or isinstance(said[key], bool) != isinstance(value, bool):
            raise Refused(f"policy {policy.name!r}: its {key} is {said[key]!r:.40}; what was tested says {value!r}")


def _recount_wrong(data: Mapping[str, Any], choice: PolicyChoice) -> None:
    """P(more than k wrong) and its bound, from the mark of every answer; of a pilot that grew, those of its first look."""
    said = data["wrong_answers"]
    marks = list(said["by_node"].values())
    items = choice.scope.piloted
    if choice.sequential:
        items = min(items, first_look(plain_fraction(data["risk"], "risk"), choice.confidence))
    if any(not isinstance(m, str) or len(m) != items or set(m) - set("01-") for m in marks) or said["items"] != items:
        raise Refused(f"wrong answers should be marked 0, 1 or - for each of {items} items")
    counts = [sum(m[at] == "1" for m in marks) for at in range(items)]
    if said["answers"] != len(marks) or isinstance(said["answers"], bool):
        raise Refused(f"{said['answers']!r:.40} answers to an item; marks are there of {len(marks)}")
    for entry in said["more_than"]:
        if type(entry["k"]) is not int:
            raise Refused(f"more than {entry['k']!r:.40} wrong answers: k should be a whole number")
        _check_rate(entry, "items", sum(count > entry["k"] for count in counts), items, choice.confidence)
    if [entry["node"] for entry in said["nodes"]] != list(said["by_node"]):
        raise Refused("the nodes are not those whose answers are marked")
    for entry in said["nodes"]:
        own = said["by_node"][entry["node"]]
        _check_rate(entry, "wrong", own.count("1"), items - own.count("-"), choice.confidence)


def _check_rate(said: Mapping[str, Any], key: str, found: int, items: int, confidence: Fraction) -> None:
    """A count and its bound, which may be larger than it need be and not smaller."""
    if type(said[key]) is not int or said[key] != found:
        raise Refused(f"wrong answers: {said[key]!r:.40} of {items} items are told, the marks say {found}")
    bound = said["bound"]
    if type(bound) not in (int, float) or not rate_refuted(items, found, Fraction(bound), confidence):
        raise Refused(f"wrong answers: {found} of {items} items do not prove a bound of {bound!r:.40}")
