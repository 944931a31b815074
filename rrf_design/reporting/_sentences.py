"""The sentence that a page leads with: what may be relied on, under which assumption, and what is
to be done where nothing may.

Every sentence is made from the verdict that the document carries (`rrf_design.verdict` decided it);
none is decided here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rrf_design.reporting.pages import SIGNS, Markup, at_most, callout, prose, sentence
from rrf_design.verdict import Verdict

MEANINGS = {
    "checked": "a check decides the value, whatever was answered",
    "consistent": "within the bound, if what is assumed holds; nobody has tested that",
    "ambiguous": "more than one explanation fits; a value only where all agree",
    "incomplete": "what was bought and read is not enough",
    "contradicted": "nothing within the assumptions explains what was measured: no value",
}


def _field_sentence(repair: Mapping[str, Any] | None) -> str:
    """What may be said about one field."""
    if repair is None:
        return "Nothing may be used yet: the run has not come to its end."
    verdict, assumes = Verdict(repair["verdict"]).value, str(repair.get("assumes") or "")
    premise = f", provided that {assumes}" if assumes else ""
    if verdict == "checked":
        return f"The value is decided by a check: {_nearness(repair)}{premise}."
    if verdict == "consistent":
        return f"The answers are consistent: {_nearness(repair)}{premise}. Agreement alone does not show that."
    if verdict == "ambiguous":
        return (
            f"Only some of the values may be used: more than one explanation fits what was measured{premise}; a value"
            " is given where all of them agree."
        )
    if verdict == "contradicted":
        return (
            f"No value may be used: nothing explains what was measured{premise}. More answers are wrong than were"
            " allowed for, or a relation, a check or a declared bound is."
        )
    return "No value may be relied on yet: what was asked and read is not enough."


def _nearness(repair: Mapping[str, Any]) -> str:
    bounds = [float(bound) for bound in (repair.get("bounds") or {}).values()]
    if bounds and max(bounds) == 0:
        return "they are the truth, up to rounding"
    if bounds:
        return f"none is further than {at_most(max(bounds), 4)} from the truth"
    bound = repair.get("error_bound")
    return "they are proven" if bound is None else f"all together they are within {at_most(bound, 4)} of the truth"


def common(values: list[str]) -> str:
    """What they all say, or nothing."""
    found = {value for value in values if value}
    return found.pop() if len(found) == 1 else ""


def said(repair: Mapping[str, Any] | None, *more: str) -> Markup:
    """The sentence about one field, its reason and notes, marked by its verdict."""
    verdict = Verdict.INCOMPLETE if repair is None else Verdict(repair["verdict"])
    reason = "" if repair is None else str(repair.get("reason") or "")
    notes = [] if repair is None else [str(note) for note in repair.get("notes") or ()]
    texts = [sentence(text) for text in (reason, *more, *notes) if text]
    return callout(prose(_field_sentence(repair)), [prose(text) for text in texts], kind=SIGNS[verdict])
