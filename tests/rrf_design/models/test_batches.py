"""The parts that batch interfaces share."""

from __future__ import annotations

import openai
import pytest

from rrf_design.models.batches import BatchFault, BatchState, faults, objects


def test_only_json_objects_are_lines() -> None:
    assert list(objects(['{"a": 1}', "", "half {", "[1]", "7", '{"b": 2}'])) == [{"a": 1}, {"b": 2}]


@pytest.mark.parametrize("status", ["completed", "failed", "expired", "cancelled"])
def test_ended(status: str) -> None:
    assert BatchState("b", status).ended
    assert not BatchState("b", "in_progress").ended


def test_errors_of_the_client_are_one_line() -> None:
    with pytest.raises(BatchFault, match="APIError: no") as fault, faults(openai):
        raise openai.APIError("no", request=None, body=None)  # type: ignore[arg-type]
    assert not fault.value.gone
    with pytest.raises(KeyError), faults(openai):
        raise KeyError("not the client's")
