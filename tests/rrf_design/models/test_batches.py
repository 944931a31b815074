"""The parts that batch interfaces share."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import openai
import pytest

from rrf_design.models.batches import TOKEN, BatchFault, BatchState, OpenAIBatches, faults, objects


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


def batch(name: str, status: str = "completed", *, token: str | None = None, **more: Any) -> Any:
    given = {"output_file_id": None, "error_file_id": None, "errors": None, **more}
    return SimpleNamespace(id=name, status=status, metadata=None if token is None else {TOKEN: token}, **given)


class Client:
    """What was sent is kept; answers are those that the test gives."""

    def __init__(self, batches: Sequence[Any] = (), contents: Mapping[str, str] | None = None) -> None:
        self.sent: list[dict[str, Any]] = []
        texts = contents or {}
        self.files = SimpleNamespace(create=self._upload, content=lambda name: SimpleNamespace(text=texts[name]))
        known = {one.id: one for one in batches}
        self.batches = SimpleNamespace(create=self._create, list=lambda limit: batches, retrieve=known.__getitem__)

    def _upload(self, **given: Any) -> Any:
        self.sent.append(given)
        return SimpleNamespace(id="file-1")

    def _create(self, **given: Any) -> Any:
        self.sent.append(given)
        return batch("b1", "validating")


def test_a_batch_carries_its_token_and_its_lines() -> None:
    client = Client()
    made = OpenAIBatches(client, openai).create([("a", {"x": 1}), ("ü", {"x": 2})], "t-7")
    assert made == BatchState("b1", "validating")
    upload, create = client.sent
    name, content = upload["file"]
    assert name == "t-7.jsonl"
    lines = [json.loads(line) for line in content.decode().split("\n")[:-1]]
    assert [(line["custom_id"], line["body"]) for line in lines] == [("a", {"x": 1}), ("ü", {"x": 2})]
    assert (create["metadata"], create["input_file_id"]) == ({TOKEN: "t-7"}, "file-1")


def test_faults_of_a_batch_are_told_in_a_few_words() -> None:
    errors = SimpleNamespace(data=[SimpleNamespace(message="line 3 is bad"), SimpleNamespace(message=None)])
    found = OpenAIBatches(Client([batch("b1", "failed", errors=errors, error_file_id="err")]), openai).look("b1")
    assert (found.fault, found.files) == ("line 3 is bad", ("err",))
    long = SimpleNamespace(data=[SimpleNamespace(message="x" * 1000)])
    assert len(OpenAIBatches(Client([batch("b1", errors=long)]), openai).look("b1").fault) == 300


def test_lines_of_both_files_whatever_stands_in_them() -> None:
    """An answer may hold a character that ends a line elsewhere: only a line feed ends one here."""
    answers = [{"custom_id": "a", "text": "one\u2028two\u0085three"}, {"custom_id": "b"}]
    contents = {
        "out": json.dumps(answers[0], ensure_ascii=False) + "\r\n\nno json\n[1]\n",
        "err": json.dumps(answers[1]),
    }
    state = BatchState("b1", "completed", ("out", "err"))
    assert list(OpenAIBatches(Client(contents=contents), openai).lines(state)) == answers
