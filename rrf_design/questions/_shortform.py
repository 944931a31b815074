"""The short form of a recipe, compiled to the long one: asks become nodes and relations, checks
become anchors.

An ask has one node per model and repeat; the first carries the ask's own name, the others are tied
to it by the identity, since they answer the same question. `like` ties the ask to another one (with
`change`: affinely), `sums_to` ties the sum of its parts to it. Every node and block remembers the
entry it came from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from rrf_design.errors import InputError
from rrf_design.files import SECTIONS, suggestion
from rrf_design.questions.recipe import (
    AnswerSection,
    AskEntry,
    CheckEntry,
    EquationEntry,
    Origin,
    RecipeFile,
    VetoEntry,
)
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
    and repeat; of asks that give several fields their calls; the column of each field's truth.
    """

    document: dict[str, Any]
    origins: dict[str, Origin]
    nodes: dict[tuple[str, str | None, int], str]
    calls: dict[tuple[str, str | None, int], tuple[str, ...]] = field(default_factory=dict)
    golds: dict[str, str] = field(default_factory=dict)


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


@dataclass(frozen=True, slots=True)
class _Part:
    """One value that an ask gives: all of its answer, or a field of it."""

    path: str | None
    parser: Any
    tolerance: float | str | None = None
    """Of its field, where several are delivered: the unit in which its errors are counted."""
    k: int | None = None


@dataclass(slots=True)
class _Compiler:
    """The parts of a recipe in the short form, and what they become."""

    parts: RecipeFile
    models: Sequence[str]
    asks: dict[str, AskEntry]
    made: _LongForm
    sections: dict[str, list[dict[str, Any]]]
    values: dict[str, dict[str | None, _Part]] = field(default_factory=dict)
    """By ask: what it gives, by path."""

    @property
    def answer(self) -> AnswerSection:
        """What is said of all fields stands in any of their entries."""
        return self.parts.answer[0]

    @property
    def several(self) -> bool:
        return len(self.parts.answer) > 1 or self.answer.of not in self.asks

    def part(self, name: str, where: str) -> tuple[str, _Part]:
        """The first node of an ask or a field, and what it gives; InputError for what is
        neither.
        """
        known = {self.id_of(ask, path): (ask, path) for ask, own in self.values.items() for path in own}
        if name in known:
            ask, path = known[name]
            return name, self.values[ask][path]
        if name in self.values:
            fields = ", ".join(self.id_of(name, path) for path in self.values[name])
            raise InputError(f"{where} = {name!r} gives several fields; say which: {fields}")
        raise InputError(
            f"{where} = {name!r} is no ask{' and no field' if self.several else ''}{suggestion(name, known)}"
        )

    def id_of(self, ask: str, path: str | None, copy: str = "") -> str:
        return f"{ask}{copy}" if path is None else f"{ask}{copy}.{path}"


def compile_short(parts: RecipeFile, models: Sequence[str]) -> _LongForm:
    """The long form of [answer], [[ask]], [[equation]], [[veto]] and [[check]]; InputError names
    the entry.
    """
    if not parts.answer:
        raise InputError('the short form needs [answer] with of = "...", the ask whose value is delivered')
    if not parts.ask:
        raise InputError("nothing is asked; add [[ask]] with an id and a prompt")
    _unique([*parts.ask, *parts.check])
    asks = {ask.id: ask for ask in parts.ask}
    made = _LongForm({}, {"": Origin("answer", 0, "")}, {})
    sections: dict[str, list[dict[str, Any]]] = {"nodes": [], "relations": [], "anchors": []}
    compiler = _Compiler(parts, models, asks, made, sections)
    _read_fields(compiler)
    made.document["problem"] = _problem(compiler)
    for place, ask in enumerate(parts.ask):
        _add_ask(ask, compiler)
        _tie(ask, compiler)
        _remember(compiler, Origin("ask", place, ask.id))
    for place, equation in enumerate(parts.equation):
        _add_equation(equation, compiler)
        _remember(compiler, Origin("equation", place, equation.name))
    for veto in parts.veto:
        _add_veto(veto, compiler)
    for place, check in enumerate(parts.check):
        made.origins[check.id] = Origin("check", place, check.id)
        sections["anchors"].append(_anchor(check, compiler))
    if any(check.may_be_wrong for check in parts.check):
        for entry in (*sections["relations"], *sections["anchors"]):  # the others are right, whichever are bought
            if not {"trusted", "rate", "sigma", "uncertainty"}.intersection(entry):
                entry["trusted"] = True
    made.document.update({key: entries for key, entries in sections.items() if entries})
    return made


