"""A small field with a little of everything, for whoever needs one to explain, mend or draw; and a
small world of answers with known truth.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rrf_design import Problem


def small(name: str = "small field", node: str = "isolate") -> Problem:
    return Problem(
        name=name,
        k=1,
        target=0.4,
        nodes=[
            {"id": "original", "prompt": "What is 2 + 3?"},
            {"id": "paraphrase"},
            {"id": "tripled"},
            {"id": node},
            {"id": "unasked", "cost": 1.0},
        ],
        relations=[
            {"id": "r01", "tail": "original", "head": "paraphrase", "family": "paraphrase"},
            {"id": "r10", "tail": "paraphrase", "head": "original", "family": "paraphrase"},
            {"id": "r02", "tail": "original", "head": "tripled", "transport": {"scale": 3.0}},
            {"id": "r12", "tail": "paraphrase", "head": "tripled", "transport": {"scale": 3.0}, "cost": 0.5},
            {"id": "r3u", "tail": node, "head": "unasked", "family": "paraphrase", "cost": 0.0},
        ],
        anchors=[
            {"id": "a0", "node": "original", "value": 5.0},
            {"id": "a3", "node": node, "value": 1.0, "cost": 2.0},
            {"id": "both", "nodes": ["original", "tripled"], "rows": [[1.0, 1.0]], "value": 20.0, "cost": 3.0},
        ],
    )


@pytest.fixture(scope="session")
def small_field() -> Callable[..., Problem]:
    """Makes the field under another name, with another name for its isolated node."""
    return small


@pytest.fixture(scope="session")
def problem() -> Problem:
    return small()


HEAD = """[data]
table = "table.jsonl"
id = "no"
gold = "booked"

[answer]
of = "total"
k = 1

