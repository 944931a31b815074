"""From a purchase to its outcome: a question to the model through the node's prompt and parser, or an anchor's source.

Everything is built and checked before the first purchase: a prompt that is missing, a parser of the wrong dimension or a
source that may not be used is found while it still costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rrf_design.acquisition.loop import Terms
from rrf_design.acquisition.sources import (
    Asked,
    Expression,
    Fetched,
    KnownValue,
    Source,
    Toolbox,
    Unreachable,
    Verifier,
    build,
    is_local,
)
from rrf_design.acquisition.state import Buys, ItemState, Purchase, Settlement
from rrf_design.errors import InputError

if TYPE_CHECKING:
    from rrf_design.field import Node
    from rrf_design.models import Model, PriceTable, Request
    from rrf_design.problem import Problem
    from rrf_design.responses import Parser

DEFAULT_PARSER = "integer-last"
"""The paper's rule for numbers: a bare integer, else the last standalone one."""


@dataclass(frozen=True, slots=True)
class Question:
    """What asking a node means."""

    request: Request
    parser: Parser


class Fetcher:
    """Fetches purchases of one run. `fetch` is safe to call from several threads."""

    def __init__(
        self,
        problems: Mapping[str, Problem],
        model: Model,
        *,
        known: Mapping[str, Mapping[str, Any]],
        prices: PriceTable | None = None,
        seed: int = 0,
        tools: Toolbox | None = None,
        constrained: bool = False,
    ) -> None:
        self.model, self._prices, self._seed = model, prices, seed
        self._constrained = constrained
        self.local = is_local(model)
        tools = tools or Toolbox()
        self.questions: dict[tuple[str, str], Question] = {}
        self.sources: dict[tuple[str, str], Source] = {}
        for item, problem in problems.items():
            for node in problem.nodes:
                if node.id not in known.get(item, {}):
                    self.questions[item, node.id] = self._question(node)
            for anchor in problem.anchors:
                if not anchor.owned or anchor.value is None:
                    self.sources[item, anchor.id] = build(anchor, problem, tools)

    @property
    def all_local(self) -> bool:
        """Nothing this run does can be charged twice."""
        return self.local and all(source.local for source in self.sources.values())

    def terms(self, item: str, name: str) -> Terms:
        source = self.sources.get((item, name))
        if source is not None:
            ceiling = self._ceiling(source.model, source.request) if isinstance(source, Verifier) else 0.0
            return Terms(ceiling, source.deferred, source.local)
        question = self.questions.get((item, name))
        return Terms(0.0 if question is None else self._ceiling(self.model, question.request), False, self.local)

    def instant(self, purchase: Purchase) -> Settlement | None:
        """The outcome of what only has to be looked up or computed; None for what has to be fetched."""
        source = self.sources.get((purchase.item, purchase.name))
        if not isinstance(source, KnownValue | Expression):
            return None
        return _settlement(purchase, source.fetch(Asked({}, {})))

    def fetch(self, purchase: Purchase, state: ItemState) -> Settlement:
        """Get it. `Unreachable` when nobody was there, so that nothing was bought."""
        key = (purchase.item, purchase.name)
        if purchase.buys is Buys.ANSWER:
            found = self._answer(self.questions[key])
        else:
            texts = {name: entry.text for name, entry in state.settled.items() if entry.text}
            found = self.sources[key].fetch(Asked(texts, state.values(Buys.ANSWER)))
        return _settlement(purchase, found)

    def _answer(self, question: Question) -> Fetched:
        from rrf_design.models import Outcome, record

        reply = self.model.ask(question.request)
        money = self._prices.cost(self.model, reply.usage) if self._prices is not None else 0.0
        # Nobody there and nothing charged: nothing was bought. Attempts that were charged are settled as what they cost.
        if reply.outcome in (Outcome.UNREACHABLE, Outcome.RATE_LIMITED) and money == 0.0:
            raise Unreachable(f"{reply.outcome.value.replace('_', ' ')}: {reply.detail}")
        if not reply.parseable:
            return Fetched(reply.outcome.value, None, money, reply.usage.calls, record(question.request, reply))
        parsed = question.parser.parse(reply.text)
        evidence = record(question.request, reply, parsed=parsed.document())
        outcome = reply.outcome.value if parsed.ok else parsed.status.value
        return Fetched(outcome, parsed.value, money, reply.usage.calls, evidence)

    def _ceiling(self, model: Model, request: Request) -> float:
        return 0.0 if self._prices is None else self._prices.ceiling(model, request)

    def _question(self, node: Node) -> Question:
        from rrf_design.models import Request
        from rrf_design.responses import parsers, prompts

        where = f"node {node.id!r}"
        if node.prompt is None:
            raise InputError(f"{where}: it has no prompt, so a live run can't ask it; give one, or give its response")
        try:
            prompt = node.prompt if node.variables is None else prompts.render(node.prompt, node.variables)
            parser = parsers.get(DEFAULT_PARSER if node.parser is None else node.parser)
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        if parser.dim != node.dim:
            raise InputError(f"{where}: its parser gives {parser.dim} numbers, but the node has dimension {node.dim}")
        more: dict[str, Any] = {} if node.max_tokens is None else {"max_tokens": node.max_tokens}
        if self._constrained:
            more["grammar"] = parser.grammar
        return Question(Request(prompt, system=node.system, seed=self._seed, **more), parser)


def _settlement(purchase: Purchase, found: Fetched) -> Settlement:
    return Settlement(purchase, found.outcome, found.value, found.ok, found.money, found.calls, found.evidence)