def _remember(compiler: _Compiler, origin: Origin) -> None:
    """Everything that is new came from this entry."""
    for entries in compiler.sections.values():
        for entry in entries:
            compiler.made.origins.setdefault(entry["id"], origin)


def _read_fields(compiler: _Compiler) -> None:
    """What every ask gives, from [answer], `parse` and `like`."""
    asks, answers = compiler.asks, compiler.parts.answer
    named: dict[str, dict[str, AnswerSection]] = {}
    whole: dict[str, AnswerSection] = {}
    for answer in answers:
        first, _, path = answer.of.partition(".")
        if answer.of in asks:
            whole[answer.of] = answer
        elif path and first in asks:
            named.setdefault(first, {})[path] = answer
        else:
            raise InputError(f"[answer]: of = {answer.of!r} is no ask{suggestion(answer.of, asks)}")
    if len({answer.of for answer in answers}) < len(answers):
        raise InputError("[[answer]]: a field stands there twice")
    if compiler.several:
        for name in asks:
            if "." in name:
                raise InputError(f"ask {name!r}: where several fields are delivered no dot can be in an id")
    for ask in asks.values():
        compiler.values[ask.id] = _values_of(ask, compiler, named, whole)
    for answer in answers:
        ask = asks[answer.of.partition(".")[0] if compiler.several else answer.of]
        if ask.when is not None:
            raise InputError(f"ask {ask.id!r}: it is delivered for every row, so it can't have when")
        compiler.part(answer.of, "[answer]: of")
    _take_tolerances(compiler)


def _values_of(
    ask: AskEntry,
    compiler: _Compiler,
    named: Mapping[str, Mapping[str, AnswerSection]],
    whole: Mapping[str, AnswerSection],
) -> dict[str | None, _Part]:
    """The values of one ask: those of its fields, or one."""
    root = ask.like if ask.like is not None and ask.like in named and ask.id not in named else ask.id
    if root not in named:
        answer = whole.get(ask.id, AnswerSection(of=ask.id) if compiler.several else compiler.answer)
        tolerance = answer.tolerance if compiler.several else None
        if compiler.several and answer.choices is not None:
            tolerance = CHOICE_TOLERANCE
        return {None: _Part(None, _parser(ask, answer), tolerance, _smaller(answer, compiler))}
    listed = ask.parse.get("json") if isinstance(ask.parse, dict) and set(ask.parse) == {"json"} else None
    if ask.parse is not None and not isinstance(listed, list):
        raise InputError(
            f"ask {ask.id!r}: it gives several fields, so parse is {{ json = [...] }} with their names;"
            f' an ask that gives one field is like that field, as in like = "{root}.{next(iter(named[root]))}"'
        )
    paths = list(dict.fromkeys(str(path) for path in listed)) if listed else None
    if paths is None:
        base = compiler.asks[root].parse
        more = base.get("json") if isinstance(base, dict) else None
        paths = list(dict.fromkeys([*named[root], *(more if isinstance(more, list) else ())]))
    for path in named[root] if ask.id == root else ():
        if path not in paths:
            raise InputError(
                f"[answer]: of = {f'{root}.{path}'!r}: ask {root!r} does not give {path!r}{suggestion(path, paths)}"
            )
    for key in ("change", "transform", "sums_to", "sigma", "uncertainty", "range"):
        if getattr(ask, key) is not None:
            raise InputError(f"ask {ask.id!r}: {key} speaks of one value, and this ask gives {len(paths)} fields")
    return {path: _field_part(path, named[root].get(path), compiler) for path in paths}


