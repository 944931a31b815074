"""Nothing that others wrote gets into a page as markup."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design._explain import explain
from rrf_design.cli import main
from rrf_design.errors import InputError
from rrf_design.models.scripted import ScriptedModel
from rrf_design.promises import GoldRule, PilotSettings, audit_document, draw_audit, read_delivered, run_policy
from rrf_design.questions.answers import RecordedAnswers
from rrf_design.reporting.documents import read, render
from rrf_design.tables.delivered import deliver

from ..conftest import world_at

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


HACK = "<img src=x onerror='window.hacked = 1'><b>"
"""For names of files and nodes, which take no slash; the truths hold a whole script."""
SCRIPT = '"><script>window.hacked = 1</script><svg onload="window.hacked = 1">'
ITEMS = 60
RECIPE = f"""[data]
table = "t{HACK}.jsonl"
id = "no{HACK}"
gold = "gold{HACK}"

[models]
"m{HACK}" = {{ use = "scripted:script.json" }}

[answer]
of = "total{HACK}"
k = 1

[[ask]]
id = "total{HACK}"
prompt = "{{{{ text }}}} total"
parse = "label"
model = "m{HACK}"
cost = 1.0

[[ask]]
id = "again{HACK}"
like = "total{HACK}"
prompt = "{{{{ text }}}} again"
parse = "label"
model = "m{HACK}"
cost = 1.0

[[check]]
id = "clerk{HACK}"
of = "total{HACK}"
by = {{ person = "{{{{ text }}}}?" }}
cost = 30.0

[promise]
risk = 0.3
confidence = 0.9
pilot = 20
"""


def called(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(words))
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The pages as the verbs write them."""
    folder = tmp_path_factory.mktemp("hostile")
    name, delivered = f"r{HACK}.toml", f"d{HACK}.jsonl"
    (folder / name).write_text(RECIPE)
    rows = [
        {f"no{HACK}": f"i{n}{SCRIPT}", "text": f"text {n}{SCRIPT}", f"gold{HACK}": f"v{n}{SCRIPT}"}
        for n in range(ITEMS)
    ]
    (folder / f"t{HACK}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rules = [
        {"prompt": f"{row['text']} {ask}", "text": row[f"gold{HACK}"] if (n + shift) % 9 else f"other {n} {SCRIPT}"}
        for shift, ask in enumerate(("total", "again"))
        for n, row in enumerate(rows)
    ]
    (folder / "script.json").write_text(json.dumps({"rules": rules}))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert called("pilot", name, "--cache", "off", "--order", "holm", "-o", "policy.json") == 0
        run = ("acquire", name, "--cache", "off", "--policy", "policy.json", "-o", delivered, "-o", "run.json")
        assert called(*run, "-o", "run.html") in (0, 1)
        assert called("audit", delivered, "--recipe", name, "--labels", "20", "-o", "audit.json") in (0, 1)
        for kind in ("policy", "audit"):
            assert called("verify", f"{kind}.json") == 0
            assert called("report", f"{kind}.json", "-o", f"{kind}.html") == 0
        assert called("report", "last", "-o", "journal.html") == 0
    made = {kind: (folder / f"{kind}.html").read_text() for kind in ("policy", "run", "audit", "journal")}
    return made | {"document": render(read(json.loads((folder / "run.json").read_text())))}


@pytest.mark.parametrize("kind", ["policy", "run", "audit", "journal", "document"])
def test_nothing_runs_and_the_text_is_shown(open_page: Any, pages: dict[str, str], kind: str) -> None:
    view = open_page(pages[kind])
    assert view.evaluate("window.hacked") is None
    assert (view.locator("script").count(), view.locator("img").count()) == (1, 0)
    assert "<img src=x onerror=" in view.locator("body").inner_text()
    assert "window.hacked" in view.title() or kind == "journal"


@pytest.mark.parametrize("kind", ["policy", "run", "audit"])
def test_promises_fit_a_phone(open_page: Any, pages: dict[str, str], kind: str) -> None:
    view = open_page(pages[kind], width=360, height=740)
    assert view.evaluate("document.documentElement.scrollWidth") <= 360


def test_documents_keep_what_they_were_given(pages: dict[str, str]) -> None:
    assert all(f"t{HACK}" not in page for page in pages.values())  # as markup


PAYLOAD_POLICIES = "\"'><x-hack onhack=1></script></style></title><x-hack>"


@pytest.fixture(scope="module")
def policies_documents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    ledger = '\n[[check]]\nid = "ledger"\nof = "total"\nby = { expression = "n + n" }\ncost = 3.0\n'
    world = world_at(tmp_path_factory.mktemp("policies"), items=200, wrong=0.1, extra=ledger)
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


def test_each_page_leads_with_its_sentence(policies_documents: dict[str, dict[str, Any]]) -> None:
    for document in policies_documents.values():
        made = render(read(document))
        assert made.index(document["sentence"].replace("'", "&#x27;")) < made.index("<h2>")
    made = render(read(policies_documents["policy"]))
    policy = policies_documents["policy"]
    assert policy["ladder"]["further"] == ["ledger"]
    assert "until a check decides." in made
    assert "The rest goes to a person." in made
    assert policy["voided_by"].replace("'", "&#x27;") in made
    assert "rrf-design verify" in made
    assert policy["population"]["digest"] in made
    told = render(read(policies_documents["audit"]))
    assert f"of {policies_documents['audit']['population']} delivered" in told
    assert "The risk of 20 % holds." in told


def test_only_what_was_redone_has_a_tick(policies_documents: dict[str, dict[str, Any]]) -> None:
    for name in ("policy", "audit"):
        source = read(policies_documents[name])
        assert "callout good" not in render(source)
        assert "Not redone for this page" in render(source)
        assert "callout good" in render(replace(source, redone=True))
        refused = render(replace(source, redone=True, refused="a <b>lie</b>"))
        assert "callout bad" in refused
        assert "callout good" not in refused
        assert "REFUSED: a &lt;b&gt;lie" in refused


def test_a_policy_that_checks_everything_says_so(policies_documents: dict[str, dict[str, Any]]) -> None:
    everything = policies_documents["policy"] | {
        "policy": "check everything",
        "ladder": None,
        "because": "no policy is proven",
    }
    assert "A person checks every item: no policy is proven." in render(read(everything))


@pytest.mark.parametrize("kind", ["policy", "run", "audit"])
def test_no_text_becomes_markup(policies_documents: dict[str, dict[str, Any]], kind: str) -> None:
    document = policies_documents[kind]
    places = [place for place in _texts(document) if place != ("format",)]
    shown = 0
    for place in places[:: max(1, len(places) // 40)]:
        hostile = copy.deepcopy(document)
        holder: Any = hostile
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = PAYLOAD_POLICIES
        try:
            made = render(read(hostile))
        except InputError:
            continue
        assert "<x-hack" not in made, place
        shown += 1
    assert shown > 10


def test_a_damaged_document_is_one_line(policies_documents: dict[str, dict[str, Any]]) -> None:
    for document in policies_documents.values():
        with pytest.raises(InputError, match="is damaged"):
            render(read({key: value for key, value in document.items() if key not in ("policies", "items", "drawn")}))


def _texts(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, str):
        return [at]
    inner: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, part in inner for place in _texts(part, (*at, key))]
