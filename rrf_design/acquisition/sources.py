"""Where an anchor's value comes from when it is bought (`source` of an anchor in the problem file).

    source = "value"                                     the value in the file, revealed on purchase (also: no source)
    source = "expression: (a + b) * 3"                   exact arithmetic over the node's variables
    source = { tests = [[1], [2]], expected = [1, 4] }   public tests; the node's own program is run on them as evidence
    source = { tests = [[1], [2]], reference = "def solve(n): ..." }   the same, expected by running a reference
    source = { verifier = "openai:NAME", prompt = "...", parser = "integer-last" }   a noisy anchor: declare its sigma
    source = "person" or { person = "What to look at" }  a review queue
    source = { command = ["program", "argument"] }       a program of yours, only when commands are allowed

A verifier is another model and can be wrong: its anchor must declare the sigma or covariance that was measured
(`calibrate`), so that its rows are weighed by it and never count as truth.
"""

from __future__ import annotations

import json
import math
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from rrf_design.acquisition.expression import evaluate
from rrf_design.blocks import Anchor
from rrf_design.errors import InputError
from rrf_design.files import suggestion

if TYPE_CHECKING:
    from rrf_design.models import Model
    from rrf_design.problem import Problem

KINDS = ("value", "expression", "tests", "verifier", "person", "command")


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a source gave: a value of the anchor's rows, or the name of a failure."""

    outcome: str
    value: tuple[float, ...] | None = None
    money: float = 0.0
    calls: int = 0
    evidence: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        return self.value is not None


@dataclass(frozen=True, slots=True)
class Asked:
    """What a source may look at: the answers of the field so far, as text and as numbers, by node."""

    texts: Mapping[str, str]
    values: Mapping[str, tuple[float, ...]]


@dataclass(frozen=True, slots=True)
class Toolbox:
    """What sources need from the outside. `model` finds an adapter by name, `price` is money per reply."""

    model: Callable[[str], Model] | None = None
    price: Callable[[Model, Any], float] | None = None
    allow_commands: bool = False
    isolation: str = "seccomp"


class Source(ABC):
    """One way to get an anchor's value. Built and checked before the run starts; `fetch` may be called from any thread."""

    local = True
    """Nothing leaves the machine, so that after a crash it can be done again without paying twice."""
    deferred = False
    calls_model = False

    def __init__(self, anchor: Anchor, rows: int) -> None:
        self.anchor, self.rows = anchor, rows

    @abstractmethod
    def fetch(self, asked: Asked) -> Fetched: ...

    def _fitting(self, numbers: Sequence[Fraction | float | int], outcome: str, **more: Any) -> Fetched:
        if len(numbers) != self.rows:
            return Fetched(f"{len(numbers)} numbers where {self.rows} are needed", **more)
        values = tuple(float(number) for number in numbers)
        if not all(math.isfinite(value) for value in values):
            return Fetched("a number that is not finite", **more)
        return Fetched(outcome, values, **more)


class KnownValue(Source):
    def fetch(self, asked: Asked) -> Fetched:
        value = self.anchor.value
        assert value is not None
        return self._fitting(value if isinstance(value, tuple) else (value,) * self.rows, "revealed")


class Expression(Source):
    def __init__(self, anchor: Anchor, rows: int, *, text: str, variables: Mapping[str, Any]) -> None:
        super().__init__(anchor, rows)
        self.text, self.numbers = text, evaluate(text, variables)
        if len(self.numbers) != rows:
            raise InputError(f"the expression gives {len(self.numbers)} numbers, but the anchor has {rows} rows")

    def fetch(self, asked: Asked) -> Fetched:
        exact = [str(number) for number in self.numbers]
        return self._fitting(self.numbers, "computed", evidence={"expression": self.text, "exact": exact})


class Tests(Source):
    """Expected outputs of public tests. The program of the node is run on them too: evidence, never the value."""

    __test__ = False  # not a test case, whatever its name

    def __init__(
        self, anchor: Anchor, rows: int, *, tests: Any, expected: Any, reference: str | None, entry: str, tools: Toolbox
    ) -> None:
        from rrf_design.responses.sandbox import Program

        super().__init__(anchor, rows)
        if (expected is None) == (reference is None):
            raise InputError("tests need either expected values or a reference program")
        self.tests, self.expected, self.reference, self.entry = tests, expected, reference, entry
        self.isolation = tools.isolation
        Program.build(reference or "", tests, expected=expected, entry=entry)  # checks the shapes now, not mid-run
        if len(tests) != rows:
            raise InputError(f"{len(tests)} tests for {rows} rows; each test is one row of the anchor")

    def fetch(self, asked: Asked) -> Fetched:
        from rrf_design.responses.sandbox import Program, Sandbox

        with Sandbox(workers=1, require=self.isolation) as box:
            expected, evidence = self.expected, {}
            if self.reference is not None:
                ran = box.run(Program.build(self.reference, self.tests, entry=self.entry))
                evidence["reference"] = ran.document()
                if any(output is None for output in ran.outputs):
                    return Fetched(f"the reference program ended with: {ran.status.value}", evidence=evidence)
                expected = list(ran.outputs)
            text = asked.texts.get(self.anchor.nodes[0])
            if text is not None:
                program = Program.build(_program(text, self.entry), self.tests, expected=expected, entry=self.entry)
                evidence["execution"] = box.run(program).document()
        return self._fitting(expected, "tested", evidence=evidence)


