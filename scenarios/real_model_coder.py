"""The real-model protocol once more, on a stronger subject: four times the size, trained on code.

Nothing but the model differs from `real_model`. Its weights don't come with the project; the
published log of its answers does, and a run beside that log asks nothing.
"""

from __future__ import annotations

from dataclasses import replace

from scenarios.real_model import SCENARIO as EMBEDDED

WEIGHTS = "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"

SCENARIO = replace(
    EMBEDDED,
    name="real-model-coder",
    title="The real-model protocol on a stronger subject",
    question="Does the outcome hold for a model that answers some of the paper's own items?",
    about=f"""The protocol of real-model, word for word, on Qwen2.5-Coder-0.5B-Instruct ({WEIGHTS}). The
    answers were asked by rrf-design scenario run real-model-coder --model PATH/{WEIGHTS}; they
    lie beside this page, and a run without the weights uses them.

    {EMBEDDED.about}""",
    full={**EMBEDDED.full, "model": WEIGHTS, "printed": 0},
    quick={**EMBEDDED.quick, "mathematics": 4, "code": 2, "ours": 2, "printed": 0},
)
