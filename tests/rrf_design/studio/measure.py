"""What the studio takes, on this machine: `python tests/rrf_design/studio/measure.py table 100000`,
and `... live sqlite` or `... live postgresql` (with items and rounds) for a run that is watched.

`table` makes a delivered table of so many rows with its recipe and recorded answers, and asks the
studio for it. `live` has a run of 4,000 items by a slow scripted model, alone and with two viewers
in turns, each run in a process of its own; both say what is accepted.
"""

from __future__ import annotations

import importlib.util
import json
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
OURS = "answer,raw,verdict,assumes,bound,changed,cost,reason,rank"
PAUSE = 0.001
TOKEN, PORT = "the-token-of-the-figures", 8123


def _client(*places: Any) -> Any:
    from starlette.testclient import TestClient

    from rrf_design.studio import Library, make_app

    app = make_app(Library([str(place) for place in places]), token=TOKEN, port=PORT)
    return TestClient(app, base_url=f"http://127.0.0.1:{PORT}", cookies={f"rrf_studio_{PORT}": TOKEN})


def _made() -> Any:
    """The recipe of the studio's tests."""
    spec = importlib.util.spec_from_file_location("studio_conftest", HERE / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _table(folder: Path, rows: int) -> None:
    (folder / "r.toml").write_text(_made().RECIPE.replace("t.csv", "t.jsonl"), encoding="utf-8")
    with (folder / "out.csv").open("w") as out, (folder / "answers.jsonl").open("w") as said:
        out.write(f"no,text,vendor,{OURS}\n")
        for n in range(rows):
            verdict = "contradicted" if n % 97 == 0 else "checked" if n % 50 == 0 else "consistent"
            reason = "4 answers and 3 values; no 3 agree" if verdict == "contradicted" else "all agree"
            rank = n // 97 + 1 if verdict == "contradicted" else ""
            assumes = "at most 1 of 3 answers is wrong"
            vendor = f"Vendor {n % 211} and Sons"
            cells = f"{n + 10}.00,{n + 10},{verdict},{assumes},0,{'true' if n % 31 == 0 else 'false'},0.03"
            out.write(f"inv/{n},{n} + 10 of inv/{n},{vendor},{cells},{reason},{rank}\n")
            for node, text in (("sum", n + 10), ("again", n + 10), ("cents", 100 * (n + 10))):
                said.write(json.dumps({"id": f"inv/{n}", "node": node, "text": str(text)}) + "\n")


Took = tuple[float, float]
"""Processor seconds, which other work on the machine changes little, and seconds by the clock."""


def _median(work: Callable[[int], Any], times: int = 5) -> tuple[Took, Took]:
    """What the first call took, and the medians of those after it."""
    took: list[Took] = []
    for n in range(times + 1):
        start, clock = time.process_time(), time.perf_counter()
        work(n)
        took.append((time.process_time() - start, time.perf_counter() - clock))
    work_, clocks = zip(*took[1:], strict=True)
    return took[0], (statistics.median(work_), statistics.median(clocks))


def table(rows: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        _table(Path(place), rows)
        import rrf_design.studio._views  # noqa: F401  # what is imported is no part of what grows with rows

        start, clock = time.process_time(), time.perf_counter()
        client = _client(place)
        took = (time.process_time() - start, time.perf_counter() - clock)
        _tell("ready", took, 3.0 if rows <= 100_000 else None)

        def get(path: str) -> Callable[[int], Any]:
            def one(n: int) -> None:
                answer = client.get(path.format(n=n * 7919 % rows, page=n * 101 + 2))
                assert answer.status_code == 200, (path, answer.status_code)

            return one

        _tell("first rows", _median(get("/items?of=out.csv"), 1)[0], 0.5)
        _tell("a page", _median(get("/items?of=out.csv&page={page}"))[1], 0.05)
        _tell("a sorted page, the first time", _median(get("/items?of=out.csv&sort=answer&desc=1"), 1)[0], None)
        _tell("a search", _median(get("/items?of=out.csv&q=vendor {n}7"))[1], 0.15)
        _tell("a filter by column", _median(get("/items?of=out.csv&column=vendor&holds={n}"))[1], 0.15)
        first, item = _median(get("/item?of=out.csv&id=inv/{n}"))
        _tell("the first item, its answers found", first, None)
        _tell("an item", item, 0.15)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        _tell("memory, MB", (most, most), 1000.0 if rows >= 1_000_000 else None)


def _tell(what: str, found: Took, accepted: float | None) -> None:
    held = "" if accepted is None else f"   at most {accepted:g}: {'yes' if found[0] <= accepted else 'NO'}"
    print(f"{what:45} {found[0]:9.4f} ({found[1]:.4f} by the clock){held}", flush=True)


def run(folder: str, store: str) -> None:
    """One run, and what it took of the processor."""
    import rrf_design as rrf
    from rrf_design.models.scripted import ScriptedModel

    def say(request: Any) -> str:
        time.sleep(PAUSE)
        number = int(re.search(r"(\d+) \+ 10", request.prompt)[1])  # type: ignore[index]
        return str((100 if "cents" in request.prompt else 1) * (number + 10))

    data = rrf.dataset(Path(folder) / "r.toml")
    start = time.process_time()
    found = rrf.acquire(data, ScriptedModel(say), budget=10, store=store, cache=None)
    print(json.dumps({"took": time.process_time() - start, "run": found.run, "verdicts": found.to_json()["verdicts"]}))


def _watch(client: Any, key: str, seen: list[dict[str, Any]], done: threading.Event) -> None:
    while not done.is_set():
        seen.append(client.get("/progress", params={"of": key}).json())
        done.wait(0.5)


def _once(folder: Path, store: str, viewers: int) -> dict[str, Any]:
    """A run with so many viewers; where it stood whenever they looked."""
    command = [sys.executable, __file__, "run", str(folder), store]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    seen: list[dict[str, Any]] = []
    done, watching = threading.Event(), []
    if viewers:
        client = None
        while process.poll() is None and client is None:
            time.sleep(0.3)
            if "://" in store or Path(store).exists():
                client = _client(store if "://" in store else folder)
                keys = re.findall(r'/live\?of=([^"]*)"', client.get("/").text)
                client = client if keys else None
        from urllib.parse import unquote_plus

        key = unquote_plus(keys[0])
        watching = [threading.Thread(target=_watch, args=(client, key, seen, done)) for _ in range(viewers)]
        for thread in watching:
            thread.start()
    told = json.loads((process.communicate()[0] or "{}").splitlines()[-1])
    done.set()
    for thread in watching:
        thread.join()
    last = client.get("/progress", params={"of": key}).json() if viewers else None
    return {**told, "seen": seen, "last": last}


def live(kind: str, items: int = 4000, rounds: int = 3) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = _made().made(Path(place) / "w", [f"r/{n}" for n in range(items)], {})
        server = None
        if kind == "postgresql":
            import pgserver

            server = pgserver.get_server(Path(tempfile.mkdtemp(prefix="rrf-figures-")))
        store = server.get_uri() if server is not None else str(folder / "runs.sqlite")
        alone, watched, halves = [], [], []
        for _ in range(rounds):
            for viewers in (0, 2):
                if server is not None:
                    server.psql("drop schema public cascade; create schema public;")
                for path in folder.glob("runs.sqlite*"):
                    path.unlink()
                found = _once(folder, store, viewers)
                (watched if viewers else alone).append(found["took"])
                if viewers:
                    calls = max(one.get("calls", 0) for one in [*found["seen"], found["last"]])
                    near = min(found["seen"], key=lambda one: abs(one.get("calls", 0) - calls / 2))
                    decided = sum(near["verdicts"].values()) / items
                    halves.append(decided)
                    print(f"after {near['calls'] / calls:.0%} of the answers: {decided:.0%} of the items have verdicts")
                    print(f"at the end as show --json: {found['last']['verdicts'] == found['verdicts']}", flush=True)
        before = _bytes(folder)
        client = _client(store if server is not None else folder)
        (key,) = re.findall(r'/(?:live|document)\?of=([^"&]*)"', client.get("/").text)[:1]
        from urllib.parse import unquote_plus

        for path in ("/live", "/progress", "/document"):
            assert client.get(path, params={"of": unquote_plus(key)}).status_code == 200
        changed = sum(before.get(name) != data for name, data in _bytes(folder).items())
        print(f"files of the journal that the studio changed: {changed}")
        took = statistics.median(alone), statistics.median(watched)
        print(f"the run's processor seconds: alone {took[0]:.2f} of {alone}, watched {took[1]:.2f} of {watched}")
        print(f"ratio {took[1] / took[0]:.3f}, at most 1.05: {'yes' if took[1] <= 1.05 * took[0] else 'NO'}")
        if server is not None:
            server.cleanup()


def _bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("runs.sqlite*")}


if __name__ == "__main__":
    what, given = sys.argv[1], sys.argv[2:]
    if what == "table":
        table(int(given[0]))
    elif what == "run":
        run(given[0], given[1])
    else:
        live(given[0], *map(int, given[1:]))
