from __future__ import annotations

from pathlib import Path

import pytest

from rrf_design import models
from rrf_design.errors import InputError
from rrf_design.models import Request, record, write_records
from rrf_design.models.replay import ReplayModel
from rrf_design.models.scripted import ScriptedModel

REQUESTS = [Request("a"), Request("a", seed=1), Request("b", system="s")]


def test_replays_the_purchase_itself(tmp_path: Path) -> None:
    asked: list[Request] = []

    def script(request: Request) -> str:
        asked.append(request)
        return f"{request.prompt} {request.seed} {len(asked)}"

    source = ScriptedModel(script)
    originals = source.complete(REQUESTS)
    again = source.ask(REQUESTS[0])
    entries = [record(r, reply) for r, reply in zip(REQUESTS, originals, strict=True)]
    write_records(tmp_path / "log.jsonl", [*entries, record(REQUESTS[0], again)])
    replayed = models.get(f"replay:{tmp_path / 'log.jsonl'}")
    calls = len(asked)
    assert replayed.complete(REQUESTS) == originals  # the first answer counts, and it is the whole reply
    assert len(asked) == calls
    assert replayed.identity == source.identity


def test_never_asks_what_was_not_logged() -> None:
    model = ReplayModel([record(REQUESTS[0], ScriptedModel(lambda r: "5").ask(REQUESTS[0]))])
    with pytest.raises(InputError, match="no recorded answer to the prompt 'b'"):
        model.ask(REQUESTS[2])
    with pytest.raises(InputError, match="no recorded answer"):
        model.ask(REQUESTS[1])  # another seed is another purchase


def test_backends_are_not_mixed() -> None:
    one, two = (ScriptedModel(lambda r: "5", name=name) for name in ("one", "two"))
    log = [record(REQUESTS[0], one.ask(REQUESTS[0])), record(REQUESTS[0], two.ask(REQUESTS[0]))]
    with pytest.raises(InputError, match=r"several backends \(one, two\)"):
        ReplayModel(log)
    assert ReplayModel(log, model="two").identity == two.identity
    with pytest.raises(InputError, match="no answers of model 'three'"):
        ReplayModel(log, model="three")
    with pytest.raises(InputError, match="no answers to replay"):
        ReplayModel([])
