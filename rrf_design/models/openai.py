"""Every OpenAI-compatible server (vLLM, SGLang, llama.cpp, Ollama, hosted ones) through the ``openai`` client.

The client's own retries are off: an attempt that nobody counted would be money nobody budgeted. The key comes from the
environment only, and is cut out of everything that leaves this file. Runs with many calls at once go over a leaner wire
(`wire.py`); what a status or a body means is decided in one place for both.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from rrf_design.errors import InputError, MissingDependency
from rrf_design.models.base import Attempt, Model, Outcome, Request, Retry, Usage
from rrf_design.models.text import classify
from rrf_design.models.wire import Broken, Unsent, Wire, reaches

BASE_URL = "RRF_OPENAI_BASE_URL"
KEYS = ("RRF_OPENAI_API_KEY", "OPENAI_API_KEY")
_HOSTED = "https://api.openai.com/v1"


class OpenAIModel(Model):
    """``openai:NAME``. ``base_url`` defaults to RRF_OPENAI_BASE_URL, then to the hosted service.

    ``grammar_field`` names the body field in which the server takes a GBNF grammar ("grammar" for llama.cpp); ``token_field``
    is how it calls the limit: "max_completion_tokens" for the hosted service, which refuses the older name for some models,
    "max_tokens" elsewhere; ``extra`` goes into the body of every call.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        slots: int = 4,
        timeout: float = 120.0,
        grammar_field: str | None = None,
        token_field: str | None = None,
        extra: Mapping[str, Any] | None = None,
        retry: Retry | None = None,
    ) -> None:
        try:
            import openai
        except ImportError:
            raise MissingDependency("model openai:... needs the client; get it with: pip install openai") from None
        url = base_url or os.environ.get(BASE_URL) or _HOSTED
        if not url.startswith(("http://", "https://")):
            raise InputError(f"model openai:{model}: the base URL must begin with http:// or https://")
        key = next((os.environ[name] for name in KEYS if os.environ.get(name)), None)
        if key is None and url == _HOSTED:
            raise InputError(f"model openai:{model}: set {KEYS[1]}, or {BASE_URL} for a server of your own")
        self.name = f"openai:{model}"
        self.slots = slots
        self.supports_grammar = grammar_field is not None
        self.retry = retry or Retry()
        self._openai = openai
        self._model = model
        self._grammar_field = grammar_field
        self._token_field = token_field or ("max_completion_tokens" if url == _HOSTED else "max_tokens")
        self._extra = dict(extra or {})
        self._url, self._timeout, self._key = url, timeout, key or "none"
        self.asynchronous = reaches(url)
        self._wires: dict[asyncio.AbstractEventLoop, Wire] = {}
        self._secrets = tuple(s for s in (key, urlsplit(url).password) if s)
        # A local server asks for no key, but the client insists on one; this one is nobody's.
        self._client = openai.OpenAI(api_key=key or "none", base_url=url, timeout=timeout, max_retries=0)
        self._identity = {
            "adapter": "openai",
            "model": model,
            "base_url": _public(url),
            **({"extra": self._extra} if self._extra else {}),
        }

    @property
    def identity(self) -> Mapping[str, Any]:
        return self._identity

    def close(self) -> None:
        self._client.close()

    def attempt(self, request: Request) -> Attempt:
        call, body, kept = self._call(request)
        try:
            response = self._client.chat.completions.with_raw_response.create(**call, extra_body=body)
            text = response.http_response.text
        except self._openai.APIError as error:
            return self._failed(error, kept)
        return self._answered(text, response.headers, kept)

    async def attempt_async(self, request: Request) -> Attempt:
        call, body, kept = self._call(request)
        loop = asyncio.get_running_loop()
        wire = self._wires.get(loop)
        if wire is None:
            headers = {"authorization": f"Bearer {self._key}", "accept": "application/json"}
            url = self._url.rstrip("/") + "/chat/completions"
            wire = self._wires[loop] = Wire(url, headers, timeout=self._timeout)
        try:
            response = await wire.post(json.dumps({**call, **body}).encode())
        except TimeoutError:
            return Attempt(Outcome.TIMEOUT, "", None, kept, {"error": "timeout"}, f"no answer in {self._timeout:g} s")
        except Unsent as error:
            return self._unreachable(str(error), Usage(), kept)
        except Broken as error:
            return self._unreachable(f"the connection broke ({error})", None, kept)
        text = response.body.decode("utf-8", errors="replace")
        if response.status == 200:
            return self._answered(text, response.headers, kept)
        return self._refused(response.status, response.headers, f"HTTP {response.status}: {_message(text)}", kept)

    async def release(self) -> None:
        wire = self._wires.pop(asyncio.get_running_loop(), None)
        if wire is not None:
            await wire.close()

    def _call(self, request: Request) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """The standard fields, those of this server, and both as they may be kept."""
        call: dict[str, Any] = {
            "model": self._model,
            "messages": request.messages(),
            self._token_field: request.max_tokens,
        }
        wishes = {"temperature": request.temperature, "top_p": request.top_p, "seed": request.seed}
        call |= {name: value for name, value in wishes.items() if value is not None}
        if request.seed is not None and request.repeat:
            call["seed"] = request.seed + request.repeat
        if request.stop:
            call["stop"] = list(request.stop)
        body = dict(self._extra)
        if request.grammar is not None and self._grammar_field is not None:
            body[self._grammar_field] = request.grammar
        return call, body, self._clean({**call, **body})

    def _answered(self, text: str, headers: Mapping[str, str], call: Mapping[str, Any]) -> Attempt:
        attempt = self._read(text, call)
        quiet = _quiet(headers)
        return attempt if quiet is None else replace(attempt, retry_after=quiet)

    def _read(self, body: str, call: Mapping[str, Any]) -> Attempt:
        """The answer in a response body; anything that is not shaped like one is garbage, and was paid for."""
        try:
            document = self._clean(json.loads(body))
            choice = document["choices"][0]
            message = choice["message"]
            content, refusal, finish = message.get("content"), message.get("refusal"), choice["finish_reason"]
            if not isinstance(content, str | None):
                raise TypeError("content is not text")
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
            kept = {"body": self._clean(body[:2000])}
            detail = f"not a chat completion ({type(error).__name__})"
            return Attempt(Outcome.GARBAGE, "", None, call, kept, detail)
        return classify(content or "", finish, _usage(document), call, document, refusal=refusal)

    def _failed(self, error: Exception, call: Mapping[str, Any]) -> Attempt:
        """What an error of the client means."""
        openai = self._openai
        detail = f"{type(error).__name__}: {error}"
        if isinstance(error, openai.APIStatusError):
            return self._refused(error.status_code, error.response.headers, detail, call)
        if isinstance(error, openai.APITimeoutError):
            return Attempt(Outcome.TIMEOUT, "", None, call, {"error": self._clean(detail[:500])}, detail[:500])
        if isinstance(error, openai.APIConnectionError):
            # A connection that was never made bought nothing; one that broke later may have.
            unpaid = type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout")
            return self._unreachable(detail, Usage() if unpaid else None, call)
        detail = self._clean(detail[:500])
        return Attempt(Outcome.FAILED, "", Usage(calls=1), call, {"error": detail}, detail)

    def _refused(self, status: int, headers: Mapping[str, str], detail: str, call: Mapping[str, Any]) -> Attempt:
        """What a status other than 200 means."""
        detail = self._clean(detail[:500])
        kept = {"error": detail, "status": status}
        if status == 408:
            return Attempt(Outcome.TIMEOUT, "", None, call, kept, detail)
        if status == 429:
            wait = _seconds(headers.get("retry-after")) or _quiet(headers)
            return Attempt(Outcome.RATE_LIMITED, "", Usage(calls=1), call, kept, detail, wait)
        if status >= 500:
            wait = _seconds(headers.get("retry-after"))
            return Attempt(Outcome.UNREACHABLE, "", Usage(calls=1), call, kept, detail, wait)
        return Attempt(Outcome.FAILED, "", Usage(calls=1), call, kept, detail)

    def _unreachable(self, detail: str, usage: Usage | None, call: Mapping[str, Any]) -> Attempt:
        detail = self._clean(detail[:500])
        return Attempt(Outcome.UNREACHABLE, "", usage, call, {"error": detail, "status": None}, detail)

    def _clean(self, value: Any) -> Any:
        """The value without secrets, wherever a server may have echoed them."""
        if isinstance(value, str):
            for secret in self._secrets:
                value = value.replace(secret, "[redacted]")
            return value
        if isinstance(value, Mapping):
            return {self._clean(name): self._clean(entry) for name, entry in value.items()}
        return [self._clean(entry) for entry in value] if isinstance(value, list) else value


