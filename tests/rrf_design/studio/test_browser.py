"""The studio in a real browser: no message in the console, no request to anybody else, nothing
wider than the page, and reviews by keys alone.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.studio import Library, make_app
from rrf_design.studio._server import TOKEN as SECRET
from rrf_design.studio.labels import LEASE, LabelStore, ask_on
from rrf_design.tables import write_output
from rrf_design.tables.rows import COLUMNS

from .conftest import HOSTILE, TOKEN, made

uvicorn = pytest.importorskip("uvicorn")


class Serving:
    """The studio on a port, which can be stopped and started again."""

    def __init__(self, place: Path) -> None:
        self.place, self.port = place, 0
        self.start()

    def start(self) -> None:
        listening = socket.socket()
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", self.port))
        listening.listen(16)
        self.port = listening.getsockname()[1]
        app = make_app(Library([self.place]), token=TOKEN, port=self.port)
        config = uvicorn.Config(app, log_level="error", access_log=False, lifespan="off", timeout_graceful_shutdown=1)
        self.server, self.listening = uvicorn.Server(config), listening
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": [listening]}, daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join(20)
        self.listening.close()

    def at(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"


@pytest.fixture
def serve() -> Iterator[Callable[[Path], Serving]]:
    made: list[Serving] = []

    def start(place: Path) -> Serving:
        made.append(Serving(place))
        return made[-1]

    yield start
    for one in made:
        one.stop()


@pytest.fixture
def visit(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens the studio as the verb's address does; at the end nobody else was asked."""
    troubles: list[str] = []
    contexts = []

    def enter(studio: Serving, *, width: int = 1400, scheme: str = "light", quiet: bool = True) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        if quiet:
            page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda one: None if one.url.startswith(studio.at("/")) else troubles.append(one.url))
        page.goto(studio.at(f"/?token={TOKEN}"))
        assert "token" not in page.url
        return page

    yield enter
    for context in contexts:
        context.close()
    assert [text for text in troubles if not text.startswith("data:")] == []


VIEWS = (
    "/",
    "/items?of=out.csv",
    "/item?of=out.csv&id=inv%2F3",
    "/item?of=out.json&id=inv%2F3",
    "/document?of=out.json",
    "/review",
    "/promise?of=out.csv&forecast=1",
    "/compare?a=out.csv&b=out.json",
    "/steps?of=frontier.json",
    "/document?of=certificate.json",
    "/proof?of=certificate.json",
)
WITH_PICTURE = [view for view in VIEWS if not view.startswith(("/review", "/proof"))]


CUT_ON_PAPER = """() => [...document.querySelectorAll('body *')].filter((one) => {
  if (!one.getClientRects().length || one.closest('svg')) return false;
  const wide = one.getBoundingClientRect().right > document.documentElement.clientWidth + 1;
  const cut = getComputedStyle(one).overflow !== 'visible' && one.scrollWidth > one.clientWidth + 1;
  const folded = !one.checkVisibility();
  return wide || cut || folded || one.matches('form, input, select, nav, a.button, button[data-act]');
}).map((one) => one.outerHTML.slice(0, 80))"""
"""What is there on paper and should not be, or does not fit on it."""


def violations(page: Any) -> Any:
    """What axe says of a page; it comes in by the debugger: the page runs no foreign script."""
    session = page.context.new_cdp_session(page)
    source = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    session.send("Runtime.evaluate", {"expression": source})
    run = "axe.run({runOnly: ['wcag2a', 'wcag2aa']}).then(found => found.violations.map(v => v.id + v.nodes[0].html))"
    found = session.send("Runtime.evaluate", {"expression": run, "awaitPromise": True, "returnByValue": True})
    return found["result"]["value"]


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (1400, "dark"), (390, "light"), (390, "dark")])
def test_every_view_fits_says_nothing_in_the_console_and_is_accessible(
    serve: Callable[..., Serving], visit: Callable[..., Any], whole: Path, width: int, scheme: str
) -> None:
    page = visit(studio := serve(whole), width=width, scheme=scheme)
    for view in VIEWS:
        page.goto(studio.at(view))
        wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide == 0, view
        if width == 1400 and view in WITH_PICTURE:
            drawn = page.evaluate("document.querySelector('main svg').getBoundingClientRect().top")
            assert drawn < 900, view
        assert violations(page) == [], view
        assert page.evaluate("window.hacked") is None
        if (width, scheme) == (1400, "light"):
            page.set_viewport_size({"width": 680, "height": 960})  # a sheet of paper
            page.emulate_media(media="print")
            assert page.evaluate(CUT_ON_PAPER) == [], view
            page.emulate_media(media="screen")
            page.set_viewport_size({"width": width, "height": 900})


