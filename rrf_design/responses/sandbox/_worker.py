"""The near end of one zygote: starts it, hands it a program at a time, and kills the whole group
when it must.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from pathlib import Path
from typing import Any

from rrf_design.errors import MissingDependency
from rrf_design.responses.sandbox._judge import judged, lost
from rrf_design.responses.sandbox.records import Execution, Isolation, Program, ProgramLimits

_START_SECONDS = 30.0
_GRACE_SECONDS = 10.0


class Worker:
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
            return lost(program, self.isolation)
        except BaseException:
            self.close()  # interrupted: an answer still on its way must not become the next program's
            raise
        return judged(program, report, payload, isolation=self.isolation, limits=limits)

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
