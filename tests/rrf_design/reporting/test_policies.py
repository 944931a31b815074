"""Pages of promises: they lead with the sentence that was tested, show every rung, and take no text
for markup.
"""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

import pytest

from rrf_design.errors import InputError
from rrf_design.promises import GoldRule, PilotSettings, audit_document, draw_audit, read_delivered, run_policy
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.reporting.documents import read, render
from rrf_design.tables.delivered import deliver

PAYLOAD = "\"'><x-hack onhack=1></script></style></title><x-hack>"


@pytest.fixture
def documents(make_world: Any) -> dict[str, dict[str, Any]]:
    ledger = '\n[[check]]\nid = "ledger"\nof = "total"\nby = { expression = "n + n" }\ncost = 3.0\n'
    world = make_world(items=200, wrong=0.1, extra=ledger)
    path = world.folder / "table.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**row, "n": row["booked"] / 2}) + "\n" for row in rows))
    policy = world.document(PilotSettings(100, 0.1))
    data = world.dataset
    with RecordedAnswers(data, world.answers) as answers:
        run = run_policy(data, answers, policy)
    delivered = world.folder / "delivered.jsonl"
    deliver(delivered, run.delivery.cells(), data.columns)
    drawn = draw_audit(read_delivered(delivered, id_column="no"), 40, seed=0, rule=GoldRule("booked"))
    audit = audit_document(drawn, confidence=0.95, risk=0.2, truth="gold column 'booked'")
    made = {"policy": policy, "run": run.to_json(), "audit": audit}
    return {name: json.loads(json.dumps(document)) for name, document in made.items()}


def test_each_page_leads_with_its_sentence(documents: dict[str, dict[str, Any]]) -> None:
    for document in documents.values():
        made = render(read(document))
        assert made.index(document["sentence"].replace("'", "&#x27;")) < made.index("<h2>")
    made = render(read(documents["policy"]))
    policy = documents["policy"]
    assert policy["ladder"]["further"] == ["ledger"]
    assert "until a check decides." in made
    assert "The rest goes to a person." in made
    assert policy["voided_by"].replace("'", "&#x27;") in made
    assert "rrf-design verify" in made
    assert policy["population"]["digest"] in made
    told = render(read(documents["audit"]))
    assert f"of {documents['audit']['population']} delivered" in told
    assert "The risk of 20 % holds." in told


def test_only_what_was_redone_has_a_tick(documents: dict[str, dict[str, Any]]) -> None:
    for name in ("policy", "audit"):
        source = read(documents[name])
        assert "callout good" not in render(source)
        assert "Not redone for this page" in render(source)
        assert "callout good" in render(replace(source, redone=True))
        refused = render(replace(source, redone=True, refused="a <b>lie</b>"))
        assert "callout bad" in refused
        assert "callout good" not in refused
        assert "REFUSED: a &lt;b&gt;lie" in refused


def test_a_policy_that_checks_everything_says_so(documents: dict[str, dict[str, Any]]) -> None:
    everything = documents["policy"] | {"policy": "check everything", "ladder": None, "because": "no policy is proven"}
    assert "A person checks every item: no policy is proven." in render(read(everything))


@pytest.mark.parametrize("kind", ["policy", "run", "audit"])
def test_no_text_becomes_markup(documents: dict[str, dict[str, Any]], kind: str) -> None:
    document = documents[kind]
    places = [place for place in _texts(document) if place != ("format",)]
    shown = 0
    for place in places[:: max(1, len(places) // 40)]:
        hostile = copy.deepcopy(document)
        holder: Any = hostile
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = PAYLOAD
        try:
            made = render(read(hostile))
        except InputError:
            continue
        assert "<x-hack" not in made, place
        shown += 1
    assert shown > 10


def test_a_damaged_document_is_one_line(documents: dict[str, dict[str, Any]]) -> None:
    for document in documents.values():
        with pytest.raises(InputError, match="is damaged"):
            render(read({key: value for key, value in document.items() if key not in ("policies", "items", "drawn")}))


def _texts(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, str):
        return [at]
    inner: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, part in inner for place in _texts(part, (*at, key))]