class Verifier(Source):
    """Another model's opinion, as a measurement with the noise that the anchor declares."""

    local = False
    calls_model = True

    def __init__(
        self, anchor: Anchor, rows: int, *, spec: str, prompt: str, parser: Any, tools: Toolbox, settings: Any
    ) -> None:
        from rrf_design.models import Request
        from rrf_design.responses import parsers

        super().__init__(anchor, rows)
        if anchor.sigma is None and anchor.covariance is None:
            raise InputError("a verifier is never truth; declare the sigma or covariance that was measured for it")
        if tools.model is None:
            raise InputError("a verifier needs a model, and this run has none")
        self.model, self.price = tools.model(spec), tools.price
        self.local = is_local(self.model)
        self.parser = parsers.get(parser)
        if self.parser.dim != rows:
            raise InputError(f"its parser gives {self.parser.dim} numbers, but the anchor has {rows} rows")
        self.request = Request(prompt, **settings)

    def fetch(self, asked: Asked) -> Fetched:
        from rrf_design.models import Outcome, record
        from rrf_design.responses.prompts import render

        seen = {name: text for name, text in asked.texts.items() if name.isidentifier()}
        prompt = render(self.request.prompt, seen | {"answer": asked.texts.get(self.anchor.nodes[0], "")})
        request = type(self.request)(**{**self.request.document(), "prompt": prompt})
        reply = self.model.ask(request)
        money = self.price(self.model, reply.usage) if self.price else 0.0
        if reply.outcome in (Outcome.UNREACHABLE, Outcome.RATE_LIMITED) and money == 0.0:
            raise Unreachable(reply.detail)
        evidence = record(request, reply)
        calls = reply.usage.calls
        if not reply.parseable:
            return Fetched(reply.outcome.value, None, money, calls, evidence)
        parsed = self.parser.parse(reply.text)
        if parsed.value is None:
            return Fetched(parsed.status.value, None, money, calls, evidence)
        return self._fitting(parsed.value, "verified", money=money, calls=calls, evidence=evidence)


class Person(Source):
    """A person answers through the review queue; the run goes on meanwhile."""

    local = False
    deferred = True

    def __init__(self, anchor: Anchor, rows: int, *, question: str) -> None:
        super().__init__(anchor, rows)
        self.question = question

    def fetch(self, asked: Asked) -> Fetched:
        raise InputError(f"anchor {self.anchor.id!r}: a person answers it; fill in the review file and read it back")


class Command(Source):
    """A program of the user's: the anchor and the answers as JSON on its input, numbers as JSON on its output."""

    local = False

    def __init__(self, anchor: Anchor, rows: int, *, command: Sequence[str], seconds: float) -> None:
        super().__init__(anchor, rows)
        if not command or not all(isinstance(part, str) for part in command):
            raise InputError("command must be a list of a program and its arguments")
        self.command, self.seconds = list(command), seconds

    def fetch(self, asked: Asked) -> Fetched:
        nodes = self.anchor.nodes
        told = {
            "anchor": self.anchor.id,
            "nodes": list(nodes),
            "rows": self.rows,
            "texts": {name: asked.texts[name] for name in nodes if name in asked.texts},
            "values": {name: list(asked.values[name]) for name in nodes if name in asked.values},
        }
        try:
            done = subprocess.run(
                self.command, input=json.dumps(told), capture_output=True, text=True, timeout=self.seconds, check=False
            )
        except FileNotFoundError:
            return Fetched("the command was not found", evidence={"command": self.command[0]})
        except (subprocess.TimeoutExpired, OSError, UnicodeDecodeError) as error:
            return Fetched(f"the command failed: {type(error).__name__}", evidence={"command": self.command[0]})
        evidence = {
            "command": self.command[0],
            "code": done.returncode,
            "output": done.stdout[:2000],
            "errors": done.stderr[:2000],
        }
        if done.returncode != 0:
            return Fetched(f"the command ended with code {done.returncode}", evidence=evidence)
        try:
            given = json.loads(done.stdout)
            numbers = [float(x) for x in given] if isinstance(given, list) else [float(given)]
        except (ValueError, TypeError):
            return Fetched("the command printed no number", evidence=evidence)
        return self._fitting(numbers, "commanded", evidence=evidence)


class Unreachable(Exception):
    """The other side did not answer at all: nothing was bought, the run pauses."""


