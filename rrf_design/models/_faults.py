"""What came back, as an outcome, the same for every adapter: a generated text, or a server's
refusal with its status and rate headers, and no secret in any of it.

Only what is certainly free is booked as free: a refusal costs no tokens, silence after the request
was sent may have cost them all.
"""

from __future__ import annotations

import json
import re
import time
from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import replace
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from rrf_design.errors import InputError
from rrf_design.models.base import Attempt, Model, Outcome, Reply, Request, Usage

LONGEST = 500
"""Characters of a server's own words that are kept."""
LOOK = 3.0
"""Seconds for a look at a server before anything is bought."""
REDIRECTED = "the server redirects to another address, which is not followed; correct base_url"
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def refused(status: int, headers: Mapping[str, str], detail: str, call: Mapping[str, Any]) -> Attempt:
    """What a status other than 200 means; `detail` and `call` hold no secrets any more."""
    detail = f"{REDIRECTED} (status {status})" if 300 <= status < 400 else detail[:LONGEST]
    kept = {"error": detail, "status": status}
    if status == 408:
        return Attempt(Outcome.TIMEOUT, "", None, call, kept, detail)
    if status == 429:
        wait = _later(headers) or quiet(headers)
        return Attempt(Outcome.RATE_LIMITED, "", Usage(calls=1), call, kept, detail, wait)
    if status >= 500:
        wait = _later(headers)
        return Attempt(Outcome.UNREACHABLE, "", Usage(calls=1), call, kept, detail, wait)
    return Attempt(Outcome.FAILED, "", Usage(calls=1), call, kept, detail)


def refuse_beforehand(name: str, attempt: Attempt, *, url: str, key: str) -> None:
    """InputError where a look at the server shows that it would refuse every call: a wrong key, or
    nobody there.
    """
    status = (attempt.raw_response or {}).get("status")
    if status == 401 and "scope" not in attempt.detail.lower():  # a key may be good for questions and for nothing else
        raise InputError(
            f"model {name}: the server refuses the key in {key or 'the environment'} ({attempt.detail[:200]})"
        )
    if isinstance(status, int) and 300 <= status < 400:
        raise InputError(f"model {name}: {attempt.detail}")
    if "CERTIFICATE_VERIFY_FAILED" in attempt.detail:
        raise InputError(
            f"model {name}: the certificate of {public(url)} is not trusted here{_reason(attempt.detail)}; if it is"
            " your own server's, name its file in SSL_CERT_FILE"
        )
    if attempt.outcome is Outcome.UNREACHABLE and attempt.usage == Usage():
        raise InputError(f"model {name}: nobody answers at {public(url)}; start the server there, or correct base_url")


def web_page(name: str, url: str) -> InputError:
    """What to say where a web page answers."""
    return InputError(
        f"model {name}: a web page answers at {public(url)}, no model server; correct base_url (it often ends in /v1)"
    )


def refuse_web_page(name: str, url: str, *, seconds: float) -> None:
    """InputError where an address that the user gave shows a page: the clients of some providers
    would take it for a list of models.
    """
    import httpx

    try:
        response = httpx.get(url.rstrip("/") + "/models", timeout=seconds)
    except (httpx.HTTPError, httpx.InvalidURL, OSError):
        return  # nobody there, or nobody that is trusted: the provider's client says so
    if response.status_code == 200 and "text/html" in response.headers.get("content-type", ""):
        raise web_page(name, url)


def _reason(detail: str) -> str:
    found = re.search(r"certificate verify failed: ([^(]+)", detail)
    return "" if found is None else f" ({found[1].strip()})"


WITHOUT_SCHEMA = "asked without the JSON schema, which the server refused"


def _response_format(schema: str) -> dict[str, Any]:
    """A schema as chat completions take it; not strict, so that an answer may say more than what is
    read.
    """
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": json.loads(schema), "strict": False}}


