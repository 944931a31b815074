"""Other ways of asking a question: by a transformation of the catalogue, or in the words of a
model, written once into a file that a person reviews.

`written_out` turns `transform` of an ask into its prompt and change, `suggestions` proposes asks
with one. Of wordings by a model (`rewordings` of [answer]) only entries that a person marked as
reviewed are asked, and one that lost or changed a number, a placeholder, an option letter or a JSON
key is never offered for review as usable.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design.errors import InputError
from rrf_design.files import parse_text, read_source, suggestion, toml_entry
from rrf_design.texts import digits

if TYPE_CHECKING:
    from rrf_design.models import Model
    from rrf_design.problem import Problem
    from rrf_design.questions.recipe import AskEntry, RecipeFile
    from rrf_design.responses import SeparatingInput
    from rrf_design.transforms import Original

ENTRY = ("id", "of", "prompt", "model", "reviewed", "lost")
_BRACES = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:[.,]\d+)*(?![\w])|(?<=\d)[%€$]")
_LETTER = re.compile(r"(?:^|(?<=[\s(]))([A-Z])(?=[).:])", re.MULTILINE)
_KEY = re.compile(r'"([^"\n]+)"\s*:')
WHOLE = 0.4
"""With such a tolerance answers are whole numbers."""
VARIED = 0.8
"""Temperature at which a model on this machine writes wordings."""
ASKING = """Write the following question in other words. It must have exactly the same answer.
{kept}

{prompt}"""
ASKING_IN = """Translate the following question into {language}. It must have exactly the same answer.
{kept}

