"""The adapter contract: a request goes in, exactly one reply with a named outcome comes out.

The paper's black box is a sampler ``y ~ P(. | x)``. Everything a run must be able to prove later
travels with the answer: the raw request and response, the identity of the backend (the same weights
answer differently in another runtime), the tokens that were paid for, and how many attempts it
took. A time-out, a refusal or an empty text is an outcome of its own and never an answer.
"""

from __future__ import annotations

import hashlib
import json
import random
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

from rrf_design.errors import InputError
from rrf_design.texts import whole

if TYPE_CHECKING:
    from rrf_design.models.batches import BatchInterface
    from rrf_design.models.pacing import Pace

# A chat template wraps a prompt in role markers; no template we know adds more than this many
# tokens.
TEMPLATE_TOKENS = 256


class Outcome(StrEnum):
    """What became of one request. Only ``answered`` carries a text to parse."""

    ANSWERED = "answered"
    TRUNCATED = "truncated"  # the token limit cut the text: a number at its end may be half of one, so it is no answer
    EMPTY = "empty"
    REFUSED = "refused"
    GARBAGE = "garbage"  # a response that is not in the shape of an answer
    TIMEOUT = "timeout"
    RATE_LIMITED = "rate_limited"
    UNREACHABLE = "unreachable"  # nobody answered the call, so nothing was bought; the server may come back
    FAILED = "failed"  # the backend refused the call itself (too long, no such model, bad key)


PARSEABLE = frozenset({Outcome.ANSWERED})
RETRYABLE = frozenset({Outcome.TIMEOUT, Outcome.RATE_LIMITED, Outcome.UNREACHABLE})


