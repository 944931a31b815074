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
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

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
                if not self._started():
                    return failure("the worker process did not start", ParseStatus.CRASH)
                reply = self._exchange(text, seconds)
                if reply is not None:
                    return reply
            return failure("the worker process ended", ParseStatus.CRASH)

    def _started(self) -> bool:
        if self._process is not None and self._process.poll() is None:
            return True
        self._pipe, far = Pipe()
        serving = f"from rrf_design.responses import _mathematics; _mathematics.serve({far.fileno()})"
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
        self._process = subprocess.Popen(
            [sys.executable, "-c", serving],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # nothing a library prints reaches the protocol
            stderr=subprocess.DEVNULL,
            pass_fds=[far.fileno()],
            env=environment,
        )
        far.close()
        if self._received(_STARTING) is None:
            self.close()
        return self._process is not None

    def _exchange(self, text: str, seconds: float) -> Parsed | None:
        """The reading; None if the worker was found dead."""
        try:
            self._pipe.send_bytes(json.dumps({"text": text, "seconds": seconds}).encode())
        except OSError:
            self.close()
            return None
        reply = self._received(seconds + 1.0)
        if reply is None:
            ended = self._process is None or self._process.poll() is not None
            self.close()
            return failure("the worker ended while it read", ParseStatus.CRASH) if ended else _late(seconds)
        return _reading(json.loads(reply), seconds)

    def _received(self, seconds: float) -> bytes | None:
        """What the worker says, or None if it does not come in time."""
        try:
            return self._pipe.recv_bytes() if self._pipe.poll(seconds) else None
        except (EOFError, OSError):
            return None

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            self._pipe.close()


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


def serve(place: int) -> None:
    """The worker's loop: JSON in, JSON out, through the pipe of this file number."""
    import logging
    import warnings

    from math_verify import parse  # imports SymPy: slow, once

    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    pipe = Connection(place)
    pipe.send_bytes(b"ready")
    with contextlib.suppress(EOFError):  # whoever asks has gone
        while True:
            request = json.loads(pipe.recv_bytes())
            pipe.send_bytes(json.dumps(_read(parse, request["text"], request["seconds"])).encode())


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
