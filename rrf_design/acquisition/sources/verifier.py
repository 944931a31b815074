"""source = { verifier = "openai:NAME", prompt = "Is {{ answer }} right?", parser = "integer-last"
}: another model, which can be wrong.

Its anchor must declare the sigma or covariance that was measured (`calibrate`), so that its rows
are weighed by it and never count as truth.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rrf_design.acquisition.sources.base import (
    Asked,
    Fetched,
    Place,
    Source,
    ask,
    refuse_unanswered,
    schema_of,
)
from rrf_design.checks import variables_of
from rrf_design.errors import InputError
from rrf_design.files import suggestion

if TYPE_CHECKING:
    from rrf_design.models import Reply, Request
    from rrf_design.questions.templates import TextTemplate

_SETTINGS = ("system", "max_tokens", "temperature", "seed")


class Verifier(Source):
    """Another model's opinion, as a measurement with the noise that the anchor declares."""

    kind = "verifier"
    local = False

    def __init__(self, place: Place, options: dict[str, Any]) -> None:
        from rrf_design.models import Request
        from rrf_design.responses import parsers

        super().__init__(place, options)
        anchor, tools = place.anchor, place.tools
        self.spec, prompt = options.pop("verifier"), options.pop("prompt", None)
        if not isinstance(prompt, str):
            raise InputError("a verifier needs a prompt")
        self.variables = {**variables_of(place.problem, anchor), **options.pop("variables", {})}
        self.template = _checked(prompt, {"answer", *place.problem.node_by_id, *self.variables})
        settings = {name: options.pop(name) for name in _SETTINGS if name in options}
        if anchor.sigma is None and anchor.covariance is None and anchor.rate is None:
            raise InputError(
                "a verifier is never truth; declare the sigma, covariance or rate that was measured for it"
            )
        if tools.model is None:
            raise InputError("a verifier needs a model, and this run has none")
        self.model = tools.model(self.spec)
        self.local = self.model.local
        self._price = tools.price
        self.parser = parsers.get(options.pop("parser", "integer-last"))
        if self.parser.dim != self.rows:
            raise InputError(f"its parser gives {self.parser.dim} numbers, but the anchor has {self.rows} rows")
        unset = {"temperature": None, "top_p": None, "seed": None}
        said = {**unset, **tools.options(self.spec), **settings, **schema_of(self.parser, self.model)}
        self.request = Request(prompt, **said)

    def fetch(self, asked: Asked) -> Fetched:
        request = self.request_for(asked)
        return self.fetched(request, ask(self.model, request, asked.again, asked.tried), None)

    def request_for(self, asked: Asked) -> Request:
        # Filled in once, with everything at once: neither an answer nor a cell is ever read as a
        # template.
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
    """The template of a verifier's prompt, every name in it known: the answer, the other nodes'
    answers, variables.
    """
    from rrf_design.questions.templates import template

    found = template(prompt)
    found.refuse_single_braces(known)
    for name in sorted(found.names - known):
        raise InputError(f"prompt: no variable {name!r}{suggestion(name, known)}")
    return found
