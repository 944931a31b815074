"""``PROVIDER:NAME``: any provider of the optional extra (``any-llm-sdk``), asked once per attempt.

The library's own retries are off, because an attempt that nobody counted would be money nobody
budgeted: a provider whose client can't promise that is refused. Keys come from the environment, by
the names that the library gives them, and are cut out of everything that leaves this file.

Anthropic's message batches take all requests in one call and give the answers as one file, at half
the price. A batch there carries nothing of the caller's but the names of its requests, and those
are told only with its results. So every name begins with the token, and what was the newest batch
before is written down: whoever was killed while making one looks through the batches that are newer
and as large, and waits for those that have not ended. Nothing is made anew while one of them may be
it.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from rrf_design.errors import InputError, MissingDependency
from rrf_design.files import suggestion
from rrf_design.models._faults import (
    LONGEST,
    LOOK,
    Schemas,
    ServedModel,
    classify,
    counted,
    late,
    public,
    refuse_beforehand,
    refuse_web_page,
    refused,
    unreachable,
)
from rrf_design.models.base import Attempt, Outcome, Reply, Request, Retry, Usage
from rrf_design.models.batches import BatchFault, BatchInterface, BatchState, Handed, Undecided, faults, objects

EXTRA = "pip install 'rrf-design[providers]'"
_WITHOUT_SEEDS = frozenset({"anthropic", "azureanthropic", "vertexaianthropic"})
_UNSENT = frozenset({"ConnectError", "ConnectTimeout", "ConnectionRefusedError"})
"""Errors of the clients' transports that come before a request has left."""
_REFUSED_HERE = ("UnsupportedParameterError", "NotImplementedError")
"""Errors that the library raises about a request it does not send."""


def providers() -> tuple[str, ...]:
    """The providers of the extra; none where it is not installed."""
    try:
        from any_llm import AnyLLM
    except ImportError:
        return ()
    return tuple(AnyLLM.get_supported_providers())


