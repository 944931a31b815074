"""Processes that work on one run, the real PostgreSQL server under them, and a host of their own
that can be cut off.

Members are forked by a server process that has imported everything, so that a new one is there in
the moment another was killed. What they ask is a chat server on this machine that counts, or, where
only the store is to be measured, a model that answers at once.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from rrf_design.acquisition import Journal, acquire
from rrf_design.errors import RetryLater
from rrf_design.models import get
from rrf_design.models.base import Attempt, Model, Outcome, Request, Usage
from rrf_design.problem import Problem

AGAIN = 75
"""With this code a process says that it may be begun again."""
QUESTIONS = 4
WRONG = "question 2"
"""What is answered wrongly in every item, so that there is something to repair."""


class Instant(Model):
    """A model that answers at once and is paid for: what is left of the time is the store's and
    ours.
    """

    name = "instant"
    asynchronous = True
    kept = False

    def __init__(self, slots: int) -> None:
        self.slots = slots

    @property
    def identity(self) -> Mapping[str, Any]:
        return {"adapter": "instant"}

    def attempt(self, request: Request) -> Attempt:
        text = "12" if WRONG in request.prompt else "7"
        return Attempt(Outcome.ANSWERED, text, usage=Usage(calls=1, input_tokens=9, output_tokens=1))

    async def attempt_async(self, request: Request) -> Attempt:
        return self.attempt(request)


def field_of(item: int, *, priced: bool = False) -> Problem:
    """Four questions in a ring of relations, one of them checked; with a price each, or with
    none.
    """
    price = {"price": 1.0} if priced else {}
    return Problem(
        name=f"item {item}",
        k=1,
        nodes=[{"id": f"n{i}", "prompt": f"item {item}: question {i}?", **price} for i in range(QUESTIONS)],
        relations=[{"id": f"r{i}", "tail": f"n{i}", "head": f"n{(i + 1) % QUESTIONS}"} for i in range(QUESTIONS)],
        anchors=[{"id": "known", "node": "n0", "value": 7.0}],
    )


class ProcessorWatch:
    """Processor time of this process at its first event and at its last call."""

    begun = ended = 0.0
    calls = 0

    def __call__(self, share: float | None, bounds: tuple[float, float] | None, words: str) -> None:
        """Words are not looked at; `event` has what counts."""

    def event(self, state: Mapping[str, Any]) -> None:
        self.begun = self.begun or time.process_time()
        if state["calls"] != self.calls:
            self.calls, self.ended = state["calls"], time.process_time()


def work(place: Mapping[str, Any], run: str, log: str) -> None:
    """One member, from its beginning to its end; the first one begins the run."""
    os.environ["RRF_LEASE"] = str(place["lease"])
    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 2)
    if place.get("host"):
        with open(f"/run/netns/{place['host']}") as space:
            if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), 0):
                raise OSError(ctypes.get_errno(), "setns")
    slots, watch = place["slots"], ProcessorWatch()
    with get("openai:m", base_url=place["url"], slots=slots) if place["url"] else Instant(slots) as model:
        try:
            if run:
                acquire(join=run, model=model, store=place["store"], progress=watch)
            else:
                items = {f"item {i}": field_of(i, priced=place["cap"] is not None) for i in range(place["items"])}
                chosen: dict[str, Any] = {"budget": place["cap"], "method": "witness", "batch": QUESTIONS}
                acquire(items, model, store=place["store"], progress=watch, **chosen)
        except RetryLater as error:
            print(error, file=sys.stderr, flush=True)
            os._exit(AGAIN)
    Path(log).with_suffix(".seconds").write_text(str(max(0.0, watch.ended - watch.begun)))


@dataclass
class Members:
    """So many members of one run; whoever is killed, or says that it may be begun again, is."""

    place: dict[str, Any]
    folder: Path
    size: int
    host: str = ""
    """The network namespace in which the last of them lives."""
    living: dict[int, Any] = field(default_factory=dict)
    codes: dict[int, int] = field(default_factory=dict)
    run: str = ""
    begun: int = 0

    def __post_init__(self) -> None:
        self.context = get_context("forkserver")
        self.context.set_forkserver_preload(["scenarios.stress.members"])

    def begin(self, seat: int) -> None:
        place = self.place | ({"host": self.host} if self.host and seat == self.size - 1 else {})
        self.begun += 1
        log = str(self.folder / f"member-{self.begun}.log")
        self.living[seat] = self.context.Process(target=work, args=(place, self.run, log), daemon=True)
        self.living[seat].start()

    def open(self) -> None:
        """The first member begins the run; the others join as soon as they can."""
        self.begin(0)
        with Journal(self.place["store"]) as journal:
            before = {summary.run for summary in journal.summaries()}
        while not self.run:
            self.tend()
            time.sleep(0.05)
            with Journal(self.place["store"]) as journal:
                self.run = next((s.run for s in journal.summaries() if s.run not in before), "")
        while not self.left():
            self.tend()
            time.sleep(0.05)
        for seat in range(1, self.size):
            self.begin(seat)

    def tend(self) -> bool:
        """Begin anew whoever has to be; whether anybody works still."""
        for seat, process in list(self.living.items()):
            if process.exitcode is None:
                continue
            self.codes[process.exitcode] = self.codes.get(process.exitcode, 0) + 1
            del self.living[seat]
            if process.exitcode in (AGAIN, -signal.SIGKILL):
                self.begin(seat)
            elif process.exitcode:
                logs = sorted(self.folder.glob("member-*.log"), key=lambda log: log.stat().st_mtime)
                raise RuntimeError(f"a member ended with {process.exitcode}: {logs[-1].read_text()[-2000:]}")
        return bool(self.living)

    def left(self) -> int:
        """Items that are not over; 0 before the run is open, too."""
        import psycopg

        with psycopg.connect(self.place["store"]) as connection:
            try:
                query = "select count(*) from rrf_leases where run = %s and state = 0"
                found = connection.execute(query, (self.run,)).fetchone()
            except psycopg.errors.UndefinedTable:
                return 0
        return 0 if found is None else int(found[0])

    def said(self) -> dict[str, int]:
        """How many processes ended with which code."""
        return {str(code): count for code, count in sorted(self.codes.items())}

    def close(self) -> None:
        for process in self.living.values():
            process.kill()
            process.join()


def torment(crowd: Members, plan: Mapping[str, Any], *, items: int, seed: int, limit: float) -> dict[str, Any]:
    """Kill, stop and cut off members as the run goes on, evenly over its items; then let it end."""
    rng, began = random.Random(seed), time.monotonic()
    lease = crowd.place["lease"]
    due = [(share, "kill") for share in _even(plan["kills"])] + [(share, "stop") for share in _even(plan["stops"])]
    due += [(share, "cut") for share in _even(plan["cuts"])] if crowd.host else []
    due.sort()
    stopped: dict[int, tuple[Any, float]] = {}
    before, served_by = served(crowd.place["store"]), 0.0
    joined_at, done = 0.0, dict.fromkeys(("kill", "stop", "cut"), 0)
    while crowd.tend() and time.monotonic() < began + limit:
        now = time.monotonic()
        for seat, (process, until) in list(stopped.items()):
            if now > until:
                del stopped[seat]
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGCONT)
        if joined_at and now > joined_at:
            _link(crowd.host, "up")
            joined_at = 0.0
        left = crowd.left()
        if not left and not served_by:
            served_by = served(crowd.place["store"])
        share = 1.0 - left / items
        if due and due[0][0] <= share:
            what = due[0][1]
            seats = [seat for seat in crowd.living if seat not in stopped and crowd.living[seat].exitcode is None]
            if what == "cut" and not joined_at:
                _link(crowd.host, "down")
                joined_at = now + 2.0 * lease
            elif what != "cut" and len(seats) > 1:
                seat = rng.choice(seats)
                process = crowd.living[seat]
                os.kill(process.pid, signal.SIGKILL if what == "kill" else signal.SIGSTOP)
                if what == "stop":
                    stopped[seat] = process, now + lease * rng.uniform(1.2, 1.6)
            else:
                time.sleep(0.02)
                continue
            done[what] += 1
            due.pop(0)
        else:
            time.sleep(0.02)
    served_for = max(0.0, served_by - before)
    return {"seconds": time.monotonic() - began, "done": done, "ended": not crowd.living, "served": served_for}


def _even(count: int) -> list[float]:
    return [0.05 + 0.85 * i / max(1, count) for i in range(count)]


def purchase(prompt: str) -> str:
    """What a question is called in the books."""
    item, _, node = prompt.partition(": question ")
    return f"{item}\N{RIGHTWARDS ARROW}n{node.removesuffix('?')}"


def served(store: str) -> float:
    """Seconds of processor time of the database server: of its first process, those that ended, and
    those that live.
    """
    import psycopg

    with psycopg.connect(store) as connection:
        found = connection.execute("select pg_read_file('postmaster.pid')").fetchone()
    assert found is not None
    first, ticks = found[0].split()[0], 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            whole = path.parent.name == first
            if whole or fields[1] == first:
                ticks += sum(map(int, fields[11 : 15 if whole else 13]))
    return ticks / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def provider(address: str) -> Iterator[Any]:
    """A chat server at this address that counts what it is asked."""
    from scenarios.kit.rough_server import Manners, ServerProcess

    with ServerProcess(Manners(delay=(0.005, 0.02), host=address, answers={WRONG: "12"})) as server:
        yield server


@contextlib.contextmanager
def database(address: str = "") -> Iterator[str | None]:
    """Where a PostgreSQL server of our own is, on a socket or at an address; None where there is
    none to be had.
    """
    try:
        with warnings.catch_warnings():  # about where it would put its files if it were not told
            warnings.simplefilter("ignore")
            import pgserver
            from pgserver._commands import pg_ctl
    except ImportError:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="rrf-stress-", ignore_cleanup_errors=True) as folder:
        server = pgserver.get_server(folder)
        try:
            uri = server.get_uri()
            if address:
                with open(Path(folder) / "pg_hba.conf", "a") as rules:
                    rules.write("host all all samenet trust\n")
                options = ["-o", f'-h "{address}"', "-o", "-p 5433", "-o", f"-k {folder}"]
                restart = ["-w", *options, "-l", str(Path(folder) / "log"), "restart"]
                pg_ctl(restart, pgdata=Path(folder), user=server.system_user, timeout=30)
                uri = f"postgresql://postgres:@{address}:5433/postgres"
            yield uri
        finally:
            server.cleanup()


@contextlib.contextmanager
def host(wanted: bool) -> Iterator[tuple[str, str]]:
    """A network namespace with a cable to it, and our end's address; empty words where this user
    can't make one.
    """
    name, net = f"rrf-{os.getpid()}", os.getpid() % 250
    ours, theirs = f"10.213.{net}.1", f"10.213.{net}.2"
    if not wanted or os.geteuid() or not _ip("netns", "add", name):
        yield "", ""
        return
    try:
        made = (
            _ip("link", "add", f"{name[:9]}-a", "type", "veth", "peer", "name", "cable", "netns", name)
            and _ip("addr", "add", f"{ours}/24", "dev", f"{name[:9]}-a")
            and _ip("link", "set", f"{name[:9]}-a", "up")
            and _ip("-n", name, "addr", "add", f"{theirs}/24", "dev", "cable")
            and _link(name, "up")
        )
        yield (name, ours) if made else ("", "")
    finally:
        _ip("netns", "del", name)


def _link(name: str, state: str) -> bool:
    return _ip("-n", name, "link", "set", "cable", state)


def _ip(*words: str) -> bool:
    try:
        return subprocess.run(["ip", *words], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False
