"""From a purchase to its outcome: a question to the model through the node's prompt and parser, or
an anchor's source.

Everything is built and checked before the first purchase: a prompt that is missing, a parser of the
wrong dimension or a source that may not be used is found while it still costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING, Any

from rrf_design.acquisition._concluding import repaired
from rrf_design.acquisition._purchases import Buys, Purchase, Settlement
from rrf_design.acquisition._state import ItemState, RunState
from rrf_design.acquisition.classes import HeardClasses, open_nodes
from rrf_design.acquisition.settings import Terms
from rrf_design.acquisition.sources.base import (
    Asked,
    Fetched,
    Source,
    Toolbox,
    ask,
    build,
    refuse_unanswered,
    schema_of,
)
from rrf_design.acquisition.sources.stated import Label
from rrf_design.acquisition.sources.verifier import Verifier
from rrf_design.errors import InputError
from rrf_design.files import canonical_digest
from rrf_design.models.base import NotBegun
from rrf_design.transforms import VETOED, rules_of, vetoed

if TYPE_CHECKING:
    from rrf_design.acquisition._candidates import Candidates
    from rrf_design.field import Node
    from rrf_design.models import Model, PriceTable, Reply, Request, Roster, Usage
    from rrf_design.models.base import Again, AgainAsync
    from rrf_design.models.cache import AnswerCache
    from rrf_design.models.pacing import Pace
    from rrf_design.problem import Problem
    from rrf_design.repairing import RepairEngine
    from rrf_design.responses import Parser
    from rrf_design.responses.parsed import Parsed

DEFAULT_PARSER = "integer-last"
"""The paper's rule for numbers: a bare integer, else the last standalone one."""


@dataclass(frozen=True, slots=True)
class _Question:
    """What asking a node means: whom, what, and how the answer is read."""

    model: Model
    request: Request
    parser: Parser
    name: str
    """The model's name in this run."""
    classes: HeardClasses | None = None
    """Of its item, where its answers are classes."""
    after: bool = False
    """Whether it is shown what the other answers come to."""

    def value(self, parsed: Parsed) -> tuple[float, ...] | None:
        """What was read, as numbers."""
        if parsed.label is None or self.classes is None:
            return parsed.value
        return self.classes.vector(parsed.label)


@dataclass(frozen=True, slots=True)
class _Call:
    """One request to one model, and what its reply amounts to; told whether the server answers
    others (see `Unreachable`).
    """

    model: Model
    request: Request
    read: Callable[[Reply, bool | None], Fetched]
    name: str
    """The model's name in this run."""
    kind: str = ""
    """Of a judge: that of its source."""
    shown: bool = False
    """Whether its text is as long as the answers that came before it."""


MENDED = "The same was asked in other ways before. Brought into agreement, the answers are:"
DISAGREE = "The same was asked in other ways before. The answers do not agree:"
OWN_WORK = "All of them may be wrong: work it out anew, then answer as asked above."