class Schemas:
    """JSON schemas in the calls of one model: a server that refuses one is asked without from then
    on, and every answer says so.
    """

    def __init__(self) -> None:
        self._refused = False

    def fields(self, request: Request) -> dict[str, Any]:
        """What a call says about the form of its answer."""
        wanted = request.schema is not None and not self._refused
        return {"response_format": _response_format(request.schema or "")} if wanted else {}

    def noted(self, request: Request, attempt: Attempt) -> Attempt:
        """An attempt as it is to be taken: refused for its schema alone, it is made again
        without.
        """
        if request.schema is None:
            return attempt
        if "response_format" not in attempt.raw_request:
            return replace(attempt, detail=attempt.detail or WITHOUT_SCHEMA)
        if not _refuses_schema(attempt):
            return attempt
        self._refused = True
        return replace(attempt, again=True)


class ServedModel(Model):
    """What adapters of servers share: an identity that is fixed, secrets that are cut out of
    everything, schemas that a server may refuse, and the fields of a chat completion.

    An adapter sets `_identity`, `_secrets` and `_schemas`, and implements `_attempt_async`.
    """

    _identity: Mapping[str, Any]
    _secrets: tuple[str, ...]
    _schemas: Schemas

    @property
    def identity(self) -> Mapping[str, Any]:
        return self._identity

    @property
    def secrets(self) -> tuple[str, ...]:
        """What must appear nowhere."""
        return self._secrets

    async def attempt_async(self, request: Request) -> Attempt:
        return self._schemas.noted(request, await self._attempt_async(request))

    @abstractmethod
    async def _attempt_async(self, request: Request) -> Attempt:
        """One call, whatever its schema."""

    def _fields(self, request: Request) -> dict[str, Any]:
        """What a request says beside its messages and the limit of its answer."""
        sampling = {"temperature": request.temperature, "top_p": request.top_p, "seed": request.seed}
        call: dict[str, Any] = {name: value for name, value in sampling.items() if value is not None}
        if request.seed is not None and request.repeat:
            call["seed"] = request.seed + request.repeat
        return call | ({"stop": list(request.stop)} if request.stop else {})

    def _in_batch(self, request: Request, attempt: Attempt) -> Reply:
        """The reply that an attempt in a batch amounts to."""
        attempt = self._schemas.noted(request, attempt)
        return self._reply(attempt, request.ceiling() if attempt.usage is None else attempt.usage, 0.0, 1)

    def _clean(self, value: Any) -> Any:
        return _cleaned(value, self._secrets)


def _refuses_schema(attempt: Attempt) -> bool:
    words = attempt.detail.lower()
    named = any(word in words for word in ("response_format", "json_schema", "output_config", "schema"))
    status = (attempt.raw_response or {}).get("status", 400)
    return attempt.outcome is Outcome.FAILED and status in (400, 404, 415, 422, 501) and named


def unreachable(detail: str, usage: Usage | None, call: Mapping[str, Any], *, seen: bool = False) -> Attempt:
    """Nobody answered; `usage` is None where the request may have arrived, `seen` says that it
    certainly did.
    """
    detail = detail[:LONGEST]
    kept = {"error": detail, "status": None}
    return Attempt(Outcome.UNREACHABLE, "", usage, call, kept, detail, doubtful=usage is None and not seen)


def late(detail: str, call: Mapping[str, Any], *, seen: bool = False) -> Attempt:
    """No answer in time; the server may have worked on it."""
    detail = detail[:LONGEST]
    return Attempt(Outcome.TIMEOUT, "", None, call, {"error": detail}, detail, doubtful=not seen)


def counted(document: Mapping[str, Any]) -> Usage | None:
    """Token counts as a chat completion states them; None where it states none, and the ceiling is
    charged.
    """
    counts = document.get("usage")
    if not isinstance(counts, Mapping):
        return None
    numbers = [counts.get(name) for name in ("prompt_tokens", "completion_tokens")]
    known = [n for n in numbers if isinstance(n, int) and not isinstance(n, bool) and n >= 0]
    return Usage(known[0], known[1], 1) if len(known) == 2 else None