"""
PERSON = """[[check]]
id = "clerk"
of = "total"
by = { person = "Total of {{ no }}?" }
cost = 30.0
"""


@dataclass(frozen=True)
class World:
    """A folder with a recipe, its table, and answers whose faults are drawn from a seed."""

    folder: Path

    @property
    def recipe(self) -> Path:
        return self.folder / "rrf.toml"

    @property
    def answers(self) -> Path:
        return self.folder / "answers.jsonl"

    @property
    def script(self) -> Path:
        """The same answers as a model gives them; every question says which node asks."""
        text = self.recipe.read_text()
        for block in text.split("[[ask]]")[1:]:
            name = block.split('id = "')[1].split('"')[0]
            text = text.replace(block, block.replace('"{{ text }}"', f'"{{{{ text }}}} ({name})"'))
        self.recipe.write_text(text)
        texts = {
            row["no"]: row["text"] for row in map(json.loads, (self.folder / "table.jsonl").read_text().splitlines())
        }
        said = map(json.loads, self.answers.read_text().splitlines())
        rules = [{"prompt": f"{texts[row['id']]} ({row['node']})", "text": row["text"]} for row in said]
        path = self.folder / "script.json"
        path.write_text(json.dumps({"rules": rules}))
        return path

    @property
    def dataset(self) -> Any:
        from rrf_design.questions import dataset

        return dataset(self.recipe)

    def plan(self, settings: Any) -> Any:
        from rrf_design.promises import plan_pilot
        from rrf_design.questions.answers import RecordedAnswers

        data = self.dataset
        with RecordedAnswers(data, self.answers) as answers:
            return plan_pilot(data, answers, settings)

    def pilot(self, settings: Any) -> Any:
        from rrf_design.promises import gold_truths, run_pilot

        plan = self.plan(settings)
        truths, missing = gold_truths(plan)
        assert not missing
        return run_pilot(plan, truths, truth_source="gold column 'booked'")

    def document(self, settings: Any) -> dict[str, Any]:
        from rrf_design.promises import policy_document

        found: dict[str, Any] = json.loads(json.dumps(policy_document(self.pilot(settings))))
        return found


def ask(name: str, cost: float, *, scale: float | None = None) -> str:
    lines = ["[[ask]]", f'id = "{name}"', 'prompt = "{{ text }}"', f"cost = {cost}"]
    if name != "total":
        lines.append('like = "total"')
    if scale is not None:
        lines.append(f"change = {{ scale = {scale} }}")
    return "\n".join(lines) + "\n\n"


def world_at(
    folder: Path,
    *,
    items: int = 240,
    wrong: float = 0.05,
    unread: float = 0.0,
    person: bool = True,
    scale: float | None = 100.0,
    nodes: int = 4,
    together: float = 0.0,
    extra: str = "",
    seed: int = 1,
) -> World:
    draw = np.random.default_rng(seed)
    names = ["total", "reworded", "cents", "other", "fifth"][:nodes]
    scales = {name: scale if name == "cents" and scale is not None else 1.0 for name in names}
    asks = "".join(ask(n, 1.0 + i, scale=scale if n == "cents" else None) for i, n in enumerate(names))
    (folder / "rrf.toml").write_text(HEAD + asks + (PERSON if person else "") + extra)
    table, answers = [], []
    for number in range(items):
        truth = int(draw.integers(10, 90))
        table.append({"no": f"i{number}", "text": f"item {number}: {truth}", "booked": truth})
        shared = draw.random() < together
        for name in names:
            off = 7 if shared else int(draw.integers(1, 6)) if draw.random() < wrong else 0
            said = "no idea" if draw.random() < unread else f"{(truth + off) * scales[name]:g}"
            answers.append({"id": f"i{number}", "node": name, "text": said})
    for name, rows in (("table", table), ("answers", answers)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return World(folder)


@pytest.fixture
def make_world(tmp_path: Path) -> Callable[..., World]:
    return partial(world_at, tmp_path)


@pytest.fixture(scope="session")
def _proven_policy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    from rrf_design.promises import PilotSettings

    return world_at(tmp_path_factory.mktemp("policy"), items=300, wrong=0.03).document(PilotSettings(100, 0.1))


@pytest.fixture
def proven_policy(_proven_policy: dict[str, Any]) -> dict[str, Any]:
    """The document of a policy that a pilot of 100 items proves; a test may change its own."""
    return copy.deepcopy(_proven_policy)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's Chromium through Playwright; where either is missing the tests say so instead of
    passing.
    """
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium): pages are not tried in a browser")
    sync = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pages are not tried in a browser"
    )
    with sync.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=program, args=["--headless", "--no-sandbox", "--disable-gpu"])
        yield chromium
        chromium.close()


@contextmanager
def _started(processes: int) -> Iterator[Any]:
    """A real scheduler with so many worker processes, on loopback; it gives up what has killed two
    workers.
    """
    distributed = pytest.importorskip("distributed")
    import dask

    with dask.config.set({"distributed.scheduler.allowed-failures": 1}):
        cluster = distributed.LocalCluster(
            n_workers=processes,
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            host="127.0.0.1",
            silence_logs=50,
        )
        try:
            with distributed.Client(cluster) as client:
                yield client
        finally:
            with suppress(KeyError):  # Dask looks up the name of a worker that has just left its list
                cluster.close()


@pytest.fixture(scope="session")
def started() -> Callable[[int], AbstractContextManager[Any]]:
    return _started


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """Its address.

    The folder is not pytest's: run by root, the server is another user, who may not enter that.
    """
    pgserver = pytest.importorskip("pgserver", reason="no PostgreSQL to test against: pip install pgserver")
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="rrf-postgres-", dir=memory, ignore_cleanup_errors=True) as folder:
        found = pgserver.get_server(folder)
        yield found.get_uri()
        found.cleanup()


@pytest.fixture
def database(server: str, request: pytest.FixtureRequest) -> str:
    """The address of an empty part of it."""
    import psycopg

    name = f"of_{hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:12]}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"create schema {name}")
    return f"{server}&options=-csearch_path%3D{name}"