def test_hostile_rows_are_links_that_work(
    serve: Callable[..., Serving], visit: Callable[..., Any], repaired: Path
) -> None:
    page = visit(studio := serve(repaired))
    page.goto(studio.at("/items?of=out.jsonl&page=2"))
    for at in range(page.locator("a.opens").count()):
        page.locator("a.opens").nth(at).click()
        assert page.locator("h1").inner_text().startswith("Row ")
        page.go_back()
    assert page.evaluate("window.hacked") is None


def test_hostile_texts_run_nowhere_and_break_nothing(
    serve: Callable[..., Serving], visit: Callable[..., Any], tmp_path: Path
) -> None:
    names = ["/", "../..", "<script>window.hacked = 1</script>", HOSTILE, "\u202e", "nul\x00id", "x" * 1000, ""]
    ours = dict.fromkeys(COLUMNS) | {"verdict": "contradicted", "changed": False, "cost": 0.0, "reason": HOSTILE}
    rows = [{"id": name, "text": HOSTILE * 12_000 if name == "/" else name, **ours, "raw": name} for name in names]
    (tmp_path / "out.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    store = LabelStore(tmp_path / "labels.sqlite", make=True)
    store.ask("repair", [{**row, "question": row["id"], "answer": HOSTILE} for row in rows], blind=False)
    page = visit(studio := serve(tmp_path))
    page.goto(studio.at("/items?of=out.jsonl"))
    links = [studio.at(link.get_attribute("href")) for link in page.locator("a.opens").all()]
    assert len(links) == len(names)
    for link in links:
        page.goto(link)
        assert page.locator("h1").inner_text().startswith("Row")
        assert page.evaluate("window.hacked") is None
    page.goto(studio.at("/review"))
    while answer(page, HOSTILE):
        assert page.evaluate("window.hacked") is None
    assert store.said("repair") == dict.fromkeys(names, HOSTILE)


def test_a_slider_goes_through_what_money_buys(
    serve: Callable[..., Serving], visit: Callable[..., Any], whole: Path
) -> None:
    page = visit(studio := serve(whole))
    page.goto(studio.at("/document?of=frontier.json"))
    page.get_by_text("Go through it step by step").click()
    page.locator("input.points").wait_for()
    while page.locator(".point:visible").count() != 1:  # its script hides the others
        page.wait_for_timeout(20)
    page.locator("input.points").press("Home")
    assert "nothing more" in page.locator(".point:visible").inner_text()
    page.goto(studio.at("/document?of=certificate.json"))
    page.get_by_text("Verify it now").click()
    assert "It holds" in page.locator("main").inner_text()


def test_rows_are_gone_through_by_keys(
    serve: Callable[..., Serving], visit: Callable[..., Any], repaired: Path
) -> None:
    page = visit(studio := serve(repaired))
    page.goto(studio.at("/items?of=out.csv&verdict=contradicted"))
    page.locator("a.opens").first.click()
    page.wait_for_url(re.compile("id=inv%2F5"))
    seen = [page.locator("h1").inner_text()]
    page.keyboard.press("j")
    page.wait_for_url(re.compile("id=inv%2F7"))
    seen.append(page.locator("h1").inner_text())
    page.keyboard.press("k")
    page.wait_for_url(re.compile("id=inv%2F5"))
    assert seen == ["Row inv/5", "Row inv/7"]
    page.get_by_role("link", name="All rows").click()
    assert "verdict=contradicted" in page.url
    page.get_by_role("searchbox").fill("inv/7")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("q=inv"))
    assert page.locator("a.opens").all_inner_texts() == ["inv/7"]


