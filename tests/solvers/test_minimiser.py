"""One margin computation: what it says while it runs, when it is stopped, and that a good start
changes nothing but the time.
"""

from __future__ import annotations

import numpy as np
import pytest

from solvers import Interrupted, Status, margin
from solvers._gram import make_field
from solvers._minimiser import Minimiser, is_interrupt


def test_progress_is_reported_with_bounds():
    seen = []
    margin(np.random.default_rng(9).standard_normal((40, 60)), k=3, progress=lambda *state: seen.append(state))
    assert seen[-1][0] == 1.0
    assert all(0 <= fraction <= 1 and lower <= upper for fraction, (lower, upper), _ in seen)


def test_ctrl_c_carries_the_bounds_so_far():
    def interrupt(*_):
        raise KeyboardInterrupt

    with pytest.raises(Interrupted) as caught:
        margin(np.random.default_rng(9).standard_normal((20, 24)), k=2, progress=interrupt)
    found = caught.value.margin
    assert found.status is Status.BOUNDED
    assert found.lower <= found.upper


def test_an_interrupt_inside_a_kernel_is_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    def kernel(*_: object, **__: object) -> None:
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as interrupt:
            raise SystemError("returned a result with an exception set") from interrupt

    monkeypatch.setattr("solvers._search.Search.below", kernel)
    with pytest.raises(Interrupted) as caught:
        margin(np.eye(5), k=1, method="search")
    assert caught.value.margin.lower <= 1.0 <= caught.value.margin.upper


def test_only_interrupts_are_interrupts():
    assert is_interrupt(KeyboardInterrupt())
    assert not is_interrupt(SystemError("a fault of its own"))
    assert not is_interrupt(None)


@pytest.mark.parametrize("size", [3, 7])
def test_the_start_changes_nothing_but_the_time(size):
    B = np.random.default_rng(4).standard_normal((12, 14))
    found = Minimiser(make_field(B, None), size).solve(())
    for warm in ([found.support], [(0, 1), (2, 3)], [tuple(range(size))]):
        again = Minimiser(make_field(B, None), size).solve(warm)
        assert (again.support, again.status) == (found.support, Status.EXACT)
        assert again.value == pytest.approx(found.value, rel=1e-12)


def test_a_bound_says_what_proved_it():
    """Done: the search.

    No time: the whole matrix, single couplings, or nothing at all; and never more than the truth.
    """
    rng = np.random.default_rng(3)
    tall = np.vstack([rng.standard_normal((20, 24)), 0.5 * np.eye(24)])
    flat = rng.standard_normal((16, 24))
    apart = np.vstack([np.eye(24), 0.01 * rng.standard_normal((3, 24))])
    for matrix, source in (
        (tall, {"the whole matrix"}),
        (flat, {"nothing"}),
        (apart, {"the whole matrix", "couplings"}),
    ):
        done, late = margin(matrix, k=4), margin(matrix, k=4, time_limit=0.0)
        assert done.lower_from == "search"
        assert late.lower_from in source
        assert late.lower <= done.upper
        assert (late.lower == 0.0) == (late.lower_from == "nothing")