def _field_part(path: str, answer: AnswerSection | None, compiler: _Compiler) -> _Part:
    """How a field is read: by its own parser, as a choice, as a number that has a tolerance, else
    as a short text. One that is not delivered is a number.
    """
    if answer is None:
        return _Part(path, {"name": "json", "field": path})
    if answer.parse is not None:
        inner = dict(answer.parse) if isinstance(answer.parse, dict) else answer.parse
    elif answer.choices is not None:
        inner = {"name": "choice", "options": _options(answer)}
    else:
        inner = "label" if answer.tolerance is None else NUMBER_PARSER
    parser = {"name": "json", "field": path} | ({} if inner == NUMBER_PARSER else {"of": inner})
    tolerance = CHOICE_TOLERANCE if answer.choices is not None else answer.tolerance
    dim = static_dim(parser)
    if dim == 0 and answer.tolerance is not None:
        raise InputError(f"[answer] {answer.of!r}: it is read as a class, which has no tolerance; leave it out")
    return _Part(path, parser, tolerance, _smaller(answer, compiler))


def _smaller(answer: AnswerSection, compiler: _Compiler) -> int | None:
    """The k of a field, where another one has a larger."""
    return answer.k if answer.k < max(one.k for one in compiler.parts.answer) else None


def _take_tolerances(compiler: _Compiler) -> None:
    """A number that is not delivered, or is asked for by itself, is counted in the unit of what it
    is held against.
    """
    if not compiler.several:
        return
    pairs = [(ask.id, ask.like or ask.sums_to or "") for ask in compiler.parts.ask]
    pairs += [(other, name) for name, other in pairs]
    pairs += [(name, one.equals) for one in compiler.parts.equation for name in one.sum]
    pairs += [(one.equals, name) for one in compiler.parts.equation for name in one.sum]
    places = {compiler.id_of(ask, path): (ask, path) for ask, own in compiler.values.items() for path in own}
    for mine, other in pairs * 2:
        for path in list(compiler.values.get(mine, {None: None})):
            here = places.get(compiler.id_of(mine, path))
            there = places.get(compiler.id_of(other, path), places.get(other))
            if here is None or there is None:
                continue
            (ask, own), known = here, compiler.values[there[0]][there[1]].tolerance
            part = compiler.values[ask][own]
            if part.tolerance is None and known is not None and static_dim(part.parser) != 0:
                compiler.values[ask][own] = replace(part, tolerance=known)


def _problem(compiler: _Compiler) -> dict[str, Any]:
    answers, checks = compiler.parts.answer, compiler.parts.check
    answer = compiler.answer
    found: dict[str, Any] = {"name": answer.name} if answer.name else {}
    found |= {"k": max(one.k for one in answers), "deliver": [one.of for one in answers]}
    for one in answers:
        if one.gold is not None:
            compiler.made.golds[one.of] = one.gold
    if compiler.several:
        for key in ("fails_together", "rewordings", "wrong_checks", "name"):
            if len({getattr(one, key) for one in answers if key in one.model_fields_set}) > 1:
                raise InputError(f"[[answer]]: {key} is of all fields, and two entries differ in it")
        if any(one.epsilon is not None for one in answers):
            raise InputError("[[answer]]: epsilon goes with one field; where there are several leave it out")
        if any(part.tolerance is not None for own in compiler.values.values() for part in own.values()):
            found["delta"] = 1.0  # each field is counted in its own tolerance
    elif answer.tolerance is not None:
        found["delta"] = answer.tolerance
    elif answer.choices is not None:
        found["delta"] = CHOICE_TOLERANCE
    found |= _given(answer, "epsilon")
    suspects = 1 if any(check.may_be_wrong for check in checks) else 0
    stated = [one.wrong_checks for one in answers if one.wrong_checks is not None]
    wrong = stated[0] if stated else suspects
    if wrong:
        found["wrong_checks"] = wrong
    return found


