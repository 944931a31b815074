"""The ledger of roots: what was done stays done, what was not is said."""

from __future__ import annotations

import time

import numpy as np

from solvers import support_margin
from solvers.fronts import SAMPLES, Peeling
from solvers.gram import make_field
from solvers.parts import dense_part
from solvers.search import TASKS


def dense_front(B, size: int) -> tuple[float, Peeling]:
    """(γ² in the field's scale, a fresh front)."""
    field = make_field(B, None)
    nodes = np.arange(field.n)
    least = support_margin(B, size=size, method="search").value ** 2 * 4.0**-field.exponent
    return least, Peeling(dense_part(field, nodes, size, field.shrink(size)))


def test_what_was_proved_stays_proved_when_the_threshold_falls():
    least, front = dense_front(np.random.default_rng(5).standard_normal((18, 16)), 7)
    theta = least * (1.0 - 1e-9)
    assert not front.run(theta)
    before = front.visited
    assert not front.run(theta * 0.9)
    assert front.visited == before
    assert front.floor == theta


def test_no_time_proves_nothing_and_some_time_loses_nothing():
    least, front = dense_front(np.random.default_rng(6).standard_normal((18, 16)), 7)
    theta = least * (1.0 - 1e-9)
    assert not front.run(theta, deadline=time.time() - 1.0)
    assert front.floor < theta
    assert not front.run(theta, deadline=time.time() + 600.0)
    assert front.floor == theta


def test_a_field_without_centres_needs_no_search():
    least, front = dense_front(np.eye(10) + 1e-3, 7)
    assert not front.run(0.5 * least)
    assert front.visited == 0
    assert front.floor >= 0.5 * least


def test_every_fraction_is_foretold_by_roots_of_its_own():
    """Roots that are done at θ say nothing about a lower one: no task is in two samples, and each sample is done at its own θ."""
    tasks = [task for sample in SAMPLES for task in sample]
    assert len(set(tasks)) == len(tasks)
    assert max(tasks) < TASKS
    least, front = dense_front(np.random.default_rng(1).standard_normal((18, 16)), 7)
    later = time.time() + 1e6
    for sample, theta in zip(SAMPLES, (0.9 * least, 0.5 * least), strict=False):
        found, fits = front._sample(theta, later, sample)
        assert not found
        assert fits
        assert front.proven is not None
        assert all(np.all(front.proven[task::TASKS] == theta) for task in sample)