def asked(place: Path, count: int) -> LabelStore:
    store = LabelStore(place / "labels.sqlite", make=True)
    store.ask(
        "deliver", [{"id": f"r/{n}", "question": f"Sum of {n}?", "text": HOSTILE} for n in range(count)], blind=True
    )
    return store


def answer(page: Any, value: str) -> bool:
    """Answer the question in sight by keys; False where there is none left."""
    status = page.locator(".said")
    while "fetched" in status.inner_text():
        page.wait_for_timeout(20)
    if not page.locator(".asked").is_visible():
        return False
    before = page.locator(".question").inner_text()
    page.keyboard.type(value)
    page.keyboard.press("Enter")
    while page.locator(".asked").is_visible() and page.locator(".question").inner_text() == before:
        page.wait_for_timeout(20)
    return True


def test_two_people_review_by_keys_none_twice_none_lost(
    serve: Callable[..., Serving], visit: Callable[..., Any], tmp_path: Path
) -> None:
    store = asked(tmp_path, 12)
    studio = serve(tmp_path)
    pages = [visit(studio), visit(studio, width=390)]
    for page in pages:
        page.goto(studio.at("/review"))
    left = [True, True]
    while any(left):
        left = [answer(page, f"4{at}") for at, page in enumerate(pages)]
    rows = store.rows("deliver")
    assert sorted(row["id"] for row in rows if row["value"] in ("40", "41")) == sorted(f"r/{n}" for n in range(12))
    assert {row["value"] for row in rows} == {"40", "41"}
    for page in pages:  # who waited for another one's question asks again
        page.get_by_text("Everything that was asked is answered").wait_for(timeout=20_000)
    assert pages[0].evaluate("window.hacked") is None
    pages[0].keyboard.press("u")
    pages[0].locator(".asked").wait_for()
    assert store.counts().labels == 11


