"""The real-model protocol: items, prompts, answers, fields, baselines, replay (paper, "Real-model mathematics and code protocol").

arithmetic, programs   the 128 + 64 items of the paper, and easier sums and products of our own
answers                which requests an item needs, asking them, and the log they are published in
fields                 parsed and canonicalised answers: the four-node field of an item
hidden                 hidden tests: read by the evaluation alone, after every choice has been made
baselines, audits      natural results, failure taxonomy, sensitivity
designs, replay        the ten operator designs, and authentic errors replayed under them
"""

from __future__ import annotations