class ProviderModel(ServedModel):
    """``PROVIDER:NAME``.

    ``base_url`` overrides the provider's address, ``json_schema=False`` sends no schemas, ``extra``
    goes into every call as the library's own arguments (``reasoning_effort``, ``service_tier``
    ...).
    """

    asynchronous = True

    def __init__(
        self,
        model: str,
        *,
        provider: str,
        base_url: str | None = None,
        slots: int = 4,
        timeout: float = 120.0,
        json_schema: bool = True,
        extra: Mapping[str, Any] | None = None,
        retry: Retry | None = None,
    ) -> None:
        self.name = f"{provider}:{model}"
        self.slots, self.retry = slots, retry or Retry()
        self._provider, self._model, self._timeout = provider, model, timeout
        self._extra = dict(extra or {})
        self.supports_schema = json_schema
        self._schemas = Schemas()
        kind = _class(provider, self.name)
        url = base_url or os.environ.get(kind.ENV_API_BASE_NAME or "")
        if url and not url.startswith(("http://", "https://")):
            raise InputError(f"model {self.name}: the base URL must begin with http:// or https://")
        key = os.environ.get(kind.ENV_API_KEY_NAME or "")
        self._secrets = tuple(s for s in (key, urlsplit(url or "").password) if s)
        self._kind, self._url = kind, url
        self.listed = None if url else self.name
        self._waits = {} if kind.TIMEOUT_SUPPORT == "unsupported" else {"timeout": timeout}
        self._clients: dict[asyncio.AbstractEventLoop, Any] = {}
        self._spare = self._make()  # a missing key or package is found here, while it costs nothing
        self._aside: _Aside | None = None
        self._batches: _MessageBatches | None = None
        self._lock = threading.Lock()
        self._identity = {
            "adapter": "any-llm",
            "provider": provider,
            "model": model,
            **({"base_url": public(url)} if url else {}),
            **({"extra": self._extra} if self._extra else {}),
        }

    def check(self, request: Request) -> None:
        super().check(request)
        if request.seed is not None and self._provider in _WITHOUT_SEEDS:
            raise InputError(f"model {self.name}: {self._provider} knows no seeds; leave the seed out")

    def attempt(self, request: Request) -> Attempt:
        attempt: Attempt = self._beside(self.attempt_async(request))
        return attempt

    def _beside(self, work: Any) -> Any:
        with self._lock:
            if self._aside is None:
                self._aside = _Aside()
        return self._aside.call(work)

    async def _attempt_async(self, request: Request) -> Attempt:
        call = self._call(request)
        kept = self._clean(call)
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._client().acompletion(**call, **self._waits)
        except TimeoutError:
            return late(f"no answer in {self._timeout:g} s", kept)
        except Exception as error:  # of any provider's client: each becomes an outcome
            return self._failed(error, kept)
        return self._read(answer, kept)

    def preflight(self) -> None:
        if self._url is not None:
            refuse_web_page(self.name, self._url, seconds=LOOK)
        if self._kind.SUPPORTS_LIST_MODELS:
            self._beside(self._look())

    async def _look(self) -> None:
        try:
            async with asyncio.timeout(LOOK):
                await self._client().alist_models()
        except TimeoutError:
            return
        except Exception as error:  # of any provider's client
            attempt = self._failed(error, {})
            url = self._url or f"the address of {self._provider}"
            refuse_beforehand(self.name, attempt, url=url, key=self._kind.ENV_API_KEY_NAME or "")

    def batches(self) -> _MessageBatches | None:
        if self._provider != "anthropic":
            return None
        if self._batches is None:
            import anthropic

            key = os.environ.get(self._kind.ENV_API_KEY_NAME or "")
            http = anthropic.DefaultHttpxClient(follow_redirects=False)
            client = anthropic.Anthropic(
                api_key=key, base_url=self._url, timeout=self._timeout, max_retries=0, http_client=http
            )
            self._batches = _MessageBatches(client, anthropic)
        return self._batches

    def batch_body(self, request: Request) -> dict[str, Any]:
        from any_llm.types.completion import CompletionParams

        call = self._call(request)
        said = CompletionParams(model_id=call.pop("model"), **{"reasoning_effort": "auto", **call})
        made: dict[str, Any] = self._kind._convert_completion_params(said, provider_name=self._kind.PROVIDER_NAME)
        return made

    def batch_reply(self, request: Request, line: Mapping[str, Any]) -> Reply:
        from anthropic.types import Message
        from pydantic import ValidationError

        kept, result = self._clean(self._call(request)), line.get("result") or {}
        if result.get("type") != "succeeded":
            attempt = _failed_line(self._clean(result), kept)
        else:
            try:
                answer = self._kind._convert_completion_response(Message.model_validate(result.get("message")))
                attempt = self._read(answer, kept)
            except (ValidationError, AttributeError, TypeError, ValueError) as error:
                attempt = self._garbage(error, kept)
        return self._in_batch(request, attempt)

    async def release(self) -> None:
        client = self._clients.pop(asyncio.get_running_loop(), None)
        close = getattr(getattr(client, "client", None), "close", None)
        if close is not None:
            await close()

    def close(self) -> None:
        aside, self._aside = self._aside, None
        if aside is not None:
            aside.call(self.release())
            aside.close()

    def _make(self) -> Any:
        from any_llm.exceptions import AnyLLMError, MissingApiKeyError

        try:
            return _staying(self._kind(api_base=self._url, max_retries=0, unified_exceptions=True))
        except MissingApiKeyError as error:
            raise InputError(f"model {self.name}: set {error.env_var_name}, in the environment or in .env") from None
        except (AnyLLMError, ValueError, TypeError) as error:
            said = self._clean(str(error).split("\n")[0])
            raise InputError(f"model {self.name}: can't be set up ({said})") from None

    def _client(self) -> Any:
        """Connections belong to an event loop, so each has its own."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            spare, self._spare = self._spare, None
            self._clients[loop] = self._make() if spare is None else spare
        return self._clients[loop]

    def _call(self, request: Request) -> dict[str, Any]:
        call: dict[str, Any] = {"model": self._model, "messages": request.messages(), "max_tokens": request.max_tokens}
        return call | self._fields(request) | self._schemas.fields(request) | self._extra

    def _read(self, answer: Any, call: Mapping[str, Any]) -> Attempt:
        """The answer in a completion; anything that is not shaped like one is garbage, and was paid
        for.
        """
        try:
            document = self._clean(answer.model_dump(mode="json", exclude_none=True, warnings=False))
            choice = document["choices"][0]
            text, refusal = choice["message"].get("content") or "", choice["message"].get("refusal")
            usage = counted(document)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            return self._garbage(error, call)
        if usage is not None and text and not usage.output_tokens:
            usage = None  # a text that took no tokens is one whose tokens nobody counted
        return classify(text, choice.get("finish_reason"), usage, call, document, refusal=refusal)

    def _failed(self, error: Exception, call: Mapping[str, Any]) -> Attempt:
        """What an error of the library, of the provider's client or of its transport means."""
        chain = list(_chain(error))
        names = {type(one).__name__ for one in chain}
        cause = chain[1] if len(chain) > 1 else error
        detail = self._clean(f"{type(cause).__name__}: {str(error).strip()}")
        status = getattr(error, "status_code", None)
        if isinstance(status, int) and not 200 <= status < 300:
            headers = next((h for h in (_headers(one) for one in chain) if h is not None), {})
            return refused(status, headers, detail, call)
        unsent = any("unexpected keyword argument" in str(one) for one in chain if isinstance(one, TypeError))
        if unsent or names.intersection(_REFUSED_HERE):
            return Attempt(Outcome.FAILED, "", Usage(), call, {"error": detail[:LONGEST]}, detail[:LONGEST])
        if names & _UNSENT:
            return unreachable(detail, Usage(), call)
        if any("Timeout" in name for name in names):
            return late(detail, call)
        if any(isinstance(one, OSError) or "Connection" in type(one).__name__ for one in chain):
            return unreachable(detail, None, call)
        return self._garbage(cause, call)

    def _garbage(self, error: BaseException, call: Mapping[str, Any]) -> Attempt:
        detail = self._clean(f"not a completion ({type(error).__name__}: {error})".replace("\n", " "))[:LONGEST]
        return Attempt(Outcome.GARBAGE, "", None, call, {"error": detail}, detail)


