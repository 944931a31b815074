"""A kernel as it stands and compiled: one result, bit for bit, whichever way it runs."""

from __future__ import annotations

import copy
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rrf_design as rrf
from solvers import warm
from solvers.kernels import kernel as ways
from solvers.kernels.kernel import Kernel, all_compiled, kernel

REORDERED = {"peel"}
"""Kernels that call the one whose sum the compiler may reorder: bounds that agree to a few ulps."""
OFTEN = 8
"""Calls of each kernel that are made both ways."""
LONG = 0.2
"""Seconds as it stands after which a call is not compared."""


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The first calls of each kernel are made both ways; how many of each agreed."""
    called: Counter[str] = Counter()
    once = Kernel.__call__

    def both(self: Kernel, *arguments: Any) -> Any:
        name, fresh = self.function.__name__, Kernel(self.function)
        if ways._run.inside:
            return once(fresh, *arguments)
        plain, copied = ways._Overdue, copy.deepcopy(arguments)
        if called[name] < OFTEN:
            with suppress(ways._Overdue):
                plain = fresh._as_it_stands(copied, LONG)
        result = self.dispatcher(*arguments)
        if plain is not ways._Overdue and name not in REORDERED:
            called[name] += 1
            assert same(plain, result), name
            assert same(copied, arguments), name
        return result

    monkeypatch.setattr(Kernel, "__call__", both)
    return called


def same(one: Any, other: Any) -> bool:
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))
    return bool(one == other or (one != one and other != other))


@pytest.mark.parametrize(("dim", "thin"), warm.KINDS)
def test_both_ways_agree_bit_for_bit_on_every_kind_of_field(compared: Counter[str], dim: int, thin: bool) -> None:
    warm._ask_everything(dim, thin)
    assert {"local_search", "separate", "exchange_rows"} <= compared.keys()


def test_both_ways_agree_on_a_plan(compared: Counter[str]) -> None:
    names = [f"n{i}" for i in range(7)]
    problem = rrf.Problem(
        k=1,
        nodes=[{"id": name} for name in names],
        relations=[{"id": f"r{i}", "tail": x, "head": y, "cost": 1.0 + i} for i, (x, y) in enumerate(pairwise(names))],
        anchors=[{"id": f"a{i}", "node": x, "cost": 2.0 + 0.1 * i} for i, x in enumerate(names)],
    )
    rrf.plan(problem, budget=12.0)
    assert {"weak_sets", "separate"} <= compared.keys()


@kernel
def _spend(counts, most):
    """Adds one to every count until the first is `most`, through an inner kernel."""
    while counts[0] < most:
        _one_more(counts)
    return counts.sum()


@kernel
def _one_more(counts):
    for i in range(len(counts)):
        counts[i] += 1


@pytest.fixture
def unspent() -> Kernel:
    """A kernel that was never called."""
    return Kernel(_spend.function)


def test_a_call_that_takes_too_long_is_done_again_compiled_with_its_arguments_as_they_were(
    unspent: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = iter([1e-9, 0.0])  # less than any processor time, then nothing
    monkeypatch.setattr(Kernel, "_allowance", lambda self: self.spent + next(left))
    counts = np.zeros(3, np.int64)
    assert unspent(counts, 1000) == 3000
    assert counts.tolist() == [1000, 1000, 1000]
    assert unspent._compiled is unspent.dispatcher


def test_a_short_call_runs_as_it_stands_and_a_large_one_is_compiled(
    unspent: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Kernel, "_allowance", lambda self: np.inf)
    assert unspent(np.zeros(3, np.int64), 5) == 15
    assert unspent._compiled is None
    assert not unspent.dispatcher.signatures
    with all_compiled():
        assert unspent(np.zeros(2, np.int64), 2) == 4
    assert unspent._compiled is None
    assert unspent.dispatcher.signatures
    assert unspent(np.zeros(ways.MOST + 1, np.int64), 1) == ways.MOST + 1
    assert unspent._compiled is unspent.dispatcher


def test_an_error_of_a_kernel_is_the_callers(unspent: Kernel) -> None:
    with pytest.raises(IndexError):
        unspent(np.zeros(0, np.int64), 5)
    assert not ways._run.inside


def test_all_kernels_may_spend_something_then_each_by_what_the_cache_holds(
    unspent: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ways._Clock, "spent", 0.75 * ways.START)
    unspent.spent = 0.5 * ways.START
    assert unspent._allowance() == pytest.approx(0.75 * ways.START)
    monkeypatch.setattr(ways._Clock, "spent", ways.START)
    for cached, allowed in ((True, ways.LOADED), (False, ways.COMPILED)):
        unspent._cached = cached
        assert unspent._allowance() == allowed


def test_the_checker_has_the_same_text() -> None:
    """It shares no module with the solvers, and this one need not be written twice."""
    from rrf_design.checker import kernel as other

    assert Path(ways.__file__).read_text(encoding="utf-8") == Path(other.__file__).read_text(encoding="utf-8")