def test_what_a_killed_browser_held_comes_back_to_others(
    serve: Callable[..., Serving], visit: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("rrf_design.studio.labels.time", SimpleNamespace(time=lambda: now[0]))
    store = asked(tmp_path, 2)
    studio = serve(tmp_path)
    killed, other = visit(studio), visit(studio)
    for page, text in ((killed, "Sum of 0?"), (other, "Sum of 1?")):
        page.goto(studio.at("/review"))
        page.get_by_text(text).wait_for()
    killed.keyboard.type("half")
    killed.context.close()
    assert answer(other, "1")
    other.get_by_text("1 with other people").wait_for()
    now[0] += LEASE + 1
    other.get_by_text("Sum of 0?").wait_for(timeout=20_000)
    assert answer(other, "0")
    assert {row["id"]: row["value"] for row in store.rows("deliver")} == {"r/0": "0", "r/1": "1"}


def test_a_studio_that_is_gone_takes_the_label_when_it_is_back(
    serve: Callable[..., Serving], visit: Callable[..., Any], tmp_path: Path
) -> None:
    store = asked(tmp_path, 3)
    studio = serve(tmp_path)
    page = visit(studio, quiet=False)  # a browser logs each request that nobody answers
    page.goto(studio.at("/review"))
    page.locator(".asked").wait_for()
    studio.stop()
    page.keyboard.type("half")
    page.locator(".offline:not([hidden])").wait_for(timeout=10_000)
    page.keyboard.type(" typed")
    page.keyboard.press("Enter")
    page.get_by_text("Not known to be saved").wait_for()
    assert store.counts().labels == 0
    studio.start()
    page.get_by_text("Saved. 2 to look at").wait_for(timeout=20_000)
    page.locator(".offline").wait_for(state="hidden", timeout=10_000)
    assert [row["value"] for row in store.rows("deliver") if row["value"] != ""] == ["half typed"]


STUDIO = """
import os, signal, sys
from rrf_design.studio import LabelStore, Library, serve
save, (place, port, when) = LabelStore.label, sys.argv[1:]
def label(*asked, **named):
    if when == "after":
        save(*asked, **named)
    os.kill(os.getpid(), signal.SIGKILL)
if when != "never":
    LabelStore.label = label
serve(Library([place]), port=int(port), open_browser=False, tell=lambda address: print(address, flush=True))
"""
"""A studio of its own process, killed before or after it saves a label, and before it replies."""


@pytest.mark.parametrize(("when", "there"), [("before", 0), ("after", 1)])
def test_a_studio_killed_between_key_and_reply_has_the_label_once(
    visit: Callable[..., Any], tmp_path: Path, when: str, there: int
) -> None:
    store = asked(tmp_path, 2)

    def started(port: int, when: str) -> tuple[Any, str]:
        asked_for = [sys.executable, "-c", STUDIO, str(tmp_path), str(port), when]
        working = subprocess.Popen(asked_for, stdout=subprocess.PIPE, text=True, env={**os.environ, SECRET: TOKEN})
        assert working.stdout is not None
        return working, working.stdout.readline().partition("/?")[0]

    working, origin = started(0, when)
    try:
        page = visit(SimpleNamespace(at=lambda path: origin + path), quiet=False)
        page.goto(f"{origin}/review")
        page.get_by_text("Sum of 0?").wait_for()
        page.keyboard.type("40")
        page.keyboard.press("Enter")
        page.get_by_text("Not known to be saved").wait_for()
        assert working.wait() == -signal.SIGKILL
        assert store.counts().labels == there
        working.stdout.close()
        working, _ = started(int(origin.rpartition(":")[2]), "never")
        page.get_by_text("Saved. 1 to look at, 1 labels, 1 of them yours.").wait_for(timeout=20_000)
        assert page.locator(".question").inner_text() == "Sum of 1?"
        assert {row["id"]: row["value"] for row in store.rows("deliver")} == {"r/0": "40", "r/1": ""}
    finally:
        working.kill()
        working.communicate()


def test_a_newcomer_labels_rows_finds_the_wrong_ones_and_sends_the_table_on(
    serve: Callable[..., Serving], visit: Callable[..., Any], tmp_path: Path
) -> None:
    """By the page alone: somebody else has started `deliver --wait`."""
    wrong = {name: {"sum": "1", "again": "1"} for name in ("inv/4", "inv/9")}
    folder = made(tmp_path / "inv", [f"inv/{n}" for n in range(40)], wrong)
    store = folder / "labels.sqlite"
    LabelStore(store, make=True).close()
    data = rrf.dataset(folder / "r.toml")

    def deliver() -> None:
        found = rrf.deliver(data, folder / "answers.jsonl", risk=0.05, ask=partial(ask_on, store))
        write_output(folder / "delivered.csv", found.delivery)

    working = threading.Thread(target=deliver)
    working.start()
    page = visit(studio := serve(folder))
    page.get_by_role("link", name=re.compile("^Review")).first.click()
    count, patience = 0, time.monotonic() + 90
    while working.is_alive() and time.monotonic() < patience:
        if not page.locator(".asked").is_visible():
            page.wait_for_timeout(50)
            continue
        asked_for = re.search(r"inv/(\d+)", page.locator(".question").inner_text())
        assert asked_for is not None
        answer(page, str(int(asked_for[1]) + 10))
        count += 1
    working.join()
    page.goto(studio.at("/"))
    page.get_by_role("link", name="delivered.csv").click()
    page.get_by_role("link", name="was corrected").click()
    assert page.locator("a.opens").all_inner_texts() == ["inv/4", "inv/9"]
    with page.expect_download() as sent:
        page.get_by_role("link", name="Download the table").click()
    assert Path(sent.value.path()).read_bytes() == (folder / "delivered.csv").read_bytes()
    assert count >= 25
