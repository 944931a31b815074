"""Live runs against a server of our own, measured: how fast, at what cost of processor time and
memory, and whether the books are right.

The server is a process of its own (`scenarios.kit.rough_server`), so what is measured here is ours.
Throughput is counted from the first question to the last answer and compared with the ideal: as
many calls as may be under way, each as long as the server takes. Beside it, in the same minute,
stand as many calls of a bare client (aiohttp) that decides nothing, keeps nothing and reads
nothing: what it reaches is what the machine allows. Books are compared question by
question: the server has seen as many calls as were booked, less at most those that broke off before
a byte came back, each of which the run names.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rrf_design.acquisition import Journal, acquire
from rrf_design.models import get
from rrf_design.problem import Problem
from scenarios.kit.rough_server import Manners, ServerProcess

QUESTIONS = 4
LATENCY = 0.2
ROUGH = {"429": 0.02, "429 wait": 0.02, "500": 0.02, "cut": 0.01, "half": 0.01}
"""Share of requests that end so, beside the ten seconds in which the server is away."""


def field_of(item: int) -> Problem:
    """Four questions in a ring of relations, one of them checked."""
    return Problem(
        name=f"item {item}",
        k=1,
        nodes=[{"id": f"n{i}", "prompt": f"item {item}: question {i}?"} for i in range(QUESTIONS)],
        relations=[{"id": f"r{i}", "tail": f"n{i}", "head": f"n{(i + 1) % QUESTIONS}"} for i in range(QUESTIONS)],
        anchors=[{"id": "known", "node": "n0", "value": 7.0}],
    )


@dataclass(slots=True)
class Watch:
    """What is seen while a run goes on; told of its state with every event of its journal."""

    settled: int = 0
    events: int = 0
    begun: float = 0.0
    """Processor time before the first question and after the last answer so far."""
    ended: float = 0.0
    loop_seconds: float = 0.0
    """Processor time of the thread whose event loop makes the calls."""
    memory: list[int] = field(default_factory=list)
    """Resident bytes, looked at every `every` answers."""
    every: int = 1000

    def __call__(self, share: float | None, bounds: tuple[float, float] | None, words: str) -> None:
        """Words are not looked at; `event` has the figures."""

    def event(self, state: Mapping[str, Any]) -> None:
        # The session's own event comes first, the first intents when all is ready to be asked.
        self.events += 1
        if self.events == 2:
            self.begun = time.process_time()
        if state["asked"] == self.settled:
            return
        self.settled, self.ended = state["asked"], time.process_time()
        if self.settled % 16 == 0:
            self.loop_seconds = max(self.loop_seconds, _loop_seconds())
        if self.settled % self.every == 0:
            self.memory.append(resident())


def throughput(items: int, slots: int, folder: Path) -> dict[str, Any]:
    """A data set asked of a server that answers everything after 0.2 s, with so many calls at
    once.
    """
    with ServerProcess(Manners(delay=(LATENCY, LATENCY))) as server:
        _run(2, slots, server.url, folder, Watch())  # imports and compiled kernels
        watch, cpu = Watch(), time.process_time()
        result = _run(items, slots, server.url, folder, watch)
        cpu = time.process_time() - cpu
    seconds = _asking(result.run, folder / "live.sqlite")
    with ServerProcess(Manners(delay=(LATENCY, LATENCY))) as alone:
        bare = bare_client(result.calls, slots, alone.url)
    return {
        "bare": bare,
        "between": watch.ended - watch.begun,
        "calls": result.calls,
        "slots": slots,
        "seconds": seconds,
        "share": result.calls / seconds / (slots / LATENCY),
        "cpu": cpu,
        "loop": watch.loop_seconds / seconds,
        "at_once": server.most_at_once,
        "right": server.calls == result.calls + 2 * QUESTIONS and set(server.asked.values()) <= {1, 2},
    }


def bare_client(calls: int, slots: int, url: str) -> dict[str, float] | None:
    """The same calls by aiohttp alone: share of the ideal and processor time; None where it is not
    installed.
    """
    if importlib.util.find_spec("aiohttp") is None:
        return None
    import aiohttp

    async def worker(session: aiohttp.ClientSession, numbers: Iterator[int]) -> None:
        for number in numbers:
            said = {"model": "m", "messages": [{"role": "user", "content": f"item {number}: question?"}]}
            async with session.post(url + "/chat/completions", data=json.dumps(said).encode()) as response:
                json.loads(await response.read())

    async def ask(count: int) -> None:
        numbers = iter(range(count))
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=slots)) as session:
            await asyncio.gather(*(worker(session, numbers) for _ in range(slots)))

    def timed() -> tuple[float, float]:
        asyncio.run(ask(1))
        clock, cpu = time.perf_counter(), time.process_time()
        asyncio.run(ask(calls))
        return time.perf_counter() - clock, time.process_time() - cpu

    with ThreadPoolExecutor(1) as thread:  # the caller's own thread may have a loop that runs
        seconds, spent = thread.submit(timed).result()
    return {"share": calls / seconds / (slots / LATENCY), "cpu": spent}


def rough(items: int, slots: int, folder: Path, *, delay: tuple[float, float], away: float) -> dict[str, Any]:
    """The same against a server that delays, throttles, fails, cuts and is away for a while, a
    third of the way through.
    """
    calls = items * QUESTIONS
    manners = Manners(ROUGH, delay=delay, away_after=calls // 3, away=away, retry_after="0.5", seed=1)
    watch = Watch(every=max(1, calls // 20))
    started = time.perf_counter()
    with ServerProcess(manners) as server:
        result = _run(items, slots, server.url, folder, watch)
    settled = Counter(entry.item for entry in result.purchases if entry.buys == "answer")
    return {
        "items": items,
        "seconds": time.perf_counter() - started,
        "settled": sum(settled.values()),
        "once": len(settled) == items and set(settled.values()) == {QUESTIONS},
        "unanswered": sum(len(entry.failed) for entry in result.items),
        "stopped": result.stopped_because,
        "booked": result.calls,
        "counted": server.calls,
        "doubtful": sum(result.doubtful.values()),
        "balanced": balanced(result, server, folder / "live.sqlite"),
        "faults": dict(server.faults),
        "memory": watch.memory,
    }


def _asking(run: str, store: Path) -> float:
    """Seconds from the first question to the last answer, as the journal has them."""
    with Journal(store, make=False) as journal:
        events = journal.events(run)
    begun = min(event.at for event in events if event.kind == "intent")
    return max(event.at for event in events if event.kind == "settled") - begun


def balanced(result: Any, server: ServerProcess, store: Path) -> bool:
    """Question by question: what was booked is what the server has seen, and at most what is in
    doubt more.
    """
    booked: Counter[str] = Counter()
    with Journal(store, make=False) as journal:
        for event in journal.events(result.run):
            if event.kind in ("settled", "released"):
                booked[f"{event.body['item']}: question {event.body['name'].removeprefix('n')}?"] += event.body.get(
                    "calls", 0
                )
    doubtful = {_prompt(name): count for name, count in result.doubtful.items()}
    return booked.total() == result.calls and all(
        booked[prompt] - doubtful.get(prompt, 0) <= server.asked[prompt] <= booked[prompt]
        for prompt in {*booked, *server.asked}
    )


def _prompt(purchase: str) -> str:
    item, _, node = purchase.partition("\N{RIGHTWARDS ARROW}")
    return f"{item}: question {node.removeprefix('n')}?"


def _run(items: int, slots: int, url: str, folder: Path, watch: Watch) -> Any:
    with get("openai:m", base_url=url, slots=slots) as model:
        problems = {f"item {i}": field_of(i) for i in range(items)}
        return acquire(problems, model, store=folder / "live.sqlite", batch=QUESTIONS, progress=watch)


def _loop_seconds() -> float:
    """Processor time of the thread that makes the calls; 0 where the system does not say."""
    found = next((thread.ident for thread in threading.enumerate() if thread.name == "fetch-loop"), None)
    if found is None or not hasattr(time, "pthread_getcpuclockid"):
        return 0.0
    return time.clock_gettime(time.pthread_getcpuclockid(found))


def resident() -> int:
    """Bytes of memory in use; 0 where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)
