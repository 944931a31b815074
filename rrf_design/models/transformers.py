"""Checkpoints in this process through Transformers: on the GPU in half precision when there is one,
else on the CPU.

This is how the paper asked its models: the checkpoint's chat template, greedy decoding in batches.
The same GGUF file that llama.cpp runs can be loaded too (its weights are dequantised), and answers
with other text: the runtime is part of the identity.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rrf_design.errors import InputError, MissingDependency
from rrf_design.models.base import Attempt, Model, Outcome, Reply, Request, Retry, Usage
from rrf_design.models.embedded import digest
from rrf_design.models.faults import classify


class TransformersModel(Model):
    """``transformers:NAME-OR-PATH``; a path may be a checkpoint folder or a GGUF file.

    ``slots`` requests are generated as one batch by ``complete``. Sampled requests are generated
    one by one, so that a seed means the same answer whatever else is asked.
    """

    local = True

    def __init__(
        self,
        model: str,
        *,
        slots: int = 8,
        device: str | None = None,
        dtype: str | None = None,
        revision: str | None = None,
        timeout: float = 600.0,
    ) -> None:
        try:
            import torch
            import transformers
        except ImportError as error:
            raise MissingDependency(
                f"model transformers:... needs {error.name}; get it with: pip install torch transformers accelerate"
                " gguf"
            ) from None
        self.name = f"transformers:{Path(model).name if Path(model).exists() else model}"
        self.slots = slots
        self.timeout = timeout
        self.retry = Retry(attempts=1)  # in process nothing is busy or unreachable; asking again changes nothing
        self._torch = torch
        self._lock = threading.Lock()
        self._device = device or _device(torch)
        chosen = dtype or ("float16" if self._device != "cpu" else "float32")
        if not isinstance(getattr(torch, chosen, None), torch.dtype):
            raise InputError(f"model {self.name}: unknown dtype {chosen!r}; use float16, bfloat16 or float32")
        source, gguf = _source(model, revision)
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        try:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(source, padding_side="left", **gguf)
            network = transformers.AutoModelForCausalLM.from_pretrained(source, dtype=getattr(torch, chosen), **gguf)
        except (OSError, ValueError, ImportError) as error:
            raise InputError(f"model {self.name}: can't load it ({str(error).splitlines()[0]})") from None
        self._network = network.to(self._device).eval()
        if self._tokenizer.pad_token_id is None:
            self._tokenizer.pad_token = self._tokenizer.eos_token
        weights = _weights(model, network)
        self.kept = bool(weights)  # without a digest a changed checkpoint could not be told from this one
        self._identity = {
            "adapter": "transformers",
            "model": Path(model).name if Path(model).exists() else model,
            "revision": revision or "",
            "weights": weights,
            "runtime": f"transformers {version('transformers')}, torch {version('torch')}",
            "device": self._device.split(":")[0],
            "dtype": chosen,
        }

    @property
    def identity(self) -> Mapping[str, Any]:
        return self._identity

    def close(self) -> None:
        self._network = None
        if self._device.startswith("cuda"):
            self._torch.cuda.empty_cache()

    def attempt(self, request: Request) -> Attempt:
        return self._generate([request])[0]

    def complete(self, requests: Sequence[Request]) -> tuple[Reply, ...]:
        """Batches of requests with the same settings, replies in the order asked."""
        for request in requests:
            self.check(request)
        replies: dict[int, Reply] = {}
        groups: dict[object, list[int]] = {}
        for index, request in enumerate(requests):
            sampled = index if request.sampling[0] > 0.0 else None
            groups.setdefault((sampled, request.max_tokens, request.stop), []).append(index)
        for members in groups.values():
            for start in range(0, len(members), self.slots):
                batch = members[start : start + self.slots]
                clock = time.perf_counter()
                attempts = self._generate([requests[i] for i in batch])
                seconds = (time.perf_counter() - clock) / len(batch)
                for index, attempt in zip(batch, attempts, strict=True):
                    paid = requests[index].ceiling() if attempt.usage is None else attempt.usage
                    replies[index] = self._reply(attempt, paid, seconds, 1)
        return tuple(replies[i] for i in range(len(requests)))

    def _generate(self, batch: Sequence[Request]) -> list[Attempt]:
        """One call of ``generate``; the requests share their settings."""
        torch, first = self._torch, batch[0]
        calls = [{**r.document(), "chat": self._chat(r)} for r in batch]
        inputs = self._tokenizer(
            [call["chat"] for call in calls], return_tensors="pt", padding=True, add_special_tokens=False
        ).to(self._device)
        temperature, top_p, seed = first.sampling
        settings: dict[str, Any] = {"do_sample": False}
        if temperature > 0.0:
            settings = {"do_sample": True, "temperature": temperature, "top_p": top_p, "top_k": 0}
        if first.stop:
            settings |= {"stop_strings": list(first.stop), "tokenizer": self._tokenizer}
        clock = time.monotonic()
        with self._lock, torch.inference_mode():
            torch.manual_seed(seed)
            try:
                output = self._network.generate(
                    **inputs,
                    max_new_tokens=first.max_tokens,
                    max_time=self.timeout,
                    pad_token_id=self._tokenizer.pad_token_id,
                    **settings,
                )
            except torch.OutOfMemoryError:
                detail = "out of GPU memory; use fewer slots"
                return [Attempt(Outcome.FAILED, "", Usage(calls=1), call, None, detail) for call in calls]
        late = time.monotonic() - clock > self.timeout
        width = inputs["input_ids"].shape[1]
        asked = inputs["attention_mask"].sum(dim=1).tolist()
        return [
            self._read(request, call, tokens[width:].tolist(), int(count), late=late)
            for request, call, tokens, count in zip(batch, calls, output, asked, strict=True)
        ]

    def _read(self, request: Request, call: Mapping[str, Any], tokens: list[int], asked: int, *, late: bool) -> Attempt:
        ends = self._network.generation_config.eos_token_id
        ends = set(ends if isinstance(ends, list) else [ends]) | {self._tokenizer.eos_token_id}
        length = next((i for i, token in enumerate(tokens) if token in ends), None)
        used = len(tokens) if length is None else length + 1
        text = self._tokenizer.decode(tokens[: len(tokens) if length is None else length], skip_special_tokens=True)
        stops = [text.find(stop) for stop in request.stop if stop in text]
        finish = "stop" if length is not None or stops else "length"
        text = text[: min(stops)] if stops else text
        usage = Usage(asked, used, 1)
        response = {"text": text, "finish_reason": finish, "tokens": used}
        if late and finish == "length":
            return Attempt(Outcome.TIMEOUT, text, usage, call, response, "stopped at the time limit")
        return classify(text, finish, usage, call, response)

    def _chat(self, request: Request) -> str:
        if self._tokenizer.chat_template is None:
            raise InputError(f"model {self.name}: the checkpoint has no chat template; use an instruction-tuned one")
        text = self._tokenizer.apply_chat_template(request.messages(), tokenize=False, add_generation_prompt=True)
        return str(text)


def _device(torch: Any) -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def _weights(model: str, network: Any) -> str:
    """What tells these weights from others of the same name: the digest of the local files, or the
    hub's commit; "" where neither is known.
    """
    path = Path(model)
    if not path.exists():
        commit = getattr(network.config, "_commit_hash", None)
        return f"commit {commit}" if commit else ""
    whole = hashlib.sha256()
    for file in [path] if path.is_file() else sorted(found for found in path.iterdir() if found.is_file()):
        stat = file.stat()
        whole.update(f"{file.name} {digest(file, stat.st_size, stat.st_mtime_ns)}\n".encode())
    return f"sha256 {whole.hexdigest()}"


def _source(model: str, revision: str | None) -> tuple[str, dict[str, str]]:
    """Where ``from_pretrained`` finds the checkpoint, and its extra arguments for a GGUF file."""
    if model.endswith(".gguf"):
        if not Path(model).is_file():
            raise InputError(f"model transformers:{model}: there is no such file")
        return str(Path(model).parent), {"gguf_file": Path(model).name}
    return model, {} if revision is None else {"revision": revision}
