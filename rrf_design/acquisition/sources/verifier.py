"""source = { verifier = "openai:NAME", prompt = "Is {{ answer }} right?", parser = "integer-last" }: another model, which can be wrong.

Its anchor must declare the sigma or covariance that was measured (`calibrate`), so that its rows are weighed by it and
never count as truth.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from rrf_design.acquisition.sources.base import (
    Asked,
    Fetched,
    Place,
    Source,
    Toolbox,
    ask,
    refuse_unanswered,
    schema_of,
)
from rrf_design.errors import InputError
from rrf_design.files import suggestion
from rrf_design.known import variables_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rrf_design.blocks import Anchor
    from rrf_design.models import Reply, Request
    from rrf_design.questions.templates import TextTemplate

_SETTINGS = ("system", "max_tokens", "temperature", "seed")


class Verifier(Source):
    """Another model's opinion, as a measurement with the noise that the anchor declares."""

    kind = "verifier"
    local = False

    def __init__(
        self,
        anchor: Anchor,
        rows: int,
        *,
        spec: str,
        prompt: TextTemplate,
        variables: Mapping[str, Any],
        parser: Any,
        tools: Toolbox,
        settings: Any,
    ) -> None:
        from rrf_design.models import Request
        from rrf_design.responses import parsers

        super().__init__(anchor, rows)
        self.template, self.variables = prompt, dict(variables)
        if anchor.sigma is None and anchor.covariance is None and anchor.rate is None:
            raise InputError(
                "a verifier is never truth; declare the sigma, covariance or rate that was measured for it"
            )
        if tools.model is None:
            raise InputError("a verifier needs a model, and this run has none")
        self.spec = spec
        self.model = tools.model(spec)
        self.local = self.model.local
        self._price = tools.price
        self.parser = parsers.get(parser)
        if self.parser.dim != rows:
            raise InputError(f"its parser gives {self.parser.dim} numbers, but the anchor has {rows} rows")
        unset = {"temperature": None, "top_p": None, "seed": None}
        self.request = Request(
            prompt.source, **{**unset, **tools.options(spec), **settings}, **schema_of(self.parser, self.model)
        )

    @classmethod
    def read(cls, place: Place, options: dict[str, Any]) -> Self:
        spec, prompt = options.pop("verifier"), options.pop("prompt", None)
        if not isinstance(prompt, str):
            raise InputError("a verifier needs a prompt")
        own = {**variables_of(place.problem, place.anchor), **options.pop("variables", {})}
        return cls(
            place.anchor,
            place.rows,
            spec=spec,
            prompt=_checked(prompt, {"answer", *place.problem.node_by_id, *own}),
            variables=own,
            parser=options.pop("parser", "integer-last"),
            tools=place.tools,
            settings={name: options.pop(name) for name in _SETTINGS if name in options},
        )

    def fetch(self, asked: Asked) -> Fetched:
        request = self.request_for(asked)
        return self.fetched(request, ask(self.model, request, asked.again, asked.tried), None)

    def request_for(self, asked: Asked) -> Request:
        # Filled in once, with everything at once: neither an answer nor a cell is ever read as a template.
        answers = dict.fromkeys(self.template.names, "") | dict(asked.texts)
        prompt = self.template.fill(answers | {"answer": asked.texts.get(self.anchor.nodes[0], "")} | self.variables)
        return replace(self.request, prompt=prompt)

    def fetched(self, request: Request, reply: Reply, passing: bool | None) -> Fetched:
        """What a reply amounts to."""
        from rrf_design.models import record

        money = self._price(self.model, reply.usage) if self._price else 0.0
        refuse_unanswered(reply, money, passing=passing)
        evidence = record(request, reply)
        calls = reply.usage.calls
        if not reply.parseable:
            return Fetched(reply.outcome.value, None, money, calls, evidence)
        parsed = self.parser.parse(reply.text)
        if parsed.value is None:
            return Fetched(parsed.status.value, None, money, calls, evidence)
        return self.fitting(parsed.value, "verified", money=money, calls=calls, evidence=evidence)


def _checked(prompt: str, known: set[str]) -> TextTemplate:
    """The template of a verifier's prompt, every name in it known: the answer, the other nodes' answers, variables."""
    from rrf_design.questions.templates import template

    found = template(prompt)
    found.refuse_single_braces(known)
    for name in sorted(found.names - known):
        raise InputError(f"prompt: no variable {name!r}{suggestion(name, known)}")
    return found