@dataclass(frozen=True, slots=True)
class Usage:
    """What was paid for; it adds up over attempts.

    ``estimated`` marks a ceiling put in for an unknown count.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    calls: int = 0
    estimated: bool = False
    doubtful: int = 0
    """Of the calls: those that broke before a byte came back.

    They are paid for here; the other side may never have seen them.
    """

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.calls + other.calls,
            self.estimated or other.estimated,
            self.doubtful + other.doubtful,
        )

    def document(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in _USAGE_FIELDS}
        return found | ({"doubtful": self.doubtful} if self.doubtful else {})


_USAGE_FIELDS = tuple(entry.name for entry in fields(Usage) if entry.name != "doubtful")


@dataclass(frozen=True, slots=True)
class Request:
    """One question, with everything that decides the answer.

    ``grammar`` is GBNF, for adapters that offer it.

    What is None is left to the backend: a server is not told, a local model is greedy. ``repeat``
    counts equal questions that are asked for answers of their own.
    """

    prompt: str
    system: str | None = None
    max_tokens: int = 64
    temperature: float | None = 0.0
    top_p: float | None = 1.0
    seed: int | None = 0
    stop: tuple[str, ...] = ()
    grammar: str | None = None
    repeat: int = 0
    schema: str | None = None
    """JSON text of the schema that the answer should have, for adapters that can pass it on."""

    def __post_init__(self) -> None:
        if not self.prompt.strip():
            raise InputError("request: the prompt is empty; write the question")
        if self.max_tokens < 1:
            raise InputError(f"request: max_tokens is {self.max_tokens}; it must be at least 1")
        if self.temperature is not None and not self.temperature >= 0.0:
            raise InputError(f"request: temperature is {self.temperature}; it must be 0 (greedy) or more")
        if self.top_p is not None and not 0.0 < self.top_p <= 1.0:
            raise InputError(f"request: top_p is {self.top_p}; it must lie in (0, 1]")
        object.__setattr__(self, "stop", tuple(self.stop))

    def messages(self) -> list[dict[str, str]]:
        """What a backend is sent: text that UTF-8 can say."""
        system = [] if self.system is None else [{"role": "system", "content": whole(self.system)}]
        return [*system, {"role": "user", "content": whole(self.prompt)}]

    @property
    def sampling(self) -> tuple[float, float, int]:
        """Temperature, top_p and seed as a local model takes them; each repeat has a seed of its
        own.
        """
        return self.temperature or 0.0, 1.0 if self.top_p is None else self.top_p, (self.seed or 0) + self.repeat

    def document(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in _REQUEST_FIELDS} | {"stop": list(self.stop)}
        found |= {"repeat": self.repeat} if self.repeat else {}
        return found | ({} if self.schema is None else {"schema": self.schema})

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        return cls(**{**document, "stop": tuple(document.get("stop", ()))})

    def ceiling(self) -> Usage:
        """More than one attempt can use: no tokenizer makes more tokens than a text has UTF-8
        bytes.
        """
        size = len(whole(self.prompt).encode()) + len(whole(self.system or "").encode())
        return Usage(size + TEMPLATE_TOKENS, self.max_tokens, 1, estimated=True)


_REQUEST_FIELDS = tuple(entry.name for entry in fields(Request) if entry.name not in ("repeat", "schema"))


def key(request: Request, identity: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON of request and backend: equal keys mean the same purchase."""
    text = json.dumps(
        {"request": request.document(), "identity": dict(identity)},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=True,
    )
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One call of the backend.

    ``usage=None`` means that the count is unknown; the ceiling is then assumed.
    """

    outcome: Outcome
    text: str = ""
    usage: Usage | None = None
    raw_request: Mapping[str, Any] = field(default_factory=dict)
    raw_response: Mapping[str, Any] | None = None
    detail: str = ""
    retry_after: float | None = None
    """Seconds for which the server wants to be left alone; also beside an answer, where its rate
    headers say so.
    """
    again: bool = False
    """The call was refused for a reason that the next one does not have: asked again at once, and
    not as a retry.
    """
    allowance: tuple[int, float] | None = None
    """How many more requests the server allows, and for how many seconds, where its rate headers
    say so.
    """
    doubtful: bool = False
    """It broke or timed out before a byte came back: the backend may never have seen it."""

    @property
    def free(self) -> bool:
        """Certainly without a token to pay for: refused, throttled, or never arrived."""
        return self.usage is not None and not (self.usage.input_tokens or self.usage.output_tokens)


@dataclass(frozen=True, slots=True)
class Reply:
    """The end of a request: the last attempt, and what all attempts together cost."""

    text: str
    outcome: Outcome
    usage: Usage
    identity: Mapping[str, Any]
    raw_request: Mapping[str, Any]
    raw_response: Mapping[str, Any] | None
    latency: float
    attempts: int
    detail: str = ""

    @property
    def parseable(self) -> bool:
        return self.outcome in PARSEABLE

    def document(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "outcome": self.outcome.value,
            "usage": self.usage.document(),
            "identity": dict(self.identity),
            "raw_request": dict(self.raw_request),
            "raw_response": None if self.raw_response is None else dict(self.raw_response),
            "latency": self.latency,
            "attempts": self.attempts,
            "detail": self.detail,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        values = dict(document)
        values["outcome"] = Outcome(values["outcome"])
        values["usage"] = Usage(**values["usage"])
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Retry:
    """Bounded retries: exponential waits with full jitter, or what the server asked for if that is
    longer.
    """

    attempts: int = 4
    base: float = 0.5
    longest: float = 30.0
    sleep: Callable[[float], None] = time.sleep

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise InputError(f"retry: attempts is {self.attempts}; it must be at least 1")

    def pause(self, done: int, retry_after: float | None) -> float:
        """Seconds until the next attempt."""
        # The jitter decides only when we ask again, never what is answered, so it needs no seed.
        jitter = random.uniform(0.0, min(self.longest, self.base * 2.0**done))
        return min(self.longest, max(jitter, retry_after or 0.0))

    def wait(self, done: int, retry_after: float | None) -> None:
        self.sleep(self.pause(done, retry_after))


Again = Callable[[int], bool]
AgainAsync = Callable[[int], Awaitable[bool]]
"""Asked before an attempt is repeated, with how many attempts count so far."""


class NotBegun(Exception):
    """A call was not begun, because the session ends: nothing was sent."""


class Model(ABC):
    """A black box that answers.

    An adapter implements ``attempt`` (one paid call; a failure of the backend is an outcome, not an
    exception) and ``identity``; one that can have many calls under way in one thread sets
    ``asynchronous`` and implements ``attempt_async`` too, one that answers many requests together
    sets ``batching`` and implements ``attempt_all``. Callers use ``ask``, ``ask_all`` or
    ``complete``, from as many threads as ``slots`` says (one, where it is ``batching``), and
    ``close`` the model when done (it is a context manager).
    An adapter owns its backend and nothing else: prices, budgets and journals belong to the caller.
    """

    name: str = "model"
    slots: int = 1
    supports_grammar: bool = False
    supports_schema: bool = False
    bounded: bool = True
    """The backend is told how long an answer may be; without that nobody can say what a call costs
    at most.
    """
    asynchronous: bool = False
    batching: bool = False
    """Answers up to `slots` requests together faster than one by one, in `attempt_all`: a live run
    then hands it as many as it has.
    """
    local: bool = False
    """Answers on this machine or from paper: asking again charges nobody, so a crash leaves nothing
    in doubt.
    """
    kept: bool = True
    """Its answers are kept across runs, by request, repeat index and identity.

    Not those of a record, which is kept already, nor those of a function, whose identity does not
    tell what it answers.
    """
    listed: str | None = None
    """``PROVIDER:NAME`` as price lists know it; None for a server of one's own."""
    retry: Retry = Retry()

    @property
    @abstractmethod
    def identity(self) -> Mapping[str, Any]:
        """JSON-able description of what answers: adapter, weights, runtime and its version,
        settings.
        """

    @abstractmethod
    def attempt(self, request: Request) -> Attempt:
        """Call the backend once."""

    def attempt_all(self, requests: Sequence[Request]) -> Sequence[Attempt]:
        """The same call for up to `slots` requests at once; attempts in their order."""
        return [self.attempt(request) for request in requests]

    def close(self) -> None:  # noqa: B027 - most adapters own nothing that must be released
        """Release the backend; further calls are a mistake."""

    async def attempt_async(self, request: Request) -> Attempt:
        """The same call for adapters that are ``asynchronous``; many are under way in one event
        loop.
        """
        raise NotImplementedError(f"model {self.name} is not asynchronous")

    async def release(self) -> None:  # noqa: B027 - most adapters own nothing that belongs to an event loop
        """Close what belongs to the running event loop, which is about to end."""

    def preflight(self) -> None:  # noqa: B027 - most adapters can be asked once they are made
        """Find out, without buying anything, what would refuse every call: InputError for a wrong
        key, an unknown model, or an address where nobody answers. What can't be found out is no
        error.
        """

    def batches(self) -> BatchInterface | None:
        """The provider's batch interface, for adapters that have one; with it come `batch_body` and
        `batch_reply`.
        """
        return None

    def batch_body(self, request: Request) -> dict[str, Any]:
        """A request as a batch takes it."""
        raise NotImplementedError(f"model {self.name} has no batch interface")

    def batch_reply(self, request: Request, line: Mapping[str, Any]) -> Reply:
        """The reply in a line of a batch's answers."""
        raise NotImplementedError(f"model {self.name} has no batch interface")

    def ask(self, request: Request, *, again: Again | None = None, tried: int = 0) -> Reply:
        """One reply, after as many paid attempts as ``retry`` allows, and ``again`` where it is
        given: it is asked before each repeated attempt, and its False makes the last attempt the
        reply. ``tried`` counts attempts that were made before, in a session that ended without the
        answer.
        """
        steps = self._asking(request, None, tried)
        try:
            next(steps)
            while True:
                attempt = self.attempt(request)
                done, charged = steps.send(attempt)
                if again is not None and not again(charged):
                    steps.throw(NotBegun())
                self.retry.wait(done, attempt.retry_after)
        except StopIteration as end:
            reply: Reply = end.value
            return reply

    def ask_all(
        self, requests: Sequence[Request], *, again: Sequence[Again] = (), tried: Sequence[int] = ()
    ) -> list[Reply | InputError]:
        """`ask` for requests that are answered together, each by the same rule of repeating; a
        request that may not be asked has its error in place of a reply.
        """
        found: dict[int, Reply | InputError] = {}
        going: dict[int, Generator[tuple[int, int], Attempt, Reply]] = {}
        for i, request in enumerate(requests):
            going[i] = self._asking(request, None, tried[i] if tried else 0)
            try:
                next(going[i])
            except InputError as error:
                found[i] = error
                del going[i]
        while going:
            pause = 0.0
            for i, attempt in zip(list(going), self.attempt_all([requests[i] for i in going]), strict=True):
                try:
                    done, charged = going[i].send(attempt)
                    if again and not again[i](charged):
                        going[i].throw(NotBegun())
                    pause = max(pause, self.retry.pause(done, attempt.retry_after))
                except StopIteration as end:
                    found[i] = end.value
                    del going[i]
            if going:
                self.retry.sleep(pause)
        return [found[i] for i in range(len(requests))]

    async def ask_async(
        self, request: Request, pace: Pace, *, again: AgainAsync | None = None, tried: int = 0
    ) -> Reply:
        """The same in an event loop.

        The pace of all calls to this model says when each may start, and how long attempts that
        cost nothing are repeated while the server is away.
        """
        steps = self._asking(request, pace, tried)
        try:
            done, charged = next(steps)
            while True:
                try:
                    if done and again is not None and not await again(charged):
                        raise NotBegun
                    attempt = await pace.call(self.attempt_async, request)
                except NotBegun as stop:
                    steps.throw(stop)
                else:
                    done, charged = steps.send(attempt)
        except StopIteration as end:
            reply: Reply = end.value
            return reply

    def _asking(self, request: Request, pace: Pace | None, tried: int) -> Generator[tuple[int, int], Attempt, Reply]:
        """The rule of repeating, without the calling and waiting: takes attempts, yields how many
        there were, and how many count. `NotBegun` instead of another attempt makes the last one the
        reply.
        """
        self.check(request)
        start = time.perf_counter()
        paid = Usage()
        done, charged = 0, tried
        while True:
            try:
                attempt = yield done, charged
            except NotBegun:
                if done == 0:
                    raise
                return self._reply(attempt, paid, time.perf_counter() - start, done)
            done += 1
            charged += not attempt.again and (pace is None or not pace.forgives(attempt))
            used = request.ceiling() if attempt.usage is None else attempt.usage
            paid += replace(used, doubtful=1) if attempt.doubtful else used
            hopeless = charged >= self.retry.attempts or (pace is not None and pace.hopeless)
            over = attempt.outcome not in RETRYABLE and not attempt.again
            if over or hopeless:
                return self._reply(attempt, paid, time.perf_counter() - start, done)

    def complete(self, requests: Sequence[Request]) -> tuple[Reply, ...]:
        """Replies in the order of the requests, all slots kept busy."""
        if self.batching:
            return self._in_portions(requests)
        if self.slots == 1 or len(requests) < 2:
            return tuple(self.ask(request) for request in requests)
        with ThreadPoolExecutor(min(self.slots, len(requests))) as pool:
            return tuple(pool.map(self.ask, requests))

    def _in_portions(self, requests: Sequence[Request]) -> tuple[Reply, ...]:
        """`slots` requests at a time, those of about one length together: little is padded."""
        for request in requests:
            self.check(request)
        order = sorted(range(len(requests)), key=lambda i: len(requests[i].prompt), reverse=True)
        found: dict[int, Reply] = {}
        for start in range(0, len(order), max(1, self.slots)):
            members = order[start : start + max(1, self.slots)]
            for i, reply in zip(members, self.ask_all([requests[i] for i in members]), strict=True):
                if isinstance(reply, InputError):
                    raise reply
                found[i] = reply
        return tuple(found[i] for i in range(len(requests)))

    def check(self, request: Request) -> None:
        if request.grammar is not None and not self.supports_grammar:
            raise InputError(f"model {self.name}: it offers no grammars; leave the grammar out of the request")
        if request.schema is not None and not self.supports_schema:
            raise InputError(f"model {self.name}: it takes no JSON schema; leave the schema out of the request")

    def _reply(self, attempt: Attempt, paid: Usage, latency: float, done: int) -> Reply:
        return Reply(
            attempt.text,
            attempt.outcome,
            paid,
            self.identity,
            attempt.raw_request,
            attempt.raw_response,
            latency,
            done,
            attempt.detail,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"
