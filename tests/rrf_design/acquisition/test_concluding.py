"""What settled answers amount to: told to the repair as they are, decided by a check where one
decides.
"""

from __future__ import annotations

from typing import Any

import pytest
from fields import ring

from rrf_design.acquisition._concluding import conclude, finished_problem, repaired, stated
from rrf_design.acquisition._loop import Acquirer, Settings, Settlement
from rrf_design.repairing.engine import RepairEngine


def settled(answers: dict[str, Any], **settings: Any) -> Acquirer:
    """A ring played to its end: what is named is answered so (None: not to be read), everything
    else with 7.
    """
    acquirer = Acquirer(ring(**settings), settings=Settings(budget=6.0, method="witness"))
    while purchases := acquirer.ask(1):
        for purchase in purchases:
            said = answers.get(purchase.name, 7.0)
            outcome = Settlement(purchase, "refused", ok=False) if said is None else Settlement(purchase, "ok", (said,))
            acquirer.tell(outcome)
    return acquirer


def test_an_answer_that_could_not_be_read_is_an_erasure_with_its_reason() -> None:
    acquirer = settled({"n1": None})
    found = repaired(acquirer.designs[""], acquirer.state.items[""], RepairEngine())
    assert found["erased"] == {"n1": "refusal"}
    assert found["verdict"] == "consistent"


def test_nothing_read_is_nothing_repaired() -> None:
    acquirer = settled({f"n{i}": None for i in range(5)})
    found = repaired(acquirer.designs[""], acquirer.state.items[""], RepairEngine())
    assert (found["repaired"], found["verdict"]) == (None, "incomplete")


@pytest.mark.parametrize(("wrong_checks", "verdict"), [(0, "checked"), (1, "contradicted")])
def test_a_check_of_all_that_is_delivered_decides_unless_checks_may_be_wrong(wrong_checks: int, verdict: str) -> None:
    wild = {"n0": 1.0, "n1": 2.0, "n2": 30.0, "n3": 400.0, "n4": 5000.0}
    acquirer = settled(wild, deliver=["n0"], wrong_checks=wrong_checks, target=9.0)
    state, design = acquirer.state.items[""], acquirer.designs[""]
    found = repaired(design, state, RepairEngine())
    assert "a0" in state.settled
    assert stated(design, state)["a0"] == (7.0,)
    assert found["verdict"] == verdict
    assert (found["repaired"] or {}).get("n0") == ([7.0] if verdict == "checked" else None)


def test_only_what_is_done_is_concluded_and_failed_checks_are_left_out() -> None:
    acquirer = settled({"a0": None})
    assert set(conclude(acquirer.designs, acquirer.state)["repairs"]) == {""}
    problem, selected = finished_problem(acquirer.designs[""], acquirer.state.items[""])
    failed = acquirer.state.items[""].failed
    assert not failed & {*problem.block_by_id, *selected}
