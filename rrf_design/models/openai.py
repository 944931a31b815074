"""Every OpenAI-compatible server (vLLM, SGLang, llama.cpp, Ollama, hosted ones) through the ``openai`` client.

The client's own retries are off: an attempt that nobody counted would be money nobody budgeted. The key comes from the
environment only, and is cut out of everything that leaves this file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from rrf_design.errors import InputError, MissingDependency
from rrf_design.models.base import Attempt, Model, Outcome, Request, Retry, Usage
from rrf_design.models.text import classify

BASE_URL = "RRF_OPENAI_BASE_URL"
KEYS = ("RRF_OPENAI_API_KEY", "OPENAI_API_KEY")
_HOSTED = "https://api.openai.com/v1"


class OpenAIModel(Model):
    """``openai:NAME``. ``base_url`` defaults to RRF_OPENAI_BASE_URL, then to the hosted service.

    ``grammar_field`` names the body field in which the server takes a GBNF grammar ("grammar" for llama.cpp); ``token_field``
    is "max_completion_tokens" where a server insists on it; ``extra`` goes into the body of every call.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        slots: int = 4,
        timeout: float = 120.0,
        grammar_field: str | None = None,
        token_field: str = "max_tokens",
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
        self._token_field = token_field
        self._extra = dict(extra or {})
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
        call: dict[str, Any] = {
            "model": self._model,
            "messages": request.messages(),
            self._token_field: request.max_tokens,
            "temperature": request.temperature,
            "top_p": request.top_p,
            "seed": request.seed,
            **({"stop": list(request.stop)} if request.stop else {}),
        }
        body = dict(self._extra)
        if request.grammar is not None and self._grammar_field is not None:
            body[self._grammar_field] = request.grammar
        kept: dict[str, Any] = self._clean({**call, **body})
        try:
            response = self._client.chat.completions.with_raw_response.create(**call, extra_body=body)
            text = response.http_response.text
        except self._openai.APIError as error:
            return self._failed(error, kept)
        return self._read(text, kept)

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
        openai = self._openai
        status = getattr(error, "status_code", None)
        detail = self._clean(f"{type(error).__name__}: {error}"[:500])
        kept = {"error": detail, "status": status}
        if isinstance(error, openai.APITimeoutError) or status == 408:
            return Attempt(Outcome.TIMEOUT, "", None, call, kept, detail)
        if isinstance(error, openai.RateLimitError):
            wait = _seconds(error.response.headers.get("retry-after"))
            return Attempt(Outcome.RATE_LIMITED, "", Usage(calls=1), call, kept, detail, wait)
        if status is not None and status >= 500:
            return Attempt(Outcome.UNREACHABLE, "", Usage(calls=1), call, kept, detail)
        if isinstance(error, openai.APIConnectionError):
            # A connection that was never made bought nothing; one that broke later may have.
            unpaid = type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout")
            return Attempt(Outcome.UNREACHABLE, "", Usage() if unpaid else None, call, kept, detail)
        return Attempt(Outcome.FAILED, "", Usage(calls=1), call, kept, detail)

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


def _public(url: str) -> str:
    """The address without user, password and query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))