{prompt}"""
KEPT = """Keep every number, unit, name, option letter, JSON key and everything in double braces exactly as it is.
Write the new question and nothing else."""


def written_out(ask: AskEntry, parts: RecipeFile) -> AskEntry:
    """The ask that `transform` stands for: a prompt, and how its answer must change."""
    from rrf_design.questions.recipe import Change
    from rrf_design.transforms import transformed

    if ask.transform is None:
        return ask
    base, path = _base(ask, parts)
    try:
        question = _question_of(base, path, parts)
        made = transformed(ask.transform, question)
    except InputError as error:
        raise InputError(f"ask {ask.id!r}: {error}") from None
    own: dict[str, Any] = {"prompt": made.prompt, "transform": None}
    for key in ("parse", "system", "max_tokens", "model"):
        if getattr(ask, key) is None:
            own[key] = getattr(base, key)
    if path is not None and ask.parse is None:
        own["parse"] = {"json": path}
    if made.parse is not None:
        own["parse"] = made.parse
    if made.radius:
        own["uncertainty"] = made.radius if ask.uncertainty is None else ask.uncertainty
    if made.sums:
        own |= {"like": None, "sums_to": ask.like}
    if made.change is not None:
        own["change"] = Change.model_validate(dict(made.change))
    return ask.model_copy(update=own)


def _base(ask: AskEntry, parts: RecipeFile) -> tuple[AskEntry, str | None]:
    """The ask that is changed, and the field that is meant, where its answer gives several."""
    asks = {one.id: one for one in parts.ask}
    name, _, path = (ask.like or "").partition(".")
    base = asks.get(ask.like or "") or asks.get(name)
    if base is None or base.prompt is None:
        raise InputError(
            f"ask {ask.id!r}: transform says how another question is changed; like must name one with a prompt of its"
            " own"
        )
    return base, (path or None) if ask.like not in asks else None


def _question_of(base: AskEntry, path: str | None, parts: RecipeFile) -> Original:
    """A question as transformations see it; of an ask that gives several fields the one that is
    meant.
    """
    from rrf_design.questions._shortform import static_dim
    from rrf_design.transforms import CHOICE, CLASS, DAY, NUMBER, NUMBERS, PROGRAM, TRUTH, Original

    assert base.prompt is not None
    wanted = base.id if path is None else f"{base.id}.{path}"
    answer = next((one for one in parts.answer if one.of == wanted), None)
    if path is not None:
        if answer is None or answer.tolerance is None:
            raise InputError(f"{wanted!r} is no field with a tolerance; of several fields numbers alone are changed")
        alone = f"{base.prompt}\n\nOf these write {path} alone, as JSON: {{{json.dumps(path)}: ..}}"
        return Original(alone, NUMBER)
    answer = answer or (parts.answer[0] if len(parts.answer) == 1 else None)
    choices = None if answer is None else answer.choices
    spec = base.parse if base.parse is not None else (None if answer is None else answer.parse)
    name = spec.get("name") if isinstance(spec, dict) else spec
    if name == "choice" and isinstance(spec, dict):
        choices = spec.get("options")
    if choices is not None and name in (None, "choice"):
        return Original(base.prompt, CHOICE, tuple(choices) if isinstance(choices, list | tuple) else ())
    dim = static_dim({"name": "json", "field": spec["json"]} if isinstance(spec, dict) and "json" in spec else spec)
    if name in ("date", "code"):
        return Original(base.prompt, DAY if name == "date" else PROGRAM)
    kind = TRUTH if name == "yes-no" and dim == 1 else {0: CLASS, 1: NUMBER}.get(-1 if dim is None else dim, NUMBERS)
    near = None if answer is None else answer.tolerance
    whole = str(name).startswith("integer") or (isinstance(near, int | float) and near >= WHOLE)
    return Original(base.prompt, kind, whole=whole)


@dataclass(frozen=True, slots=True)
class _Suggestion:
    """A candidate: the entry as it stands in a recipe, the transformation, and the reason."""

    entry: dict[str, Any]
    transform: str
    reason: str


def suggestions(parts: RecipeFile) -> list[_Suggestion]:
    """Other ways of asking for each delivered value, each on sale for what the original costs, or
    for 1 where that has no price.

    What the recipe has already is left out.
    """
    from rrf_design.questions.recipe import Change
    from rrf_design.transforms import candidates, read_spec

    asks = {ask.id: ask for ask in parts.ask}
    found = []
    for answer in parts.answer:
        name, _, path = answer.of.partition(".")
        base = asks.get(answer.of) or asks.get(name)
        if base is None or base.prompt is None:
            continue
        try:
            question = _question_of(base, None if answer.of in asks else path, parts)
        except InputError:
            continue  # a field that is no number
        mine = [ask for ask in parts.ask if ask.like == answer.of]
        there = [ask.transform for ask in mine]
        by_hand = [ask.change.relation() for ask in mine if ask.change is not None]
        price = base.cost if base.cost is not None else 1.0
        for transform, spec in candidates(question):
            words = spec if isinstance(spec, str) else "-".join([transform.name, *map(_short, spec.values())])
            own = f"{answer.of.replace('.', '-')}-{words}"
            moved = transform.write(question, read_spec(spec)[1]).change
            same = moved is not None and Change.model_validate(dict(moved)).relation() in by_hand
            if spec in there or own in asks or same:
                continue
            entry = {"id": own, "like": answer.of, "transform": spec, "cost": price, "buy": "if needed"}
            found.append(_Suggestion(entry, transform.name, f"{transform.says}; breaks {transform.breaks}"))
    return found


def _short(value: Any) -> str:
    """A setting as a part of a name."""
    return digits(value) if isinstance(value, int | float) else re.sub(r"[^\w.]+", "-", str(value)).strip("-")


def dumps_suggestions(
    found: Sequence[_Suggestion],
    wordings: Sequence[Mapping[str, Any]],
    parts: RecipeFile,
    numbers: Sequence[str] = (),
) -> str:
    """The candidates as entries of a recipe; what has to be read first, as comments: wordings by a
    model, the text in which a value must stand, a number of the row with which the answer grows.
    """
    pieces = ["# Proposed by `rrf-design suggest`: on sale, so nothing is asked that does not pay."]
    pieces += [f"\n[[ask]]  # {one.reason}\n{toml_entry(one.entry)}".rstrip() for one in found]
    for wording in wordings:
        if "lost" in wording:
            continue
        head = f"\n# By {wording['model']}. Does it ask for the very same answer? Then take away the marks."
        entry = {key: wording[name] for key, name in (("id", "id"), ("like", "of"), ("prompt", "prompt"))}
        own = next((ask.cost for ask in parts.ask if ask.id == wording["of"]), None)
        entry |= {"cost": 1.0 if own is None else own, "buy": "if needed"}
        pieces += [head, *(f"# {line}" for line in f"[[ask]]\n{toml_entry(entry)}".rstrip().splitlines())]
    for answer in parts.answer:
        base = next((ask for ask in parts.ask if ask.id == answer.of.partition(".")[0]), None)
        if base is not None and base.prompt is not None:
            pieces += _to_be_read(answer.of, base, parts, numbers)
    return "\n".join(pieces) + "\n"


def _to_be_read(of: str, base: AskEntry, parts: RecipeFile, numbers: Sequence[str]) -> Iterator[str]:
    """What holds only if somebody says so, in comments."""
    from rrf_design.transforms import CLASS, DAY, NUMBER, NUMBERS

    try:
        kind = _question_of(base, None, parts).answer
    except InputError:
        kind = ""
    columns = [part.strip("{} ") for part in _COLUMN.findall(base.prompt or "")]
    if kind in (CLASS, DAY, NUMBER, NUMBERS) and len(columns) == 1 and not parts.veto:
        yield "\n# Free, if this value always stands in the text of the row: then take away the marks."
        yield f'# [[veto]]\n# of = "{of}"\n# in_text = "{{{{ {columns[0]} }}}}"'
    grows = [name for name in columns if name in numbers] if kind == NUMBER else []
    if grows and not any(isinstance(ask.transform, dict) and "changed-row" in ask.transform for ask in parts.ask):
        yield f"\n# If the answer is proportional to {' or '.join(grows)}: take away the marks, and keep that column."
        change = toml_entry({"transform": {"changed-row": {grows[0]: {"scale": 3}}, "scale": 3}}).strip()
        yield f'# [[ask]]\n# id = "{of}-changed-{grows[0]}"\n# like = "{of}"\n# {change}'


_COLUMN = re.compile(r"\{\{[^{}]*\}\}")


def separated(problem: Problem, texts: Mapping[str, str], *, cost: float = 1.0, most: int = 1) -> _Separated | None:
    """The problem with inputs on which programs differ that agree on all its tests: each is one
    more coordinate of every program, and one more anchor on sale.

    Parameters
    ----------
    problem : of one row, whose delivered answer is a program.
    texts : what was answered, by node.
    cost : of asking a person what is right there.
    most : so many inputs at most.

    Returns
    -------
    _Separated or None
        None where fewer than two programs agree, or no input was found, which proves nothing.
    """
    from rrf_design.files import from_document, to_document
    from rrf_design.responses import parsers, separating_inputs

    of = problem.deliver[0] if problem.deliver else problem.nodes[0].id
    spec = problem.node_by_id[of].parser
    if not isinstance(spec, Mapping) or spec.get("name") != "code":
        raise InputError(f'{of!r} is no program (parse = {{ name = "code", ... }}): no input separates its answers')
    alike = [node.id for node in problem.nodes if node.parser == spec]
    answered = [name for name in alike if name in texts]
    read = parsers.get(dict(spec)).parse_many([texts[name] for name in answered])
    values = Counter(one.value for one in read if one.value is not None)
    agreed, count = values.most_common(1)[0] if values else ((), 0)
    if count < 2:
        return None
    tests, entry = list(spec["tests"]), str(spec.get("entry", "solve"))
    programs = {name: texts[name] for name, one in zip(answered, read, strict=True) if one.value == agreed}
    own = {key: spec[key] for key in ("seconds", "require") if key in spec}
    found = separating_inputs(programs, tests, entry=entry, most=most, **own)
    if not found:
        return None
    document, width = to_document(problem), len(tests) + len(found)
    for node in document["nodes"]:
        if node["id"] in alike:
            node["dim"] = width
            node["parser"] = {**spec, "tests": [*tests, *(list(one.arguments) for one in found)]}
    for anchor in document.get("anchors", ()):
        if anchor.get("node") in alike:  # it speaks of the tests that were there
            rows = anchor.get("rows") or [[float(at == row) for at in range(len(tests))] for row in range(len(tests))]
            anchor["rows"] = [[*row, *[0.0] * len(found)] for row in rows]
    anchors = document.setdefault("anchors", [])
    for place, one in enumerate(found, start=len(tests)):
        check = one.check(of, entry=entry, cost=cost)
        anchors.append({"id": check["id"], "node": of, "rows": [[float(at == place) for at in range(width)]]})
        anchors[-1] |= {"source": check["by"], "cost": cost}
    return _Separated(from_document(document), found)


@dataclass(frozen=True, slots=True)
class _Separated:
    """A problem whose programs no longer agree, and the inputs that part them."""

    problem: Problem
    inputs: tuple[SeparatingInput, ...]


def _lost(original: str, reworded: str) -> list[str]:
    """What a wording lost, added or changed that the answer hangs on; nothing for one that may be
    looked at.

    >>> lost("Net {{ net }}, 19 % tax. A) yes B) no", "With 19 % tax on {{ net }}: A) yes B) no?")
    []
    >>> lost("Net {{ net }}, 19 % tax", "Net {{ net }}, 9 % tax")
    ['number 19 (0 instead of 1)', 'number 9 (1 instead of 0)']
    """
    kinds = (
        ("placeholder", lambda text: [" ".join(part.split()) for part in _BRACES.findall(text)]),
        ("number", lambda text: _NUMBER.findall(_BRACES.sub(" ", text))),
        ("option", lambda text: _LETTER.findall(_BRACES.sub(" ", text))),
        ("key", lambda text: _KEY.findall(text)),
    )
    found = []
    for kind, parts in kinds:
        before, after = Counter(parts(original)), Counter(parts(reworded))
        for part in [*before, *(part for part in after if part not in before)]:
            if before[part] != after[part]:
                found.append(f"{kind} {part} ({after[part]} instead of {before[part]})")
    return found


def write_rewordings(
    asks: Sequence[AskEntry], model: Model, *, count: int = 3, language: str | None = None
) -> list[dict[str, Any]]:
    """Ask a model for other wordings of every question that has one of its own, in its language or
    another one; each with what it lost, none reviewed.
    """
    from rrf_design.models import Request

    entries = []
    for ask in asks:
        if ask.prompt is None or ask.like is not None or ask.sums_to is not None:
            continue
        asking = ASKING if language is None else ASKING_IN.replace("{language}", language)
        prompt = asking.replace("{kept}", KEPT).replace("{prompt}", ask.prompt)
        size = max(256, 2 * len(ask.prompt))
        # A server left alone varies its answers; a model on this machine is greedy then, and would
        # write the same each time.
        warmth = VARIED if model.local else None
        requests = [
            Request(prompt, max_tokens=size, temperature=warmth, top_p=None, seed=None, repeat=n) for n in range(count)
        ]
        texts: dict[str, None] = {}
        for reply in model.complete(requests):
            text = reply.text.strip()
            if reply.parseable and text and text != ask.prompt.strip():
                texts[text] = None
        for number, text in enumerate(texts, start=1):
            named = f"{ask.id}-{number}" if language is None else f"{ask.id}-{language.lower()}-{number}"
            entry: dict[str, Any] = {"id": named, "of": ask.id, "prompt": text, "model": model.name}
            missing = _lost(ask.prompt, text)
            entries.append(entry | ({"lost": missing} if missing else {"reviewed": False}))
    return entries


def dumps_rewordings(entries: Sequence[Mapping[str, Any]], name: str) -> str:
    """The file for review."""
    head = (
        f"# Other wordings of the questions in {name}. Read each: does it ask for the very same answer? Then set"
        " reviewed = true.\n# Only reviewed ones are used. Those with `lost` changed what the answer hangs on, and"
        " can't be.\n"
    )
    return "\n".join([head, *(f"[[reword]]\n{toml_entry(dict(entry))}" for entry in entries)])


def read_rewordings(path: Path, asks: Mapping[str, AskEntry]) -> list[AskEntry]:
    """The reviewed entries of a file as asks that must agree with the ones they reword; InputError
    names the entry.
    """
    from rrf_design.questions.recipe import AskEntry

    document = parse_text(read_source(path), path.suffix.lower())
    listed = document.get("reword") if isinstance(document, dict) else None
    if not isinstance(listed, list) or set(document) != {"reword"}:
        raise InputError(f"{path}: rewordings are [[reword]] entries and nothing else; `rrf-design reword` writes them")
    found = []
    for entry in listed:
        where = f"{path}: reword {entry.get('id')!r}"
        for key in entry:
            if key not in ENTRY:
                raise InputError(f"{where}: unknown key {key!r}{suggestion(key, ENTRY)}")
        if entry.get("reviewed") is not True:
            continue
        base = asks.get(str(entry.get("of")))
        if base is None or base.prompt is None:
            raise InputError(
                f"{where}: of = {entry.get('of')!r} is no ask with a prompt{suggestion(str(entry.get('of')), asks)}"
            )
        missing = _lost(base.prompt, str(entry.get("prompt")))
        if missing:
            raise InputError(f"{where}: it is marked as reviewed, but it changed {'; '.join(missing)}")
        taken = {key: getattr(base, key) for key in ("parse", "system", "model", "max_tokens", "when")}
        own = {"id": entry.get("id"), "prompt": entry["prompt"], "like": base.id}
        found.append(AskEntry.model_validate({**{k: v for k, v in taken.items() if v is not None}, **own}))
    return found
