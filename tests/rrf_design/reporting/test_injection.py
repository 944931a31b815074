"""Every text of every document that has a page becomes markup of somebody else's: the page shows it
as text, or refuses the document in one line.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design._explain import explain
from rrf_design.errors import InputError
from rrf_design.models.scripted import ScriptedModel
from rrf_design.reporting.documents import read, render

PAYLOAD = (
    '"\'`><x-hack onhack=1></script></style></title></textarea></pre></svg>--><x-hack a="{{ 1 }}">]]>&lt;x-hack&gt;'
)
LINK = "javascript:window.hacked=1"
REPORTS = Path(__file__).parents[3] / "reports"


class Seen(HTMLParser):
    """What a browser would make elements and attributes of."""

    def __init__(self) -> None:
        super().__init__()
        self.foreign: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        if tag == "x-hack" or any(name.startswith("onhack") for name, _ in attrs):
            self.foreign.append(tag)
        self.foreign += [
            name for name, value in attrs if name in ("href", "src") and (value or "").startswith("javascript:")
        ]


def looked_at(text: str) -> Seen:
    seen = Seen()
    seen.feed(text)
    seen.close()
    return seen


def texts(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, str) and at[-1] != "format":
        yield at
    inner: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from texts(part, (*at, key))


def renamed(value: Any, old: str, new: str) -> Any:
    """The same with a key of that name called otherwise, wherever it stands."""
    if isinstance(value, dict):
        return {new if key == old else key: renamed(part, old, new) for key, part in value.items()}
    return [renamed(part, old, new) for part in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    names = ["a", "b", "c"]
    problem = rrf.Problem(
        name="ring",
        k=1,
        budget=2.0,
        epsilon=0.1,
        nodes=[{"id": name, "prompt": f"{name}?"} for name in names],
        relations=[{"id": f"r{i}", "tail": names[i], "head": names[i - 1]} for i in range(3)],
        anchors=[{"id": f"x{name}", "node": name, "value": 7.0, "cost": 1.0} for name in names],
    )
    store = tmp_path_factory.mktemp("pages") / "runs.sqlite"
    run = rrf.acquire(problem, model=ScriptedModel(lambda request: "7"), store=store)
    made = {
        "explanation": explain(problem, ["xa"]),
        "plan": rrf.plan(problem, budget=2.0),
        "certificate": rrf.certify(problem, ["xa", "xb"]),
        "repair": rrf.repair(problem, {"a": [7.0], "b": [7.0], "c": [9.0]}),
        "run": run,
    }
    found = {name: dict(read(result).data) for name, result in made.items()}
    found["scenario"] = json.loads((REPORTS / "anchor-transition" / "result.json").read_text(encoding="utf-8"))
    return {name: json.loads(json.dumps(document)) for name, document in found.items()}


@pytest.mark.parametrize("kind", ["explanation", "plan", "certificate", "repair", "run", "scenario"])
@pytest.mark.parametrize("payload", [PAYLOAD, LINK], ids=["markup", "link"])
def test_no_text_of_a_document_becomes_markup(documents: dict[str, dict[str, Any]], kind: str, payload: str) -> None:
    document = documents[kind]
    own = looked_at(render(read(document))).scripts
    places = list(texts(document))
    step = max(1, len(places) // 30)
    shown = 0
    for place in places[::step]:
        hostile = copy.deepcopy(document)
        holder: Any = hostile
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = payload
        try:
            page = render(read(hostile))
        except InputError:  # a kind, a verdict, a status that there is not
            continue
        seen = looked_at(page)
        assert not seen.foreign, place
        assert seen.scripts == own, place
        shown += 1
    assert shown > 5


@pytest.mark.parametrize("kind", ["explanation", "certificate", "repair", "run"])
def test_nor_in_a_browser(open_page: Any, documents: dict[str, dict[str, Any]], kind: str) -> None:
    """Chromium decides: nothing runs and nothing is fetched."""
    name = "<img src=x onerror='window.hacked = 1'></script><script>window.hacked = 1</script>"
    text = json.dumps(renamed(documents[kind], "a", name)).replace('"a"', json.dumps(name))
    view = open_page(render(read(json.loads(text))))
    assert view.evaluate("window.hacked") is None


@pytest.mark.parametrize("kind", ["explanation", "certificate", "repair", "run"])
def test_no_name_becomes_markup(documents: dict[str, dict[str, Any]], kind: str) -> None:
    """Node and block ids, as values and as keys, all at once."""
    for old in ("a", "xa", "r1"):
        text = json.dumps(renamed(documents[kind], old, PAYLOAD)).replace(f'"{old}"', json.dumps(PAYLOAD))
        try:
            page = render(read(json.loads(text)))
        except InputError:  # a kind, a verdict, a status that there is not
            continue
        assert not looked_at(page).foreign