class _Aside:
    """An event loop in a thread of its own, for those who wait for one answer."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="provider", daemon=True)
        self._thread.start()

    def call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _class(provider: str, name: str) -> Any:
    """The library's class for a provider that can be asked here, or one line about what is
    missing.
    """
    try:
        from any_llm import AnyLLM
    except ImportError:
        raise MissingDependency(f"model {name}: needs the optional extra; get it with: {EXTRA}") from None
    known = providers()
    if provider not in known:
        raise InputError(f"model {name}: there is no provider {provider!r}{suggestion(provider, known)}")
    try:
        found = AnyLLM.get_provider_class(provider)
        missing = found.MISSING_PACKAGES_ERROR
    except ImportError as error:
        found, missing = None, error
    if missing is not None:
        raise MissingDependency(
            f"model {name}: the client of {provider} is not installed; get it with: pip install"
            f" 'any-llm-sdk[{provider}]'"
        )
    if not found.SUPPORTS_COMPLETION:
        raise InputError(f"model {name}: {provider} answers no questions; choose a provider of chat models")
    if found.MAX_RETRIES_SUPPORT == "unsupported":
        raise InputError(
            f"model {name}: its client repeats calls that nobody counts, so {provider} can't be used this way; where it"
            " has an OpenAI-compatible address, use openai:NAME with base_url"
        )
    return found


def _staying(made: Any) -> Any:
    """A client of the library that follows no redirects, which would carry a question to another
    host; where it talks through httpx, as nearly all do.
    """
    http: Any = getattr(getattr(made, "client", None), "_client", None)
    if hasattr(http, "follow_redirects"):
        http.follow_redirects = False
    return made


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error, and what it came from."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = getattr(one, "original_exception", None) or one.__cause__ or one.__context__


def _headers(error: BaseException) -> Mapping[str, str] | None:
    headers = getattr(getattr(error, "response", None), "headers", None)
    return None if headers is None else {str(name).lower(): str(value) for name, value in headers.items()}


_OWN = 16
"""Characters of the token before each name; a name has 64 at most."""
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "timeout_error": 408,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "overloaded_error": 529,
}
"""What a failure in a line would have been as the answer to a call of its own; such lines are not
charged.
"""


class _MessageBatches(BatchInterface):
    """Through an `anthropic` client whose retries are off."""

    most_lines = 100_000
    most_bytes = 200 * 2**20  # the service takes 256 MB

    def __init__(self, client: Any, errors: Any) -> None:
        self._batches, self._errors = client.messages.batches, errors

    def mark(self) -> str:
        with faults(self._errors):
            return next((batch.id for batch in self._batches.list(limit=1).data), "")

    def create(self, requests: Iterable[tuple[str, Mapping[str, Any]]], token: str) -> BatchState:
        lines = [{"custom_id": _own(token) + name, "params": dict(body)} for name, body in requests]
        with faults(self._errors):
            return _state(self._batches.create(requests=lines))

    def find(self, handed: Handed) -> BatchState | None:
        waiting = False
        with faults(self._errors):
            for batch in self._batches.list(limit=100):  # the newest first
                if batch.id == handed.mark:
                    break
                if sum(count for _, count in batch.request_counts if isinstance(count, int)) != handed.count:
                    continue
                if batch.processing_status != "ended":
                    waiting = True
                elif any(line["custom_id"].startswith(_own(handed.token)) for line in self._raw(batch.id)):
                    return _state(batch)
        if waiting:
            raise Undecided
        return None

    def look(self, batch: str) -> BatchState:
        with faults(self._errors):
            return _state(self._batches.retrieve(batch))

    def lines(self, state: BatchState) -> Iterator[dict[str, Any]]:
        for line in self._raw(state.id):
            yield {**line, "custom_id": line["custom_id"][_OWN + 1 :]}

    def _raw(self, batch: str) -> Iterator[dict[str, Any]]:
        try:
            with faults(self._errors):
                text = "".join(self._batches.results(batch).http_response.iter_text())
            found = list(objects(text.split("\n")))  # answers may hold other characters that end a line, as they are
        except self._errors.AnthropicError:  # the client refuses to ask for results that are no longer kept
            raise BatchFault("the results of this batch are not kept any more", gone=True) from None
        return (line for line in found if isinstance(line.get("custom_id"), str))


def _failed_line(result: Mapping[str, Any], call: Mapping[str, Any]) -> Attempt:
    """What a line without an answer means: errored, canceled or expired, and not charged."""
    error = (result.get("error") or {}).get("error") or {}
    kind = error.get("type")
    if result.get("type") != "errored" or not isinstance(kind, str):
        return unreachable(f"the request is {result.get('type', 'without a result')}", Usage(), call)
    detail = f"{kind}: {error.get('message', '')}"[:LONGEST]
    return refused(_STATUS.get(kind, 500), {}, detail, call)


def _own(token: str) -> str:
    return f"{token[:_OWN]}_"


def _state(batch: Any) -> BatchState:
    ended = batch.processing_status == "ended"
    return BatchState(batch.id, "completed" if ended else batch.processing_status)
