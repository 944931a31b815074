"""Who may ask the studio, and what each address answers.

It listens on loopback only. The address that the verb prints carries a token; the first request
puts it into a cookie that scripts can't read and other sites can't send, and takes it out of the
address. Then Host must be ours (so that no foreign name leads here), Origin must be ours wherever
something is written, and nothing is written by a GET. A policy in the header allows our own files
and nothing else.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import webbrowser
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from rrf_design.errors import InputError, MissingDependency, RetryLater, RRFError
from rrf_design.studio import _pages as pages
from rrf_design.studio._index import ListView
from rrf_design.studio._items import asked, open_item
from rrf_design.studio._library import Library, LibraryEntry
from rrf_design.studio._live import Watching, events
from rrf_design.texts import json_text

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
ASSETS = {
    "page.css": "rrf_design.reporting",
    "page.js": "rrf_design.reporting",
    "field.js": "rrf_design.reporting",
    "items.js": "rrf_design.reporting",
    "studio.css": "rrf_design.studio",
    "studio.js": "rrf_design.studio",
    "review.js": "rrf_design.studio",
    "live.js": "rrf_design.studio",
}
TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
TOKEN, SHORTEST = "RRF_STUDIO_TOKEN", 16
"""The environment variable of a token of one's own: pages that are open survive a new start."""
LONGEST_BODY = 1_000_000
TWICE = 10
"""Rows that a request for second labels is for."""
Scope = dict[str, Any]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class _Guard:
    """Lets a request through that comes from our own page with our own token, and answers 403 to
    all others.
    """

    def __init__(self, app: Any, *, token: str, hosts: frozenset[str], cookie: str) -> None:
        self.app, self.token, self.hosts, self.cookie = app, token, hosts, cookie

    async def __call__(self, scope: Scope, receive: Any, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        heard = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}

        async def guarded(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = {name.encode(): value.encode() for name, value in HEADERS.items()}
                kept = [(name, value) for name, value in message["headers"] if name.lower() not in own]
                message = {**message, "headers": [*kept, *own.items()]}
            await send(message)

        reason = self._refused(scope, heard)
        if reason is None and (way := self._entered(scope)) is not None:
            await self._answer(guarded, 303, "", location=way, cookie=True)
        elif reason is None and not self._known(heard):
            words = "no token: open the address that rrf-design studio printed, token and all"
            await self._answer(guarded, 403, words)
        elif reason is not None:
            await self._answer(guarded, 403, reason)
        else:
            await self.app(scope, receive, guarded)

    def _refused(self, scope: Scope, heard: Mapping[str, str]) -> str | None:
        host, origin = heard.get("host", ""), heard.get("origin")
        if host not in self.hosts:
            return "a foreign Host"
        if origin is not None and origin != f"http://{host}":
            return "a foreign Origin"
        reads = scope["method"] in ("GET", "HEAD")
        if not reads and origin is None:
            return "no Origin"
        if reads and scope["path"].startswith("/act/"):
            return "a GET does not write"
        return None

    def _entered(self, scope: Scope) -> str | None:
        """The address without its token, where the token is ours."""
        asked = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in asked if name == "token"]
        if scope["method"] != "GET" or not given or not _same(given[0], self.token):
            return None
        rest = urlencode([(name, value) for name, value in asked if name != "token"])
        path = "/" + scope["path"].lstrip("/\\")
        return f"{path}?{rest}" if rest else path

    def _known(self, heard: Mapping[str, str]) -> bool:
        for part in heard.get("cookie", "").split(";"):
            name, _, value = part.strip().partition("=")
            if name == self.cookie and _same(value, self.token):
                return True
        return False

    async def _answer(self, send: Send, status: int, text: str, *, location: str = "", cookie: bool = False) -> None:
        headers = [(b"content-type", b"text/plain; charset=utf-8")]
        if location:
            headers.append((b"location", location.encode("latin-1", "replace")))
        if cookie:
            said = f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/"
            headers.append((b"set-cookie", said.encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": text.encode()})


def _same(given: str, token: str) -> bool:
    return secrets.compare_digest(given.encode("utf-8", "replace"), token.encode())


@cache
def _asset(name: str) -> bytes:
    return files(ASSETS[name]).joinpath("assets", name).read_bytes()


def make_app(library: Library, *, token: str, port: int, host: str = "127.0.0.1") -> Starlette:
    """The studio as an application of Starlette's.

    Parameters
    ----------
    library : Library
        What is shown.
    token : str
        Who knows it may ask.
    port : int
        Where it listens: Host, Origin and the cookie speak of it.

    Returns
    -------
    Starlette
    """
    try:
        from starlette.applications import Starlette
        from starlette.concurrency import run_in_threadpool
        from starlette.middleware import Middleware
        from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response, StreamingResponse
        from starlette.routing import Route
    except ImportError:
        raise MissingDependency("studio needs Starlette and uvicorn: pip install 'rrf-design[studio]'") from None

    watching = Watching(library)

    def as_json(document: Any, status_code: int = 200) -> Response:
        return Response(json_text(document), status_code, media_type="application/json")

    def show(make: Callable[[Request], tuple[str, Any]], *, here: str = "?", scripts: tuple[str, ...] = ()) -> Any:
        """The answer of a view, and of what goes wrong in it: one line, and no traceback."""

        def answer(request: Request) -> Response:
            status, waiting = 200, 0
            try:
                title, main = make(request)
                waiting = sum(store.counts().open for store in library.label_stores().values())
            except RRFError as error:
                status, title, main = 404, "Not shown", pages.problem("Not shown", str(error))
            return HTMLResponse(
                pages.frame(title, main, here=here, waiting=waiting, scripts=scripts), status_code=status
            )

        return answer

    def home(request: Request) -> tuple[str, Any]:
        return "What there is", pages.home(library.look(), library.places)

    def table_of(request: Request) -> LibraryEntry:
        entry = library.entry(request.query_params.get("of", ""))
        if entry.kind != "table":
            raise InputError(f"{entry.key}: not a delivered table")
        return entry

    def items(request: Request) -> tuple[str, Any]:
        entry = table_of(request)
        assert entry.path is not None
        index = library.index(entry.path)
        library.prepare(entry.path.parent)
        return entry.title, pages.items(entry, index, ListView.of(request.query_params))

    def item(request: Request) -> tuple[str, Any]:
        entry, name = table_of(request), request.query_params.get("id", "")
        assert entry.path is not None
        index = library.index(entry.path)
        found = open_item(library, entry.path, index, name)
        return f"Row {name}"[:100], pages.item(entry, index, ListView.of(request.query_params), found)

    def document(request: Request) -> tuple[str, Any]:
        return pages.document(library, library.entry(request.query_params.get("of", "")))

    def run_of(request: Request) -> LibraryEntry:
        entry = library.entry(request.query_params.get("of", ""))
        if entry.kind != "run" or entry.trouble:
            raise InputError(f"{entry.key}: {entry.trouble or 'not a run'}")
        return entry

    def live(request: Request) -> tuple[str, Any]:
        entry = run_of(request)
        return entry.title, pages.live(entry)

    def progress(request: Request) -> Response:
        try:
            return as_json(watching.of(run_of(request)).progress())
        except RRFError as error:
            return as_json({"error": str(error)}, status_code=404)

    def follow(request: Request) -> Response:
        try:
            watched = watching.of(run_of(request))
        except RRFError as error:
            return as_json({"error": str(error)}, status_code=404)
        told = events(watched, request.is_disconnected, in_thread=run_in_threadpool)
        return StreamingResponse(told, media_type="text/event-stream")

    def proof(request: Request) -> tuple[str, Any]:
        from rrf_design.studio import _views as views

        entry = library.entry(request.query_params.get("of", ""))
        return f"Proof of {entry.title}", views.proof(entry)

    def steps(request: Request) -> tuple[str, Any]:
        from rrf_design.studio import _views as views

        entry = library.entry(request.query_params.get("of", ""))
        return entry.title, views.steps(library, entry)

    def promise(request: Request) -> tuple[str, Any]:
        from rrf_design.studio import _views as views

        query = request.query_params
        return "What may be promised", views.promise(library, query.get("of", ""), asked=query.get("forecast") == "1")

    def compare(request: Request) -> tuple[str, Any]:
        from rrf_design.studio import _views as views

        query = request.query_params
        return "What changed", views.compare(library, query.get("a", ""), query.get("b", ""))

    def review(request: Request) -> tuple[str, Any]:
        return "Review", pages.review(library, request.query_params.get("of", ""))

    def handed_over(request: Request) -> Response:
        """A delivered table as its file is, to be sent on; not while a row of it waits for a blind
        look.
        """
        try:
            entry = table_of(request)
        except RRFError as error:
            return PlainTextResponse(str(error), status_code=404)
        assert entry.path is not None
        if library.index(entry.path).masked:
            return PlainTextResponse("rows of it wait for a blind look", status_code=409)
        return FileResponse(entry.path, filename=entry.path.name)

    def labels(request: Request) -> Response:
        """Today's review file, with what was filled in."""
        key, form = request.query_params.get("of", ""), request.query_params.get("form", "csv")
        queue = request.query_params.get("queue", "")
        store = library.label_stores().get(key)
        if store is None or form not in ("csv", "jsonl") or queue not in store.queues():
            return PlainTextResponse("no such review", status_code=404)
        named = {"content-disposition": f'attachment; filename="review.{form}"'}
        return PlainTextResponse(
            store.file(form, queue, closed=library.blind()).encode("utf-8", "replace"), headers=named
        )

    async def act(request: Request) -> Response:
        """What the review page does; the only thing that writes."""
        body = await request.body()
        try:
            said = json.loads(body) if len(body) <= LONGEST_BODY else None
            if not isinstance(said, dict):
                raise InputError("not what the page sends")
            answer = await run_in_threadpool(_acted, library, request.path_params["what"], said)
        except RetryLater as error:
            return as_json({"error": str(error), "again": True}, status_code=503)
        except (RRFError, ValueError, RecursionError) as error:
            return as_json({"error": str(error)}, status_code=400)
        return as_json(answer)

    def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in ASSETS:
            return PlainTextResponse("no such file", status_code=404)
        return Response(_asset(name), media_type=TYPES[name.rpartition(".")[2]])

    routes = [
        Route("/", show(home, here="")),
        Route("/items", show(items)),
        Route("/items/file", handed_over),
        Route("/item", show(item)),
        Route("/document", show(document)),
        Route("/live", show(live, scripts=("live.js",))),
        Route("/progress", progress),
        Route("/events", follow),
        Route("/proof", show(proof)),
        Route("/steps", show(steps)),
        Route("/promise", show(promise, here="promise")),
        Route("/compare", show(compare, here="compare")),
        Route("/review", show(review, here="review", scripts=("review.js",))),
        Route("/review/file", labels),
        Route("/act/{what}", act, methods=["POST"]),
        Route("/static/{name}", static),
        Route("/alive", lambda request: PlainTextResponse("yes")),
    ]
    hosts = frozenset(f"{name}:{port}" for name in (host, "localhost"))
    guard = Middleware(_Guard, token=token, hosts=hosts, cookie=f"rrf_studio_{port}")
    return Starlette(routes=routes, middleware=[guard])


def _acted(library: Library, what: str, said: Mapping[str, Any]) -> dict[str, Any]:
    """What a reviewer did, and what they are shown next."""
    key, who = str(said.get("of", "")), str(said.get("who", ""))[:80]
    store = library.label_stores().get(key)
    if store is None:
        raise InputError("there is no such review here")
    if not who:
        raise InputError("who asks is not said")
    question = tuple(str(said.get(name, "")) for name in ("queue", "id", "part"))
    told, found = "", None
    if what == "label":
        asked_for = (question[0], question[1], question[2])
        again = said.get("second") is True
        told = store.label(asked_for, said.get("value"), who, stamp=str(said["stamp"]), second=again)
    elif what == "later":
        store.later((question[0], question[1], question[2]), who)
        told = "later"
    elif what == "twice":
        store.twice(TWICE)
        told = "some rows are asked about twice"
    elif what == "undo":
        found = store.undo(who)
        told = "undone" if found is not None else "nothing to undo"
    elif what == "prolong":
        store.prolong(who)
        return {"told": "prolonged"}
    elif what != "next":
        raise InputError("not what the page sends")
    found = found or store.next(who)
    still, labels, own = store.progress(who)
    asked_now = None if found is None else asked(library, store.path, found)
    if asked_now is not None:
        asked_now["second"] = found is not None and found.second
    twice, same = store.agreement()
    return {
        "told": told,
        "question": asked_now,
        "open": still,
        "labels": labels,
        "own": own,
        "twice": twice,
        "same": same,
    }


def serve(
    library: Library,
    *,
    port: int = 0,
    open_browser: bool = True,
    tell: Callable[[str], None] = print,
    host: str = "127.0.0.1",
) -> None:
    """Show the library until somebody ends it; `tell` gets the address with its token.

    Parameters
    ----------
    library : Library
        What is shown.
    port : int
        Where to listen; 0 takes a free one.
    open_browser : bool
        Whether a browser is opened at the address.
    tell : callable
        Gets the address.
    """
    try:
        import uvicorn
    except ImportError:
        raise MissingDependency("studio needs Starlette and uvicorn: pip install 'rrf-design[studio]'") from None
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except (OSError, OverflowError) as error:
        listening.close()
        raise InputError(f"--port {port}: can't be listened on ({error}); leave it out to take a free one") from None
    with listening:
        listening.listen(64)
        port, token = listening.getsockname()[1], os.environ.get(TOKEN) or secrets.token_urlsafe(24)
        if len(token) < SHORTEST:
            raise InputError(f"{TOKEN}: a token has {SHORTEST} characters or more; leave it out to have one made")
        app = make_app(library, token=token, port=port, host=host)
        where = f"http://{host}:{port}/?token={token}"
        tell(where)
        if open_browser:
            webbrowser.open(where)
        # No access log: it would hold the token of the first request.
        config = uvicorn.Config(
            app, log_level="error", access_log=False, lifespan="off", server_header=False, timeout_graceful_shutdown=1
        )
        uvicorn.Server(config).run(sockets=[listening])
