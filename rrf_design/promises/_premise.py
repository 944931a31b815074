"""k in the certificate: how often a certificate's premise fails, from a pilot, for items drawn like
it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rrf_design.certificates import Certificate
from rrf_design.checker.document import content_digest
from rrf_design.checker.premises import OTHER, alike, check_pilot, failures, rate_above, sentence
from rrf_design.checker.promises import prove_policy
from rrf_design.errors import InputError, Refused
from rrf_design.promises._pilot_design import Population
from rrf_design.promises._policy_document import check_draw

if TYPE_CHECKING:
    from rrf_design.questions.datasets import Dataset
    from rrf_design.tables import ByStructure


def with_pilot(
    certificate: Certificate,
    policy: Any,
    *,
    recipe_digest: str | None = None,
    population: Population | None = None,
    item: str | None = None,
    like: Collection[str] | None = None,
) -> Certificate:
    """The certificate with the bounded probability that more than k of its answers are wrong.

    Only drawn items that are asked the same count: those among `like` (the ids of a structure), and
    with an answer that the truth judges at every node of the certificate.

    Refused for a policy that does not prove itself or belongs to another recipe or table
    (`population`); for an item of the pilot, whose truth is known and which is no evidence for
    itself; and for a pilot drawn inside strata, where the count of failures is no binomial one.
    """
    policy = prove_policy(policy).document
    if recipe_digest is not None and policy["recipe"]["digest"] != recipe_digest:
        raise Refused("the recipe has changed since the pilot (a prompt, a model, a check or a price); pilot it anew")
    if item is not None and item in policy["drawn"]:
        raise Refused(f"item {item!r} is one of the pilot's: its truth is known, and it is no evidence for itself")
    if policy["strata"] is not None:
        raise InputError("the pilot was drawn inside strata; a certificate takes its premise from a simple draw")
    if population is not None:
        check_draw(policy, population)
    nodes = list(certificate.record.node_ids)
    marks: Mapping[str, str] = policy["wrong_answers"]["by_node"]
    unknown = [name for name in nodes if name not in marks]
    if unknown:
        raise InputError(
            f"node {unknown[0]!r}: the pilot can't say when its answers are wrong; its truth is about another value."
            ' Where the recipe has it on sale (buy = "if needed"), the other answers can be certified without it'
        )
    protection = certificate.document["protection"]
    units = None if protection is None else protection["units"]
    groups = [[name] for name in nodes] if units is None else units
    k, wrong = certificate.document["k"], {name: marks[name] for name in nodes}
    places = policy["places"][: policy["wrong_answers"]["items"]]  # of a pilot that grew, its first look
    wrong = _of_its_kind(wrong, policy["drawn"][: len(places)], like)
    counted = alike(wrong, len(places))
    failed = failures(wrong, groups, k, len(places))
    section: dict[str, Any] = {
        "table": policy["population"]["table"],
        "size": policy["population"]["size"],
        "population": policy["population"]["digest"],
        "recipe": policy["recipe"]["digest"],
        "seed": policy["seed"],
        "places": list(places),
        "wrong": wrong,
        "more_than_k": failed,
        "confidence": policy["confidence"],
        "bound": rate_above(counted, failed, float(policy["confidence"])),
    }
    section["sentence"] = sentence(section, k, groups)
    check_pilot(section, nodes, units, k)
    document = {**certificate.document, "pilot": section}
    return replace(certificate, document={**document, "digest": content_digest(document)})


def _of_its_kind(wrong: Mapping[str, str], drawn: Sequence[str], like: Collection[str] | None) -> dict[str, str]:
    """The marks, with items of another kind set aside at every node."""
    kept = [
        (like is None or name in like) and all(marks[at] != OTHER for marks in wrong.values())
        for at, name in enumerate(drawn)
    ]
    return {
        node: "".join(mark if own else OTHER for mark, own in zip(marks, kept, strict=True))
        for node, marks in wrong.items()
    }


def with_premise(found: Any, policy: Any, dataset: Dataset, *, item: str | None = None) -> Any:
    """A certificate, or those of a table by structure, with what the pilot of `dataset` says of
    their premise; of an item's certificate, from items of the same structure.
    """
    if not isinstance(found, Certificate):
        return _with_pilot_of_table(found, policy, whole=dataset)
    structure = {entry.id: entry.structure for entry in dataset.items_in_order()}
    like = None if item is None else {name for name, key in structure.items() if key == structure[item]}
    digest, population = dataset.recipe.digest, Population.of(dataset)
    return with_pilot(found, policy, recipe_digest=digest, population=population, item=item, like=like)


def _with_pilot_of_table(
    found: ByStructure[Certificate], policy: Any, *, whole: Dataset | None = None
) -> ByStructure[Certificate]:
    """The certificates of a table, one for each structure, each with the premise's bounded
    probability of failing. `whole`: the piloted table, where these are of some of its items.

    A certificate speaks of the items of its structure outside the pilot, and rests on those inside
    it. One whose items were all piloted gets no premise, for their truth is known; where that is so
    of all, it is refused.
    """
    from rrf_design.tables import ByStructure, Speaker

    piloted = set(policy["drawn"]) if isinstance(policy, Mapping) and isinstance(policy.get("drawn"), list) else set()
    table = found.dataset if whole is None else whole
    structure = {item.id: item.structure for item in table.items_in_order()}
    population = Population.of(table)
    outside = {structure[name] for name in found.dataset if name not in piloted}
    if not outside:
        raise Refused(f"items like {found.worst.item!r} are all the pilot's: their truth is known")
    speakers = []
    for speaker in found.speakers:
        kind, result = structure[speaker.item], speaker.result
        if kind in outside:
            like = {name for name, key in structure.items() if key == kind}
            try:
                digest = found.dataset.recipe.digest
                result = with_pilot(result, policy, recipe_digest=digest, population=population, like=like)
            except InputError as error:
                raise type(error)(f"items like {speaker.item!r}: {error}") from None
        speakers.append(Speaker(speaker.item, speaker.count, speaker.problem, result))
    return ByStructure(found.dataset, tuple(speakers), found.value)


def premise_summary(found: ByStructure[Certificate]) -> dict[str, Any]:
    """Of all structures together: the largest bound on how often the premise fails, and a sentence
    for it.
    """
    documents = [speaker.result.document for speaker in found.speakers]
    sections = [document["pilot"] for document in documents if "pilot" in document]
    worst = max(sections, key=lambda section: float(section["bound"]))
    count = len(sections)
    each = "" if count == 1 else f" of the weakest of {count} structures (each bound holds by itself)"
    return {
        "bound": worst["bound"],
        "confidence": worst["confidence"],
        "more_than_k": worst["more_than_k"],
        "drawn": len(worst["places"]),
        "alike": alike(worst["wrong"], len(worst["places"])),
        "sentence": f"The premise{each}: {worst['sentence']}",
    }
