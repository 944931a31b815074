"""Checkpoints in this process through Transformers: on the GPU in half precision when there is one,
else on the CPU.

This is how the paper asked its models: the checkpoint's chat template, greedy decoding in batches.
The same GGUF file that llama.cpp runs can be loaded too (its weights are dequantised), and answers
with other text: the runtime is part of the identity.

Sampled requests share a batch too. The largest of log p(token) + G, with independent Gumbel noise G
for each token, is a draw from p; each request has the noise of a generator of its own, made of its
seed, so what else is in the batch changes nothing of it.
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
from rrf_design.models._faults import classify
from rrf_design.models.base import Attempt, Model, Outcome, Request, Retry, Usage
from rrf_design.models.embedded import digest


class TransformersModel(Model):
    """``transformers:NAME-OR-PATH``; a path may be a checkpoint folder or a GGUF file.

    Up to ``slots`` requests are generated as one batch, those of about one length together; a batch
    that does not fit into the card's memory is halved, and later ones are made smaller. ``dtype``
    is bfloat16 on a card that has it, float16 on one that has not, float32 on the CPU.
    ``device_map`` shares the layers out over cards ("auto" where there are several).
    """

    local = True
    batching = True

    def __init__(
        self,
        model: str,
        *,
        slots: int = 8,
        device: str | None = None,
        device_map: str | None = None,
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
        if device is None and self._device == "cuda" and torch.cuda.device_count() > 1:
            device_map = device_map or "auto"
        chosen = dtype or _precision(torch, self._device)
        if not isinstance(getattr(torch, chosen, None), torch.dtype):
            raise InputError(f"model {self.name}: unknown dtype {chosen!r}; use float16, bfloat16 or float32")
        source, gguf = _source(model, revision)
        transformers.utils.logging.set_verbosity_error()
        transformers.utils.logging.disable_progress_bar()
        try:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(source, padding_side="left", **gguf)
            shared_out = {} if device_map is None else {"device_map": device_map}
            network = transformers.AutoModelForCausalLM.from_pretrained(
                source, dtype=getattr(torch, chosen), **shared_out, **gguf
            )
        except (OSError, ValueError, ImportError) as error:
            raise InputError(f"model {self.name}: can't load it ({str(error).splitlines()[0]})") from None
        self._network = (network if shared_out else network.to(self._device)).eval()
        if shared_out:
            self._device = str(network.get_input_embeddings().weight.device)
        self._too_large = float("inf")
        """Tokens of the smallest batch that did not fit into memory."""
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
        return self.attempt_all([request])[0]

    def attempt_all(self, requests: Sequence[Request]) -> list[Attempt]:
        """Batches of requests that end in the same way."""
        chats = [self._chat(request) for request in requests]
        groups: dict[object, list[int]] = {}
        for i in sorted(range(len(requests)), key=lambda i: len(chats[i]), reverse=True):
            groups.setdefault((requests[i].max_tokens, requests[i].stop), []).append(i)
        found: dict[int, Attempt] = {}
        for members in groups.values():
            batch = [(requests[i], chats[i]) for i in members]
            found |= zip(members, self._fitting(batch), strict=True)
        return [found[i] for i in range(len(requests))]

    def _fitting(self, batch: list[tuple[Request, str]]) -> list[Attempt]:
        """A batch in as many parts as memory needs."""
        inputs = self._tokenizer(
            [chat for _, chat in batch], return_tensors="pt", padding=True, add_special_tokens=False
        )
        tokens = len(batch) * (inputs["input_ids"].shape[1] + batch[0][0].max_tokens)
        if len(batch) == 1 or tokens < self._too_large:
            try:
                return self._generate(batch, inputs)
            except self._torch.OutOfMemoryError:
                if len(batch) == 1:
                    detail = "out of GPU memory with this question alone"
                    return [Attempt(Outcome.FAILED, "", Usage(calls=1), _call(*batch[0]), None, detail)]
                self._too_large = min(self._too_large, tokens)
            if self._device.startswith("cuda"):
                self._torch.cuda.empty_cache()
        half = len(batch) // 2
        return [*self._fitting(batch[:half]), *self._fitting(batch[half:])]

    def _generate(self, batch: list[tuple[Request, str]], inputs: Any) -> list[Attempt]:
        """One call of ``generate``; the requests end in the same way."""
        torch, first = self._torch, batch[0][0]
        settings: dict[str, Any] = {}
        if any(request.sampling[0] > 0.0 for request, _ in batch):
            settings["logits_processor"] = [_Sampler(torch, [request for request, _ in batch])]
        if first.stop:
            settings |= {"stop_strings": list(first.stop), "tokenizer": self._tokenizer}
        clock = time.monotonic()
        with self._lock, torch.inference_mode():
            output = self._network.generate(
                **inputs.to(self._device),
                do_sample=False,
                max_new_tokens=first.max_tokens,
                max_time=self.timeout,
                pad_token_id=self._tokenizer.pad_token_id,
                **settings,
            )
        late = time.monotonic() - clock > self.timeout
        width = inputs["input_ids"].shape[1]
        asked = inputs["attention_mask"].sum(dim=1).tolist()
        return [
            self._read(request, _call(request, chat), tokens[width:].tolist(), int(count), late=late)
            for (request, chat), tokens, count in zip(batch, output, asked, strict=True)
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


def _call(request: Request, chat: str) -> dict[str, Any]:
    """What is kept of a request: what was said, as the checkpoint's template says it."""
    return {**request.document(), "chat": chat}


class _Sampler:
    """Turns the scores of a batch so that the largest is what each request samples; the row of a
    greedy request stays as it is.
    """

    def __init__(self, torch: Any, requests: Sequence[Request]) -> None:
        self._torch = torch
        self._requests = requests
        self._generators: list[Any] = []

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        if not self._generators:
            for request in self._requests:
                self._generators.append(self._torch.Generator(scores.device).manual_seed(request.sampling[2]))
        drawn = scores.float().clone()
        for row, (request, generator) in enumerate(zip(self._requests, self._generators, strict=True)):
            temperature, top_p, _ = request.sampling
            if temperature > 0.0:
                logs = self._torch.log_softmax(drawn[row] / temperature, dim=-1)
                noise = self._torch.empty_like(logs).exponential_(generator=generator)
                drawn[row] = self._kept(logs, top_p) - noise.log()
        return drawn

    def _kept(self, logs: Any, top_p: float) -> Any:
        """Without the tokens beyond the fewest likeliest ones that have `top_p` together."""
        if top_p >= 1.0:
            return logs
        ordered, places = logs.sort(descending=True)
        before = ordered.exp().cumsum(dim=-1) - ordered.exp()
        return logs.masked_fill(self._torch.zeros_like(logs, dtype=bool).scatter(0, places, before >= top_p), -_INF)


_INF = float("inf")


def _precision(torch: Any, device: str) -> str:
    """Half precision on a card, with the exponents of float32 where it has them."""
    if device == "cpu":
        return "float32"
    return "bfloat16" if device.startswith("cuda") and torch.cuda.is_bf16_supported() else "float16"


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