def _shared(compiler: _Compiler, key: str) -> Any:
    """What one of the entries says of all fields."""
    said = [getattr(one, key) for one in compiler.parts.answer if key in one.model_fields_set]
    return said[0] if said else getattr(compiler.answer, key)


def _add_ask(ask: AskEntry, compiler: _Compiler) -> None:
    """The nodes of one ask, and the relations that tie its repeats and models to the first of
    them.
    """
    models, made = compiler.models, compiler.made
    asked = ask.model if isinstance(ask.model, tuple) else (ask.model,)
    if len(set(asked)) != len(asked) or not asked:
        raise InputError(f"ask {ask.id!r}: model must name at least one model, and none of them twice")
    for first, model in enumerate(asked):
        _known_model(model, models, f"ask {ask.id!r}")
        for repeat in range(1, ask.repeat + 1):
            copy = (f"@{model}" if first else "") + (f"#{repeat}" if repeat > 1 else "")
            nodes: list[str] = []
            for part in compiler.values[ask.id].values():
                name = compiler.id_of(ask.id, part.path, copy)
                node = {"id": name, **_node(ask, part, nodes[0] if nodes else None)}
                whose = f"{ask.id}{copy}" if part.path is not None else None
                unit = {"ask": whose, "wording": ask.id, "model": model or (models[0] if models else "model")}
                together = unit[_shared(compiler, "fails_together")]
                if together is not None:
                    node["unit"] = together
                if model is not None and not nodes:
                    node["model"] = model
                nodes.append(name)
                compiler.sections["nodes"].append(node)
                made.nodes[compiler.id_of(ask.id, part.path), model, repeat] = name
                if not first:
                    made.nodes.setdefault((compiler.id_of(ask.id, part.path), None, repeat), name)
                if copy:
                    tail = compiler.id_of(ask.id, part.path)
                    compiler.sections["relations"].append(_relation(ask, part, tail=tail, head=name, change=False))
            if len(nodes) > 1 or compiler.values[ask.id].keys() != {None}:
                made.calls[ask.id, model, repeat] = tuple(nodes)
                made.calls.setdefault((ask.id, None, repeat), tuple(nodes))


def _node(ask: AskEntry, part: _Part, asked: str | None) -> dict[str, Any]:
    """One value of an ask; `asked` is the node whose answer it is read from, if not its own."""
    found: dict[str, Any] = {"prompt": ask.prompt} if asked is None else {"read_from": asked}
    if part.parser is not None:
        found["parser"] = part.parser
        try:
            dim = static_dim(part.parser)
        except InputError as error:
            raise InputError(f"ask {ask.id!r}: {error}") from None
        if dim is not None and dim > 1:
            found["dim"] = dim
    found |= _given(ask, "after", "system", "max_tokens") if asked is None else {}
    found |= _given(ask, "when")
    if part.tolerance is not None:
        found |= {"tolerance": part.tolerance, "metric": _weight(ask.id, part)}
    found |= {} if part.k is None else {"k": part.k}
    if ask.range is not None:
        found["range"] = list(ask.range)
    if ask.cost is not None and asked is None:
        found["cost" if ask.buy == "if needed" else "price"] = ask.cost
    return found


def _weight(where: str, part: _Part) -> float:
    """What a square of the field is multiplied with, so that it is counted in tolerances."""
    if not isinstance(part.tolerance, int | float):
        raise InputError(f"{where!r}: tolerance is a number where several fields are delivered, the same for all rows")
    return float(f"{1.0 / (part.tolerance * part.tolerance):.12g}")


def _weighted(entry: AskEntry | CheckEntry, part: _Part, where: str) -> dict[str, Any]:
    """Noise and weight of a row; where several fields are delivered it is counted in tolerances."""
    found = _given(entry, *TERMS)
    if part.tolerance is None:
        return found
    for key in ("sigma", "uncertainty"):
        if key in found:
            raise InputError(f"{where}: {key} goes with one field; where there are several leave it out")
    weight = found.get("weight", 1.0)
    if not isinstance(weight, int | float):
        raise InputError(f"{where}: weight is a number where several fields are delivered")
    return {"weight": float(f"{weight * _weight(where, part):.12g}")}