def is_local(model: Model) -> bool:
    """Whether a model runs in this process or on paper, so that asking again charges nobody."""
    return model.identity.get("adapter") in ("embedded", "scripted", "replay", "transformers")


def build(anchor: Anchor, problem: Problem, tools: Toolbox) -> Source:
    """The source an anchor names; InputError names the anchor and what to change, before anything is bought."""
    try:
        return _build(anchor, problem, tools)
    except InputError as error:
        raise InputError(f"anchor {anchor.id!r}: {error}") from None


def _build(anchor: Anchor, problem: Problem, tools: Toolbox) -> Source:
    rows = len(anchor.rows) if anchor.rows is not None else sum(problem.node_by_id[name].dim for name in anchor.nodes)
    kind, options = _spec(anchor.source)
    if kind == "value":
        if anchor.value is None:
            raise InputError("it has no value and no source, so it can't be bought; give one of them")
        return KnownValue(anchor, rows)
    variables: dict[str, Any] = {}
    for name in anchor.nodes:
        variables |= problem.node_by_id[name].variables or {}
    if kind == "expression":
        own = options.pop("variables", {})
        return _with(Expression, anchor, rows, options, {"text": options.pop(kind), "variables": variables | own})
    if kind == "tests":
        entry = str(options.pop("entry", "solve"))
        given = {"tests": options.pop(kind), "expected": options.pop("expected", None)}
        given |= {"reference": options.pop("reference", None), "entry": entry, "tools": tools}
        return _with(Tests, anchor, rows, options, given)
    if kind == "verifier":
        from rrf_design.responses.prompts import render

        spec, prompt = options.pop(kind), options.pop("prompt", None)
        if not isinstance(prompt, str):
            raise InputError("a verifier needs a prompt")
        answer = {name: "{" + name + "}" for name in ("answer", *(n.id for n in problem.nodes if n.id.isidentifier()))}
        given = {
            "spec": spec,
            "prompt": render(prompt, answer | variables),
            "parser": options.pop("parser", "integer-last"),
        }
        names = ("system", "max_tokens", "temperature", "seed")
        given |= {"tools": tools, "settings": {name: options.pop(name) for name in names if name in options}}
        return _with(Verifier, anchor, rows, options, given)
    if kind == "person":
        question = options.pop(kind)
        return _with(Person, anchor, rows, options, {"question": "" if question is True else str(question)})
    if not tools.allow_commands:
        raise InputError("its source is a command; commands run only with --allow-commands")
    given = {"command": options.pop(kind), "seconds": float(options.pop("seconds", 60.0))}
    return _with(Command, anchor, rows, options, given)


def _with(kind: type[Source], anchor: Anchor, rows: int, left: Mapping[str, Any], given: Mapping[str, Any]) -> Source:
    if left:
        raise InputError(f"source: unknown key {next(iter(left))!r}")
    return kind(anchor, rows, **given)


def _spec(source: str | Mapping[str, Any] | None) -> tuple[str, dict[str, Any]]:
    """The kind of a source and its options, the kind's own key included."""
    if source is None or source == "value":
        return "value", {}
    if isinstance(source, str):
        kind, _, rest = source.partition(":")
        kind, rest = kind.strip(), rest.strip()
        if kind == "expression" and rest:
            return kind, {kind: rest}
        if kind == "person":
            return kind, {kind: rest or True}
        raise InputError(
            f'source {source!r} is unknown{suggestion(kind, KINDS)}; use "value", "expression: ...", "person" or a table'
        )
    kinds = [key for key in KINDS if key in source]
    if len(kinds) != 1:
        raise InputError(f"source: a table needs exactly one of {', '.join(KINDS[1:])}")
    return kinds[0], dict(source)


def _program(text: str, entry: str) -> str:
    """The program inside an answer, as the code parser finds it."""
    from rrf_design.responses.code import extract

    return extract(text, entry) or ""


@dataclass(frozen=True, slots=True)
class Calibration:
    """How far a verifier was from known truths: declare `sigma` in its anchors."""

    sigma: float
    """Upper confidence limit of the root mean square error, bias included."""
    rms: float
    bias: float
    count: int
    unread: int


def calibrate(errors: Sequence[float], *, unread: int = 0, confidence: float = 0.95) -> Calibration:
    """Measure a verifier from its errors (verdict minus truth) on items whose truth is known.

    The bound treats the errors as centred Gaussians of unknown variance: sum of squares over a chi-square quantile.
    """
    if len(errors) < 2:
        raise InputError("calibration needs at least two verdicts with known truth")
    from scipy.stats import chi2

    squares = math.fsum(error * error for error in errors)
    quantile = float(chi2.ppf(1.0 - confidence, len(errors)))
    return Calibration(
        sigma=math.sqrt(squares / quantile),
        rms=math.sqrt(squares / len(errors)),
        bias=math.fsum(errors) / len(errors),
        count=len(errors),
        unread=unread,
    )
