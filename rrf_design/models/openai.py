"""Every OpenAI-compatible server (vLLM, SGLang, llama.cpp, Ollama, hosted ones).

Live runs go over a lean wire. The ``openai`` client does what that can't: batches, proxies and
single calls; it is imported only then, because that takes longer than all the rest of a start. Its
own retries are off: an attempt that nobody counted would be money nobody budgeted. The key comes
from the environment only, and is cut out of everything that leaves this file. What a status or a
body means is decided in one place for both.

The wire (`_Wire`) is HTTP/1.1 to one server with many calls under way in one event loop: just
enough for posting JSON, and nothing more.

General clients spend one to three milliseconds of processor time on a call, most of it in the pool
of connections, which is more than 500 calls at once leave. Here a call costs a tenth of one: an
idle connection is taken from a stack, the request is one write, the response is read by its length.
What this can't do (proxies, passwords in the address) is left to the general client, see `reaches`.
"""

from __future__ import annotations

import asyncio
import http.client
import importlib.util
import json
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

from rrf_design.errors import InputError, MissingDependency
from rrf_design.files import suggestion
from rrf_design.models._faults import (
    LONGEST,
    LOOK,
    Schemas,
    ServedModel,
    allowance,
    classify,
    counted,
    late,
    message,
    public,
    quiet,
    refuse_beforehand,
    refused,
    unreachable,
    web_page,
)
from rrf_design.models.base import Attempt, Outcome, Reply, Request, Retry, Usage
from rrf_design.models.batches import OpenAIBatches

BASE_URLS = ("RRF_OPENAI_BASE_URL", "OPENAI_BASE_URL")
KEYS = ("RRF_OPENAI_API_KEY", "OPENAI_API_KEY")
_HOSTED = "https://api.openai.com/v1"


