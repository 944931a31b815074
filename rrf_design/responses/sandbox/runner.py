"""The sandbox: a few zygotes side by side, programs handed to whichever is free, no state between
programs.

A worker is the near end of one zygote: it starts it, hands it a program at a time, and kills the
whole group when it must.

From the bytes a program's process left behind to statuses. Nothing in these bytes is trusted.

After ``accepted`` the program may have written every line itself. It can claim integers, and so be
wrong; it can't claim to be right, because the expected values never left this side and are compared
here, as plain integers.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from rrf_design.errors import InputError, MissingDependency, Refused
from rrf_design.responses.sandbox._validator import LONGEST_SOURCE
from rrf_design.responses.sandbox.records import Execution, Isolation, Level, Program, ProgramLimits, ProgramStatus

_INTEGER = re.compile(r"int (-?[0-9a-f]{1,1100})")
_PROBLEM = {"timeout": ProgramStatus.TIMEOUT, "memory": ProgramStatus.MEMORY}


def _judged(
    program: Program, report: Mapping[str, Any], payload: bytes, *, isolation: Isolation, limits: ProgramLimits
) -> Execution:
    """The verdict on one program: its first failing test names it."""
    lines = payload.decode("ascii", "replace").split("\n")
    verdict, _, detail = lines[0].partition(" ")
    count = len(program.tests)
    cpu = float(report["cpu"])
    if verdict == "rejected":
        return _whole(ProgramStatus.REJECTED, detail, count, isolation, cpu)
    if verdict == "uncompilable":
        return _whole(ProgramStatus.COMPILE_FAILURE, detail, count, isolation, cpu)
    ended, reason = _ending(report, limits)
    if verdict != "accepted":
        return _whole(ended or ProgramStatus.CRASH, reason or "no word from the program", count, isolation, cpu)
    body = lines[1:-1]
    if ended is None and body[:1] == ["absent"]:
        return _whole(ProgramStatus.PARSE_FAILURE, f"no function {program.entry}", count, isolation, cpu)
    if body and body[0].startswith("broken "):
        status, _, text = _line(body[0].removeprefix("broken "), None)
        if (
            status is ProgramStatus.RAN
        ):  # a forged line: outside the function nothing returns an integer, and no answer is one without values
            status, text = ProgramStatus.CRASH, "unreadable result"
        return _whole(status, f"outside the function: {text}", count, isolation, cpu)
    if ended is None and (len(body) != count + 1 or body[-1] != "done"):
        return _whole(ProgramStatus.CRASH, "it ended before its tests did", count, isolation, cpu)
    expected: Sequence[int | None] = program.expected or [None] * count
    results = [_line(line, wanted) for line, wanted in zip(body[:count], expected, strict=False)]
    missing = (ended or ProgramStatus.CRASH, None, reason)
    results += [missing] * (count - len(results))
    first = next((r for r in results if r[0] not in (ProgramStatus.RIGHT, ProgramStatus.RAN)), results[0])
    return Execution(first[0], tuple(r[0] for r in results), tuple(r[1] for r in results), first[2], isolation, cpu)


def _too_long(program: Program, isolation: Isolation) -> Execution | None:
    """No program of this length is sent anywhere."""
    size = len(program.source.encode("utf-8", "replace"))
    if size <= LONGEST_SOURCE:
        return None
    return _whole(ProgramStatus.REJECTED, f"{size} bytes of source", len(program.tests), isolation, 0.0)


def _lost(program: Program, isolation: Isolation) -> Execution:
    return _whole(ProgramStatus.CRASH, "the sandbox process was lost", len(program.tests), isolation, 0.0)


def _line(line: str, wanted: int | None) -> tuple[ProgramStatus, int | None, str]:
    if match := _INTEGER.fullmatch(line):
        value = int(match.group(1), 16)
        if wanted is None:
            return ProgramStatus.RAN, value, ""
        return (ProgramStatus.RIGHT if value == wanted else ProgramStatus.WRONG), value, ""
    kind, _, detail = line.partition(" ")
    if kind in _PROBLEM:
        return _PROBLEM[kind], None, kind
    if kind == "other":
        return ProgramStatus.NON_INTEGER, None, detail
    return ProgramStatus.CRASH, None, detail if kind == "error" else "unreadable result"


def _ending(report: Mapping[str, Any], limits: ProgramLimits) -> tuple[ProgramStatus | None, str]:
    """How the process ended, if not by itself and in peace."""
    end, code = report["end"], int(report["code"])
    if end == "wall":
        return ProgramStatus.TIMEOUT, f"{limits.wall} s of wall time"
    if end == "output":
        return ProgramStatus.CRASH, "too much output"
    if code == 0:
        return None, ""
    # The limit is counted in ticks and the report precisely; on a busy virtual machine the two
    # differ by a lot.
    if code == -signal.SIGXCPU or (code == -signal.SIGKILL and float(report["cpu"]) > 0.5 * limits.cpu):
        return ProgramStatus.TIMEOUT, f"{limits.cpu} s of CPU time"
    if code == 72:
        return ProgramStatus.MEMORY, "out of memory"
    if code == -signal.SIGSYS:
        return ProgramStatus.CRASH, "forbidden system call"
    return ProgramStatus.CRASH, f"signal {-code}" if code < 0 else f"exit code {code}"


def _whole(status: ProgramStatus, detail: str, count: int, isolation: Isolation, cpu: float) -> Execution:
    return Execution(status, (status,) * count, (None,) * count, detail, isolation, cpu)


_START_SECONDS = 30.0
_GRACE_SECONDS = 10.0


class _Worker:
    """Owns one zygote process. Not for use by two threads at once."""

    def __init__(self, *, without: tuple[str, ...] = ()) -> None:
        self._without = without
        self.isolation = self._start()

    def run(self, program: Program, limits: ProgramLimits) -> Execution:
        """Run one program; if the zygote is lost on the way, it is replaced and the program has
        crashed.
        """
        task = {
            "source": program.source,
            "entry": program.entry,
            "tests": program.tests,
            "checked": program.checked,
            "call": limits.call,
            "cpu": limits.cpu,
            "wall": limits.wall,
            "memory": limits.memory,
            "output": limits.output,
        }
        if not self._finalizer.alive:
            self.isolation = self._start()
        deadline = time.monotonic() + limits.wall + _GRACE_SECONDS
        try:
            self._write(json.dumps(task).encode() + b"\n", deadline)
            report = json.loads(self._line(deadline))
            payload = self._exactly(int(report["bytes"]), deadline)
        except (OSError, EOFError, ValueError):
            self.close()
            self.isolation = self._start()
            return _lost(program, self.isolation)
        except BaseException:
            self.close()  # interrupted: an answer still on its way must not become the next program's
            raise
        return _judged(program, report, payload, isolation=self.isolation, limits=limits)

    def close(self) -> None:
        self._finalizer()

    def _start(self) -> Isolation:
        if not hasattr(os, "fork"):
            raise MissingDependency("running generated code needs Linux (or, with weaker isolation, another Unix)")
        from rrf_design.responses.sandbox._confine import NO_NAMESPACES

        self._buffer = bytearray()
        # Needed only until the zygote stands in it (or has put its own empty root there); a killed
        # run leaves nothing.
        with tempfile.TemporaryDirectory(prefix="rrf-sandbox-") as folder:
            self._process = self._spawn(folder)
            self._finalizer = weakref.finalize(self, _end, self._process)
            try:
                hello: dict[str, Any] = json.loads(self._line(time.monotonic() + _START_SECONDS))
            except (OSError, EOFError, ValueError):
                self._finalizer()
                hello = {}
        if hello:
            return Isolation(tuple(hello["layers"]))
        code = self._process.returncode
        if code != NO_NAMESPACES:
            raise MissingDependency(f"the sandbox process could not start here (exit code {code})")
        self._without = (*self._without, "namespaces")
        return self._start()

    def _spawn(self, folder: str) -> subprocess.Popen[bytes]:
        """No site packages, no script folder, no environment but a fixed hash seed: sets iterate
        alike each time.
        """
        options = ("-s", "-S", "-P", "-B", "-X", "utf8")
        process = subprocess.Popen(
            [sys.executable, *options, str(Path(__file__).with_name("_zygote.py")), folder, *self._without],
            env={"PYTHONHASHSEED": "0"},
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
        return process

    @property
    def _stdin(self) -> int:
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

    @property
    def _stdout(self) -> int:
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def _write(self, data: bytes, deadline: float) -> None:
        while data:
            if not _ready(self._stdin, select.POLLOUT, deadline):
                raise EOFError
            data = data[os.write(self._stdin, data) :]

    def _line(self, deadline: float) -> bytes:
        while b"\n" not in self._buffer:
            self._fill(deadline)
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        return line

    def _exactly(self, count: int, deadline: float) -> bytes:
        while len(self._buffer) < count:
            self._fill(deadline)
        data = bytes(self._buffer[:count])
        del self._buffer[:count]
        return data

    def _fill(self, deadline: float) -> None:
        if not _ready(self._stdout, select.POLLIN, deadline):
            raise EOFError
        piece = os.read(self._stdout, 65536)
        if not piece:
            raise EOFError
        self._buffer += piece


def _ready(fd: int, event: int, deadline: float) -> bool:
    poll = select.poll()
    poll.register(fd, event)
    return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the session that was started, whoever is in it."""
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=0.2)  # it goes by itself when its input ends
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class Sandbox:
    """Runs programs under the strongest isolation the machine has, and refuses anything weaker than
    ``require``.

    Zygotes start with the first program. ``close`` (or leaving the ``with`` block) ends them; so
    does losing the object. ``run`` may be called from many threads. ``without`` switches layers
    off, for tests of the others.
    """

    def __init__(
        self,
        *,
        workers: int | None = None,
        limits: ProgramLimits | None = None,
        require: Level | str = Level.SECCOMP,
        without: Sequence[str] = (),
    ) -> None:
        try:
            self.require = Level(require)
        except ValueError:
            known = ", ".join(level.value for level in Level)
            raise InputError(f"isolation {str(require)!r} is unknown; the levels are {known}") from None
        self.workers = workers or min(4, _cores())
        self.limits = limits or ProgramLimits()
        self._without = tuple(without)
        self._free: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        self._started: list[_Worker] = []
        self._lock = threading.Lock()

    @property
    def isolation(self) -> Isolation:
        """What holds the programs here; starts a worker to find out."""
        worker = self._take()
        self._free.put(worker)
        return worker.isolation

    def run(self, program: Program) -> Execution:
        worker = self._take()
        try:
            refused = _too_long(program, worker.isolation)
            return refused if refused is not None else worker.run(program, self.limits)
        finally:
            self._free.put(worker)

    def run_many(self, programs: Sequence[Program]) -> tuple[Execution, ...]:
        """All programs, in order, as many at a time as there are workers."""
        with ThreadPoolExecutor(self.workers) as pool:
            return tuple(pool.map(self.run, programs))

    def close(self) -> None:
        with self._lock:
            for worker in self._started:
                worker.close()
            self._started.clear()
            self._free = queue.SimpleQueue()

    def _take(self) -> _Worker:
        try:
            return self._free.get_nowait()
        except queue.Empty:
            pass
        with self._lock:
            if len(self._started) < self.workers:
                worker = _Worker(without=self._without)
                self._check(worker)
                self._started.append(worker)
                return worker
        return self._free.get()

    def _check(self, worker: _Worker) -> None:
        found = worker.isolation
        if found.level.rank < self.require.rank:
            worker.close()
            raise Refused(
                f"isolation here is {found}, weaker than the required {self.require.value}; "
                f"nothing was run (require '{found.level.value}' to accept it)"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
