"""A folder as people have it: a recipe, its table and answers, and what was delivered of them; and
the studio over it, as a client sees it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rrf_design as rrf
from rrf_design.studio import Library, make_app
from rrf_design.tables import write_output

TOKEN, PORT = "the-token-of-the-test", 8123
ORIGIN = f"http://127.0.0.1:{PORT}"
HOSTILE = '"><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">/../\u202eevil'
RECIPE = """
[data]
table = "t.csv"
id = "no"
[answer]
of = "sum"
tolerance = 0.005
[[ask]]
id = "sum"
prompt = "{{ text }} Sum?"
parse = "decimal"
[[ask]]
id = "again"
like = "sum"
prompt = "Add up: {{ text }}"
parse = "decimal"
[[ask]]
id = "cents"
like = "sum"
change = { scale = 100 }
prompt = "In cents: {{ text }}"
parse = "decimal"
[[check]]
id = "clerk"
of = "sum"
by = { person = "The sum of {{ no }}, please" }
cost = 1.0
"""


def made(folder: Path, ids: list[str], wrong: dict[str, dict[str, str]]) -> Path:
    """A recipe with its table and answers: item i sums to i + 10; `wrong` says otherwise."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "r.toml").write_text(RECIPE, encoding="utf-8")
    rows = [{"no": name, "text": f"{n} + 10 of {name}"} for n, name in enumerate(ids)]
    (folder / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (folder / "r.toml").write_text(RECIPE.replace("t.csv", "t.jsonl"), encoding="utf-8")
    said = []
    for n, name in enumerate(ids):
        true = {"sum": f"{n + 10}", "again": f"{n + 10}.00", "cents": f"{100 * (n + 10)}"}
        said += [{"id": name, "node": node, "text": text} for node, text in {**true, **wrong.get(name, {})}.items()]
    (folder / "answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in said), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def repaired(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixty rows, one of them hostile, one corrected, two in dispute, delivered in three forms."""
    ids = [f"inv/{n}" for n in range(58)] + [HOSTILE, "nul\x00id"]
    lost = {"sum": "1", "again": "2", "cents": "300"}
    wrong = {"inv/3": {"sum": "99"}, "inv/5": lost, "inv/7": lost, HOSTILE: {"sum": f"{HOSTILE} 68"}}
    folder = made(tmp_path_factory.mktemp("studio"), ids, wrong)
    delivery = rrf.repair(rrf.dataset(folder / "r.toml"), folder / "answers.jsonl")
    for name in ("out.csv", "out.jsonl", "out.json"):
        write_output(folder / name, delivery)
    return folder


@pytest.fixture(scope="session")
def whole(repaired: Path, small_field: Callable[..., rrf.Problem]) -> Path:
    """The same folder with what a design promises, and what money buys."""
    from rrf_design.documents import sealed, write_text

    problem = small_field("small field")
    rrf.certify(problem, rrf.plan(problem, budget=3.0).selected).save(repaired / "certificate.json")
    found = sealed("rrf-frontier", rrf.frontier(problem).to_json())
    write_text(repaired / "frontier.json", json.dumps(found))
    return repaired


class Client:
    """A browser that knows the token and says where it comes from."""

    def __init__(self, library: Library) -> None:
        from starlette.testclient import TestClient

        app = make_app(library, token=TOKEN, port=PORT)
        self.bare = TestClient(app, base_url=ORIGIN, follow_redirects=False)
        self.own = TestClient(app, base_url=ORIGIN, cookies={f"rrf_studio_{PORT}": TOKEN}, follow_redirects=False)

    def get(self, path: str, **query: str) -> Any:
        return self.own.get(path, params=query)

    def act(self, what: str, **said: Any) -> Any:
        answer = self.own.post(f"/act/{what}", content=json.dumps(said), headers={"origin": ORIGIN})
        return answer.json() if answer.status_code == 200 else answer


@pytest.fixture
def open_studio() -> Callable[..., Client]:
    return lambda *places: Client(Library([str(place) for place in places]))