class OpenAIModel(ServedModel):
    """``openai:NAME``.

    ``base_url`` defaults to RRF_OPENAI_BASE_URL or OPENAI_BASE_URL, then to the hosted service.

    ``grammar_field`` names the body field in which the server takes a GBNF grammar ("grammar" for
    llama.cpp); ``token_field`` is how it calls the limit: "max_completion_tokens" for the hosted
    service, which refuses the older name for some models, "max_tokens" elsewhere, "none" for a
    model that takes no limit; ``json_schema=False`` sends no schemas; ``extra`` goes into the body
    of every call.
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
        json_schema: bool = True,
        extra: Mapping[str, Any] | None = None,
        retry: Retry | None = None,
    ) -> None:
        if importlib.util.find_spec("openai") is None:
            raise MissingDependency("model openai:... needs the client; get it with: pip install openai")
        url = base_url or next((os.environ[name] for name in BASE_URLS if os.environ.get(name)), _HOSTED)
        if not url.startswith(("http://", "https://")):
            raise InputError(f"model openai:{model}: the base URL must begin with http:// or https://")
        key = next((os.environ[name] for name in KEYS if os.environ.get(name)), None)
        if key is None and url == _HOSTED:
            raise InputError(f"model openai:{model}: set {KEYS[1]}, or {BASE_URLS[1]} for a server of your own")
        self.name = f"openai:{model}"
        self.listed = self.name if url == _HOSTED else None
        self.slots = slots
        self.supports_grammar = grammar_field is not None
        self.retry = retry or Retry()
        self._model = model
        self._grammar_field = grammar_field
        self._token_field = token_field or ("max_completion_tokens" if url == _HOSTED else "max_tokens")
        self.bounded = self._token_field != "none"
        self.supports_schema = json_schema
        self._schemas = Schemas()
        self._extra = dict(extra or {})
        self._url, self._timeout, self._key = url, timeout, key or "none"
        self.asynchronous = _reaches(url)
        self._wires: dict[asyncio.AbstractEventLoop, _Wire] = {}
        self._secrets = tuple(s for s in (key, urlsplit(url).password) if s)
        self._identity = {
            "adapter": "openai",
            "model": model,
            "base_url": public(url),
            **({"extra": self._extra} if self._extra else {}),
        }

    @cached_property
    def _openai(self) -> Any:
        import openai

        return openai

    @cached_property
    def _client(self) -> Any:
        # A local server asks for no key, but the client insists on one; "none" is nobody's. Its own
        # http client would carry a question to whatever host a redirect names.
        plain = self._openai.DefaultHttpxClient(follow_redirects=False)
        return self._openai.OpenAI(
            api_key=self._key, base_url=self._url, timeout=self._timeout, max_retries=0, http_client=plain
        )

    def close(self) -> None:
        if "_client" in self.__dict__:
            self._client.close()

    def attempt(self, request: Request) -> Attempt:
        return self._schemas.noted(request, self._attempt(request))

    def _attempt(self, request: Request) -> Attempt:
        call, body, kept = self._call(request)
        try:
            response = self._client.chat.completions.with_raw_response.create(**call, extra_body=body)
            text = response.http_response.text
        except self._openai.APIError as error:
            return self._failed(error, kept)
        return self._answered(text, response.headers, kept)

    async def _attempt_async(self, request: Request) -> Attempt:
        call, body, kept = self._call(request)
        loop = asyncio.get_running_loop()
        wire = self._wires.get(loop)
        if wire is None:
            headers = {"authorization": f"Bearer {self._key}", "accept": "application/json"}
            url = self._url.rstrip("/") + "/chat/completions"
            wire = self._wires[loop] = _Wire(url, headers, timeout=self._timeout)
        try:
            response = await wire.post(json.dumps({**call, **body}).encode())
        except _Silent as error:
            return late(str(error), kept, seen=error.seen)
        except _Unsent as error:
            return unreachable(self._clean(str(error)), Usage(), kept)
        except _Broken as error:
            return unreachable(self._clean(f"the connection broke ({error})"), None, kept, seen=error.seen)
        text = response.body.decode("utf-8", errors="replace")
        if response.status == 200:
            return self._answered(text, response.headers, kept)
        detail = self._clean(f"HTTP {response.status}: {message(text)}")
        return refused(response.status, response.headers, detail, kept)

    async def release(self) -> None:
        wire = self._wires.pop(asyncio.get_running_loop(), None)
        if wire is not None:
            await wire.close()

    def preflight(self) -> None:
        found, code = self._look("/models/" + quote(self._model, safe=""))
        if found.outcome is Outcome.GARBAGE:
            raise web_page(self.name, self._url)
        if found.outcome is Outcome.ANSWERED:
            return
        key = next((name for name in KEYS if os.environ.get(name)), KEYS[1])
        refuse_beforehand(self.name, found, url=self._url, key=key)
        if code == "model_not_found":
            self._no_such_model()

    def _look(self, path: str) -> tuple[Attempt, str]:
        """What the server shows at a path, garbage where that is a page, and the code of its error
        where it names one.
        """
        try:
            status, kind, headers, text = self._got(path) if self.asynchronous else self._got_by_client(path)
        except TimeoutError as error:
            return late(str(error), {}), ""
        except (OSError, http.client.HTTPException) as error:
            return unreachable(self._clean(f"{type(error).__name__}: {error}"), Usage(), {}), ""
        if status == 200:
            document = kind.endswith("json") or text.lstrip()[:1] in ("{", "[")  # some servers name no kind
            return Attempt(Outcome.ANSWERED if document else Outcome.GARBAGE, text), ""
        try:
            code = str(json.loads(text)["error"]["code"])
        except (ValueError, LookupError, TypeError, RecursionError):
            code = ""
        return refused(status, headers, self._clean(f"HTTP {status}: {message(text)}"), {}), code

    def _got(self, path: str) -> tuple[int, str, Mapping[str, str], str]:
        """Status, kind, headers and text of a response, without the client."""
        parts = urlsplit(self._url)
        over = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        connection = over(parts.hostname or "", parts.port, timeout=LOOK)
        try:
            head = {"authorization": f"Bearer {self._key}", "accept": "application/json"}
            connection.request("GET", parts.path.rstrip("/") + path, headers=head)
            response = connection.getresponse()
            text = response.read(LARGEST).decode("utf-8", errors="replace")
            headers = {name.lower(): value for name, value in response.getheaders()}
        finally:
            connection.close()
        return response.status, headers.get("content-type", "*").split(";")[0].strip(), headers, text

    def _got_by_client(self, path: str) -> tuple[int, str, Mapping[str, str], str]:
        import httpx

        try:
            response = self._client.with_options(timeout=LOOK).get(path, cast_to=httpx.Response)
        except self._openai.APIStatusError as error:
            response = error.response
        except self._openai.APITimeoutError as error:
            raise TimeoutError(str(error)) from None
        except self._openai.APIConnectionError as error:
            raise OSError(f"{error} ({error.__cause__})") from None
        kind = response.headers.get("content-type", "*").split(";")[0].strip()
        return response.status_code, kind, response.headers, response.text

    def _no_such_model(self) -> None:
        try:
            known = [str(entry["id"]) for entry in json.loads(self._look("/models")[0].text)["data"]]
        except (ValueError, LookupError, TypeError, RecursionError):
            known = []
        hint = suggestion(self._model, known)
        raise InputError(f"model {self.name}: the server has no such model, or this key may not use it{hint}")

    def batches(self) -> OpenAIBatches:
        return OpenAIBatches(self._client, self._openai)

    def batch_body(self, request: Request) -> dict[str, Any]:
        call, body, _ = self._call(request)
        return {**call, **body}

    def batch_reply(self, request: Request, line: Mapping[str, Any]) -> Reply:
        kept = self._call(request)[2]
        response = line.get("response") or {}
        status, body = response.get("status_code"), response.get("body")
        if status == 200:
            attempt = self._read(json.dumps(body), kept)
        elif isinstance(status, int):
            attempt = refused(status, {}, self._clean(f"HTTP {status}: {message(json.dumps(body))}"), kept)
        else:
            attempt = unreachable(
                self._clean(str((line.get("error") or {}).get("message", "no answer"))), Usage(), kept
            )
        return self._in_batch(request, attempt)

    def _call(self, request: Request) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        """The standard fields, those of this server, and both as they may be kept."""
        call: dict[str, Any] = {"model": self._model, "messages": request.messages()}
        if self.bounded:
            call[self._token_field] = request.max_tokens
        call |= self._schemas.fields(request) | self._fields(request)
        body = dict(self._extra)
        if request.grammar is not None and self._grammar_field is not None:
            body[self._grammar_field] = request.grammar
        return call, body, self._clean({**call, **body})

    def _answered(self, text: str, headers: Mapping[str, str], call: Mapping[str, Any]) -> Attempt:
        attempt = self._read(text, call)
        wait, more = quiet(headers), allowance(headers)
        return attempt if wait is None and more is None else replace(attempt, retry_after=wait, allowance=more)

    def _read(self, body: str, call: Mapping[str, Any]) -> Attempt:
        """The answer in a response body; anything that is not shaped like one is garbage, and was
        paid for.
        """
        try:
            document = json.loads(body)
            if "\\" in body or self._clean(body) != body:  # an escape may hide a secret
                document = self._clean(document)
            choice = document["choices"][0]
            said, finish = choice["message"], choice["finish_reason"]
            content, refusal = said.get("content"), said.get("refusal")
            if not isinstance(content, str | None):
                raise TypeError("content is not text")
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
            kept = {"body": self._clean(body[:2000])}
            detail = f"not a chat completion ({type(error).__name__})"
            return Attempt(Outcome.GARBAGE, "", None, call, kept, detail)
        return classify(content or "", finish, counted(document), call, document, refusal=refusal)

    def _failed(self, error: Exception, call: Mapping[str, Any]) -> Attempt:
        """What an error of the client means."""
        openai = self._openai
        detail = self._clean(f"{type(error).__name__}: {error}")
        if isinstance(error, openai.APIStatusError):
            return refused(error.status_code, error.response.headers, detail, call)
        if isinstance(error, openai.APITimeoutError):
            return late(detail, call)
        if isinstance(error, openai.APIConnectionError):
            # A connection that was never made bought nothing; one that broke later may have.
            unpaid = type(error.__cause__).__name__ in ("ConnectError", "ConnectTimeout")
            why = detail if error.__cause__ is None else self._clean(f"{detail} ({error.__cause__})")
            return unreachable(why, Usage() if unpaid else None, call)
        return Attempt(Outcome.FAILED, "", Usage(calls=1), call, {"error": detail[:LONGEST]}, detail[:LONGEST])


LARGEST = 64 * 2**20
"""Bytes of a response; a chat completion is a thousand times smaller."""


class _Unsent(Exception):
    """No connection could be made: the server has seen nothing."""


class _Broken(Exception):
    """The connection broke after the request was sent.

    `seen`: the server had begun to answer, so it has seen the request; if not, it may have.
    """

    def __init__(self, reason: str, *, seen: bool) -> None:
        super().__init__(reason)
        self.seen = seen


class _Silent(_Broken):
    """No whole response in time."""


@dataclass(frozen=True, slots=True)
class _Response:
    status: int
    headers: Mapping[str, str]
    """Names in small letters."""
    body: bytes


def _reaches(url: str) -> bool:
    """Whether a plain connection will do: no proxy in between, no password and no query in the
    address.
    """
    parts = urlsplit(url)
    proxies = getproxies()
    direct = not (parts.scheme in proxies or "all" in proxies) or bool(proxy_bypass(parts.hostname or ""))
    return direct and parts.username is None and not parts.query and parts.hostname is not None


class _Wire:
    """Connections to one server, kept open between calls; for one event loop."""

    def __init__(self, url: str, headers: Mapping[str, str], *, timeout: float) -> None:
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        self._host, self._port = parts.hostname or "", parts.port or (443 if secure else 80)
        self._tls = ssl.create_default_context() if secure else None
        self._timeout = timeout
        lines = {"host": parts.netloc, **headers, "content-type": "application/json"}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self._head = f"POST {parts.path or '/'} HTTP/1.1\r\n{head}content-length: ".encode("latin-1")
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def post(self, body: bytes) -> _Response:
        """The server's response. `_Unsent`, `_Broken` or `_Silent` if there is none."""
        sent = seen = keep = False
        try:
            async with asyncio.timeout(self._timeout):
                reader, writer = await self._connection()
                sent = True
                try:
                    writer.write(b"%b%d\r\n\r\n%b" % (self._head, len(body), body))
                    head = await _head(reader)
                    seen = True
                    response, keep = await _rest(reader, head)
                except asyncio.IncompleteReadError as error:
                    raise _Broken(f"{type(error).__name__}: {error}", seen=seen or bool(error.partial)) from None
                except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
                    begun = seen or isinstance(error, asyncio.LimitOverrunError)
                    raise _Broken(f"{type(error).__name__}: {error}", seen=begun) from None
                finally:
                    if keep:
                        self._idle.append((reader, writer))
                    else:
                        writer.close()
                return response
        except TimeoutError:
            words = f"no answer in {self._timeout:g} s"
            raise (_Silent(words, seen=seen) if sent else _Unsent(words)) from None

    async def close(self) -> None:
        idle, self._idle = self._idle, []
        for _, writer in idle:
            writer.transport.abort()
        await asyncio.sleep(0)  # the loop closes the sockets in its next turn

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            reader, writer = self._idle.pop()
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        try:
            return await asyncio.open_connection(self._host, self._port, ssl=self._tls)
        except (OSError, TimeoutError) as error:
            raise _Unsent(f"{type(error).__name__}: {error}") from None


