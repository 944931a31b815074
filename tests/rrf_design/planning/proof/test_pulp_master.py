"""PuLP in a process of its own: answers come back, and Ctrl-C leaves neither a process nor a file
behind.
"""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import numpy as np
import pytest
from small import random_problem

from rrf_design.errors import MissingDependency
from rrf_design.planning.evaluator import Evaluator
from rrf_design.planning.proof import _pulp_master as pulp_master
from rrf_design.planning.proof._pulp_master import Pulp, _solve_here
from rrf_design.planning.proof.master import Answer, front_end
from rrf_design.planning.proof.program import MarketRows


@pytest.fixture
def program():
    return MarketRows(Evaluator(random_problem(3, features=("rules",), blocks=6))).program(
        target=None, budget=None, minimise=True
    )


def test_one_process_serves_every_program(program):
    master = front_end("pulp")
    assert isinstance(master, Pulp)
    first = master.solve(program, time_limit=None, seed=0)
    process = master._process
    again = master.solve(program, time_limit=1e3, seed=0)
    here = _solve_here(program, "", None)
    assert master._process is process
    for solved in (first, again):
        assert (solved.answer, solved.proven, solved.cost_bound) == (Answer.FOUND, True, here.cost_bound)
    assert here.cost_bound == front_end("ortools").solve(program, time_limit=None, seed=0).cost_bound


def test_an_interrupt_ends_the_process_and_removes_its_files(program, monkeypatch):
    master = Pulp()
    master.solve(program, time_limit=None, seed=0)
    process, folder = master._process, Path(master._ended.peek()[2][1].name)
    assert folder.is_dir()
    assert process.poll() is None

    def stopped(_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pulp_master.pickle, "load", stopped)
        with pytest.raises(KeyboardInterrupt):
            master.solve(program, time_limit=None, seed=0)
    assert process.poll() is not None
    assert not folder.exists()
    assert master.solve(program, time_limit=None, seed=0).answer is Answer.FOUND  # a new process starts when needed


def test_a_missing_solver_is_named(program):
    with pytest.raises(MissingDependency, match="PuLP finds no 'NOSUCH' on this machine; it finds"):
        Pulp("NOSUCH").solve(program, time_limit=None, seed=0)


def test_a_process_that_dies_is_a_clear_error(program):
    master = Pulp()
    master.solve(program, time_limit=None, seed=0)
    master._process.kill()
    master._process.wait()
    with pytest.raises(MissingDependency, match="pulp ended without an answer"):
        master.solve(program, time_limit=None, seed=0)


def test_the_program_reads_tasks_until_there_are_no_more(program, monkeypatch):
    tasks, answers = io.BytesIO(), io.BytesIO()
    for solver in ("", "NOSUCH"):
        pickle.dump((program, solver, None), tasks)
    tasks.seek(0)
    pulp_master._serve(tasks, answers)
    answers.seek(0)
    assert np.asarray(pickle.load(answers).values).dtype == bool
    assert isinstance(pickle.load(answers), MissingDependency)