def _cleaned(value: Any, secrets: Collection[str]) -> Any:
    """The value without secrets, wherever a server may have echoed them."""
    if not secrets:
        return value
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, "[redacted]")
        return value
    if isinstance(value, Mapping):
        return {_cleaned(name, secrets): _cleaned(entry, secrets) for name, entry in value.items()}
    return [_cleaned(entry, secrets) for entry in value] if isinstance(value, list) else value


def _seconds(header: str | None) -> float | None:
    try:
        return max(0.0, float(header)) if header else None
    except ValueError:
        return None


def _later(headers: Mapping[str, str]) -> float | None:
    """Seconds after which the server wants to be asked again: a number, or the date that HTTP
    allows too.
    """
    given = headers.get("retry-after")
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000.0
    found = _seconds(given)
    if found is not None or not given:
        return found
    try:
        return max(0.0, parsedate_to_datetime(given).timestamp() - time.time())
    except ValueError:
        return None


def allowance(headers: Mapping[str, str]) -> tuple[int, float] | None:
    """How many more requests a server's rate headers allow, and for how many seconds; None where
    they don't say.
    """
    left, wait = headers.get("x-ratelimit-remaining-requests"), headers.get("x-ratelimit-reset-requests")
    if left is None or not left.isdecimal():
        return None
    lasting = _duration(wait)
    return None if lasting is None else (int(left), lasting)


def quiet(headers: Mapping[str, str]) -> float | None:
    """Seconds until a server's rate headers allow another call; None while they allow one now, or
    say nothing.
    """
    waits = [
        _duration(headers.get(f"x-ratelimit-reset-{what}"))
        for what in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{what}") == "0"
    ]
    known = [wait for wait in waits if wait is not None]
    return max(known) if known else None


def _duration(text: str | None) -> float | None:
    """Seconds of "6m0.5s", "20ms" or "3"."""
    if not text:
        return None
    if (plain := _seconds(text)) is not None:
        return plain
    if not re.fullmatch(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h))+", text):
        return None
    return sum(float(n) * _UNITS[unit] for n, unit in re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h)", text))


def message(body: str) -> str:
    """The server's own words in an error body, or the beginning of the body."""
    try:
        said = json.loads(body)["error"]["message"]
        return said if isinstance(said, str) else body[:300]
    except (ValueError, KeyError, TypeError, RecursionError):
        return body[:300]


def public(url: str) -> str:
    """The address without user, password and query."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, "", ""))


# Local models refuse in prose. Only an opening counts, and only if no number or code follows: "I'm
# sorry, it is 5" answers.
_REFUSAL = re.compile(
    r"\s*(?:i['\u2019]?m sorry|i am sorry|sorry,|i apologi[sz]e|as an ai\b|"
    r"i (?:can(?:no|['\u2019])t|can not|am unable|am not able|won['\u2019]t|will not)\b)",
    re.IGNORECASE,
)
_EVIDENCE = re.compile(r"\d|```|\bdef\b")


def opens_as_refusal(text: str) -> bool:
    return _REFUSAL.match(text) is not None and _EVIDENCE.search(text) is None


def classify(
    text: str,
    finish: str | None,
    usage: Usage | None,
    raw_request: Mapping[str, Any],
    raw_response: Mapping[str, Any],
    *,
    refusal: str | None = None,
) -> Attempt:
    """The attempt that a finished generation amounts to."""
    if refusal or finish == "content_filter":
        outcome, detail = Outcome.REFUSED, refusal or "stopped by the content filter"
    elif not text.strip():
        outcome, detail = Outcome.EMPTY, "no text"
    elif _garbled(text):
        outcome, detail = Outcome.GARBAGE, "mostly undecodable characters"
    elif opens_as_refusal(text):
        outcome, detail = Outcome.REFUSED, "the text opens as a refusal"
    elif finish == "length":
        outcome, detail = Outcome.TRUNCATED, "cut at the token limit"
    else:
        outcome, detail = Outcome.ANSWERED, ""
    return Attempt(outcome, text, usage, raw_request, raw_response, detail)


def _garbled(text: str) -> bool:
    bad = sum(not (c.isprintable() or c.isspace()) or c == "\ufffd" for c in text)
    return 2 * bad > len(text)