async def _head(reader: asyncio.StreamReader) -> list[str]:
    """The lines of one head."""
    return (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")


async def _rest(reader: asyncio.StreamReader, head: list[str]) -> tuple[_Response, bool]:
    """One response whose first head has come, and whether the connection can be used again."""
    while True:
        version, status, *_ = head[0].split(" ", 2)
        if not version.startswith("HTTP/1.") or not status.isdigit():
            raise ValueError("this is not HTTP")
        if not 100 <= int(status) < 200:
            break
        head = await _head(reader)
    headers: dict[str, str] = {}
    for line in head[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    keep = version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = await _chunks(reader)
    elif "content-length" in headers:
        body = await reader.readexactly(_size(headers["content-length"], 10))
    else:
        body, keep = await reader.read(LARGEST), False
    return _Response(int(status), headers, body), keep


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    parts: list[bytes] = []
    left = LARGEST
    while size := _size((await reader.readuntil(b"\r\n")).split(b";")[0].strip().decode("latin-1"), 16, most=left):
        parts.append(await reader.readexactly(size))
        left -= size
        await reader.readexactly(2)
    while await reader.readuntil(b"\r\n") != b"\r\n":
        pass  # trailers say nothing that is needed here
    return b"".join(parts)


def _size(text: str, base: int, *, most: int = LARGEST) -> int:
    size = int(text, base)
    if not 0 <= size <= most:
        raise ValueError(f"a response of {size} bytes")
    return size
