"""One function, two ways to run it: as it stands, or compiled.

Importing numba takes a third of a second and compiling a kernel seconds, on every machine anew; a
first question is small as a rule and answered sooner by the interpreter. So a kernel runs as it
stands until that has cost about what compiling it would, and only then is compiled: each for
itself, and only those that a problem really keeps busy. Where a cache holds it compiled already,
that is soon; where the arrays of a call are large, it is at once.

Both ways do the same arithmetic in the same order (no fast mathematics, and the same LAPACK), so
that results agree bit for bit and every proof holds for both. A call that takes too long as it
stands is given up, its arguments are put back, and it is done again compiled.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, update_wrapper
from pathlib import Path
from typing import Any

import numpy as np

MOST = 20_000  # numbers in the arrays of a call, up to which it is tried as it stands
START = 0.1  # seconds of processor time that all kernels together spend as they stand before numba is imported
LOADED = 0.02  # seconds that one then spends before it is loaded from the cache
COMPILED = 1.0  # the same where the compiler has to run: seconds for a kernel and those it calls
EVERY = 64  # calls of inner kernels between two looks at the clock


class _Overdue(Exception):
    """A kernel has run for too long as it stands."""


class _Run(threading.local):
    """What this thread does: a kernel as it stands, which calls others; or all of them compiled."""

    inside = False
    until = 0.0
    calls = 0
    compiled = False


class _Clock:
    """Seconds that all kernels have spent as they stand."""

    spent = 0.0


_run = _Run()
_log = logging.getLogger("rrf_design.compiler")


class Kernel:
    """A function of numbers and arrays in the part of Python that numba compiles."""

    def __init__(self, function: Callable[..., Any], *, fastmath: set[str] | None = None) -> None:
        self.function = function
        self.fastmath = fastmath or False
        self.spent = 0.0
        self._compiled: Callable[..., Any] | None = None
        self._cached: bool | None = None
        self._dispatcher: Any = None
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        if self._compiled is not None:
            return self._compiled(*arguments)
        if not _run.inside:
            return self._called(arguments)
        _run.calls += 1
        if _run.calls % EVERY == 0 and time.thread_time() > _run.until:
            raise _Overdue
        return self.function(*arguments)

    @property
    def dispatcher(self) -> Any:
        """The same function for numba to compile (on its first call) or to load from its cache."""
        if self._dispatcher is None:
            self._dispatcher = _numba().njit(cache=True, nogil=True, fastmath=self.fastmath)(self.function)
        return self._dispatcher

    def _called(self, arguments: tuple[Any, ...]) -> Any:
        """The result of a call from outside, in the way that pays."""
        arrays = list(_arrays(arguments))
        if _run.compiled:
            return self._to_compile()(*arguments)
        if sum(array.size for array in arrays) > MOST:
            self._compiled = self._to_compile()
            return self._compiled(*arguments)
        saved = [array.copy() for array in arrays]
        while True:
            left = self._allowance() - self.spent
            if left <= 0.0:
                self._compiled = self._to_compile()
                return self._compiled(*arguments)
            try:
                return self._as_it_stands(arguments, left)
            except _Overdue:
                for array, before in zip(arrays, saved, strict=True):
                    if array.flags.writeable:
                        array[...] = before

    def _allowance(self) -> float:
        """Seconds that this kernel may spend as it stands, in all."""
        if _Clock.spent < START:
            return START - _Clock.spent + self.spent
        if self._cached is None:
            self._cached = self._is_cached()
        return LOADED if self._cached else COMPILED

    def _as_it_stands(self, arguments: tuple[Any, ...], seconds: float) -> Any:
        began = time.thread_time()
        _run.inside, _run.until = True, began + seconds
        try:
            with np.errstate(all="ignore"):  # compiled code does not warn either
                return self.function(*arguments)
        finally:
            _run.inside = False
            spent = time.thread_time() - began
            self.spent += spent
            _Clock.spent += spent

    def _to_compile(self) -> Callable[..., Any]:
        """The dispatcher; where its next call will take seconds, the log says so."""
        if not getattr(self.dispatcher, "signatures", True) and not self._is_cached():
            _log.info("compiling %s", self.function.__name__)
        return self.dispatcher  # type: ignore[no-any-return]

    def _is_cached(self) -> bool:
        """Whether some call of it was compiled on this machine since it was written."""
        code = self.function.__code__
        source = Path(code.co_filename)
        stats = getattr(self.dispatcher, "stats", None)
        if stats is None:
            return False
        made = Path(stats.cache_path).glob(f"{source.stem}.{code.co_name}-{code.co_firstlineno}.*.nbi")
        return any(index.stat().st_mtime >= source.stat().st_mtime for index in made)


kernel = Kernel


@contextmanager
def all_compiled() -> Iterator[None]:
    """Every kernel that this thread calls from outside is compiled: to fill the cache, and to
    compare.
    """
    before, _run.compiled = _run.compiled, True
    try:
        yield
    finally:
        _run.compiled = before


@cache
def _numba() -> Any:
    """The compiler, which from now on takes a kernel inside another one for what it compiles."""
    import numba
    from numba.extending import typeof_impl

    @typeof_impl.register(Kernel)  # type: ignore[untyped-decorator]
    def _type_of_kernel(value: Kernel, context: Any) -> Any:
        return numba.types.Dispatcher(value.dispatcher)

    return numba


def _arrays(values: tuple[Any, ...]) -> Iterator[np.ndarray[Any, Any]]:
    for value in values:
        if isinstance(value, np.ndarray):
            yield value
        elif isinstance(value, tuple):
            yield from _arrays(value)
