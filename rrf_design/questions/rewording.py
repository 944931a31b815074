"""Other wordings of a question: built in, without any model, or written once by a model into a file
that a person reviews.

Built in (`reword` of an ask): the question is taken over word for word, and a fixed sentence, or
two exchanged columns, change what the answer must be. Written by a model (`rewordings` of
[answer]): only entries that a person marked as reviewed are asked, and a wording that lost or
changed a number, a placeholder, an option letter or a JSON key is never offered for review as
usable.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rrf_design.errors import InputError
from rrf_design.files import parse_text, read_source, suggestion, toml_entry
from rrf_design.texts import digits

if TYPE_CHECKING:
    from rrf_design.models import Model
    from rrf_design.questions.recipe import AskEntry, Reword

ENTRY = ("id", "of", "prompt", "model", "reviewed", "lost")
_BRACES = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:[.,]\d+)*(?![\w])|(?<=\d)[%€$]")
_LETTER = re.compile(r"(?:^|(?<=[\s(]))([A-Z])(?=[).:])", re.MULTILINE)
_KEY = re.compile(r'"([^"\n]+)"\s*:')
VARIED = 0.8
"""Temperature at which a model on this machine writes wordings."""
ASKING = """Write the following question in other words. It must have exactly the same answer.
Keep every number, unit, name, option letter, JSON key and everything in double braces exactly as it is.
Write the new question and nothing else.

{prompt}"""


def built_in(ask: AskEntry, asks: Mapping[str, AskEntry]) -> AskEntry:
    """The ask that `reword` stands for: a prompt, and how its answer must change."""
    reword = ask.reword
    if reword is None:
        return ask
    base = asks.get(ask.like or "")
    if base is None or base.prompt is None:
        raise InputError(
            f"ask {ask.id!r}: reword says how another question is changed; like must name one with a prompt of its own"
        )
    prompt = _swapped(ask.id, base.prompt, reword.swap) if reword.swap is not None else base.prompt
    prompt += _sentence(reword)
    own: dict[str, Any] = {"prompt": prompt, "reword": None}
    for key in ("parse", "system", "max_tokens", "model"):
        if getattr(ask, key) is None:
            own[key] = getattr(base, key)
    if reword.change is not None:
        own["change"] = reword.change
    return ask.model_copy(update=own)


def _sentence(reword: Reword) -> str:
    """What is added to the question.

    Short and literal: a model that can't follow it fails alone, and is found out.
    """
    if reword.unit is not None:
        return f"\nState the value in {reword.unit}."
    steps = []
    if reword.scale is not None:
        steps.append(f"multiply the value by {_written(reword.scale)}")
    if reword.shift is not None:
        steps.append(f"add {_written(reword.shift)} to it" if steps else f"add {_written(reword.shift)} to the value")
    return f"\nBefore you write the answer down, {' and then '.join(steps)}." if steps else ""


def _written(number: float | str) -> str:
    return number if isinstance(number, str) else digits(number)


def _swapped(ask: str, prompt: str, columns: Sequence[str]) -> str:
    """The prompt with two columns exchanged, wherever it speaks of them."""
    first, second = columns
    named = re.compile(rf"\b(?:{re.escape(first)}|{re.escape(second)})\b")
    seen: set[str] = set()

    def other(found: re.Match[str]) -> str:
        seen.add(found[0])
        return second if found[0] == first else first

    swapped = _BRACES.sub(lambda part: named.sub(other, part[0]), prompt)
    for name in columns:
        if name not in seen:
            raise InputError(f"ask {ask!r}: reword swap: the prompt does not speak of {name!r}")
    return swapped


def lost(original: str, reworded: str) -> list[str]:
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


def write_rewordings(asks: Sequence[AskEntry], model: Model, *, count: int = 3) -> list[dict[str, Any]]:
    """Ask a model for other wordings of every question that has one of its own; each with what it
    lost, none reviewed.
    """
    from rrf_design.models import Request

    entries = []
    for ask in asks:
        if ask.prompt is None or ask.like is not None or ask.sums_to is not None:
            continue
        prompt = ASKING.format(prompt=ask.prompt)
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
            entry: dict[str, Any] = {"id": f"{ask.id}-{number}", "of": ask.id, "prompt": text, "model": model.name}
            missing = lost(ask.prompt, text)
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
        missing = lost(base.prompt, str(entry.get("prompt")))
        if missing:
            raise InputError(f"{where}: it is marked as reviewed, but it changed {'; '.join(missing)}")
        taken = {key: getattr(base, key) for key in ("parse", "system", "model", "max_tokens", "when")}
        own = {"id": entry.get("id"), "prompt": entry["prompt"], "like": base.id}
        found.append(AskEntry.model_validate({**{k: v for k, v in taken.items() if v is not None}, **own}))
    return found
