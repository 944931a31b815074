"""The short form of a recipe, compiled to the long one: asks become nodes and relations, checks
become anchors.

An ask has one node per model and repeat; the first carries the ask's own name, the others are tied
to it by the identity, since they answer the same question. `like` ties the ask to another one (with
`change`: affinely), `sums_to` ties the sum of its parts to it. Every node and block remembers the
entry it came from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from rrf_design.errors import InputError
from rrf_design.files import SECTIONS, suggestion
from rrf_design.questions.recipe import AnswerSection, AskEntry, CheckEntry, Origin, RecipeFile
from rrf_design.responses import parsers

KINDS = ("person", "value", "expression", "tests", "verifier", "command")
NUMBER_PARSER = "decimal"
"""Reads an ask that names no parser: amounts have decimals, and a rule for whole numbers would
misread them.
"""
TERMS = ("sigma", "uncertainty", "weight")
"""Keys that relations and anchors have in both forms."""
CHOICE_TOLERANCE = 0.5
"""Two different choices lie √2 apart, so a value within this of one is that one."""


@dataclass(frozen=True, slots=True)
class _LongForm:
    """What the compiler makes: the document, where each id came from, and the nodes by ask, model
    and repeat.
    """

    document: dict[str, Any]
    origins: dict[str, Origin]
    nodes: dict[tuple[str, str | None, int], str]


def own_long(parts: RecipeFile, models: Sequence[str]) -> _LongForm:
    """A recipe that is in the long form already: its ids are their own origin."""
    document: dict[str, Any] = {"problem": dict(parts.problem or {})}
    origins: dict[str, Origin] = {}
    for section in SECTIONS:
        entries = getattr(parts, section)
        if entries:
            document[section] = [dict(entry) for entry in entries]
        for place, entry in enumerate(entries):
            if isinstance(entry.get("id"), str):
                origins[entry["id"]] = Origin(section, place, entry["id"])
            _known_model(entry.get("model") if section == "nodes" else None, models, f"node {entry.get('id')!r}")
    origins[""] = Origin("problem", 0, "")
    nodes: dict[tuple[str, str | None, int], str] = {}
    for entry in parts.nodes:
        if isinstance(entry.get("id"), str):
            nodes[entry["id"], None, 1] = entry["id"]
    return _LongForm(document, origins, nodes)


def compile_short(parts: RecipeFile, models: Sequence[str]) -> _LongForm:
    """The long form of [answer], [[ask]] and [[check]]; InputError names the entry."""
    answer = parts.answer
    if answer is None:
        raise InputError('the short form needs [answer] with of = "...", the ask whose value is delivered')
    if not parts.ask:
        raise InputError("nothing is asked; add [[ask]] with an id and a prompt")
    _unique([*parts.ask, *parts.check])
    asks = {ask.id: ask for ask in parts.ask}
    if answer.of not in asks:
        raise InputError(f"[answer]: of = {answer.of!r} is no ask{suggestion(answer.of, asks)}")
    if asks[answer.of].when is not None:
        raise InputError(f"ask {answer.of!r}: it is delivered for every row, so it can't have when")
    made = _LongForm({"problem": _problem(answer, parts.check)}, {"": Origin("answer", 0, "")}, {})
    sections: dict[str, list[dict[str, Any]]] = {"nodes": [], "relations": [], "anchors": []}
    for place, ask in enumerate(parts.ask):
        _add_ask(ask, answer, models, made, sections)
        _tie(ask, asks, answer, sections)
        for entries in sections.values():
            for entry in entries:
                made.origins.setdefault(entry["id"], Origin("ask", place, ask.id))
    for place, check in enumerate(parts.check):
        made.origins[check.id] = Origin("check", place, check.id)
        sections["anchors"].append(_anchor(check, asks, list(made.nodes.values())))
    made.document.update({key: entries for key, entries in sections.items() if entries})
    return made


def _problem(answer: AnswerSection, checks: Sequence[CheckEntry]) -> dict[str, Any]:
    found: dict[str, Any] = {"name": answer.name} if answer.name else {}
    found |= {"k": answer.k, "deliver": [answer.of]}
    if answer.tolerance is not None:
        found["delta"] = answer.tolerance
    elif answer.choices is not None:
        found["delta"] = CHOICE_TOLERANCE
    found |= _given(answer, "epsilon")
    suspects = 1 if any(check.may_be_wrong for check in checks) else 0
    wrong = suspects if answer.wrong_checks is None else answer.wrong_checks
    if wrong:
        found["wrong_checks"] = wrong
    return found


def _add_ask(
    ask: AskEntry, answer: AnswerSection, models: Sequence[str], made: _LongForm, sections: Mapping[str, list[Any]]
) -> None:
    """The nodes of one ask, and the relations that tie its repeats and models to the first of
    them.
    """
    asked = ask.model if isinstance(ask.model, tuple) else (ask.model,)
    if len(set(asked)) != len(asked) or not asked:
        raise InputError(f"ask {ask.id!r}: model must name at least one model, and none of them twice")
    for first, model in enumerate(asked):
        _known_model(model, models, f"ask {ask.id!r}")
        for repeat in range(1, ask.repeat + 1):
            name = ask.id + (f"@{model}" if first else "") + (f"#{repeat}" if repeat > 1 else "")
            node = {"id": name, **_node(ask, answer)}
            unit = {"ask": None, "wording": ask.id, "model": model or (models[0] if models else "model")}
            if unit[answer.fails_together] is not None:
                node["unit"] = unit[answer.fails_together]
            if model is not None:
                node["model"] = model
            sections["nodes"].append(node)
            made.nodes[ask.id, model, repeat] = name
            if not first:
                made.nodes.setdefault((ask.id, None, repeat), name)
            if name != ask.id:
                sections["relations"].append(_relation(ask, tail=ask.id, head=name, change=False))


def _node(ask: AskEntry, answer: AnswerSection) -> dict[str, Any]:
    found: dict[str, Any] = {"prompt": ask.prompt}
    parser = _parser(ask, answer)
    if parser is not None:
        found["parser"] = parser
        try:
            dim = static_dim(parser)
        except InputError as error:
            raise InputError(f"ask {ask.id!r}: {error}") from None
        if dim is not None and dim > 1:
            found["dim"] = dim
    found |= _given(ask, "system", "max_tokens", "when")
    if ask.range is not None:
        found["range"] = list(ask.range)
    if ask.cost is not None:
        found["cost" if ask.buy == "if needed" else "price"] = ask.cost
    return found


def _parser(ask: AskEntry, answer: AnswerSection) -> Any:
    """The parser of an ask: its own, or the choices of the answer.

    `{ json = "total" }` is short for name and field.
    """
    if isinstance(ask.parse, dict):
        if "name" in ask.parse:
            return dict(ask.parse)
        if len(ask.parse) == 1 and "json" in ask.parse:
            return {"name": "json", "field": ask.parse["json"]}
        raise InputError(
            f'ask {ask.id!r}: parse must be the name of a parser, {{ json = "field" }}, or a table with a name and'
            " options"
        )
    if ask.parse is None and answer.choices is not None and ask.sums_to is None:
        options = answer.choices if isinstance(answer.choices, str) else list(answer.choices)
        return {"name": "choice", "options": options}
    return NUMBER_PARSER if ask.parse is None else ask.parse


def _tie(ask: AskEntry, asks: Mapping[str, AskEntry], answer: AnswerSection, sections: Mapping[str, list[Any]]) -> None:
    other = ask.like if ask.like is not None else ask.sums_to
    if other is None:
        return
    key = "like" if ask.like is not None else "sums_to"
    if other not in asks or other == ask.id:
        raise InputError(f"ask {ask.id!r}: {key} = {other!r} is no other ask{suggestion(other, set(asks) - {ask.id})}")
    if ask.like is not None:
        sections["relations"].append(_relation(ask, tail=other, head=ask.id, change=True))
    else:
        sections["relations"].append(_sum(ask, asks[other], answer))


def _relation(ask: AskEntry, *, tail: str, head: str, change: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"id": f"{head} like {tail}", "tail": tail, "head": head}
    if change and ask.change is not None:
        found |= ask.change.relation()
    return found | _given(ask, *TERMS)


def _sum(ask: AskEntry, total: AskEntry, answer: AnswerSection) -> dict[str, Any]:
    """The parts of this ask add up to another ask's value."""
    if static_dim(_parser(ask, answer)) is None:
        raise InputError(f"ask {ask.id!r}: sums_to needs a number of parts that is the same for every row")
    if static_dim(_parser(total, answer)) != 1:
        raise InputError(f"ask {ask.id!r}: sums_to = {total.id!r} is not one number")
    return {"id": f"{ask.id} sums to {total.id}", "sum": [ask.id], "head": total.id} | _given(ask, *TERMS)


