"""A small field with everything a page shows, hostile text in every place that takes text, and a
real browser.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rrf_design import Problem

HOSTILE = '"><script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">\'&lt;\u202e</title></style>'


@pytest.fixture(scope="session")
def hostile(small_field: Callable[..., Problem]) -> Problem:
    """Markup in the name, in an id, in a prompt and in a family."""
    plain = small_field(HOSTILE, HOSTILE).model_dump(by_alias=True, exclude_defaults=True)
    plain["nodes"][0]["prompt"] = HOSTILE
    plain["relations"][2]["family"] = HOSTILE
    plain["anchors"][1]["id"] = f"a3{HOSTILE}"
    return Problem(**plain)


def plain(document: Any) -> Any:
    """As a file would have it."""
    return json.loads(json.dumps(document))


@pytest.fixture(scope="session")
def repaired(problem: Problem) -> dict[str, Any]:
    """A repair's document: one answer wrong, one not given."""
    from rrf_design.repairing import repair, to_document

    answers = {"original": [5.0], "paraphrase": [5.0], "tripled": [17.0], "isolate": {"status": "refusal"}}
    document: dict[str, Any] = plain(to_document(repair(problem, answers, select=["a3", "r12"])))
    return document


@pytest.fixture(scope="session")
def live(problem: Problem, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A run's document, from a scripted model whose answer to one question is wrong and hostile."""
    from rrf_design.acquisition import acquire

    script = tmp_path_factory.mktemp("run") / "script.json"
    rules = [
        {"pattern": "three", "text": f"{HOSTILE} 17"},
        {"pattern": "unreadable", "text": "<script>no idea</script>"},
        {"pattern": ".*", "text": "5"},
    ]
    script.write_text(json.dumps({"rules": rules}))
    asked = problem.model_dump(by_alias=True, exclude_defaults=True)
    prompts = {"tripled": "three times", "paraphrase": "unreadable"}
    for node in asked["nodes"]:
        node.update(prompt=prompts.get(node["id"], "2 + 3"), parser="integer-last")
    run = acquire(
        Problem(**asked), f"scripted:{script}", budget=5.0, method="witness", store=script.parent / "runs.sqlite"
    )
    document: dict[str, Any] = plain(run.to_json())
    return document


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """Opens a page from a file, offline; at the end it must have logged no error and asked for
    nothing.
    """
    troubles: list[str] = []
    contexts = []

    def show(text: str, *, width: int = 1100, height: int = 900) -> Any:
        path = tmp_path / "page.html"
        path.write_text(text, encoding="utf-8")
        context = browser.new_context(viewport={"width": width, "height": height}, offline=True)
        contexts.append(context)
        opened = context.new_page()
        opened.on("console", lambda message: troubles.append(message.text))
        opened.on("pageerror", lambda error: troubles.append(str(error)))
        opened.on(
            "request",
            lambda request: None if request.url.startswith(("file:", "data:")) else troubles.append(request.url),
        )
        opened.goto(path.as_uri())
        return opened

    yield show
    for context in contexts:
        context.close()
    assert troubles == []
