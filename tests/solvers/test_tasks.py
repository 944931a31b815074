"""Tasks run here or elsewhere, in order, and a clock that they hear."""

from __future__ import annotations

import time

import numpy as np
import pytest

from solvers.tasks import run_tasks, stopping_at


def square(x, *, stop=None):
    return x * x


def broken(x, *, stop=None):
    raise RuntimeError(f"task {x}")


@pytest.mark.parametrize("n_jobs", [None, 1, 2])
@pytest.mark.parametrize("work", [0.0, np.inf])
def test_results_come_in_the_order_of_the_jobs(n_jobs, work):
    heard = []
    assert run_tasks(square, [(i,) for i in range(5)], n_jobs=n_jobs, work=work, progress=heard.append) == [
        0, 1, 4, 9, 16,
    ]  # fmt: skip
    assert heard == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0])


def test_futile_work_is_left_out():
    assert run_tasks(square, [(i,) for i in range(5)], n_jobs=None, work=0.0, futile=lambda x: x >= 4) == [0, 1, 4]


@pytest.mark.parametrize("work", [0.0, np.inf])
def test_a_fault_in_a_task_is_the_callers(work):
    with pytest.raises(RuntimeError, match="task 0"):
        run_tasks(broken, [(0,), (1,)], n_jobs=None, work=work)


def test_the_clock_is_heard():
    with stopping_at(time.time() - 1.0) as stop:
        began = time.time()
        while not stop[0] and time.time() - began < 30.0:
            pass
        assert stop[0]
    with stopping_at(None) as stop:
        assert not stop[0]