def static_dim(parser: Any) -> int | None:
    """How many numbers a parser reads, where that is the same for every row; None where a cell
    decides it.
    """
    if parser is None:
        return 1
    if isinstance(parser, dict):
        for key in ("options", "tests"):
            if isinstance(parser.get(key), str):
                return None
            if isinstance(parser.get(key), list):
                return len(parser[key])
    return _dim(parser) if isinstance(parser, str) else parsers.get(parser).dim


@lru_cache(256)
def _dim(parser: str) -> int:
    return parsers.get(parser).dim


def _anchor(check: CheckEntry, asks: Mapping[str, AskEntry], nodes: Sequence[str]) -> dict[str, Any]:
    if check.of not in asks and check.of not in nodes:
        raise InputError(f"check {check.id!r}: of = {check.of!r} is no ask{suggestion(check.of, asks)}")
    kinds = [kind for kind in KINDS if kind in check.by]
    if len(kinds) != 1:
        near = next((suggestion(key, KINDS) for key in check.by if suggestion(key, KINDS)), "")
        raise InputError(f"check {check.id!r}: by must have exactly one of {', '.join(KINDS)}{near}")
    found: dict[str, Any] = {"id": check.id, "node": check.of}
    if kinds[0] == "value":
        if len(check.by) > 1:
            extra = next(key for key in check.by if key != "value")
            raise InputError(f"check {check.id!r}: by: unknown key {extra!r} beside value")
        found["value"] = check.by["value"]
    else:
        found["source"] = dict(check.by)
    found |= _given(check, "cost") | ({"trusted": False} if check.may_be_wrong else {})
    return found | _given(check, "rate", "when", *TERMS)


def _given(entry: AskEntry | CheckEntry | AnswerSection, *keys: str) -> dict[str, Any]:
    """The keys that an entry says something of, as the long form has them too."""
    return {key: getattr(entry, key) for key in keys if getattr(entry, key) is not None}


def _known_model(model: Any, models: Sequence[str], where: str) -> None:
    if model is not None and models and model not in models:
        raise InputError(f"{where}: model {model!r} is not in [models]{suggestion(str(model), models)}")


def _unique(entries: Sequence[AskEntry | CheckEntry]) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry.id in seen:
            raise InputError(
                f"{type(entry).__name__.removesuffix('Entry').lower()} {entry.id!r}: this id stands twice; ids must be"
                " unique"
            )
        seen.add(entry.id)
