"""The adapters under test; a new one joins the conformance suite with one fixture in
``ADAPTERS``.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rrf_design import models
from rrf_design.models import Model, Request, Retry

sys.path.insert(0, str(Path(__file__).parent))

if TYPE_CHECKING:
    from loopback_server import Backend, Wiring

# Greedy is all that is asked for: some providers know no seeds, and others take no top_p beside a
# temperature.
GREEDY: dict[str, Any] = {"temperature": 0.0, "top_p": None, "seed": None}
SHORT = Request("What is 2 + 3?", max_tokens=12, **GREEDY)
LONG = Request("Tell me a long story about the sea.", max_tokens=3, **GREEDY)
OTHER = Request("What is the capital of France?", system="Answer in one word.", max_tokens=8, **GREEDY)
CHOICE = Request("Is 2 + 3 equal to 5?", max_tokens=8, grammar='root ::= "yes" | "no"', **GREEDY)
ALL = (SHORT, LONG, OTHER, CHOICE)

_SCRIPT = {
    "rules": [
        {"pattern": r"2 \+ 3\?", "text": "2 + 3 = 5"},
        {"pattern": "story", "text": "Once upon a time there was the sea, and it was blue."},
        {"prompt": OTHER.prompt, "text": "Paris"},
        {"prompt": CHOICE.prompt, "text": "yes"},
    ]
}
_FRESH = {"cache_prompt": False}
"""With its cache of prompts, llama.cpp may continue the same prompt in another way."""
_SERVE = (
    "import sys; from rrf_design import models; model = models.get('embedded', slots=1, threads=1); "
    "print(model.address, flush=True); sys.stdin.read()"
)


@pytest.fixture(scope="session")
def scripted() -> Model:
    from rrf_design.models.scripted import ScriptedModel

    return ScriptedModel(_SCRIPT)


@pytest.fixture(scope="session")
def replay(scripted: Model) -> Model:
    from rrf_design.models.replay import ReplayModel

    return ReplayModel([models.record(request, scripted.ask(request)) for request in ALL])


@pytest.fixture(scope="session")
def embedded() -> Iterator[Model]:
    with models.get("embedded", threads=1) as model:
        yield model


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The embedded model in a process of its own, over HTTP on loopback; the address it serves."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), "the server did not start"
        yield address
        process.stdin.close()
        process.wait(timeout=30)


@pytest.fixture(scope="session")
def openai(server: str) -> Iterator[Model]:
    with models.get("openai:smollm2", base_url=server, slots=1, grammar_field="grammar", extra=_FRESH) as model:
        yield model


@pytest.fixture(scope="session")
def provider(server: str) -> Iterator[Model]:
    """A provider of the extra that is OpenAI-compatible."""
    with models.get("llamacpp:smollm2", base_url=server, slots=1, extra={"extra_body": _FRESH}) as model:
        yield model


@pytest.fixture(scope="session")
def anthropic(server: str) -> Iterator[Model]:
    """A provider of the extra with a wire format of its own, which llama.cpp speaks too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ANTHROPIC_API_KEY", "nobody-asks-for-it")
        url = server.removesuffix("/v1")
        with models.get("anthropic:smollm2", base_url=url, slots=1, extra={"extra_body": _FRESH}) as model:
            yield model


@pytest.fixture(scope="session")
def transformers() -> Iterator[Model]:
    needed = ("torch", "transformers", "accelerate", "gguf")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(
            f"left out: the transformers adapter on real weights, because {', '.join(missing)} is not installed"
        )
    from rrf_design.models.embedded import _weights

    with models.get(f"transformers:{_weights()}") as model:
        yield model


@pytest.fixture(scope="session")
def vllm() -> Iterator[Model]:
    if importlib.util.find_spec("vllm") is None:
        pytest.skip("left out: the vllm adapter, because vllm is not installed")
    with models.get("vllm:Qwen/Qwen2.5-0.5B-Instruct", slots=4, context=2048) as model:
        yield model


ADAPTERS = ("scripted", "replay", "embedded", "openai", "provider", "anthropic", "transformers", "vllm")


@pytest.fixture(params=ADAPTERS)
def model(request: pytest.FixtureRequest) -> Model:
    adapter: Model = request.getfixturevalue(request.param)
    return adapter


@pytest.fixture
def questions() -> tuple[Request, Request, Request, Request]:
    """An answer in one sentence, one that must be cut, one with a system prompt, one under a
    grammar.
    """
    return ALL


@pytest.fixture
def backend(wiring: Wiring, monkeypatch: pytest.MonkeyPatch) -> Iterator[Backend]:
    """A server on loopback; a module that uses it says in its fixture `wiring` which ways to it are
    tried.
    """
    from loopback_server import SECRET, Backend

    monkeypatch.setenv(wiring.key, SECRET)
    server = Backend(wiring)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.release.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def client(backend: Backend) -> Iterator[Model]:
    retry = Retry(attempts=2, sleep=lambda _: None)
    with models.get(backend.spec, base_url=backend.url, timeout=5.0, retry=retry) as made:
        yield made