def _options(answer: AnswerSection) -> Any:
    return answer.choices if isinstance(answer.choices, str) else list(answer.choices or ())


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
        return {"name": "choice", "options": _options(answer)}
    own = answer.parse if ask.parse is None else ask.parse
    return NUMBER_PARSER if own is None else own


def _tie(ask: AskEntry, compiler: _Compiler) -> None:
    key = "like" if ask.like is not None else "sums_to"
    other = getattr(ask, key)
    if other is None:
        return
    own = compiler.values[ask.id]
    relations = compiler.sections["relations"]
    if other in compiler.asks and other != ask.id and compiler.values[other].keys() != {None}:
        if own.keys() == {None}:
            compiler.part(other, f"ask {ask.id!r}: {key}")  # says which fields there are
        for path, part in own.items():
            if path not in compiler.values[other]:
                raise InputError(f"ask {ask.id!r}: ask {other!r}, which it is like, does not give {path!r}")
            tail, head = compiler.id_of(other, path), compiler.id_of(ask.id, path)
            relations.append(_relation(ask, part, tail=tail, head=head, change=True))
        return
    known = {compiler.id_of(name, path) for name, paths in compiler.values.items() for path in paths if name != ask.id}
    if other not in known:
        raise InputError(f"ask {ask.id!r}: {key} = {other!r} is no other ask{suggestion(other, known)}")
    (part,) = own.values()
    if key == "like":
        relations.append(_relation(ask, part, tail=other, head=ask.id, change=True))
    else:
        relations.append(_sum(ask, part, compiler))


def _relation(ask: AskEntry, part: _Part, *, tail: str, head: str, change: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"id": f"{head} like {tail}", "tail": tail, "head": head}
    if change and ask.change is not None:
        found |= ask.change.relation()
    return found | _weighted(ask, part, f"ask {ask.id!r}")


def _sum(ask: AskEntry, part: _Part, compiler: _Compiler) -> dict[str, Any]:
    """The parts of this ask add up to another ask's value."""
    total = str(ask.sums_to)
    if static_dim(part.parser) is None:
        raise InputError(f"ask {ask.id!r}: sums_to needs a number of parts that is the same for every row")
    if static_dim(compiler.part(total, f"ask {ask.id!r}: sums_to")[1].parser) != 1:
        raise InputError(f"ask {ask.id!r}: sums_to = {total!r} is not one number")
    found = {"id": f"{ask.id} sums to {total}", "sum": [ask.id], "head": total}
    return found | _weighted(ask, part, f"ask {ask.id!r}")


def _add_equation(equation: EquationEntry, compiler: _Compiler) -> None:
    """Between answers a row of B; within one answer a veto on it, and on every other answer that
    gives the same fields.
    """
    where = f"equation {equation.name!r}"
    if not compiler.several:
        raise InputError(f"{where}: equations are between fields; deliver them with [[answer]] entries")
    names = (*equation.sum, equation.equals)
    parts = [compiler.part(name, f"{where}: sum")[1] for name in equation.sum]
    parts.append(compiler.part(equation.equals, f"{where}: equals")[1])
    for name, part in zip(names, parts, strict=True):
        if static_dim(part.parser) != 1:
            raise InputError(f"{where}: {name!r} is not one number")
    factors = equation.coefficients or (1.0,) * len(equation.sum)
    asked = {name.partition(".")[0] for name in names}
    tolerances = [part.tolerance for part in parts]
    if len(asked) == 1:
        (ask,) = asked
        slack = sum(abs(c) * float(t or 0.0) for c, t in zip((*factors, 1.0), tolerances, strict=True))
        for (own, _, _), call in compiler.made.calls.items():
            paths = list(compiler.values[own])
            if ask not in (own, compiler.asks[own].like) or not {part.path for part in parts} <= set(paths):
                continue
            copies = [call[paths.index(part.path)] for part in parts]
            veto: dict[str, Any] = {"sum": copies[:-1], "equals": copies[-1], "within": float(f"{slack:.12g}")}
            veto |= {} if equation.coefficients is None else {"coefficients": list(factors)}
            for node in compiler.sections["nodes"]:
                if node["id"] in copies and veto not in node.setdefault("veto", []):
                    node["veto"].append(veto)
        return
    rows = {name: [[factor]] for name, factor in zip(equation.sum, factors, strict=True)} | {equation.equals: [[-1.0]]}
    weight = {} if tolerances[-1] is None else {"weight": _weight(where, parts[-1])}
    compiler.sections["relations"].append({"id": equation.name, "rows": rows, **weight})


