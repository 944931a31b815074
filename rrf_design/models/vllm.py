"""Checkpoints in this process through vLLM, where it is installed: its scheduler keeps a card busy.

Questions come in batches of up to `slots`; vLLM shares the work of equal beginnings among them, so
the questions of one item that begin with its document read it once. A JSON schema is held to while
the answer is written.
"""

from __future__ import annotations

import importlib.util
import json
import threading
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rrf_design.errors import InputError, MissingDependency
from rrf_design.models._faults import classify
from rrf_design.models.base import Attempt, Model, Outcome, Request, Retry, Usage


class VLLMModel(Model):
    """``vllm:NAME-OR-PATH``; `cards` shares the layers out over so many, `context` is the longest
    question with its answer, in tokens.
    """

    local = True
    batching = True
    supports_schema = True

    def __init__(
        self,
        model: str,
        *,
        slots: int = 64,
        cards: int = 1,
        context: int | None = None,
        dtype: str = "auto",
        revision: str | None = None,
    ) -> None:
        if importlib.util.find_spec("vllm") is None:
            raise MissingDependency(
                "model vllm:... needs vllm and a card that it runs on; get it with: pip install vllm"
            )
        import vllm

        known = Path(model).exists()
        self.name = f"vllm:{Path(model).name if known else model}"
        self.slots = slots
        self.kept = not known  # a folder of one's own could change under its name
        self.retry = Retry(attempts=1)  # in process nothing is busy or unreachable; asking again changes nothing
        self._vllm = vllm
        self._lock = threading.Lock()
        try:
            self._engine = vllm.LLM(
                model=model,
                revision=revision,
                dtype=dtype,
                seed=0,
                tensor_parallel_size=cards,
                max_model_len=context,
                max_num_seqs=slots,
                enable_prefix_caching=True,
            )
        except (OSError, ValueError, ImportError, RuntimeError) as error:
            raise InputError(f"model {self.name}: can't load it ({str(error).splitlines()[0][:200]})") from None
        self._identity = {
            "adapter": "vllm",
            "model": Path(model).name if known else model,
            "revision": revision or "",
            "runtime": f"vllm {version('vllm')}",
            "dtype": dtype,
        }

    @property
    def identity(self) -> Mapping[str, Any]:
        return self._identity

    def close(self) -> None:
        self._engine = None

    def attempt(self, request: Request) -> Attempt:
        return self.attempt_all([request])[0]

    def attempt_all(self, requests: Sequence[Request]) -> list[Attempt]:
        """One call of the engine; a question that it refuses (too long) is found out alone."""
        try:
            with self._lock:
                outputs = self._engine.chat(
                    [request.messages() for request in requests],
                    sampling_params=[self._parameters(request) for request in requests],
                    use_tqdm=False,
                )
        except ValueError as error:
            if len(requests) > 1:
                return [self.attempt_all([request])[0] for request in requests]
            call = requests[0].document()
            return [Attempt(Outcome.FAILED, "", Usage(calls=1), call, None, str(error)[:300])]
        return [self._read(request, output) for request, output in zip(requests, outputs, strict=True)]

    def _parameters(self, request: Request) -> Any:
        """What a question says about its answer; greedy where it has no temperature."""
        from vllm import sampling_params

        temperature, top_p, seed = request.sampling
        more: dict[str, Any] = {}
        if request.schema is not None:
            schema = json.loads(request.schema)
            if hasattr(sampling_params, "StructuredOutputsParams"):
                more["structured_outputs"] = sampling_params.StructuredOutputsParams(json=schema)
            else:  # before 0.11
                more["guided_decoding"] = sampling_params.GuidedDecodingParams(json=schema)
        return self._vllm.SamplingParams(
            temperature=temperature,
            top_p=top_p,
            seed=seed,
            max_tokens=request.max_tokens,
            stop=list(request.stop) or None,
            **more,
        )

    def _read(self, request: Request, output: Any) -> Attempt:
        said = output.outputs[0]
        usage = Usage(len(output.prompt_token_ids or ()), len(said.token_ids), 1)
        response = {"text": said.text, "finish_reason": said.finish_reason, "tokens": len(said.token_ids)}
        return classify(said.text, said.finish_reason, usage, request.document(), response)
