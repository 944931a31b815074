"""A program that kills runs in batches: at every request to the provider, before and after it is
carried out, by SIGKILL.

Run by `test_batching.py` in a process of its own, since forking is only safe where nothing else
runs; the provider is another process, which does the killing. Usage: batch_killing.py FOLDER;
prints one JSON object.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from fields import ring  # type: ignore[import-not-found]

from rrf_design.acquisition import acquire, read_run
from rrf_design.errors import InputError

PRICE = {"input": 0.001, "output": 0.01}
MONEY = 2.4
MOST = 40
"""Sessions after which a run counts as one that never ends."""


def tell(url: str, path: str, body: dict[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url.removesuffix("/v1") + path, data)) as reply:
        return json.load(reply)


def run(url: str, store: Path, provider: str, *, resume: bool) -> Any:
    if resume:
        return acquire(resume="last", store=store)
    address = url if provider == "openai" else url.removesuffix("/v1")
    model = f"{provider}:m"
    options: dict[str, Any] = {"model_options": {"base_url": address}, "prices": {model: PRICE}, "money": MONEY}
    return acquire(ring(), model, store=store, batch_api=True, **options)


def session(url: str, store: Path, provider: str, *, resume: bool, kill: tuple[int, str] | None) -> bool:
    done = tell(url, "/bill")["requests"]

    def aim(pid: int) -> None:
        tell(url, "/control", {"kill": None if kill is None else [pid, done + kill[0], kill[1]]})

    return session_in_child(lambda: run(url, store, provider, resume=resume), aim)


def session_in_child(work: Callable[[], Any], aim: Callable[[int], Any]) -> bool:
    """One session in a child; whether it was killed.

    It waits until the provider knows whom to kill.
    """
    ready, go = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.read(ready, 1)
            work()
            os._exit(0)
        except BaseException as error:
            os.write(2, f"child: {type(error).__name__}: {error}\n".encode())
            os._exit(3)
    aim(pid)
    os.write(go, b"x")
    _, status = os.waitpid(pid, 0)
    os.close(ready)
    os.close(go)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "the child failed"
    return os.WIFSIGNALED(status)


def last_run(store: Path) -> Any:
    """The run as its journal has it; None where the process died before there was one."""
    try:
        return read_run("last", store=store)
    except InputError:
        return None


def play(url: str, store: Path, provider: str, step: int, when: str) -> int:
    """A run whose every session is killed at its step-th request once, then left alone, and so on
    to its end.
    """
    before = dict(tell(url, "/bill")["bill"])
    kills = sessions = 0
    begun = False
    while True:
        sessions += 1
        assert sessions < MOST, "no session ends the run"
        killed = session(url, store, provider, resume=begun, kill=(step, when) if sessions % 2 else None)
        kills += killed
        found = last_run(store)
        begun = found is not None
        assert found is None or found.money <= MONEY, "overspent"
        if not killed and found is not None and found.stopped_because != "pending":
            break
    assert found is not None
    assert found.finished, found.stopped_because
    bill = {prompt: count - before.get(prompt, 0) for prompt, count in tell(url, "/bill")["bill"].items()}
    assert set(bill.values()) == {1}, f"charged twice, or never: {bill}"
    assert len(found.items[0].answers) == len(bill) == len(ring().nodes), "an answer was lost"
    assert abs(found.money - len(bill) * (10 * 0.001 + 2 * 0.01)) < 1e-9, "the books are not the provider's"
    return kills


def main(folder: Path) -> None:
    program = Path(__file__).with_name("batch_server.py")
    os.environ["ANTHROPIC_API_KEY"] = "none-of-yours"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, str(program)], text=True, **pipes) as provider:  # type: ignore[call-overload]
        url = provider.stdout.readline().strip()
        kills = 0
        for name in ("openai", "anthropic"):
            for resume in (False, True):  # import and compile once, before anything is forked
                run(url, folder / f"warm-{name}.sqlite", name, resume=resume)
            tell(url, "/control", {"batches": {}})  # the other provider's
            for step in range(1, 4):
                for when in ("before", "after"):
                    kills += play(url, folder / f"{name}{step}{when}.sqlite", name, step, when)
            tell(url, "/control", {"batches": {}})
        provider.stdin.close()
    print(json.dumps({"kills": kills}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