class Fetcher:
    """Fetches purchases of one run.

    `fetch` is safe to call from several threads, `fetch_async` from one event loop.
    """

    def __init__(
        self,
        problems: Mapping[str, Problem],
        model: Model | Roster,
        *,
        known: Mapping[str, Mapping[str, Any]],
        prices: PriceTable | None = None,
        seed: int = 0,
        constrained: bool = False,
        allow_commands: bool = False,
        isolation: str = "seccomp",
        cache: AnswerCache | None = None,
        batch_api: bool = False,
    ) -> None:
        from rrf_design.models import Roster

        self._cache, self._batch_api = cache, batch_api
        self.roster, self.prices, self._seed = Roster.of(model), prices, seed
        self._constrained = constrained
        self._tools = Toolbox(
            model=lambda name: self.roster[self.roster.called(name)],
            options=lambda name: self.roster.options(self.roster.called(name)),
            price=self.money,
            allow_commands=allow_commands,
            isolation=isolation,
        )
        self.questions: dict[tuple[str, str], _Question] = {}
        self._again: dict[str, list[str]] = {}
        """Further asks of nodes, by item."""
        self.sources: dict[tuple[str, str], Source] = {}
        self.classes: dict[str, HeardClasses] = {}
        self._identities: dict[int, str] = {}
        self._together: dict[str, Problem] = {}
        """Items with several values in one answer, or with answers that can be told to be wrong."""
        for item, problem in problems.items():
            self.add(item, problem, known.get(item, {}))
        self._paces: dict[int, Pace] = {}
        self._repairing = Lock()
        self.state: RunState | None = None
        """The run's own, once there is one: what a judge costs depends on what it is shown."""
        self.designs: Mapping[str, Candidates] = {}
        """The run's own as well: what answers come to is shown to whoever is asked after them."""

    def add(self, item: str, problem: Problem, known: Mapping[str, Any]) -> None:
        """An item of the run, of which so much is known."""
        if problem.read_together or any(node.veto for node in problem.nodes):
            self._together[item] = problem
        classed = open_nodes(problem)
        if classed:
            self.classes[item] = HeardClasses(problem.node_by_id[next(iter(classed))].dim)
        judged: dict[str, int] = {}
        self._further(item, problem, self._first(item, problem, known))
        for anchor in problem.anchors:
            if not anchor.owned or anchor.value is None:
                source = self.sources[item, anchor.id] = build(anchor, problem, self._tools)
                if isinstance(source, Verifier):
                    # Two prompts may turn out to be the same, once the answers are in them: every
                    # judge has a number of its own.
                    whose = self._whose(source.model)
                    repeat = judged[whose] = judged.get(whose, -1) + 1
                    source.request = replace(source.request, repeat=repeat)

    def drop(self, item: str, problem: Problem) -> None:
        """An item that is done, or that another process has now."""
        for name in (*problem.node_by_id, *problem.block_by_id, *self._again.pop(item, ())):
            self.questions.pop((item, name), None)
            self.sources.pop((item, name), None)
        self.classes.pop(item, None)
        self._together.pop(item, None)

    def _whose(self, model: Model) -> str:
        """By what can change its answers, as the cache knows it: one model under two names is asked
        the same question twice.
        """
        if id(model) not in self._identities:
            self._identities[id(model)] = canonical_digest(dict(model.identity))
        return self._identities[id(model)]

    def _first(self, item: str, problem: Problem, known: Mapping[str, Any]) -> dict[tuple[str, Request], int]:
        """The questions of an item.

        Equal ones are asked for answers of their own: the number of each is how many come before it
        in the problem, answered already or not, so that it stays the same whatever is known when a
        run begins or goes on.
        """
        asked: dict[tuple[str, Request], int] = {}
        if all(node.id in known for node in problem.nodes):
            return asked
        for node in problem.nodes:
            if node.read_from is not None:
                continue
            try:
                several = node.id in problem.read_together
                question = self._question(node, self.classes.get(item), several=several)
            except InputError:
                if node.id in known:  # what can't be asked equals nothing that can
                    continue
                raise
            same = (self._whose(question.model), question.request)
            repeat = asked[same] = asked.get(same, -1) + 1
            if node.id not in known:
                numbered = replace(question.request, repeat=repeat) if repeat else question.request
                self.questions[item, node.id] = replace(question, request=numbered)
        return asked

    def _further(self, item: str, problem: Problem, asked: dict[tuple[str, Request], int]) -> None:
        """The same question once more, for every further ask of a node: each has an answer of its
        own.
        """
        if all(node.repeats == 1 and node.again is None for node in problem.nodes):
            return
        for name, further in problem.structure.market.asks.items():
            node = problem.node_by_id[further.node]
            if node.prompt is None:  # its answers are given
                continue
            question = self.questions.get((item, node.id)) or self._question(node, self.classes.get(item))
            if question.classes is not None:
                raise InputError(
                    f"node {node.id!r}: its answers are classes, which have no mean; leave sigma and repeats out"
                )
            bare = replace(question.request, repeat=0)
            same = (self._whose(question.model), bare)
            asked[same] = asked.get(same, 0) + 1
            self.questions[item, name] = replace(question, request=replace(bare, repeat=asked[same]))
            self._again.setdefault(item, []).append(name)

    @cached_property
    def models(self) -> list[Model]:
        """Everybody this run may ask: the roster, and judges that are not on it."""
        judges = [source.model for source in self.sources.values() if isinstance(source, Verifier)]
        return list({id(model): model for model in [*dict(self.roster.items()).values(), *judges]}.values())

    def money(self, model: Model, usage: Usage) -> float:
        """What a reply cost; nothing where no price is known, which the run's header says."""
        return self.prices.cost(model, usage) if self.prices is not None and self.prices.counted(model) else 0.0

    @cached_property
    def all_local(self) -> bool:
        """Nothing this run does can be charged twice."""
        return all(model.local for model in self.models) and all(source.local for source in self.sources.values())

    def terms(self, item: str, name: str) -> Terms:
        source = self.sources.get((item, name))
        if source is not None and not isinstance(source, Verifier):
            return Terms(deferred=source.deferred, local=source.local)
        # A request that shows answers is as long as they are; `_begun` sees to later ones.
        call = self._call(item, name, None if self.state is None else self.state.items[item])
        if call is None:
            return Terms(local=self.all_local, calls=1)
        ceiling, local = self._ceiling(call.model, call.request), call.model.local
        batched = self._batch_api and not call.shown and call.model.batches() is not None
        attempts = 0 if batched else call.model.retry.attempts  # handed in once: a repetition is another purchase
        return Terms(ceiling, local=local, calls=1, batched=batched, model=call.name, attempts=attempts)

    def instant(self, purchase: Purchase) -> Settlement | None:
        """The outcome of what only has to be looked up or computed; None for what has to be
        fetched.
        """
        source = self.sources.get((purchase.item, purchase.name))
        if source is None and purchase.buys is Buys.ANSWER:
            return self._kept(purchase)
        if isinstance(source, Verifier):
            return None if self.state is None else self._kept(purchase)
        if source is None or not source.instant:
            return None
        found = source.fetch(Asked({}, {}))
        if isinstance(source, Label):
            found = replace(found, value=self.classes[purchase.item].vector(source.label))
        return _settlement(purchase, found, source.kind)

    def read_with(self, settlement: Settlement) -> tuple[Settlement, ...]:
        """The settlement of a question with those of the nodes that are read from the same answer.

        Values that break what is said of their nodes are failures, called so.
        """
        bought = settlement.purchase
        problem = self._together.get(bought.item)
        if problem is None or bought.buys is not Buys.ANSWER or bought.again_of:
            return (settlement,)
        found = [settlement, *self._others(settlement, problem)]
        said = {one.purchase.name: _as_read(one) for one in found if one.ok and one.value is not None}
        broken = vetoed(rules_of(problem), said)
        return tuple(
            replace(one, outcome=VETOED, value=None, ok=False, evidence={**one.evidence, "broken": why})
            if (why := broken.get(one.purchase.name))
            else one
            for one in found
        )

    def _others(self, settlement: Settlement, problem: Problem) -> Iterator[Settlement]:
        """What stands in the same answer, at no price; as unread as the call was."""
        from rrf_design.responses import parsers

        bought, said = settlement.purchase, settlement.evidence
        text = (said.get("reply") or {}).get("text") if "parsed" in said else None
        for name in problem.read_together.get(bought.name, ()):
            other = Purchase(bought.item, name, Buys.ANSWER, 0.0)
            if text is None:
                yield Settlement(other, "error" if settlement.ok else settlement.outcome, ok=False)
                continue
            parsed = parsers.get(problem.node_by_id[name].parser or DEFAULT_PARSER).parse(text)
            heard = self.classes.get(bought.item)
            value = parsed.value if parsed.label is None or heard is None else heard.vector(parsed.label)
            outcome = "answered" if parsed.ok else parsed.status.value
            evidence = {"reply": {"text": text}, "parsed": parsed.document()}
            yield Settlement(other, outcome, value, parsed.ok, evidence=evidence)

    def numbers(self, item: str, problem: Problem, given: Mapping[str, Any]) -> dict[str, Any]:
        """Responses that exist already as numbers: classes (a table with `label`), and what people
        `said` about checks.
        """
        found = dict(given)
        for name, said in given.items():
            if isinstance(said, Mapping) and said.get("label") is not None:
                found[name] = {**said, "value": list(self.classes[item].vector(said["label"]))}
            elif isinstance(said, Mapping) and said.get("said") is not None:
                value, text = self.reviewed(item, name, said["said"], problem)
                found[name] = {"value": list(value), "text": text, "outcome": "kept"}
        return found

    def reviewed(self, item: str, anchor: str, said: str, problem: Problem) -> tuple[tuple[float, ...], str]:
        """What a person said, as the value of an anchor and as the words to keep; InputError for
        what is none.
        """
        from rrf_design.responses import parsers
        from rrf_design.responses.parsers import reviewed_value

        source = self.sources[item, anchor]
        node = problem.node_by_id[source.anchor.nodes[0]]
        single = len(source.anchor.nodes) == 1 and source.anchor.rows is None
        parser = parsers.get(node.parser) if single and node.parser is not None else None
        value = reviewed_value(anchor, said, parser, rows=source.rows)
        return (self.classes[item].vector(value), value) if isinstance(value, str) else (value, said)

    def recall(self, item: str, problem: Problem, state: ItemState) -> None:
        """Which class each coordinate stands for, as the journal has it."""
        from rrf_design.responses import parsers

        if item in self.classes:
            nodes = {node.id: parsers.get(node.parser) for node in problem.nodes if node.parser is not None}
            self.classes[item].recall(state, nodes)

    def kept(self, item: str, problem: Problem) -> dict[str, Any]:
        """Answers of earlier runs to the questions of an item, as responses that exist already:
        they cost nothing.
        """
        if self._cache is None:
            return {}
        found: dict[str, Any] = {}
        alone = (node.id for node in problem.nodes if node.after is None)
        for name in [*alone, *self._again.get(item, ())]:
            first = self._kept(Purchase(item, name, Buys.ANSWER, 0.0))
            for settled in () if first is None else self.read_with(first):
                said = {"value": list(settled.value)} if settled.value is not None else {"status": settled.outcome}
                found[settled.purchase.name] = {**said, "outcome": "kept", "evidence": settled.evidence}
        return found

    def _kept(self, purchase: Purchase) -> Settlement | None:
        """What was answered in an earlier run: to the same question; by a judge shown the same."""
        call = self._call(purchase.item, purchase.name, None if self.state is None else self.state.items[purchase.item])
        reply = None if call is None else self._find(call.request, call.model)
        return None if call is None or reply is None else _settlement(purchase, call.read(reply, None), call.kind)

    def _find(self, request: Request, model: Model) -> Reply | None:
        return self._cache.find(request, model) if self._cache is not None and model.kept else None

    def _keep(self, request: Request, reply: Reply, model: Model) -> None:
        if self._cache is not None and reply.attempts and model.kept:
            self._cache.keep(request, reply, model)

    def write_kept(self) -> None:
        """Store the answers that came in for later runs."""
        if self._cache is not None:
            self._cache.write()

    def whom(self, purchase: Purchase) -> Model | None:
        """The model that a purchase asks; None for sources that ask nobody."""
        key = (purchase.item, purchase.name)
        if key in self.questions:
            return self.questions[key].model
        source = self.sources.get(key)
        if source is None and purchase.model:  # its item was dropped, while it was under way
            return self.roster[purchase.model]
        return source.model if isinstance(source, Verifier) else None

    def in_batches(self, purchase: Purchase) -> bool:
        """Whether a purchase is a question that is handed in with others."""
        asked = purchase.buys is Buys.ANSWER and self._batch_api
        if not asked or self.questions[purchase.item, purchase.name].after:
            return False
        return self.questions[purchase.item, purchase.name].model.batches() is not None

    def settle(self, purchase: Purchase, reply: Reply) -> Settlement:
        """What a reply to a question amounts to that came back by another way; `Unreachable` if it
        is nobody's.
        """
        return _settlement(purchase, self._read(self.questions[purchase.item, purchase.name], reply, True))

    def fetch(self, purchase: Purchase, state: ItemState, again: Again | None = None) -> Settlement:
        """Get it.

        `Unreachable` when nobody was there, so that nothing was got. `again` allows each repeated
        call.
        """
        call = self._begun(purchase, state)
        if call is None:
            source = self.sources[purchase.item, purchase.name]
            return _settlement(purchase, source.fetch(_asked(state, again, purchase.tried)), source.kind)
        return _settlement(purchase, call.read(ask(call.model, call.request, again, purchase.tried), None), call.kind)

    def fetch_all(
        self, purchases: Sequence[Purchase], state: RunState, again: Callable[[Purchase, int], bool]
    ) -> list[Settlement | Exception]:
        """The same for purchases that ask one model which answers them together; each has its
        outcome, or the error that fetching it ended with.
        """
        found: dict[str, Settlement | Exception] = {}
        calls: dict[str, tuple[Purchase, _Call]] = {}
        for purchase in purchases:
            try:
                call = self._begun(purchase, state.items[purchase.item])
                assert call is not None
                calls[purchase.id] = purchase, call
            except NotBegun as error:
                found[purchase.id] = error
        asked = list(calls.values())
        replies = []
        if asked:
            replies = asked[0][1].model.ask_all(
                [call.request for _, call in asked],
                again=[partial(again, purchase) for purchase, _ in asked],
                tried=[purchase.tried for purchase, _ in asked],
            )
        for (purchase, call), reply in zip(asked, replies, strict=True):
            try:
                if isinstance(reply, InputError):
                    raise reply
                found[purchase.id] = _settlement(purchase, call.read(reply, None), call.kind)
            except Exception as error:  # of this purchase alone
                found[purchase.id] = error
        return [found[purchase.id] for purchase in purchases]

    async def fetch_async(self, purchase: Purchase, state: ItemState, again: AgainAsync | None = None) -> Settlement:
        """The same in an event loop, for a purchase that asks an asynchronous model."""
        call = self._begun(purchase, state)
        assert call is not None
        pace = self.pace(call.model)
        reply = await call.model.ask_async(call.request, pace, again=again, tried=purchase.tried)
        return _settlement(purchase, call.read(reply, pace.heard and not pace.hopeless), call.kind)

    def pace(self, model: Model) -> Pace:
        from rrf_design.models.pacing import Pace

        if id(model) not in self._paces:
            # Where a bare call costs money, an attempt that is throttled does too: then every
            # attempt counts.
            known = self.prices is not None and self.prices.counted(model)
            patient = self.prices is None or not known or not self.prices.price(model).call
            self._paces[id(model)] = Pace(model.slots, patient=patient)
        return self._paces[id(model)]

    def hurry(self) -> None:
        """Nobody waits for a turn any more: what has not begun is given back.

        For the event loop's own thread.
        """
        for pace in self._paces.values():
            pace.stop()

    async def release(self) -> None:
        """Close what belongs to the event loop."""
        for model in self.models:
            await model.release()

    def _begun(self, purchase: Purchase, state: ItemState) -> _Call | None:
        """The call that fetches a purchase; `NotBegun` for one that is shown an answer which came
        after its price was reserved: that is done anew.
        """
        call = self._call(purchase.item, purchase.name, state)
        if call is not None and call.shown and self.state is not None:
            terms = Terms(self._ceiling(call.model, call.request), attempts=call.model.retry.attempts)
            if terms.after(purchase.tried).ceiling > purchase.ceiling:
                raise NotBegun
        return call

    def _call(self, item: str, name: str, state: ItemState | None) -> _Call | None:
        """What is asked for an entry as its item stands; None for sources that ask no model."""
        question, source = self.questions.get((item, name)), self.sources.get((item, name))
        if question is not None:
            if question.after and state is not None:
                words = question.request.prompt + self._repaired_words(item, name, state)
                question = replace(question, request=replace(question.request, prompt=words))
            read = partial(self._read, question)
            return _Call(question.model, question.request, read, question.name, shown=question.after)
        if not isinstance(source, Verifier):
            return None
        request = source.request if state is None else source.request_for(_asked(state, None))
        read = partial(self._opinion, source, request)
        return _Call(source.model, request, read, self.roster.called(source.spec), source.kind, shown=True)

    def _repaired_words(self, item: str, name: str, state: ItemState) -> str:
        """What the answers to the questions that one is related to come to, for its own prompt."""
        design = self.designs[item]
        blocks = (block.nodes for block in design.problem.relations if name in block.nodes)
        near = {other for nodes in blocks for other in nodes} - {name}
        with self._repairing:
            found = repaired(design, state, self._engine).get("repaired") or {}
        values = {other: found[other] for other in found if other in near and found[other] is not None}
        head = MENDED if values else DISAGREE
        values = values or {other: value for other, value in state.values(Buys.ANSWER).items() if other in near}
        told = [f"{other}: {self._in_words(item, value)}" for other, value in values.items()]
        return "\n\n" + "\n".join([head, *told, OWN_WORK]) if told else ""

    @cached_property
    def _engine(self) -> RepairEngine:
        from rrf_design.repairing import RepairEngine

        return RepairEngine()

    def _in_words(self, item: str, value: Sequence[float]) -> str:
        label = self.classes[item].label(value) if item in self.classes else None
        return label if label is not None else ", ".join(f"{number:.12g}" for number in value)

    def _opinion(self, source: Verifier, request: Request, reply: Reply, passing: bool | None) -> Fetched:
        found = source.fetched(request, reply, passing)
        self._keep(request, reply, source.model)
        return found

    def _read(self, question: _Question, reply: Reply, passing: bool | None) -> Fetched:
        from rrf_design.models import record

        money = self.money(question.model, reply.usage)
        refuse_unanswered(reply, money, passing=passing)
        if not reply.parseable:
            return Fetched(reply.outcome.value, None, money, reply.usage.calls, record(question.request, reply))
        self._keep(question.request, reply, question.model)
        parsed = question.parser.parse(reply.text)
        evidence = record(question.request, reply, parsed=parsed.document())
        outcome = reply.outcome.value if parsed.ok else parsed.status.value
        return Fetched(outcome, question.value(parsed), money, reply.usage.calls, evidence)

    def _ceiling(self, model: Model, request: Request) -> float:
        known = self.prices is not None and self.prices.counted(model)
        if self.prices is None or not known:
            return 0.0
        if self._batch_api and model.batches() is not None:  # handed in once: a repetition is another purchase
            return self.prices.cost(model, request.ceiling())
        return self.prices.ceiling(model, request)

    def _question(self, node: Node, classes: HeardClasses | None, *, several: bool = False) -> _Question:
        from rrf_design.questions.templates import render
        from rrf_design.responses import parsers

        where = f"node {node.id!r}"
        if node.prompt is None:
            raise InputError(f"{where}: it has no prompt, so a live run can't ask it; give one, or give its response")
        try:
            name = self.roster.name(node.model)
            prompt = node.prompt if node.variables is None else render(node.prompt, node.variables)
            parser = parsers.get(DEFAULT_PARSER if node.parser is None else node.parser)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        if parser.dim != node.dim and not (parser.dim == 0 and classes is not None):
            raise InputError(f"{where}: its parser gives {parser.dim} numbers, but the node has dimension {node.dim}")
        more: dict[str, Any] = {} if node.max_tokens is None else {"max_tokens": node.max_tokens}
        more |= {"seed": self._seed} if self._seed else {}
        if several:
            pass  # the form of one field is not that of the answer
        elif self._constrained:
            more["grammar"] = parser.grammar
        else:
            more |= schema_of(parser, self.roster[name])
        request = self.roster.request(name, prompt, system=node.system, **more)
        try:
            self.roster[name].check(request)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        heard = classes if parser.dim == 0 else None
        return _Question(self.roster[name], request, parser, name, heard, node.after is not None)


def _as_read(settlement: Settlement) -> Parsed:
    """What was read, as the parser gave it."""
    from rrf_design.responses import Parsed, ParseStatus

    kept = settlement.evidence["parsed"]
    value = None if kept["value"] is None else tuple(kept["value"])
    return Parsed(ParseStatus.PARSED, value, kept["strict_ok"], kept["canonical"], label=kept.get("label"))


def _asked(state: ItemState, again: Again | None, tried: int = 0) -> Asked:
    settled = dict(state.settled)  # the loop may settle more meanwhile
    texts = {name: entry.text for name, entry in settled.items() if entry.text}
    return Asked(texts, state.values(Buys.ANSWER), again, tried)


def _settlement(purchase: Purchase, found: Fetched, source: str = "") -> Settlement:
    return Settlement(purchase, found.outcome, found.value, found.ok, found.money, found.calls, found.evidence, source)