def _usage(document: Mapping[str, Any]) -> Usage | None:
    """Token counts as the server states them; a server that states none is charged the ceiling."""
    counts = document.get("usage")
    if not isinstance(counts, Mapping):
        return None
    numbers = [counts.get(name) for name in ("prompt_tokens", "completion_tokens")]
    known = [n for n in numbers if isinstance(n, int) and not isinstance(n, bool) and n >= 0]
    return Usage(known[0], known[1], 1) if len(known) == 2 else None


def _seconds(header: str | None) -> float | None:
    try:
        return max(0.0, float(header)) if header else None
    except ValueError:
        return None


def _quiet(headers: Mapping[str, str]) -> float | None:
    """Seconds until a server's rate headers allow another call; None while they allow one now, or say nothing."""
    waits = [
        _duration(headers.get(f"x-ratelimit-reset-{what}"))
        for what in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{what}") == "0"
    ]
    known = [wait for wait in waits if wait is not None]
    return max(known) if known else None


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def _duration(text: str | None) -> float | None:
    """Seconds of "6m0.5s", "20ms" or "3"."""
    if not text:
        return None
    if (plain := _seconds(text)) is not None:
        return plain
    if not re.fullmatch(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h))+", text):
        return None
    return sum(float(n) * _UNITS[unit] for n, unit in re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text))


def _message(body: str) -> str:
    """The server's own words in an error body, or the beginning of the body."""
    try:
        said = json.loads(body)["error"]["message"]
        return said if isinstance(said, str) else body[:300]
    except (ValueError, KeyError, TypeError, RecursionError):
        return body[:300]


def _public(url: str) -> str:
    """The address without user, password and query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