def _add_veto(veto: VetoEntry, compiler: _Compiler) -> None:
    """A rule for the nodes of an ask or field, and for those of every other ask whose value can be
    taken back to it.
    """
    _, part = compiler.part(veto.of, f"veto of {veto.of!r}: of")
    rule = veto.rule
    near = part.tolerance if compiler.several else compiler.answer.tolerance
    if isinstance(near, str):
        raise InputError(f"veto of {veto.of!r}: it needs a tolerance that is the same number for every row")
    if near is not None and ("in_text" in rule or "within" in rule) and static_dim(part.parser) == 1:
        rule["near"] = near
    for name, (scale, shift) in _same_value(compiler, veto.of, part.path).items():
        own = rule | ({} if scale == 1 else {"scale": scale}) | ({} if shift == 0 else {"shift": shift})
        theirs = {node for (known, _, _), node in compiler.made.nodes.items() if known == name}
        for node in compiler.sections["nodes"]:
            if node["id"] in theirs and own not in node.setdefault("veto", []):
                node["veto"].append(own)


def _same_value(compiler: _Compiler, name: str, path: str | None) -> dict[str, tuple[float, float]]:
    """The asks or fields whose value is so many times this one's plus so much, the same for every
    row.
    """
    found = {name: (1.0, 0.0)}
    for ask in [*compiler.asks.values()] * len(compiler.asks):
        own = compiler.id_of(ask.id, path if path in compiler.values[ask.id] else None)
        base = next((one for one in (str(ask.like), compiler.id_of(str(ask.like), path)) if one in found), None)
        given = {} if ask.change is None else ask.change.relation()
        scale, shift = given.get("transport", {"scale": 1.0}).get("scale"), given.get("offset", 0.0)
        if base and own not in found and isinstance(scale, int | float) and isinstance(shift, int | float) and scale:
            found[own] = found[base][0] * scale, found[base][1] * scale + shift
    return found


def static_dim(parser: Any) -> int | None:
    """How many numbers a parser reads, where that is the same for every row; None where a cell
    decides it.
    """
    if parser is None:
        return 1
    if isinstance(parser, dict):
        inner = parser.get("of")
        if isinstance(inner, dict):
            return static_dim(inner)
        for key in ("options", "tests"):
            if isinstance(parser.get(key), str):
                return None
            if isinstance(parser.get(key), list):
                return len(parser[key])
    try:
        return _dim(json.dumps(parser))
    except TypeError:  # a date or a parser itself
        return parsers.get(parser).dim


@lru_cache(256)
def _dim(spec: str) -> int:
    return parsers.get(json.loads(spec)).dim


def _anchor(check: CheckEntry, compiler: _Compiler) -> dict[str, Any]:
    nodes = {node["id"] for node in compiler.sections["nodes"]}
    first = next((node for (name, _, _), node in compiler.made.nodes.items() if node == check.of), None)
    if first is None or check.of not in nodes:
        compiler.part(check.of, f"check {check.id!r}: of")
    owner = next(name for (name, _, _), node in compiler.made.nodes.items() if node == check.of)
    part = compiler.part(owner, f"check {check.id!r}: of")[1]
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
    return found | _given(check, "rate", "when") | _weighted(check, part, f"check {check.id!r}")


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
