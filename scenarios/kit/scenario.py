"""What a scenario is, what it returns, and nothing about how it is run or shown.

The acceptance conditions are data that exist before the run (`Scenario.expected`); the run can only
add a verdict to each. One that was changed after a first result had been seen says so
(`Expectation.revised`). A condition that a run can't decide (a quick size, too few items) is `not
judged`, with the reason, and never `met`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any

from scenarios.kit.report import Report

PROTOCOLS = Path(__file__).parents[1] / "protocols"
Part = Mapping[str, Any]


def public(value: Any) -> Any:
    """A parameter as it is published: a file or folder by its name, never by where it lies on a
    machine.

    `gguf:/somewhere/x.gguf`, `/somewhere/x.gguf` and `x.gguf` name the same weights, asked in the
    same way; their hash stands in the answer log. What else asks them
    (`transformers:/somewhere/x.gguf`) is part of the name: another backend gives other answers.
    """
    if not isinstance(value, str):
        return value
    kind, colon, rest = value.partition(":")
    if value.endswith(".gguf"):
        other = f"{kind}:" if colon and kind != "gguf" and "/" not in kind else ""
        return other + PurePath(rest if other else value.removeprefix("gguf:")).name
    if colon and Path(rest).is_absolute():
        return f"{kind}:{PurePath(rest).name}"
    return PurePath(value).name if Path(value).is_absolute() else value


@dataclass(frozen=True, slots=True)
class Expectation:
    """One prespecified acceptance condition; `paper` is the published figure it stands beside,
    where there is one.
    """

    key: str
    text: str
    paper: str = ""
    revised: str = ""
    """What was changed about it after a first result had been seen, and why; such a condition is
    weaker evidence, and pages say so.
    """


@dataclass(frozen=True, slots=True)
class Protocol:
    """What was written down before a run: `scenarios/protocols/NAME.md`."""

    title: str
    question: str
    about: str
    conditions: tuple[Expectation, ...]
    full: Mapping[str, Any]
    quick: Mapping[str, Any]
    captions: Mapping[str, str]
    notes: tuple[str, ...]

    @classmethod
    def read(cls, path: Path) -> Protocol:
        """Title, question and description, then four sections, each of which may be left out.

        "## Parameters" holds those of the published run and what the quick size changes, as two
        blocks of JSON. "## Conditions" lists "- `key`: text", with "  - Paper: ..." (the published
        figure it stands beside) and "  - Revised: ..." (what was changed after a first result)
        under it where they apply. "## Tables and pictures" lists "- `name`: caption", "## Notes"
        the paragraphs of the page that no run changes.
        """
        head, *sections = re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        told = {name: text for name, _, text in (section.partition("\n") for section in sections)}
        listed, sizes = told.get("Conditions", ""), told.get("Parameters", "")
        captions = dict(
            " ".join(entry.split()).removeprefix("`").split("`: ", 1)
            for entry in re.split(r"^- ", told.get("Tables and pictures", ""), flags=re.MULTILINE)[1:]
        )
        notes = tuple(" ".join(text.split()) for text in told.get("Notes", "").strip().split("\n\n") if text)
        title, question, *about = (" ".join(paragraph.split()) for paragraph in head.strip().split("\n\n"))
        full, quick = (json.loads(block.removeprefix("json")) for block in sizes.split("```")[1::2] or ("{}", "{}"))
        conditions = []
        for entry in re.split(r"^- ", listed, flags=re.MULTILINE)[1:]:
            first, *rest = (" ".join(line.split()) for line in re.split(r"^  - ", entry, flags=re.MULTILINE))
            key, words = first.removeprefix("`").split("`: ", 1)
            said = {kind.lower(): what for kind, what in (line.split(": ", 1) for line in rest)}
            conditions.append(Expectation(key, words, **said))
        said_first = title.removeprefix("# "), question.strip("*"), "\n\n".join(about)
        return cls(*said_first, tuple(conditions), full, quick, captions, notes)


@dataclass(frozen=True, slots=True)
class Context:
    """What a run knows: its parameters, whether it is the quick size, and its own directory."""

    parameters: Mapping[str, Any]
    quick: bool
    directory: Path

    def __getitem__(self, name: str) -> Any:
        return self.parameters[name]

    def page(self) -> Report:
        """An empty report of this run."""
        return Report(quick=self.quick)


@dataclass(frozen=True, slots=True)
class Done:
    """A finished part: its description and what `run` returned for it, after a trip through
    JSON.
    """

    part: Part
    value: Any
    seconds: float


@dataclass(frozen=True, slots=True)
class Scenario:
    """One experiment; see the package's docstring for the life cycle."""

    name: str
    question: str
    full: Mapping[str, Any]
    quick: Mapping[str, Any]
    expected: tuple[Expectation, ...]
    parts: Callable[[Context], Sequence[Part]]
    run: Callable[[Context, Part], Any]
    report: Callable[[Context, Sequence[Done]], Report]
    title: str = ""
    about: str = ""
    """A paragraph or two: the protocol in words, and where in the paper it stands."""
    serial: bool = False
    """True: the parts are never run side by side (they measure time, or share a model)."""
    captions: Mapping[str, str] = field(default_factory=dict)
    """Of tables and pictures that a report gives none."""
    notes: tuple[str, ...] = ()
    """Paragraphs of the page that no run changes, after those of the report."""

    def __post_init__(self) -> None:
        unknown = set(self.quick) - set(self.full)
        if unknown:
            raise ValueError(f"scenario {self.name!r}: quick changes unknown parameters {sorted(unknown)}")
        keys = [expectation.key for expectation in self.expected]
        if len(set(keys)) != len(keys):
            raise ValueError(f"scenario {self.name!r}: an expectation stands twice")

    @classmethod
    def declared(
        cls,
        name: str,
        parts: Callable[[Context], Sequence[Part]],
        run: Callable[[Context, Part], Any],
        report: Callable[[Context, Sequence[Done]], Report],
        *,
        full: Mapping[str, Any] | None = None,
        quick: Mapping[str, Any] | None = None,
        expected: tuple[Expectation, ...] = (),
        serial: bool = False,
    ) -> Scenario:
        """A scenario of the house: its protocol stands in `scenarios/protocols/NAME.md`, but for
        what is computed from constants and given here.
        """
        protocol = Protocol.read(PROTOCOLS / f"{name}.md")
        return cls(
            name=name,
            question=protocol.question,
            full=protocol.full if full is None else full,
            quick=protocol.quick if quick is None else quick,
            expected=expected or protocol.conditions,
            parts=parts,
            run=run,
            report=report,
            title=protocol.title,
            about=protocol.about,
            serial=serial,
            captions=protocol.captions,
            notes=protocol.notes,
        )

    def parameters(self, *, quick: bool = False, changes: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Full parameters, with the quick ones and then the caller's on top; InputError for an
        unknown name.
        """
        from rrf_design.errors import InputError

        result = {**self.full, **(self.quick if quick else {})}
        for name, value in (changes or {}).items():
            if name not in result:
                raise InputError(f"scenario {self.name!r} has no parameter {name!r}; it has {', '.join(result)}")
            result[name] = value
        return result

    def check(self, outcome: Report) -> None:
        """Every expectation has exactly one verdict, and there is no verdict on anything else."""
        wanted = [expectation.key for expectation in self.expected]
        given = [verdict.key for verdict in outcome.verdicts]
        if sorted(wanted) != sorted(given):
            raise ValueError(f"scenario {self.name!r}: expectations {wanted} but verdicts {given}")

    def judged(self, context: Context, done: Sequence[Done]) -> Report:
        """The report, checked, with the captions and notes of the protocol."""
        outcome = self.report(context, done)
        self.check(outcome)
        told = self.captions
        return replace(
            outcome,
            tables=[t if t.caption else replace(t, caption=told.get(t.name, "")) for t in outcome.tables],
            figures=[f if f.caption else replace(f, caption=told.get(f.name, "")) for f in outcome.figures],
            notes=[*outcome.notes, *self.notes],
        )
