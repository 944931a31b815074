"""LaTeX and symbolic answers as classes, through ``math-verify``: ``\\frac{1}{2}``, ``0.5`` and
``1/2`` are one answer.

The library reads with SymPy and stops itself by SIGALRM, which only a main thread has, and hostile
input can keep it busy past that. So it lives in a worker process with one text at a time; a worker
that does not answer within the limit is ended and replaced, and the answer counts as not read.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import math
import os
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import IO, Any

from rrf_design.errors import InputError, MissingDependency
from rrf_design.responses._finding import FoundNumber, marked, page, the_number
from rrf_design.responses.parsed import Parsed, Parser, ParseStatus, failure, labelled

_FORMULA = re.compile(r"\$\$?([^$]{1,2000})\$|\\\(([^()]{1,2000}?)\\\)|\\\[([^\[\]]{1,2000}?)\\\]")
_PROSE = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{3,}")
_WORD = re.compile(r"[a-zA-Z]{3,}")
_PLAIN = re.compile(
    r"[-+0-9\s.,'/%$\u20a0-\u20bf\u00a3\u00a5\u00a0]*[0-9][-+0-9\s.,'/%$\u20a0-\u20bf\u00a3\u00a5\u00a0]*"
)
_LONGEST = 20_000
_STARTING = 120.0  # importing SymPy on a busy machine


class MathematicsParser(Parser):
    """The class of a symbolic answer: its simplified form as text.

    For plain amounts use ``decimal``.

    Rational functions and numbers have one such form. Two other expressions with the same form are
    equal; two with different forms may still be.
    """

    name = "mathematics"
    dim = 0

    def __init__(self, seconds: float = 5.0) -> None:
        if not isinstance(seconds, int | float) or not math.isfinite(seconds) or not 0.0 < seconds <= 600.0:
            raise InputError(f"parser 'mathematics': seconds is {seconds!r}; it must lie between 0 and 600")
        if importlib.util.find_spec("math_verify") is None:
            raise MissingDependency(
                "parser 'mathematics': math-verify is not installed; pip install 'rrf-design[mathematics]'"
            )
        self.seconds = float(seconds)

    def parse(self, text: str) -> Parsed:
        return self.parse_many([text])[0]

    def parse_many(self, texts: Sequence[str]) -> tuple[Parsed, ...]:
        return tuple(_worker().read(text, self.seconds) for text in texts)

    @property
    def spec(self) -> Mapping[str, Any]:
        return {"name": self.name, "seconds": self.seconds}


class _Worker:
    """One child process, made when first needed and again after it had to be ended.

    One text at a time.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()

    def read(self, text: str, seconds: float) -> Parsed:
        if len(text) > _LONGEST:
            return failure(f"a text of more than {_LONGEST} characters")
        with self._lock:
            for _ in range(2):  # a worker that died between two texts says nothing about this one
                process = self._started()
                if process is None:
                    return failure("the worker process did not start", ParseStatus.CRASH)
                reply = self._exchange(process, text, seconds)
                if reply is not None:
                    return reply
            return failure("the worker process ended", ParseStatus.CRASH)

    def _started(self) -> subprocess.Popen[bytes] | None:
        if self._process is not None and self._process.poll() is None:
            return self._process
        command = [sys.executable, "-c", "from rrf_design.responses import _mathematics; _mathematics.serve()"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        if self._line(self._process, _STARTING) is None:
            self.close()
        return self._process

    def _exchange(self, process: subprocess.Popen[bytes], text: str, seconds: float) -> Parsed | None:
        """The reading; None if the worker was found dead."""
        stream = process.stdin
        if stream is None:
            return None
        try:
            stream.write(json.dumps({"text": text, "seconds": seconds}).encode() + b"\n")
            stream.flush()
        except OSError:
            self.close()
            return None
        line = self._line(process, seconds + 1.0)
        if line is None:
            ended = process.poll() is not None
            self.close()
            return failure("the worker ended while it read", ParseStatus.CRASH) if ended else _late(seconds)
        return _reading(json.loads(line), seconds)

    def _line(self, process: subprocess.Popen[bytes], seconds: float) -> bytes | None:
        """One line of the worker, or None if it does not come in time."""
        stream: IO[bytes] | None = process.stdout
        end = time.monotonic() + seconds
        received = b""
        while stream is not None and not received.endswith(b"\n"):
            ready, _, _ = select.select([stream], [], [], max(0.0, end - time.monotonic()))
            piece = os.read(stream.fileno(), 65536) if ready else b""
            if not piece:
                return None
            received += piece
        return received

    def close(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):  # what was still to be written has no reader any more
                    stream.close()


def _late(seconds: float) -> Parsed:
    return failure(f"not read within {seconds:g} s", ParseStatus.TIMEOUT)


def _reading(document: Mapping[str, Any], seconds: float) -> Parsed:
    if document["outcome"] == "late":
        return _late(seconds)
    if document["outcome"] == "ambiguous":
        return failure("an expression with several readings, or several different ones", ParseStatus.AMBIGUOUS)
    if document["outcome"] != "read":
        return failure("no mathematical expression in the text")
    return labelled(str(document["label"]), strict=False)


_workers: dict[int, _Worker] = {}


def _worker() -> _Worker:
    """The worker of this process; a forked child makes its own."""
    if os.getpid() not in _workers:
        _workers.clear()
        _workers[os.getpid()] = _Worker()
        atexit.register(_workers[os.getpid()].close)
    return _workers[os.getpid()]


def serve() -> None:
    """The worker's loop: a line of JSON in, a line of JSON out."""
    import logging
    import warnings

    from math_verify import parse  # imports SymPy: slow, once

    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing a library prints reaches the protocol
    out.write(b"ready\n")
    out.flush()
    for line in sys.stdin.buffer:
        request = json.loads(line)
        out.write(json.dumps(_read(parse, request["text"], request["seconds"])).encode() + b"\n")
        out.flush()


def pieces(text: str) -> list[str]:
    """Where the answer stands: what is marked, else every formula, else the whole of a text that is
    no prose.
    """
    told = [span[1:].strip().rstrip(".") for span in marked(text) or []]
    formulas = [formula.strip() for match in _FORMULA.findall(text) for formula in match if formula.strip()]
    whole = [text.strip()] if len(_PROSE.findall(text)) <= 3 else []
    return [piece for piece in told if piece] or formulas or whole


def _read(parse: Any, text: str, seconds: float) -> dict[str, str]:
    """The class of a text. All pieces that hold an expression must hold one and the same."""
    try:
        found = {label for piece in pieces(text) if (label := _label(parse, piece, seconds)) is not None}
    except TimeoutError:
        return {"outcome": "late"}
    except _Unclear:
        return {"outcome": "ambiguous"}
    except Exception:  # SymPy meets hostile text with errors of every kind; none of them is an answer
        return {"outcome": "none"}
    if len(found) != 1:
        return {"outcome": "ambiguous" if found else "none"}
    return {"outcome": "read", "label": found.pop()}


class _Unclear(Exception):
    """An amount that may be read in several ways."""


def _amount(text: str) -> str | None:
    """A plain amount, read as every other parser reads it; None for what is no plain amount."""
    prepared = page(text, None)
    if isinstance(prepared, FoundNumber) or not _PLAIN.fullmatch(prepared.text):
        return None
    found = the_number(prepared)
    if found.value is None:
        raise _Unclear
    return str(found.value)


def _label(parse: Any, text: str, seconds: float) -> str | None:
    import sympy

    amount = _amount(text)
    if amount is not None:
        return amount
    if "\\" not in text and _WORD.search(text):
        return None
    found = parse(text if "$" in text else f"${text}$", parsing_timeout=max(1, math.ceil(seconds)), raise_on_error=True)
    expressions = [entry for entry in found if not isinstance(entry, str)]
    if not expressions:
        return None
    value = expressions[0]
    if isinstance(value, sympy.Expr) and value.is_number:
        value = sympy.nsimplify(sympy.simplify(value), rational=True)
    elif isinstance(value, sympy.Expr):
        value = sympy.cancel(value) if value.is_rational_function() else sympy.simplify(value)
    return str(value)
